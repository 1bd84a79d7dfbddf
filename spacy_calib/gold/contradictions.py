"""Gold of one text from several files, people or records -> one Doc, after all files are read and before anything is fitted.

- Gold that agrees counts once. Gold of a kind of label beats none of that kind.
- Contradicting gold is unknown: spans with all their tokens, labels of tokens, categories, identities of links.
- Agreed or ground-truth annotations beat single ones.
- Texts that one corpus (a file of whole documents) repeats are texts of their own; those of other files are compared with them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, repeat
from typing import Any

from spacy.attrs import ENT_IOB, HEAD, IDX
from spacy.tokens import Doc, Span

from ..annotations.base import REJECTED, REJECTED_CATS, REJECTED_LINKS, REJECTED_TOKENS, UNKNOWN
from ..annotations.spans import LINK, SPANS_PREFIX
from .keys import DRAWN_KEY
from .places import Coverage
from .tool_exports import BY_DOUBT

# Keys of `Doc.user_data`: who answered ("" is not known), whether it is agreed or ground-truth annotation, and the fields of a GoldConflicts.
PERSON, AGREED, CONFLICTS = "calib_person", "calib_agreed", "calib_conflicts"
NER, CATS = "ner", "cats"
_LAYERS = ("TAG", "POS", "LEMMA", "MORPH", "DEP", "SENT_START")
# First and last character, label.
Place = tuple[int, int, str]


@dataclass
class GoldConflicts:
    """What a text was given more often than once, and how it differs.

    copies (int): Docs that were left out for another one of the same text. compared, differing (Counter): Layer -> labels that two judged, and those on which
    they differ. overlapping (int): Entities with a second label, or that overlap another one, in one annotation, of which none can be taken.
    """

    copies: int = 0
    compared: Counter[str] = field(default_factory=Counter)
    differing: Counter[str] = field(default_factory=Counter)
    overlapping: int = 0

    def note(self, layer: str, values: Iterable[Any]) -> bool:
        """Count a label that several may have judged; return whether they contradict one another."""
        judged = list(values)
        differs = len(set(judged)) > 1
        self.compared[layer] += len(judged) > 1
        self.differing[layer] += differs
        return differs

    def add(self, doc: Doc) -> None:
        """Add what stands on a Doc."""
        counts = doc.user_data.get(CONFLICTS, {})
        self.copies += counts.get("copies", 0)
        self.compared.update(counts.get("compared", {}))
        self.differing.update(counts.get("differing", {}))
        self.overlapping += counts.get("overlapping", 0)

    def to_dict(self) -> dict[str, Any]:
        """Return what can stand in the user data of a Doc that is saved."""
        return {**vars(self), "compared": dict(self.compared), "differing": dict(self.differing)}


def reconcile(files: Sequence[Sequence[Doc]]) -> list[list[Doc | None]]:
    """Merge the Docs of the same text. files: The gold Docs of each file. RETURNS (list): The same; None for what is part of an earlier Doc now."""
    merged: list[list[Doc | None]] = [list(docs) for docs in files]
    places: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, docs in enumerate(files):
        for index, doc in enumerate(docs):
            places[doc.text.rstrip()].append((number, index))
    corpora = [doc for of_file in files for doc in of_file if PERSON not in doc.user_data]
    tags, entities = {token.tag_ for doc in corpora for token in doc}, {ent.label_ for doc in corpora for ent in doc.ents}
    for text, several in places.items():
        docs = [files[number][index] for number, index in several]
        is_corpus = len({number for number, _ in several}) == 1 and not any(PERSON in doc.user_data for doc in docs)
        if len(docs) == 1 or is_corpus or not text.strip():
            continue
        if not all(PERSON in doc.user_data for doc in docs):
            docs = [_of_one_kind(doc, tags - entities) if PERSON in doc.user_data else doc for doc in docs]
        by_tokens: dict[Any, Doc] = {}
        remaining: list[Doc] = []
        for (number, index), doc in zip(several, docs, strict=True):
            merged[number][index] = None
            if not remaining or (number == several[0][0] and PERSON not in doc.user_data):
                tokens = (PERSON in doc.user_data, *(token.orth for token in doc))
                if tokens not in by_tokens:
                    by_tokens[tokens] = merge_gold(doc, docs)
                merged[number][index] = copy = _with_data_of(by_tokens[tokens], doc)
                remaining.append(copy)
        conflicts = next(iter(by_tokens.values())).user_data[CONFLICTS]
        conflicts["copies"] += len(docs) - len(remaining)
        remaining[0].user_data[CONFLICTS] = conflicts  # counted once
    return merged


def _with_data_of(merged: Doc, doc: Doc) -> Doc:
    """Return a copy of the merged gold with the user data of one Doc of this text, as far as its gold agrees."""
    own = {key: value for key, value in doc.user_data.items() if key in merged.user_data and key not in (DRAWN_KEY, CONFLICTS)}
    copy = merged.copy()
    copy.user_data = {**merged.user_data, **own}
    del copy.user_data[CONFLICTS]
    return copy


def _of_one_kind(doc: Doc, tags: Collection[str]) -> Doc:
    """Return answers beside whole documents as those about tags, or about entities: labels of spans of one token are both. tags: Which no entity has."""
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
    """Return a Doc with what all gold of a text says. base (Doc): Its user data and its tokens come first. docs (Sequence[Doc]): All with this text."""
    conflicts, judges = GoldConflicts(), [doc for doc in docs if doc.user_data.get(AGREED)] or docs
    for doc in judges:
        conflicts.add(doc)
    user_data: dict[Any, Any] = {key: value for doc in reversed(docs) for key, value in doc.user_data.items()} | base.user_data
    if any(doc.user_data.get(DRAWN_KEY) == BY_DOUBT for doc in docs):
        user_data[DRAWN_KEY] = BY_DOUBT
    _drop_contradictory_attributes(user_data, judges, conflicts)
    tokens = max(judges, key=len) if PERSON in base.user_data else base
    merged = Doc(
        base.vocab, [token.text for token in tokens], [bool(token.whitespace_) for token in tokens], user_data=user_data
    )
    _merge_tokens(merged, judges, conflicts)
    _merge_entities(merged, judges, conflicts)
    for key in dict.fromkeys(key for doc in judges for key in doc.spans if not key.startswith("calib_")):
        _merge_group(merged, judges, key, conflicts)
    _merge_cats(merged, judges, conflicts)
    merged.user_data[CONFLICTS] = conflicts.to_dict()
    return merged


def _drop_contradictory_attributes(user_data: dict[Any, Any], judges: Sequence[Doc], conflicts: GoldConflicts) -> None:
    """Custom attributes (`Token._`) with several values are unknown."""
    keys: list[Any] = [key for key in user_data if isinstance(key, tuple) and key[:1] == ("._.",)]
    for key in (key for key in keys if not key[1].startswith("_")):
        if conflicts.note(f"ext:{key[1]}", [repr(doc.user_data[key]) for doc in judges if key in doc.user_data]):
            del user_data[key]


# Tokens


def _merge_tokens(merged: Doc, judges: Sequence[Doc], conflicts: GoldConflicts) -> None:
    """Write the labels of tokens on which all agree. A token that others cut otherwise has no known label."""
    rows = [_token_rows(doc) for doc in judges]
    names = [{name for row in of_doc.values() for name, value in row.items() if value} for of_doc in rows]
    values: list[dict[str, Any]] = []
    for token in merged:
        place = (token.idx, token.idx + len(token))
        labels: dict[str, Any] = {}
        for name in _LAYERS:
            judged = [
                of_doc.get(place, {name: "other tokens"})[name] for of_doc, has in zip(rows, names, strict=True) if name in has
            ]
            judged = [value for value in judged if value]
            contradicts = conflicts.note(name, [value[0] if name == "SENT_START" else value for value in judged])
            labels[name] = judged[0] if judged and judged[0] != "other tokens" and not contradicts else None
        values.append(labels)
    _drop_rejected_labels(merged, judges, values, conflicts)
    for token, labels in zip(merged, values, strict=True):
        token.tag, token.lemma, token.pos = (labels[name] or 0 for name in ("TAG", "LEMMA", "POS"))
        token.set_morph(labels["MORPH"])  # type: ignore[attr-defined]
    if any("DEP" in has for has in names) and not conflicts.differing["SENT_START"]:
        _write_arcs(merged, judges, values)
    elif any("SENT_START" in has for has in names):
        for token, labels in zip(merged, values, strict=True):
            token.is_sent_start = labels["SENT_START"] and labels["SENT_START"][0] == 1


def _token_rows(doc: Doc) -> dict[tuple[int, int], dict[str, Any]]:
    """Return the labels of each token by its place in the text; 0 for none. An arc has its label and the place of its head."""
    columns = doc.to_array([*_LAYERS]).tolist()
    rows = {}
    for token, row in zip(doc, columns, strict=True):
        labels: dict[str, Any] = dict(zip(_LAYERS, row, strict=True))
        labels["DEP"] = labels["DEP"] and (labels["DEP"], token.head.idx)
        labels["SENT_START"] = labels["SENT_START"] and (labels["SENT_START"],)
        rows[token.idx, token.idx + len(token)] = labels
    return rows


def _drop_rejected_labels(merged: Doc, judges: Sequence[Doc], values: list[dict[str, Any]], conflicts: GoldConflicts) -> None:
    """Keep the labels of single tokens that some rejected; where others gave the token this label, it is unknown. Whole gold needs no rejections."""
    groups = [doc.spans[REJECTED_TOKENS] for doc in judges if REJECTED_TOKENS in doc.spans]
    n_tagged = sum(doc.has_annotation("TAG") for doc in judges if REJECTED_TOKENS not in doc.spans)
    if not groups:
        return
    rejected = []
    for start, end, label in dict.fromkeys((span.start_char, span.end_char, span.label) for group in groups for span in group):
        span = merged.char_span(start, end, label=label)
        if span is None or len(span) > 1:
            continue
        if conflicts.note("TAG", [False, *([True] if values[span.start]["TAG"] == label else [])]):
            values[span.start] = {**values[span.start], "TAG": None, "LEMMA": None, "POS": None, "MORPH": None}
        else:
            rejected.append(span)
    if not n_tagged:
        merged.spans[REJECTED_TOKENS] = rejected


def _write_arcs(merged: Doc, judges: Sequence[Doc], values: Sequence[dict[str, Any]]) -> None:
    """Write heads by the first that have some with these tokens, and labels of arcs on which all agree."""
    starts = merged.to_array([IDX]).tolist()
    parsed = next((doc for doc in judges if doc.has_annotation("DEP") and doc.to_array([IDX]).tolist() == starts), None)
    if parsed is not None:
        merged.from_array([HEAD, "DEP"], parsed.to_array([HEAD, "DEP"]))  # type: ignore[arg-type]
        for token, labels in zip(merged, values, strict=True):
            token.dep = labels["DEP"][0] if labels["DEP"] else 0


# Spans


@dataclass(frozen=True)
class _SpanVotes:
    """What the gold of one Doc says of spans: accepted ones, rejected ones (None: what is not accepted is wrong where the text is known), unknown regions."""

    accepted: frozenset[Place]
    rejected: frozenset[Place] | None
    unknown: Coverage
    exclusive: bool

    @cached_property
    def _taken(self) -> Coverage:
        return Coverage(self.accepted)

    def verdict(self, span: Place) -> bool | None:
        """Whether a span is right; None where this is not known."""
        if span in self.accepted:
            return True
        if self.rejected is None:
            return None if self.unknown.overlaps(span) else False
        return False if span in self.rejected or (self.exclusive and self._taken.overlaps(span)) else None


def _places(spans: Iterable[Span]) -> frozenset[Place]:
    return frozenset((span.start_char, span.end_char, span.label_) for span in spans)


def _count_votes(votes: Sequence[_SpanVotes], layer: str, conflicts: GoldConflicts) -> dict[bool | None, list[Place]]:
    """Return the spans that are right, wrong (as far as somebody rejected them) and contradictory (None)."""
    spans: dict[bool | None, list[Place]] = {True: [], False: [], None: []}
    accepted = Counter(span for vote in votes for span in vote.accepted)
    for span in sorted({*accepted, *(span for vote in votes for span in vote.rejected or ())}):
        rejecting = islice((False for vote in votes if vote.verdict(span) is False), 2)  # more would count the same
        verdicts = [*repeat(True, accepted[span]), *rejecting]
        spans[None if conflicts.note(layer, verdicts) else verdicts[0]].append(span)
    return spans


def _rejected(doc: Doc) -> frozenset[Place] | None:
    return _places(doc.spans[REJECTED]) if REJECTED in doc.spans else None


def _merge_entities(merged: Doc, judges: Sequence[Doc], conflicts: GoldConflicts) -> None:
    """Write the entities on which all agree; tokens of contradictory ones are unknown."""
    judges = [doc for doc in judges if REJECTED in doc.spans or doc.to_array([ENT_IOB]).any()]
    gaps = [Coverage(_gaps(doc)) for doc in judges]
    votes = [_SpanVotes(_places(doc.ents), _rejected(doc), gap, True) for doc, gap in zip(judges, gaps, strict=True)]
    spans = _count_votes(votes, NER, conflicts)
    names: dict[Place, list[str]] = defaultdict(list)
    for ent in (ent for doc in judges for ent in doc.ents if ent.kb_id):
        names[ent.start_char, ent.end_char, ent.label_].append(ent.kb_id_)
    links = {place: "" if conflicts.note(LINK, names[place]) else "".join(names[place][:1]) for place in spans[True]}
    entities = {place: merged.char_span(*place[:2], label=place[2], kb_id=links[place]) for place in spans[True]}
    aligned = [span for span in entities.values() if span is not None]
    whole = [gap for vote, gap in zip(votes, gaps, strict=True) if vote.rejected is None]
    unaligned = [place for place, span in entities.items() if span is None]
    conflicts.differing[NER] += len(unaligned)  # others cut the tokens otherwise
    doubtful, right_places = Coverage((*spans[None], *unaligned)), Coverage(spans[True])
    missing = [
        merged[token.i : token.i + 1]
        for token in merged
        for place in [(token.idx, token.idx + len(token))]
        if doubtful.overlaps(place) or (all(gap.overlaps(place) for gap in whole) and not right_places.overlaps(place))
    ]
    missing_tokens = Coverage((gap.start, gap.end) for gap in missing)
    kept = [span for span in aligned if not missing_tokens.overlaps((span.start, span.end))]
    if whole:
        merged.set_ents(kept, missing=missing, default="outside")
    elif judges:
        merged.set_ents(aligned, default="missing")
        merged.spans[REJECTED] = _aligned(merged, spans[False])
    if any(REJECTED_LINKS in doc.spans for doc in judges):
        right = {(start, end, kb_id) for (start, end, _), kb_id in links.items()}
        wrong = {place for doc in judges for place in _places(doc.spans.get(REJECTED_LINKS, ()))}
        merged.spans[REJECTED_LINKS] = _aligned(merged, sorted(wrong - right - set(spans[None])))


def _gaps(doc: Doc) -> list[tuple[int, int]]:
    """Return the places of tokens of which it is not known whether they are in an entity."""
    known = doc.to_array([ENT_IOB]).reshape(-1).tolist()
    return [(token.idx, token.idx + len(token)) for token, iob in zip(doc, known, strict=True) if not iob]


def _aligned(doc: Doc, places: Iterable[Place]) -> list[Span]:
    spans = (doc.char_span(start, end, label=label) for start, end, label in places)
    return [span for span in spans if span is not None]


def _merge_group(merged: Doc, judges: Sequence[Doc], key: str, conflicts: GoldConflicts) -> None:
    """Write the spans of a group on which all agree, and the contradictory ones as unknown."""
    votes = []
    for doc in (doc for doc in judges if key in doc.spans):
        unknown = Coverage((span.start_char, span.end_char) for span in doc.spans.get(UNKNOWN, ()))
        votes.append(_SpanVotes(_places(doc.spans[key]), _rejected(doc), unknown, False))
    spans = _count_votes(votes, f"{SPANS_PREFIX}{key}", conflicts)
    merged.spans[key] = _aligned(merged, spans[True])
    if any(vote.rejected is None for vote in votes):
        doubtful = (merged.char_span(*place[:2], label=place[2], alignment_mode="expand") for place in spans[None])
        unknown_spans = [*merged.spans.get(UNKNOWN, ()), *doubtful]
        if unknown_spans:
            merged.spans[UNKNOWN] = unknown_spans
        merged.spans.pop(REJECTED, None)


# Categories


def _merge_cats(merged: Doc, judges: Sequence[Doc], conflicts: GoldConflicts) -> None:
    """Write the categories on which all agree. Values on one side of a half agree if the same category is the highest."""
    judges = [doc for doc in judges if doc.cats]
    same_top = len({max(doc.cats, key=doc.cats.__getitem__) for doc in judges}) == 1
    names = dict.fromkeys(name for doc in judges for name in doc.cats)
    for name in names:
        values = [doc.cats[name] for doc in judges if name in doc.cats]
        agrees = same_top or len(set(values)) == 1 or max(values) in (0.0, 1.0)
        if not conflicts.note(CATS, [value > 0.5 if agrees else value for value in values]):
            merged.cats[name] = values[0]
    if judges and all(REJECTED_CATS in doc.spans for doc in judges):
        merged.spans[REJECTED_CATS] = [Span(merged, 0, len(merged), label=name) for name, has in merged.cats.items() if not has]
