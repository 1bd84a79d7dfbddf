"""Merges the gold of one text from several files, people or records, after all files are read and before anything is fitted.

- Gold that agrees counts once. Labels that only one annotation has are taken.
- Contradicting gold is unknown: spans with all their tokens, labels of tokens, categories, identities of links.
- Agreed or ground-truth annotations take precedence.
- Texts that one corpus (a file of whole documents) repeats are different texts; those of other files are compared with them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, repeat
from pathlib import Path
from typing import Any

from spacy.attrs import ENT_IOB, HEAD, IDX
from spacy.tokens import Doc, Span

from ..annotations.annotation import UNKNOWN
from ..annotations.kinds import REJECTED, REJECTED_CATS, REJECTED_LINKS, REJECTED_TOKENS
from ..annotations.spans import LINK, SPANS_PREFIX
from ..errors import calib_error
from ..spacy_private import EXTENSION_KEY
from .conflict_counts import CONFLICTS, GoldConflicts
from .keys import DRAWN_KEY
from .places import Coverage
from .tool_exports import BY_DOUBT

# Keys of `Doc.user_data`: annotator ("" if unknown), and whether it is agreed or ground-truth annotation.
PERSON, AGREED = "calib_person", "calib_agreed"
NER, CATS = "ner", "cats"
_LAYERS = ("TAG", "POS", "LEMMA", "MORPH", "DEP", "SENT_START")
_SpanKey = tuple[int, int, str]  # character offsets (start, end) and label


def reconcile(files: Sequence[Sequence[Doc]]) -> list[list[Doc | None]]:
    """Merge the gold Docs with the same text. files: The gold Docs of each file.

    RETURNS (list): Lists of the same lengths. Of Docs with the same text the first, and its repeats if its file is a corpus,
        get the merged gold, and the others become None.
    """
    merged_files: list[list[Doc | None]] = [list(docs) for docs in files]
    locations: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, docs in enumerate(files):
        for index, doc in enumerate(docs):
            locations[doc.text.rstrip()].append((number, index))
    corpora = [doc for docs in files for doc in docs if PERSON not in doc.user_data]  # not from files of answers
    tags, entities = {token.tag_ for doc in corpora for token in doc}, {ent.label_ for doc in corpora for ent in doc.ents}
    for text, doc_keys in locations.items():
        docs = [files[number][index] for number, index in doc_keys]
        is_corpus = len({number for number, _ in doc_keys}) == 1 and not any(PERSON in doc.user_data for doc in docs)
        if len(docs) == 1 or is_corpus or not text.strip():
            continue
        # A corpus among the Docs shows whether labels of answers are tags or entities.
        if not all(PERSON in doc.user_data for doc in docs):
            docs = [_keep_one_kind(doc, tags - entities) if PERSON in doc.user_data else doc for doc in docs]
        merged_by_tokens: dict[Any, Doc] = {}
        remaining: list[Doc] = []  # one Doc or, if a corpus comes first, all its Docs with this text
        for (number, index), doc in zip(doc_keys, docs, strict=True):
            merged_files[number][index] = None
            if not remaining or (number == doc_keys[0][0] and PERSON not in doc.user_data):
                tokens = (PERSON in doc.user_data, *(token.orth for token in doc))
                if tokens not in merged_by_tokens:
                    merged_by_tokens[tokens] = merge_gold(doc, docs)
                merged_files[number][index] = copy = _with_data_of(merged_by_tokens[tokens], doc)
                remaining.append(copy)
        conflicts = next(iter(merged_by_tokens.values())).user_data[CONFLICTS]
        conflicts["copies"] += len(docs) - len(remaining)
        remaining[0].user_data[CONFLICTS] = conflicts  # counted once
    return merged_files


def check_agreement(file: Path, docs: Iterable[Doc | None]) -> None:
    """Check that some gold of a file is left after `reconcile`. RAISES C791: none is, and annotators differ on entities."""
    conflicts, has_other_gold = GoldConflicts(), False
    for doc in filter(None, docs):
        conflicts.add(doc)
        has_other_gold |= bool(doc.ents or doc.cats or doc.has_annotation("TAG"))
    if n := conflicts.differing[NER] * (not has_other_gold):
        raise calib_error("C791", path=file, n=f"{n:,}")


def _with_data_of(merged: Doc, doc: Doc) -> Doc:
    """Return a copy of the merged gold with the user data of one of the merged Docs, except keys that the merge dropped."""
    kept = {key: value for key, value in doc.user_data.items() if key in merged.user_data and key not in (DRAWN_KEY, CONFLICTS)}
    copy = merged.copy()
    copy.user_data = {**merged.user_data, **kept}
    del copy.user_data[CONFLICTS]
    return copy


def _keep_one_kind(doc: Doc, tags: Collection[str]) -> Doc:
    """Return a copy of an answered Doc, whose labels of single tokens were stored as tags and as entities, with one of both.

    tags (Collection[str]): Tags of corpora that are no entity labels there. The Doc's labels are tags if all are among these.
    """
    labels = {span.label_ for span in (*doc.ents, *(span for group in doc.spans.values() for span in group))}
    one_kind = doc.copy()
    if labels and labels.issubset(tags):
        one_kind.set_ents([], default="missing")
        for key in [key for key in doc.spans if key != REJECTED_TOKENS]:
            del one_kind.spans[key]
        return one_kind
    one_kind.spans.pop(REJECTED_TOKENS, None)
    for token in one_kind:
        token.tag = token.lemma = token.pos = 0
        token.set_morph(None)  # type: ignore[attr-defined]
    return one_kind


def merge_gold(base: Doc, docs: Sequence[Doc]) -> Doc:
    """Return a Doc with the merged gold of Docs of one text. base (Doc): The one whose user data and tokens take precedence."""
    conflicts, gold_docs = GoldConflicts(), [doc for doc in docs if doc.user_data.get(AGREED)] or docs
    for doc in gold_docs:
        conflicts.add(doc)
    user_data: dict[Any, Any] = {key: value for doc in reversed(docs) for key, value in doc.user_data.items()} | base.user_data
    if any(doc.user_data.get(DRAWN_KEY) == BY_DOUBT for doc in docs):
        user_data[DRAWN_KEY] = BY_DOUBT
    _drop_contradictory_attributes(user_data, gold_docs, conflicts)
    token_doc = max(gold_docs, key=len) if PERSON in base.user_data else base
    words, spaces = [token.text for token in token_doc], [bool(token.whitespace_) for token in token_doc]
    merged_doc = Doc(base.vocab, words, spaces, user_data=user_data)
    _merge_tokens(merged_doc, gold_docs, conflicts)
    _merge_entities(merged_doc, gold_docs, conflicts)
    for key in dict.fromkeys(key for doc in gold_docs for key in doc.spans if not key.startswith("calib_")):
        _merge_group(merged_doc, gold_docs, key, conflicts)
    _merge_cats(merged_doc, gold_docs, conflicts)
    merged_doc.user_data[CONFLICTS] = conflicts.to_dict()
    return merged_doc


def _drop_contradictory_attributes(user_data: dict[Any, Any], gold_docs: Sequence[Doc], conflicts: GoldConflicts) -> None:
    """Delete from the user data the extension attributes for which the Docs have different values."""
    keys: list[Any] = [key for key in user_data if isinstance(key, tuple) and key[:1] == (EXTENSION_KEY,)]
    for key in (key for key in keys if not key[1].startswith("_")):
        if conflicts.note(f"ext:{key[1]}", [repr(doc.user_data[key]) for doc in gold_docs if key in doc.user_data]):
            del user_data[key]


# Tokens


def _merge_tokens(merged_doc: Doc, gold_docs: Sequence[Doc], conflicts: GoldConflicts) -> None:
    """Write the token labels on which all Docs agree that have such labels and the same token; other tokens get none."""
    rows = [_token_rows(doc) for doc in gold_docs]
    layers_by_doc = [{name for row in of_doc.values() for name, value in row.items() if value} for of_doc in rows]
    values: list[dict[str, Any]] = []  # labels of each token by layer, None if unknown
    for token in merged_doc:
        offsets = (token.idx, token.idx + len(token))
        labels: dict[str, Any] = {}
        for name in _LAYERS:
            rows_with_layer = [of_doc for of_doc, layers in zip(rows, layers_by_doc, strict=True) if name in layers]
            label_values = [of_doc.get(offsets, {name: "other tokens"})[name] for of_doc in rows_with_layer]
            label_values = [value for value in label_values if value]
            contradicts = conflicts.note(name, [value[0] if name == "SENT_START" else value for value in label_values])
            labels[name] = label_values[0] if label_values and label_values[0] != "other tokens" and not contradicts else None
        values.append(labels)
    _write_rejected_labels(merged_doc, gold_docs, values, conflicts)
    for token, labels in zip(merged_doc, values, strict=True):
        token.tag, token.lemma, token.pos = (labels[name] or 0 for name in ("TAG", "LEMMA", "POS"))
        token.set_morph(labels["MORPH"])  # type: ignore[attr-defined]
    if any("DEP" in layers for layers in layers_by_doc) and not conflicts.differing["SENT_START"]:
        _write_arcs(merged_doc, gold_docs, values)
    elif any("SENT_START" in layers for layers in layers_by_doc):
        for token, labels in zip(merged_doc, values, strict=True):
            token.is_sent_start = labels["SENT_START"] and labels["SENT_START"][0] == 1


def _token_rows(doc: Doc) -> dict[tuple[int, int], dict[str, Any]]:
    """Return (start, end) in characters of each token -> its labels by layer, as spaCy's integers, 0 for none.

    The label of "DEP" is (label, character offset of the head), that of "SENT_START" is (value,), 1 at a sentence start.
    """
    columns = doc.to_array([*_LAYERS]).tolist()
    rows = {}
    for token, row in zip(doc, columns, strict=True):
        labels: dict[str, Any] = dict(zip(_LAYERS, row, strict=True))
        labels["DEP"] = labels["DEP"] and (labels["DEP"], token.head.idx)
        labels["SENT_START"] = labels["SENT_START"] and (labels["SENT_START"],)
        rows[token.idx, token.idx + len(token)] = labels
    return rows


def _write_rejected_labels(
    merged_doc: Doc, gold_docs: Sequence[Doc], values: list[dict[str, Any]], conflicts: GoldConflicts
) -> None:
    """Write the rejected labels of tokens, unless a Doc without rejections has tags.

    values (list): Labels of each token by layer. The labels of a token that one Doc accepts and another rejects become None.
    """
    groups = [doc.spans[REJECTED_TOKENS] for doc in gold_docs if REJECTED_TOKENS in doc.spans]
    n_tagged = sum(doc.has_annotation("TAG") for doc in gold_docs if REJECTED_TOKENS not in doc.spans)
    if not groups:
        return
    rejected_spans = []
    for start, end, label in dict.fromkeys((span.start_char, span.end_char, span.label) for group in groups for span in group):
        span = merged_doc.char_span(start, end, label=label)
        if span is None or len(span) > 1:
            continue
        if conflicts.note("TAG", [False, *([True] if values[span.start]["TAG"] == label else [])]):  # rejected, accepted
            values[span.start] = {**values[span.start], "TAG": None, "LEMMA": None, "POS": None, "MORPH": None}
        else:
            rejected_spans.append(span)
    if not n_tagged:
        merged_doc.spans[REJECTED_TOKENS] = rejected_spans


def _write_arcs(merged_doc: Doc, gold_docs: Sequence[Doc], values: Sequence[dict[str, Any]]) -> None:
    """Write the heads of the first Doc that has arcs and the same tokens, and the arc labels of `values`, a dict per token."""
    starts = merged_doc.to_array([IDX]).tolist()
    parsed_doc = next((doc for doc in gold_docs if doc.has_annotation("DEP") and doc.to_array([IDX]).tolist() == starts), None)
    if parsed_doc is not None:
        merged_doc.from_array([HEAD, "DEP"], parsed_doc.to_array([HEAD, "DEP"]))  # type: ignore[arg-type]
        for token, labels in zip(merged_doc, values, strict=True):
            token.dep = labels["DEP"][0] if labels["DEP"] else 0


# Spans


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
    def _taken(self) -> Coverage:
        return Coverage(self.accepted_keys)

    def verdict(self, span: _SpanKey) -> bool | None:
        """Return whether a span of the text is right by this gold; None if unknown."""
        if span in self.accepted_keys:
            return True
        if self.rejected_keys is None:
            return None if self.unknown.overlaps(span) else False
        return False if span in self.rejected_keys or (self.is_exclusive and self._taken.overlaps(span)) else None


def _span_keys(spans: Iterable[Span]) -> frozenset[_SpanKey]:
    """Return (start, end, label) of each span, in characters."""
    return frozenset((span.start_char, span.end_char, span.label_) for span in spans)


def _count_votes(votes: Sequence[_SpanGold], layer: str, conflicts: GoldConflicts) -> dict[bool | None, list[_SpanKey]]:
    """Return verdict -> spans, and count conflicts: True for right, False for rejected, None for contradictory spans.

    votes (Sequence): The gold spans of each Doc. layer (str): Name under which conflicts are counted, such as "ner".
    """
    spans: dict[bool | None, list[_SpanKey]] = {True: [], False: [], None: []}
    accepted = Counter(span for vote in votes for span in vote.accepted_keys)  # span -> number of Docs with it
    for span in sorted({*accepted, *(span for vote in votes for span in vote.rejected_keys or ())}):
        rejections = islice((False for vote in votes if vote.verdict(span) is False), 2)  # more would count the same
        verdicts = [*repeat(True, accepted[span]), *rejections]
        spans[None if conflicts.note(layer, verdicts) else verdicts[0]].append(span)
    conflicts.labels.update(label for *_, label in spans[None])
    return spans


def _rejected_keys(doc: Doc) -> frozenset[_SpanKey] | None:
    """Return (start, end, label) of each rejected span; None if all spans that are not accepted are wrong."""
    return _span_keys(doc.spans[REJECTED]) if REJECTED in doc.spans else None


def _merge_entities(merged_doc: Doc, gold_docs: Sequence[Doc], conflicts: GoldConflicts) -> None:
    """Write the entities on which all Docs agree, with their identities. Tokens of contradictory entities get no gold."""
    gold_docs = [doc for doc in gold_docs if REJECTED in doc.spans or doc.to_array([ENT_IOB]).any()]
    gaps = [Coverage(_gaps(doc)) for doc in gold_docs]
    votes = [_SpanGold(_span_keys(doc.ents), _rejected_keys(doc), gap, True) for doc, gap in zip(gold_docs, gaps, strict=True)]
    spans = _count_votes(votes, NER, conflicts)
    kb_ids: dict[_SpanKey, list[str]] = defaultdict(list)
    for ent in (ent for doc in gold_docs for ent in doc.ents if ent.kb_id):
        kb_ids[ent.start_char, ent.end_char, ent.label_].append(ent.kb_id_)
    links = {key: "" if conflicts.note(LINK, kb_ids[key]) else "".join(kb_ids[key][:1]) for key in spans[True]}
    entities = {key: merged_doc.char_span(*key[:2], label=key[2], kb_id=links[key]) for key in spans[True]}
    entity_spans = [span for span in entities.values() if span is not None]
    complete_gaps = [gap for vote, gap in zip(votes, gaps, strict=True) if vote.rejected_keys is None]  # complete Docs
    other_tokens = [key for key, span in entities.items() if span is None]
    conflicts.differing[NER] += len(other_tokens)  # these do not align with the tokens of the merged Doc
    doubtful, right_regions = Coverage((*spans[None], *other_tokens)), Coverage(spans[True])
    missing = [
        merged_doc[token.i : token.i + 1]
        for token in merged_doc
        for offsets in [(token.idx, token.idx + len(token))]
        if doubtful.overlaps(offsets)
        or (all(gap.overlaps(offsets) for gap in complete_gaps) and not right_regions.overlaps(offsets))
    ]
    missing_tokens = Coverage((gap.start, gap.end) for gap in missing)
    sure_entities = [span for span in entity_spans if not missing_tokens.overlaps((span.start, span.end))]
    if complete_gaps:
        merged_doc.set_ents(sure_entities, missing=missing, default="outside")
    elif gold_docs:
        merged_doc.set_ents(entity_spans, default="missing")
        merged_doc.spans[REJECTED] = _to_spans(merged_doc, spans[False])
    if any(REJECTED_LINKS in doc.spans for doc in gold_docs):
        right = {(start, end, kb_id) for (start, end, _), kb_id in links.items()}
        wrong = {key for doc in gold_docs for key in _span_keys(doc.spans.get(REJECTED_LINKS, ()))}
        merged_doc.spans[REJECTED_LINKS] = _to_spans(merged_doc, sorted(wrong - right - set(spans[None])))


def _gaps(doc: Doc) -> list[tuple[int, int]]:
    """Return (start, end), in characters, of the tokens without entity annotation."""
    iobs = doc.to_array([ENT_IOB]).reshape(-1).tolist()
    return [(token.idx, token.idx + len(token)) for token, iob in zip(doc, iobs, strict=True) if not iob]


def _to_spans(doc: Doc, keys: Iterable[_SpanKey]) -> list[Span]:
    """Return the spans with these keys, without those that begin or end inside of a token."""
    spans = (doc.char_span(start, end, label=label) for start, end, label in keys)
    return [span for span in spans if span is not None]


def _merge_group(merged_doc: Doc, gold_docs: Sequence[Doc], key: str, conflicts: GoldConflicts) -> None:
    """Write the spans of a group on which all Docs agree; contradictory ones are added to the group of unknown spans."""
    votes = []
    for doc in (doc for doc in gold_docs if key in doc.spans):
        unknown = Coverage((span.start_char, span.end_char) for span in doc.spans.get(UNKNOWN, ()))
        votes.append(_SpanGold(_span_keys(doc.spans[key]), _rejected_keys(doc), unknown, False))
    spans = _count_votes(votes, f"{SPANS_PREFIX}{key}", conflicts)
    merged_doc.spans[key] = _to_spans(merged_doc, spans[True])  # right; spans[None] are contradictory
    # One Doc has all spans, so the merged group has too. With REJECTED it would be read as a group where others are unknown.
    if any(vote.rejected_keys is None for vote in votes):
        doubtful = (merged_doc.char_span(*span[:2], label=span[2], alignment_mode="expand") for span in spans[None])
        unknown_spans = [*merged_doc.spans.get(UNKNOWN, ()), *doubtful]
        if unknown_spans:
            merged_doc.spans[UNKNOWN] = unknown_spans
        merged_doc.spans.pop(REJECTED, None)


# Categories


def _merge_cats(merged_doc: Doc, gold_docs: Sequence[Doc], conflicts: GoldConflicts) -> None:
    """Write the categories on which all Docs agree. Values on the same side of .5 agree if all have the same top category."""
    gold_docs = [doc for doc in gold_docs if doc.cats]
    has_same_top = len({max(doc.cats, key=doc.cats.__getitem__) for doc in gold_docs}) == 1
    names = dict.fromkeys(name for doc in gold_docs for name in doc.cats)
    for name in names:
        values = [doc.cats[name] for doc in gold_docs if name in doc.cats]
        agrees = has_same_top or len(set(values)) == 1 or max(values) in (0.0, 1.0)
        if not conflicts.note(CATS, [value > 0.5 if agrees else value for value in values]):
            merged_doc.cats[name] = values[0]
    if gold_docs and all(REJECTED_CATS in doc.spans for doc in gold_docs):
        absent = [name for name, has in merged_doc.cats.items() if not has]
        merged_doc.spans[REJECTED_CATS] = [Span(merged_doc, 0, len(merged_doc), label=name) for name in absent]
