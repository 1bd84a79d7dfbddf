"""The annotations of a Doc: which label a token carries, in the predicted and in the gold Doc.

The name of an annotation ("tag", "ner", "spans:sc") is called `layer` in configs, in what is saved, and in `DocCalib`.
Labels are compared by spaCy's string hashes (uint64), 0 where a token carries none: they are the same in every vocab and process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from spacy.morphology import Morphology
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, SpanGroup, Token
from spacy.training import Example

from ..errors import calib_error

Hashes = NDArray[np.uint64]

# Outside of all entities.
_OUT = np.uint64(get_string_id("O"))


class Annotation(ABC):
    """One kind of label that tokens carry.

    name (str): How config and saved blocks call it.
    overlapping (bool): Whether a token may have several gold labels.
    first (int): The first token of a Doc that may carry a label.
    """

    name: str
    overlapping: bool = False
    first: int = 0

    @abstractmethod
    def hashes(self, doc: Doc) -> Hashes:
        """The hash of each token's label, 0 where it carries none; shape (len(doc),)."""

    @abstractmethod
    def label(self, token: Token) -> str:
        """The label that the token carries, "" where it carries none."""

    def gold_hashes(self, doc: Doc) -> Hashes:
        """The same for a gold Doc, 0 where the annotation is missing."""
        return self.hashes(doc)

    def aligned_gold(self, example: Example) -> Hashes:
        """The gold hash of each predicted token: 0 for missing gold, for white space, and where the predicted token does not align with
        exactly one gold token, as in spaCy's own token scorers.
        """
        doc, alignment = example.predicted, example.alignment.x2y
        # Where only one of the two ends in white space, spaCy's alignment has a row behind the last token.
        lengths = np.asarray(alignment.lengths)[: len(doc)]
        single = (lengths == 1) & ~is_space(doc)
        gold = np.zeros(len(doc), dtype=np.uint64)
        starts = np.cumsum(lengths) - lengths
        gold[single] = self.gold_hashes(example.reference)[np.asarray(alignment.data)[starts[single]]]
        return gold

    def is_gold(self, example: Example, rows: NDArray[np.intp], hashes: Hashes) -> NDArray[np.bool_]:
        """Whether labels are right for predicted tokens.

        rows: Tokens of the predicted Doc. hashes (Hashes): Hash of a label for each.
        """
        return self.aligned_gold(example)[rows] == hashes

    @property
    def gold(self) -> Annotation:
        """The annotation of the gold Docs, which may have labels of another scheme."""
        return self

    # Spans, for annotations that have them

    def spans_on(self, doc: Doc) -> Sequence[Span]:
        """The spans that a Doc carries."""
        return ()

    def known_tokens(self, doc: Doc) -> NDArray[np.bool_]:
        """For which tokens of a gold Doc the spans are known, shape (len(doc),)."""
        return np.zeros(len(doc), dtype=bool)

    def gold_span_label(self, label: int) -> int:
        """The hash of the gold label that a predicted span's is right with."""
        return label

    def count_spans(self, docs: Iterable[Doc]) -> Counter[str]:
        """Gold frequency of the span labels."""
        return Counter(span.label_ for doc in docs for span in self.spans_on(doc))

    def count(self, docs: Iterable[Doc]) -> Counter[str]:
        """Gold frequency of each label; tokens without one do not count."""
        counts: Counter[int] = Counter()
        strings = None
        for doc in docs:
            strings = doc.vocab.strings
            found, n = np.unique(self.gold_hashes(doc), return_counts=True)
            counts.update(dict(zip(found.tolist(), n.tolist(), strict=True)))
        counts.pop(0, None)
        return Counter({self._string(key, strings): n for key, n in counts.items()})

    def _string(self, key: int, strings: object) -> str:
        return strings[key]  # type: ignore[index]


class AttributeAnnotation(Annotation):
    """A label that stands in one attribute of the token: TAG, LEMMA, POS, ENT_TYPE, DEP."""

    def __init__(self, name: str, attribute: str):
        self.name = name
        self.attribute = attribute
        self._of_token = f"{attribute.lower()}_"

    def hashes(self, doc: Doc) -> Hashes:
        return doc.to_array([self.attribute]).astype(np.uint64, copy=False).reshape(-1)

    def label(self, token: Token) -> str:
        return getattr(token, self._of_token)


class PosAnnotation(AttributeAnnotation):
    """UPOS: spaCy keeps it as a small number, not as a hash."""

    def __init__(self) -> None:
        super().__init__("pos", "POS")

    def hashes(self, doc: Doc) -> Hashes:
        codes = super().hashes(doc)
        return _map_unique(codes, lambda code: get_string_id(doc.vocab.strings[int(code)]) if code else 0)


class MorphAnnotation(Annotation):
    """UPOS and features as the morphologizer joins them: "Number=Sing|POS=NOUN"."""

    name = "morph"

    def hashes(self, doc: Doc) -> Hashes:
        if not len(doc):
            return np.zeros(0, dtype=np.uint64)
        both = doc.to_array(["POS", "MORPH"]).astype(np.uint64)
        kinds, inverse = np.unique(both, axis=0, return_inverse=True)
        strings = doc.vocab.strings
        known = [self._joined(doc.vocab, strings[int(pos)], strings[int(morph)]) for pos, morph in kinds]
        return np.array([get_string_id(label) if label else 0 for label in known], dtype=np.uint64)[inverse.reshape(-1)]

    def label(self, token: Token) -> str:
        return self._joined(token.vocab, token.pos_, str(token.morph) if token.has_morph() else "", token.has_morph())

    @staticmethod
    def _joined(vocab: object, pos: str, morph: str, has_morph: bool = False) -> str:
        if not pos and not morph and not has_morph:
            return ""
        feats = Morphology.feats_to_dict(morph)
        if pos:
            feats["POS"] = pos
        return vocab.strings[vocab.morphology.add(feats)]  # type: ignore[attr-defined]


class SentAnnotation(Annotation):
    """ "S" where a sentence starts, "I" inside; nothing at the first token of a Doc, which starts one whatever the scores say."""

    name = "sent"
    starts = {1: "S", -1: "I"}
    first = 1

    def hashes(self, doc: Doc) -> Hashes:
        signs = doc.to_array(["SENT_START"]).astype(np.uint64, copy=False).view(np.int64).reshape(-1)
        hashes = _map_unique(signs, lambda sign: get_string_id(self.starts[int(sign)]) if int(sign) in self.starts else 0)
        hashes[: self.first] = 0
        return hashes

    def gold_hashes(self, doc: Doc) -> Hashes:
        if not doc.has_annotation("SENT_START"):
            return np.zeros(len(doc), dtype=np.uint64)
        hashes = self.hashes(doc)
        hashes[hashes == 0] = get_string_id("I")
        hashes[: self.first] = 0
        return hashes

    def label(self, token: Token) -> str:
        is_start = token.is_sent_start if token.i >= self.first else None
        return "" if is_start is None else self.starts[1 if is_start else -1]

    def _string(self, key: int, strings: object) -> str:
        return "S" if key == get_string_id("S") else "I"


class _OfEntities(Annotation):
    """An annotation that `doc.ents` gives."""

    def spans_on(self, doc: Doc) -> Sequence[Span]:
        return doc.ents

    def known_tokens(self, doc: Doc) -> NDArray[np.bool_]:
        return _entity_columns(doc)[0] != 0

    def _string(self, key: int, strings: object) -> str:
        return _label_or_out(key, strings)


def _label_or_out(key: int, strings: object) -> str:
    """ "O" need not be among the strings of a vocab."""
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

    def hashes(self, doc: Doc) -> Hashes:
        iob, kinds = _entity_columns(doc)
        goes_on = np.append(iob[1:] == 1, False)[: len(iob)]
        prefix = np.where(iob == 3, np.where(goes_on, 1, 4), np.where(goes_on, 2, 3))  # B, U, I, L
        codes = np.where(kinds != 0, prefix, 0)
        hashes = np.where(iob != 0, _OUT, np.uint64(0))
        for code, letter in ((1, "B"), (2, "I"), (3, "L"), (4, "U")):
            own = np.flatnonzero(codes == code)
            hashes[own] = _map_unique(kinds[own], lambda kind, to=letter: get_string_id(f"{to}-{doc.vocab.strings[int(kind)]}"))
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


class SpanAnnotation(Annotation):
    """The label of the best span that covers a token, among `doc.spans[key]`; "O" where none does.

    Best is the highest of `attrs["scores"]`, and the first of the group where they are equal or not there. A token may be covered by
    several gold spans: each of their labels is right.

    key (str): Of `doc.spans`.
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
        """None of them where the tokens were merged since: spaCy leaves span groups as they were then."""
        try:
            return list(doc.spans[self.key]) if self.key in doc.spans else ()
        except IndexError:
            return ()

    def known_tokens(self, doc: Doc) -> NDArray[np.bool_]:
        return np.full(len(doc), self.key in doc.spans)

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


SPANS_PREFIX = "spans:"
# Stands in the name of a mapped annotation, between the name of the other one and the map of its labels as JSON.
MAPPED = ' {"'


def span_scores(group: SpanGroup) -> NDArray[np.float64] | None:
    """The scores that a span categorizer left with its spans, shape (len(group),); None where they are missing or do not fit."""
    given = group.attrs.get("scores")
    if given is None:
        return None
    scores = np.asarray(given.get() if hasattr(given, "get") else given, dtype=np.float64).reshape(-1)
    return scores if len(scores) == len(group) else None


def _entity_columns(doc: Doc) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """ENT_IOB and ENT_TYPE."""
    columns = doc.to_array(["ENT_IOB", "ENT_TYPE"]).astype(np.uint64, copy=False).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]


def is_space(doc: Doc) -> NDArray[np.bool_]:
    """Tokens of white space by their text, as in spaCy's scorers: the flag IS_SPACE is unset in a vocab that no Language made."""
    strings = doc.vocab.strings
    return _map_unique(doc.to_array(["ORTH"]), lambda key: strings[int(key)].isspace()).astype(bool)


def _map_unique(codes: NDArray, to_hash: object) -> Hashes:
    found, inverse = np.unique(codes, return_inverse=True)
    return np.array([to_hash(code) for code in found], dtype=np.uint64)[inverse.reshape(-1)]  # type: ignore[operator]


ANNOTATIONS: dict[str, Annotation] = {
    annotation.name: annotation
    for annotation in (
        AttributeAnnotation("tag", "TAG"),
        AttributeAnnotation("lemma", "LEMMA"),
        AttributeAnnotation("ent_type", "ENT_TYPE"),
        AttributeAnnotation("dep", "DEP"),
        PosAnnotation(),
        MorphAnnotation(),
        SentAnnotation(),
        EntityAnnotation(),
        BiluoAnnotation(),
    )
}


def get_annotation(name: str) -> Annotation:
    """RAISES C001: no annotation has this name."""
    if MAPPED in name:
        from .mapped_annotation import mapped_annotation

        return mapped_annotation(name)
    if name.startswith(SPANS_PREFIX):
        return SpanAnnotation(name.removeprefix(SPANS_PREFIX))
    if name not in ANNOTATIONS:
        raise calib_error("C001", name="layer", wanted=f"one of {', '.join(sorted(ANNOTATIONS))}", given=repr(name))
    return ANNOTATIONS[name]


def plain_name(name: str) -> str:
    """The name of an annotation without its map of labels."""
    return name.partition(MAPPED)[0]


def label_hashes(labels: Iterable[str]) -> Hashes:
    """The hash of each label."""
    return np.array([get_string_id(label) for label in labels], dtype=np.uint64)


def columns_of(hashes: Hashes, of_labels: Hashes) -> NDArray[np.intp]:
    """Column of each label hash: -1 where no label has it, -2 where the hash is 0 (no label)."""
    order = np.argsort(of_labels)
    place = np.minimum(np.searchsorted(of_labels[order], hashes), max(0, len(of_labels) - 1))
    columns = np.full(len(hashes), -1, dtype=np.intp)
    if len(of_labels):
        found = of_labels[order][place] == hashes
        columns[found] = order[place[found]]
    columns[hashes == 0] = -2
    return columns
