"""What tokens carry of the spans of their Doc (its entities, span groups), and of its dependency tree: heads and arcs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.strings import StringStore, get_string_id
from spacy.tokens import Doc, Span, SpanGroup, Token
from spacy.training import Example

from .base import REJECTED, Annotation, Hashes, is_space, map_unique, rejected_in

# The name of the annotation of a span group: this, then its key in `doc.spans`.
SPANS_PREFIX = "spans:"
# The label of a token outside all entities.
_OUT = np.uint64(get_string_id("O"))


class _OfSpans(Annotation):
    """An annotation of tokens by the spans that cover them. Answers about spans say nothing of tokens: they were asked where a span was
    predicted, and what an accepted one covers is no fair sample of tokens.
    """

    rejected_key = REJECTED

    def gold_hashes(self, doc: Doc) -> Hashes:
        return self.hashes(doc) if rejected_in(self, doc) is None else np.zeros(len(doc), dtype=np.uint64)

    def refused(self, example: Example) -> None:
        return None


class _OfEntities(_OfSpans):
    """An annotation read from `doc.ents`."""

    def aligned_gold(self, example: Example) -> Hashes:
        """Where entities are given for parts of a Doc, and seldom where the prediction has none, those parts were chosen by the prediction
        (`doc.set_ents(accepted, outside=rejected, default="missing")`): of its tokens nothing is known then.
        """
        gold = super().aligned_gold(example)
        words, found = ~is_space(example.predicted), _entity_columns(example.predicted)[1] != 0
        shares = [float((gold[own] != 0).mean()) for own in (words & ~found, words & found) if own.any()]
        return np.zeros_like(gold) if len(shares) == 2 and 2 * shares[0] < shares[1] else gold

    def spans_on(self, doc: Doc) -> Sequence[Span]:
        return doc.ents

    def known_tokens(self, doc: Doc) -> NDArray[np.bool_]:
        return _entity_columns(doc)[0] != 0

    def _string(self, key: int, strings: object) -> str:
        return _label_or_out(key, strings)


def _label_or_out(key: int, strings: object) -> str:
    """The label of a hash; "O" may be missing from the strings of a vocab."""
    return "O" if key == int(_OUT) else strings[key]  # type: ignore[index]


class EntityAnnotation(_OfEntities):
    """The entity type of a token, "O" outside; none where the annotation is missing."""

    name = "ner"

    def hashes(self, doc: Doc) -> Hashes:
        iob, kinds = _entity_columns(doc)
        return np.where(kinds != 0, kinds, np.where(iob != 0, _OUT, np.uint64(0)))

    def label(self, token: Token) -> str:
        return token.ent_type_ or ("O" if token.ent_iob else "")


class BiluoAnnotation(_OfEntities):
    """The tag of a token in its entity: B-, I-, L- or U- and the type, or "O"; none where the annotation is missing."""

    name = "biluo"
    prefixed = True

    def hashes(self, doc: Doc) -> Hashes:
        iob, kinds = _entity_columns(doc)
        goes_on = np.append(iob[1:] == 1, False)[: len(iob)]
        prefix = np.where(iob == 3, np.where(goes_on, 1, 4), np.where(goes_on, 2, 3))  # B, U, I, L
        codes = np.where(kinds != 0, prefix, 0)
        hashes = np.where(iob != 0, _OUT, np.uint64(0))
        for code, letter in ((1, "B"), (2, "I"), (3, "L"), (4, "U")):
            own = np.flatnonzero(codes == code)
            hashes[own] = map_unique(kinds[own], partial(_hash_of_tag, doc.vocab.strings, letter))
        return hashes

    def count(self, docs: Iterable[Doc]) -> Counter[str]:
        counts = Counter(self.label(token) for doc in docs for token in doc)
        counts.pop("", None)
        return counts

    def label(self, token: Token) -> str:
        if not token.ent_type_:
            return "O" if token.ent_iob else ""
        follows = token.i + 1 < len(token.doc) and token.nbor().ent_iob == 1
        prefix = ("B" if follows else "U") if token.ent_iob == 3 else ("I" if follows else "L")
        return f"{prefix}-{token.ent_type_}"


def _hash_of_tag(strings: StringStore, letter: str, kind: Any) -> int:
    return get_string_id(f"{letter}-{strings[int(kind)]}")


class SpanAnnotation(_OfSpans):
    """The label of the best span in `doc.spans[key]` that covers a token; "O" where none does.

    The best has the highest of `attrs["scores"]`; of equal ones, or without scores, the first of the group. A token may
    be covered by several gold spans: each of their labels is right.
    """

    overlapping = True

    def __init__(self, key: str):
        self.name = f"{SPANS_PREFIX}{key}"
        self.key = key

    def hashes(self, doc: Doc) -> Hashes:
        if self.key not in doc.spans:
            return np.zeros(len(doc), dtype=np.uint64)
        hashes = np.full(len(doc), _OUT)
        scores = span_scores(doc.spans[self.key])
        spans = [(span.start, span.end, span.label) for span in self.spans_on(doc)]
        order = range(len(spans)) if scores is None or not spans else np.argsort(-scores, kind="stable").tolist()
        for i in reversed(order):
            start, end, label = spans[i]
            hashes[start:end] = label
        return hashes

    def label(self, token: Token) -> str:
        if self.key not in token.doc.spans:
            return ""
        group = token.doc.spans[self.key]
        scores = span_scores(group)
        spans = self.spans_on(token.doc)
        covering = [i for i, span in enumerate(spans) if span.start <= token.i < span.end]
        if not covering:
            return "O"
        return spans[covering[0] if scores is None else max(covering, key=lambda i: (scores[i], -i))].label_

    def _string(self, key: int, strings: object) -> str:
        return _label_or_out(key, strings)

    def spans_on(self, doc: Doc) -> Sequence[Span]:
        """The spans of the group; none where tokens were merged since, as spaCy does not update span groups."""
        try:
            return list(doc.spans[self.key]) if self.key in doc.spans else ()
        except IndexError:
            return ()

    def known_tokens(self, doc: Doc) -> NDArray[np.bool_]:
        return np.full(len(doc), self.key in doc.spans and rejected_in(self, doc) is None)

    def is_gold(self, example: Example, rows: NDArray[np.intp], hashes: Hashes) -> NDArray[np.bool_]:
        hits = self.aligned_gold(example)[rows] == hashes
        alignment = example.alignment.x2y
        covered = {
            (token, span.label) for span in example.reference.spans.get(self.key, ()) for token in range(span.start, span.end)
        }
        for i in np.flatnonzero(~hits).tolist():
            hits[i] = (
                (int(alignment[int(rows[i])][0]), int(hashes[i])) in covered if len(alignment[int(rows[i])]) == 1 else False
            )
        return hits


def span_scores(group: SpanGroup) -> NDArray[np.float64] | None:
    """The spans' scores in a group, `attrs["scores"]`, shape (len(group),); None where missing or of another length."""
    given = group.attrs.get("scores")
    if given is None:
        return None
    scores = np.asarray(given.get() if hasattr(given, "get") else given, dtype=np.float64).reshape(-1)
    return scores if len(scores) == len(group) else None


def _entity_columns(doc: Doc) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """ENT_IOB and ENT_TYPE."""
    columns = doc.to_array(["ENT_IOB", "ENT_TYPE"]).astype(np.uint64, copy=False).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]


_ROOT = "ROOT"
# When an arc is right: its head, or head and label. Each is the name of an annotation.
ARC_EVENTS = ("head", "arc")


class ArcAnnotation(Annotation):
    """The label of a token's arc, right where the arc is: by its head alone ("head"), or by head and label ("arc").

    As in spaCy's `score_deps`, a head is right where token and head each align with one gold token and these two are a
    gold arc; labels are compared in lower case. Unlike there, arcs of punctuation count. The label of a token without a
    head is "ROOT", whatever its case in the gold. The spans are sentences, right where all their arcs are.

    name (str): "head" or "arc".
    """

    arcs = judges = True
    span_words = ("sentence", "sentences")
    spans_first = False

    def __init__(self, name: str):
        self.name = name
        self.any_label = name == "head"
        self.accuracy_name = "UAS with punctuation" if self.any_label else "LAS with punctuation"
        self.span_event = "all heads right" if self.any_label else "all heads and labels right"

    def hashes(self, doc: Doc) -> Hashes:
        strings = doc.vocab.strings
        return map_unique(_column(doc, "DEP").view(np.uint64), lambda key: _label_hash(strings, int(key)))

    def label(self, token: Token) -> str:
        return _as_label(token.dep_)

    def is_gold(self, example: Example, rows: NDArray[np.intp], hashes: Hashes) -> NDArray[np.bool_]:
        right = self._right_heads(example)[rows]
        if self.any_label:
            return right
        strings = example.predicted.vocab.strings
        return right & (_lowered(strings, hashes) == _lowered(strings, self.aligned_gold(example)[rows]))

    @staticmethod
    def _right_heads(example: Example) -> NDArray[np.bool_]:
        """Which predicted tokens have their gold head, shape (n_tokens,)."""
        n, alignment = len(example.predicted), example.alignment.x2y
        lengths = np.asarray(alignment.lengths)
        partner = np.full(n, -1)
        single = np.flatnonzero(lengths[:n] == 1)
        partner[single] = np.asarray(alignment.data)[(np.cumsum(lengths) - lengths)[single]]
        of_head = partner[_heads(example.predicted)]
        gold_heads = np.append(_heads(example.reference), -1)  # of no token, for those without a partner
        return (partner >= 0) & (of_head >= 0) & (gold_heads[partner] == of_head)

    def spans_on(self, doc: Doc) -> Sequence[Span]:
        return list(doc.sents) if doc.has_annotation("SENT_START") else ()

    def judge_spans(self, example: Example, spans: Sequence[tuple[int, int, int]]) -> NDArray[np.intp]:
        doc = example.predicted
        words, gold = ~is_space(doc), self.aligned_gold(example)
        right = self.is_gold(example, np.arange(len(doc)), self.hashes(doc))
        hits = []
        for start, end, _ in spans:
            own = start + np.flatnonzero(words[start:end])
            known = len(own) > 0 and bool((gold[own] != 0).all())
            hits.append(int(right[own].all()) if known else -1)
        return np.array(hits, dtype=np.intp)

    def _string(self, key: int, strings: object) -> str:
        return _ROOT if key == get_string_id(_ROOT) else super()._string(key, strings)


def _column(doc: Doc, attribute: str) -> NDArray[Any]:
    return doc.to_array([attribute]).astype(np.uint64, copy=False).reshape(-1).view(np.int64)


def _heads(doc: Doc) -> NDArray[np.int64]:
    """The head of each token, itself for a root."""
    return np.arange(len(doc)) + _column(doc, "HEAD")


def head_places(doc: Doc) -> NDArray[np.int32]:
    """How many characters behind each token its head begins, 0 for a root."""
    starts = _column(doc, "IDX")
    return (starts[_heads(doc)] - starts).astype(np.int32)


def _as_label(name: str) -> str:
    return _ROOT if name.lower() == "root" else name


def _label_hash(strings: StringStore, key: int) -> int:
    return get_string_id(_as_label(strings[key])) if key else 0


def _lowered(strings: StringStore, hashes: Hashes) -> Hashes:
    """The hash of each label in lower case. A label that only a map names may be unknown to the vocab: it stays."""

    def lowered(key: int) -> int:
        try:
            return get_string_id(strings[key].lower())
        except KeyError:
            return key

    return map_unique(hashes, lambda key: lowered(int(key)))
