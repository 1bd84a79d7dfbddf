"""Merges the gold of one text from several files, people or records, after all files are read and before anything is fitted.

- Gold that agrees counts once. Labels that only one annotation has are taken.
- Contradicting gold is unknown: spans with all their tokens, labels of tokens, categories, identities of links.
- Agreed or ground-truth annotations take precedence.
- Texts that one corpus (a file of whole documents) repeats are different texts; those of other files are compared with them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from spacy.attrs import ENT_IOB, HEAD, IDX
from spacy.tokens import Doc, Span

from ..annotations.annotation import UNKNOWN
from ..annotations.kinds import REJECTED, REJECTED_CATS, REJECTED_LINKS, REJECTED_TOKENS
from ..annotations.spans import LINK, SPANS_PREFIX
from ..errors import calib_error
from ..spacy_private import EXTENSION_KEY
from .keys import DRAWN_KEY
from .places import Coverage
from .tool_exports import BY_DOUBT

# Keys of `Doc.user_data`: annotator ("" if unknown), which only Docs from files of answers have; whether the Doc is agreed or
# ground-truth annotation; and the fields of a GoldConflicts.
PERSON, AGREED, CONFLICTS = "calib_person", "calib_agreed", "calib_conflicts"
NER, CATS = "ner", "cats"
_LAYERS = ("TAG", "POS", "LEMMA", "MORPH", "DEP", "SENT_START")
_SpanKey = tuple[int, int, str]  # character offsets (start, end) and label


@dataclass
class GoldConflicts:
    """Counts of the labels that several annotations of a text give, and of those on which the annotations differ.

    copies (int): Docs merged into another Doc of the same text. compared, differing (Counter): Layer ("ner", "TAG") -> number
    of labels that several annotations give, and on which they differ. overlapping (int): Entities that have a second label or
    overlap another one in the same annotation, so that neither can be taken. labels (set): Labels of spans that differ.
    """

    copies: int = 0
    compared: Counter[str] = field(default_factory=Counter)
    differing: Counter[str] = field(default_factory=Counter)
    overlapping: int = 0
    labels: set[str] = field(default_factory=set)

    def note(self, layer: str, values: Sequence[Any]) -> bool:
        """Count under `layer` the values that annotations give to one token, span or category. RETURNS: Whether they differ."""
        differs = len(set(values)) > 1
        self.compared[layer] += len(values) > 1
        self.differing[layer] += differs
        return differs

    def add(self, doc: Doc) -> None:
        """Add to these counts those in the user data of a Doc."""
        counts = doc.user_data.get(CONFLICTS, {})
        self.copies += counts.get("copies", 0)
        self.compared.update(counts.get("compared", {}))
        self.differing.update(counts.get("differing", {}))
        self.overlapping += counts.get("overlapping", 0)
        self.labels.update(counts.get("labels", ()))

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain data for the user data of a Doc, which a DocBin may save."""
        return {**vars(self), "compared": dict(self.compared), "differing": dict(self.differing), "labels": sorted(self.labels)}


def reconcile(files: Sequence[Sequence[Doc]]) -> list[list[Doc | None]]:
    """Merge the gold Docs with the same text. files: The gold Docs of each file.

    RETURNS (list): A list for each file with an item for each Doc. The first Doc of a text gets the merged gold, and the others
        become None; but if the first one is from a corpus (no file of answers), all Docs of the text in its file get the gold.
    """
    merged_files: list[list[Doc | None]] = [list(docs) for docs in files]
    places_by_text: dict[str, list[tuple[int, int]]] = defaultdict(list)  # places: (number of the file, index of the Doc in it)
    for number, docs in enumerate(files):
        for index, doc in enumerate(docs):
            places_by_text[doc.text.rstrip()].append((number, index))
    corpora = [doc for docs in files for doc in docs if not _is_answer(doc)]
    tags, entities = {token.tag_ for doc in corpora for token in doc}, {ent.label_ for doc in corpora for ent in doc.ents}
    for text, places in places_by_text.items():
        docs = [files[number][index] for number, index in places]
        is_one_corpus = len({number for number, _ in places}) == 1 and not any(map(_is_answer, docs))
        if len(docs) == 1 or not text.strip() or is_one_corpus:
            continue
        # A corpus among the Docs shows whether labels of answers are tags or entities.
        if not all(map(_is_answer, docs)):
            docs = [_keep_one_kind(doc, tags - entities) if _is_answer(doc) else doc for doc in docs]
        for (number, index), merged_doc in zip(places, _merge_docs(docs, [number for number, _ in places]), strict=True):
            merged_files[number][index] = merged_doc
    return merged_files


def _is_answer(doc: Doc) -> bool:
    """Return whether a Doc is from a file of answers; other files are corpora of whole documents."""
    return PERSON in doc.user_data


def _merge_docs(docs: Sequence[Doc], file_numbers: Sequence[int]) -> list[Doc | None]:
    """Merge the Docs of one text. file_numbers (Sequence[int]): The number of each Doc's file.

    RETURNS (list): For the first Doc and those of its corpus a copy with the merged gold and their user data; None for others.
    """
    merged_by_words: dict[tuple[int, ...], Doc] = {}  # a corpus can have one text in several tokenizations
    results = list[Doc | None]()
    for doc, file_number in zip(docs, file_numbers, strict=True):
        if doc is not docs[0] and (file_number != file_numbers[0] or _is_answer(doc)):
            results.append(None)
            continue
        words = tuple(token.orth for token in doc)
        if words not in merged_by_words:
            merged_by_words[words] = merge_gold(doc, docs)
        results.append(_with_data_of(merged_by_words[words], doc))
    conflicts = next(iter(merged_by_words.values())).user_data[CONFLICTS]  # counted once, in the first Doc
    conflicts["copies"] += results.count(None)
    cast(Doc, results[0]).user_data[CONFLICTS] = conflicts
    return results


def check_agreement(file: Path, docs: Iterable[Doc | None]) -> None:
    """Check that some gold of a file is left after `reconcile`. RAISES C791: none is, and annotators differ on entities."""
    conflicts, has_other_gold = GoldConflicts(), False
    for doc in filter(None, docs):
        conflicts.add(doc)
        has_other_gold |= bool(doc.ents or doc.cats or doc.has_annotation("TAG"))
    n = conflicts.differing[NER]
    if n and not has_other_gold:
        raise calib_error("C791", path=file, n=f"{n:,}")


def _with_data_of(merged: Doc, doc: Doc) -> Doc:
    """Return a copy of the merged gold with the user data of one of the merged Docs, except keys that the merge dropped."""
    # How the text was sampled depends on all Docs, and `_merge_docs` adds the conflicts to one Doc.
    doc_keys = merged.user_data.keys() - {DRAWN_KEY, CONFLICTS}
    copy = merged.copy()
    copy.user_data = {**merged.user_data, **{key: value for key, value in doc.user_data.items() if key in doc_keys}}
    del copy.user_data[CONFLICTS]
    return copy


def _keep_one_kind(doc: Doc, tags: Collection[str]) -> Doc:
    """Return a copy of an answered Doc with its labels either as tags or as entities; `answered_doc` writes both.

    tags (Collection[str]): Tags in corpora that are not entity labels there. If all labels are among these, they are tags.
    """
    labels = {span.label_ for span in (*doc.ents, *(span for group in doc.spans.values() for span in group))}
    copy = doc.copy()
    if labels and labels.issubset(tags):  # the labels are tags
        copy.set_ents([], default="missing")
        for key in [key for key in doc.spans if key not in (REJECTED_TOKENS, REJECTED_CATS)]:
            del copy.spans[key]
        return copy
    copy.spans.pop(REJECTED_TOKENS, None)
    for token in copy:  # the labels are of entities
        token.tag = token.lemma = token.pos = 0
        token.set_morph(None)  # type: ignore[attr-defined]
    return copy


def merge_gold(base: Doc, docs: Sequence[Doc]) -> Doc:
    """Merge the gold of Docs of one text. User data of `base` take precedence, and so do its tokens if it is from a corpus."""
    conflicts = GoldConflicts()
    gold_docs = [doc for doc in docs if doc.user_data.get(AGREED)] or docs  # if some are agreed annotation, only these count
    for doc in gold_docs:
        conflicts.add(doc)
    user_data: dict[Any, Any] = {key: value for doc in reversed(docs) for key, value in doc.user_data.items()} | base.user_data
    if any(doc.user_data.get(DRAWN_KEY) == BY_DOUBT for doc in docs):
        user_data[DRAWN_KEY] = BY_DOUBT
    _drop_contradictory_attributes(user_data, gold_docs, conflicts)
    token_doc = max(gold_docs, key=len) if _is_answer(base) else base  # only tokens of a corpus take precedence
    words, spaces = [token.text for token in token_doc], [bool(token.whitespace_) for token in token_doc]
    merged_doc = Doc(base.vocab, words, spaces, user_data=user_data)
    _merge_tokens(merged_doc, gold_docs, conflicts)
    _merge_entities(merged_doc, gold_docs, conflicts)
    _merge_groups(merged_doc, gold_docs, conflicts)
    _merge_cats(merged_doc, gold_docs, conflicts)
    merged_doc.user_data[CONFLICTS] = conflicts.to_dict()
    return merged_doc


def _drop_contradictory_attributes(user_data: dict[Any, Any], gold_docs: Sequence[Doc], conflicts: GoldConflicts) -> None:
    """Delete from `user_data` the extension attributes for which gold_docs have different values; count in `conflicts`."""
    # Keys of extension attributes are (EXTENSION_KEY, name, ...); names that begin with "_" are internal.
    keys: list[Any] = [key for key in user_data if isinstance(key, tuple) and key[:1] == (EXTENSION_KEY,)]
    for key in (key for key in keys if not key[1].startswith("_")):
        if conflicts.note(f"ext:{key[1]}", [repr(doc.user_data[key]) for doc in gold_docs if key in doc.user_data]):
            del user_data[key]


def _merge_tokens(merged_doc: Doc, gold_docs: Sequence[Doc], conflicts: GoldConflicts) -> None:
    """Write token labels on merged_doc. For each layer, such as "TAG", a token gets the label on which the gold_docs agree.

    Docs without any label of the layer do not count. conflicts (GoldConflicts): Counts the labels that several Docs give, and
    those on which they differ; tokens with these get no label.
    """
    labels_by_doc = [_labels_by_place(doc) for doc in gold_docs]
    labels_by_layer = {}  # layer -> the labels of the Docs in which any token has a label of this layer
    for layer in _LAYERS:
        labels_by_layer[layer] = [by_place for by_place in labels_by_doc if any(labels[layer] for labels in by_place.values())]
    labels_of_tokens: list[dict[str, Any]] = []  # of each merged token: layer -> label, None if unknown
    for token in merged_doc:
        place = (token.idx, token.idx + len(token))
        labels: dict[str, Any] = {}
        for layer in _LAYERS:
            labels[layer] = _agreed_label([doc_labels.get(place) for doc_labels in labels_by_layer[layer]], layer, conflicts)
        labels_of_tokens.append(labels)
    _write_rejected_labels(merged_doc, gold_docs, labels_of_tokens, conflicts)
    for token, labels in zip(merged_doc, labels_of_tokens, strict=True):
        token.tag, token.lemma, token.pos = (labels[layer] or 0 for layer in ("TAG", "LEMMA", "POS"))
        token.set_morph(labels["MORPH"])  # type: ignore[attr-defined]
    # Arcs bring their own sentences, so they are written only if no Docs differ on sentences.
    if labels_by_layer["DEP"] and not conflicts.differing["SENT_START"]:
        _write_arcs(merged_doc, gold_docs, labels_of_tokens)
    elif labels_by_layer["SENT_START"]:
        for token, labels in zip(merged_doc, labels_of_tokens, strict=True):
            is_known = labels["SENT_START"] is not None
            token.is_sent_start = labels["SENT_START"] == 1 if is_known else None


def _agreed_label(labels_by_doc: Sequence[dict[str, Any] | None], layer: str, conflicts: GoldConflicts) -> Any:
    """Return the label of one token on which Docs agree; None if they differ, or none labels it.

    labels_by_doc (Sequence): For each Doc with labels of this layer: layer -> label of the token; None if it lacks the token.
    conflicts: Counts under `layer` the tokens that several Docs label (or lack), and those of them on which Docs differ.
    """
    # A Doc that lacks the token has other tokens there, which differ from any label. 0 is no label.
    values = ["other tokens" if doc_labels is None else doc_labels[layer] for doc_labels in labels_by_doc]
    votes = [value for value in values if value]
    differs = conflicts.note(layer, votes)
    return None if differs or not votes or votes[0] == "other tokens" else votes[0]


def _labels_by_place(doc: Doc) -> dict[tuple[int, int], dict[str, Any]]:
    """Return (start, end) in characters of each token -> its labels by layer, as spaCy's integers, 0 for none.

    The label of "DEP" is (label, character offset of the head), that of "SENT_START" is 1 at a sentence start.
    """
    labels_by_place = {}
    for token, values in zip(doc, doc.to_array([*_LAYERS]).tolist(), strict=True):
        labels: dict[str, Any] = dict(zip(_LAYERS, values, strict=True))
        labels["DEP"] = labels["DEP"] and (labels["DEP"], token.head.idx)
        labels_by_place[token.idx, token.idx + len(token)] = labels
    return labels_by_place


def _write_rejected_labels(
    merged_doc: Doc, gold_docs: Sequence[Doc], labels_of_tokens: list[dict[str, Any]], conflicts: GoldConflicts
) -> None:
    """Write on merged_doc the labels of tokens that any of gold_docs rejects and none accepts, in a span group.

    Nothing is written if a Doc without rejections has tags: its tags show anyway that all other labels are wrong.
    labels_of_tokens (list): The merged labels of each token, layer -> label; if a Doc rejects the tag that others accept, the
    token's tag, lemma, part of speech and features become None (unknown). conflicts (GoldConflicts): Counts such tags.
    """
    groups = [doc.spans[REJECTED_TOKENS] for doc in gold_docs if REJECTED_TOKENS in doc.spans]
    if not groups:
        return
    rejected_spans = []
    for start, end, label in dict.fromkeys((span.start_char, span.end_char, span.label) for group in groups for span in group):
        span = merged_doc.char_span(start, end, label=label)
        if span is None or len(span) > 1:  # no token of the merged Doc
            continue
        labels = labels_of_tokens[span.start]
        verdicts = [False, True] if labels["TAG"] == label else [False]  # True if another Doc accepts the label
        if conflicts.note("TAG", verdicts):  # counts the verdicts, and returns whether they differ
            labels |= dict.fromkeys(("TAG", "LEMMA", "POS", "MORPH"))  # None: unknown
        else:
            rejected_spans.append(span)
    if not any(doc.has_annotation("TAG") for doc in gold_docs if REJECTED_TOKENS not in doc.spans):
        merged_doc.spans[REJECTED_TOKENS] = rejected_spans


def _write_arcs(merged_doc: Doc, gold_docs: Sequence[Doc], labels_of_tokens: Sequence[dict[str, Any]]) -> None:
    """Copy the heads of the first Doc that has arcs and merged_doc's tokens; write the agreed labels (`labels_of_tokens`)."""
    starts = merged_doc.to_array([IDX]).tolist()
    parsed_doc = next((doc for doc in gold_docs if doc.has_annotation("DEP") and doc.to_array([IDX]).tolist() == starts), None)
    if parsed_doc is not None:
        merged_doc.from_array([HEAD, "DEP"], parsed_doc.to_array([HEAD, "DEP"]))  # type: ignore[arg-type]
        for token, labels in zip(merged_doc, labels_of_tokens, strict=True):
            token.dep = labels["DEP"][0] if labels["DEP"] else 0  # (label, offset of the head), None if unknown


@dataclass(frozen=True)
class _SpanGold:
    """The gold spans of one Doc, and what it says about other spans of the text.

    accepted_keys (frozenset), rejected_keys (frozenset | None): (start, end, label) of the right and of the wrong spans;
    rejected_keys is None if all spans that are not accepted are wrong. unknown (Coverage): Regions without gold.
    is_exclusive (bool): Whether spans that overlap an accepted one are wrong.
    """

    accepted_keys: frozenset[_SpanKey]
    rejected_keys: frozenset[_SpanKey] | None
    unknown: Coverage
    is_exclusive: bool

    @cached_property
    def _accepted_regions(self) -> Coverage:
        return Coverage(self.accepted_keys)

    def verdict(self, span: _SpanKey) -> bool | None:
        """Return whether a span of the text is right by this gold; None if unknown."""
        if span in self.accepted_keys:
            return True
        if self.rejected_keys is None:
            return None if self.unknown.overlaps(span) else False
        is_wrong = span in self.rejected_keys or (self.is_exclusive and self._accepted_regions.overlaps(span))
        return False if is_wrong else None


def _span_keys(spans: Iterable[Span]) -> frozenset[_SpanKey]:
    """Return (start, end, label) of each span, in characters."""
    return frozenset((span.start_char, span.end_char, span.label_) for span in spans)


def _compare_spans(
    golds: Sequence[_SpanGold], layer: str, conflicts: GoldConflicts
) -> tuple[list[_SpanKey], list[_SpanKey], list[_SpanKey]]:
    """Return (spans that are right by all Docs that decide about them, wrong spans, contradictory spans).

    golds (Sequence): The gold spans of each Doc. layer (str): Name, such as "ner", under which `conflicts` counts these spans.
    """
    right, wrong, contradictory = list[_SpanKey](), list[_SpanKey](), list[_SpanKey]()
    for span in sorted({key for gold in golds for key in (*gold.accepted_keys, *(gold.rejected_keys or ()))}):
        verdicts = [verdict for gold in golds if (verdict := gold.verdict(span)) is not None]
        if conflicts.note(layer, verdicts):
            contradictory.append(span)
        else:
            (right if verdicts[0] else wrong).append(span)
    conflicts.labels.update(label for *_, label in contradictory)
    return right, wrong, contradictory


def _rejected_keys(doc: Doc) -> frozenset[_SpanKey] | None:
    """Return (start, end, label) of each rejected span; None if all spans that are not accepted are wrong."""
    return _span_keys(doc.spans[REJECTED]) if REJECTED in doc.spans else None


def _merge_entities(merged_doc: Doc, gold_docs: Sequence[Doc], conflicts: GoldConflicts) -> None:
    """Write on merged_doc the entities on which all gold_docs agree, with their identities in a knowledge base.

    Tokens of contradictory entities get no gold. conflicts (GoldConflicts): Counts compared and contradictory entities.
    """
    gold_docs = [doc for doc in gold_docs if REJECTED in doc.spans or doc.to_array([ENT_IOB]).any()]  # with gold of entities
    golds = [_SpanGold(_span_keys(doc.ents), _rejected_keys(doc), Coverage(_gaps(doc)), is_exclusive=True) for doc in gold_docs]
    right, wrong, contradictory = _compare_spans(golds, NER, conflicts)
    links = _agreed_links(gold_docs, right, conflicts)
    spans = {key: merged_doc.char_span(*key[:2], label=key[2], kb_id=links[key]) for key in right}
    entities = [span for span in spans.values() if span is not None]
    misaligned = [key for key, span in spans.items() if span is None]  # do not begin and end with tokens of the merged Doc
    conflicts.differing[NER] += len(misaligned)
    # By a complete Doc, all spans that it does not accept are wrong. Its gaps are its tokens without annotation.
    gaps_of_complete = [gold.unknown for gold in golds if gold.rejected_keys is None]
    if gaps_of_complete:
        missing = _tokens_without_gold(merged_doc, gaps_of_complete, Coverage(right), Coverage((*contradictory, *misaligned)))
        missing_region = Coverage((span.start, span.end) for span in missing)  # of tokens
        entities = [span for span in entities if not missing_region.overlaps((span.start, span.end))]
        merged_doc.set_ents(entities, missing=missing, default="outside")
    elif gold_docs:  # all gold is yes/no answers: tokens outside of entities have no gold, and wrong spans are stored
        merged_doc.set_ents(entities, default="missing")
        merged_doc.spans[REJECTED] = _to_spans(merged_doc, wrong)
    if any(REJECTED_LINKS in doc.spans for doc in gold_docs):  # from answers, whose entities have identities as labels
        right_links = {(start, end, kb_id) for (start, end, _), kb_id in links.items()}
        rejected = {key for doc in gold_docs for key in _span_keys(doc.spans.get(REJECTED_LINKS, ()))}  # labels: identities
        merged_doc.spans[REJECTED_LINKS] = _to_spans(merged_doc, sorted(rejected - right_links - set(contradictory)))


def _tokens_without_gold(doc: Doc, gaps: Sequence[Coverage], right: Coverage, doubtful: Coverage) -> list[Span]:
    """Return the tokens in doubtful entities, and those that no complete Doc annotates and no right entity covers.

    gaps (Sequence): Characters without entity annotation, for each complete Doc. right, doubtful: Characters of entities.
    """
    missing = []
    for token in doc:
        place = (token.idx, token.idx + len(token))
        is_unannotated = all(region.overlaps(place) for region in gaps) and not right.overlaps(place)
        if is_unannotated or doubtful.overlaps(place):
            missing.append(doc[token.i : token.i + 1])
    return missing


def _agreed_links(gold_docs: Sequence[Doc], entities: Iterable[_SpanKey], conflicts: GoldConflicts) -> dict[_SpanKey, str]:
    """Return entity -> its identity in a knowledge base, "" if no Doc has one or gold_docs differ (counted in `conflicts`)."""
    kb_ids: dict[_SpanKey, list[str]] = defaultdict(list)
    for ent in (ent for doc in gold_docs for ent in doc.ents if ent.kb_id):
        kb_ids[ent.start_char, ent.end_char, ent.label_].append(ent.kb_id_)
    return {key: "" if conflicts.note(LINK, kb_ids[key]) else next(iter(kb_ids[key]), "") for key in entities}


def _gaps(doc: Doc) -> list[tuple[int, int]]:
    """Return (start, end), in characters, of the tokens without entity annotation."""
    iobs = doc.to_array([ENT_IOB]).reshape(-1).tolist()
    return [(token.idx, token.idx + len(token)) for token, iob in zip(doc, iobs, strict=True) if not iob]


def _to_spans(doc: Doc, keys: Iterable[_SpanKey]) -> list[Span]:
    """Return the spans of a Doc with these keys, without those that begin or end inside of a token."""
    spans = (doc.char_span(start, end, label=label) for start, end, label in keys)
    return [span for span in spans if span is not None]


def _merge_groups(merged_doc: Doc, gold_docs: Sequence[Doc], conflicts: GoldConflicts) -> None:
    """Write on merged_doc the spans of all groups on which gold_docs agree. The others are counted and become unknown."""
    all_right, all_contradictory = list[_SpanKey](), list[_SpanKey]()
    gold_docs = [doc for doc in gold_docs if any(map(_is_group_of_gold, doc.spans))]
    unknown = [Coverage(_span_keys(doc.spans.get(UNKNOWN, ()))) for doc in gold_docs]
    for key in dict.fromkeys(key for doc in gold_docs for key in doc.spans if _is_group_of_gold(key)):
        golds = [
            _SpanGold(_span_keys(doc.spans[key]), _rejected_keys(doc), region, is_exclusive=False)
            for doc, region in zip(gold_docs, unknown, strict=True)
            if key in doc.spans
        ]
        right, _, contradictory = _compare_spans(golds, f"{SPANS_PREFIX}{key}", conflicts)
        merged_doc.spans[key] = _to_spans(merged_doc, right)
        all_right += right
        all_contradictory += contradictory
    # By a Doc without rejections, all other spans are wrong, and so they are by the merged Doc, except for contradictory spans
    # and tokens that no such Doc decides. The group REJECTED, which would make all of them unknown, goes.
    unknown_of_complete = [region for doc, region in zip(gold_docs, unknown, strict=True) if REJECTED not in doc.spans]
    if unknown_of_complete:
        missing = _tokens_without_gold(merged_doc, unknown_of_complete, Coverage(all_right), Coverage(all_contradictory))
        if missing:
            merged_doc.spans[UNKNOWN] = missing
        merged_doc.spans.pop(REJECTED, None)


def _is_group_of_gold(key: str) -> bool:
    """Return whether the span group of this key is gold; groups "calib_..." have the rejected and unknown spans."""
    return not key.startswith("calib_")


def _merge_cats(merged_doc: Doc, gold_docs: Sequence[Doc], conflicts: GoldConflicts) -> None:
    """Write on merged_doc the categories on whose values gold_docs agree. conflicts (GoldConflicts): Counts the categories."""
    gold_docs = [doc for doc in gold_docs if doc.cats]
    has_same_top = len({max(doc.cats, key=doc.cats.__getitem__) for doc in gold_docs}) == 1
    names = dict.fromkeys(name for doc in gold_docs for name in doc.cats)
    for name in names:
        values = [doc.cats[name] for doc in gold_docs if name in doc.cats]
        # Values on one side of .5 agree. But without a 1 they may be scores, of which a Doc's highest is its answer: if the
        # top categories of the Docs then differ, only equal values agree.
        must_be_equal = max(values) not in (0.0, 1.0) and not has_same_top
        if not conflicts.note(CATS, values if must_be_equal else [value > 0.5 for value in values]):
            merged_doc.cats[name] = values[0]
    if gold_docs and all(REJECTED_CATS in doc.spans for doc in gold_docs):  # only yes/no answers: others are unknown
        absent = [name for name, has in merged_doc.cats.items() if not has]
        merged_doc.spans[REJECTED_CATS] = [Span(merged_doc, 0, len(merged_doc), label=name) for name in absent]
