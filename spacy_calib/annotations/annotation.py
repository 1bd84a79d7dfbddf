"""What an annotation is.

A *unit* has one label: a token, or for `cats` a whole document. Labels are spaCy's string hashes (uint64), the same in every
vocab; 0 is no label.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import IDX, LENGTH
from spacy.pipeline import EntityLinker
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, Token
from spacy.training import Example

from .kinds import ATTRIBUTE, Kind

if TYPE_CHECKING:
    from .label_schemes import LabelComparison

Hashes = NDArray[np.uint64]
# Numbers, because `Doc.to_array` is slower by name.
_POSITION_ATTRS = [IDX, LENGTH]
# Key of the span group of a gold Doc with spans that its sources contradict: overlapping spans are neither right nor wrong.
UNKNOWN = "calib_unknown"
# Gold of a unit for which only wrong labels are known.
ONLY_REJECTED = np.uint64(get_string_id("(rejected)"))
# Key in `Doc.user_data` of a gold Doc: name of an annotation -> LabelComparison.
GOLD_LABELS = "calib_gold_labels"


# The offset of a token without a partner. Annotations with such tokens have no negative offsets.
NO_PARTNER = -1


class Annotation(ABC):
    """One layer of labels of Docs: how to read predicted and gold labels, and how to compare them.

    name (str): Its name in configs and saved scores. kind (Kind): What labels they are. partners (Callable | None): Doc ->
    character offset from each token to its `partner`, NO_PARTNER where it has none; None for labels of one token.
    evaluate_spans (Callable | None): With `kind.span_event`: (example, (start, end, label hash) of predicted spans) -> 1, 0, or
    -1 without gold, for each.
    """

    name: str
    kind: Kind = ATTRIBUTE
    partners: Callable[[Doc], NDArray[np.int32]] | None = None
    evaluate_spans: Callable[[Example, Sequence[tuple[int, int, int]]], NDArray[np.intp]] | None = None

    # Units

    def n_units(self, doc: Doc) -> int:
        """Return the number of units of a Doc: rows of probabilities, labels and gold."""
        return len(doc)

    def unit_positions(self, doc: Doc) -> Hashes:
        """Return first character and number of characters of each unit, shape (n_units, 2)."""
        return cast(Hashes, doc.to_array(_POSITION_ATTRS))

    def partner(self, token: Token) -> Token | None:
        """Return the head of an arc; for links the last token of the entity, None if the token begins none; else the token."""
        return token

    # Labels

    @abstractmethod
    def hashes(self, doc: Doc) -> Hashes:
        """Return the hash of each unit's label, 0 for none."""

    @abstractmethod
    def label(self, token: Token) -> str:
        """Return the label of the token, "" for none."""

    def label_at(self, doc: Doc, row: int) -> str:
        """Return the label of one unit of a Doc, "" for none."""
        return self.label(doc[row])

    def gold_hashes(self, doc: Doc) -> Hashes:
        """Return the hash of each unit's label in a gold Doc, 0 if its annotation is missing."""
        return self.hashes(doc)

    def aligned_gold(self, example: Example) -> Hashes:
        """Return the hash of each predicted unit's gold label, ONLY_REJECTED if only rejected labels are known.

        As in spaCy's scorers it is 0 for tokens without gold, for white space, and without exactly one aligned gold token.
        """
        rows, partners = _align(example)
        gold = np.zeros(len(example.predicted), dtype=np.uint64)
        gold[rows] = self.gold_hashes(example.reference)[partners]
        return mark_rejected(self, gold, example)

    def rejected_labels(self, example: Example) -> set[tuple[int, int]] | None:
        """Return the rejected (predicted unit, label hash) pairs; None if the gold does not consist of answers."""
        spans = rejected_in(self, example.reference)
        if spans is None:
            return None
        labels: dict[int, list[int]] = {}
        for start, _, label in spans:
            labels.setdefault(start, []).append(label)
        pairs = zip(*(column.tolist() for column in _align(example)), strict=True)
        return {(row, label) for row, partner in pairs for label in labels.get(partner, ())}

    def is_gold(self, example: Example, rows: NDArray[np.intp], hashes: Hashes) -> NDArray[np.bool_]:
        """Return whether labels are right. rows: Predicted units. hashes (Hashes): A label for each."""
        return self.aligned_gold(example)[rows] == hashes

    def is_known(self, example: Example, rows: NDArray[np.intp], hashes: Hashes) -> NDArray[np.bool_]:
        """Return whether the gold decides if labels are right. rows: Predicted units. hashes (Hashes): A label for each.

        For a token with rejected labels only these are known: otherwise the right one would count only when it is predicted.
        For a document its gold category is known, too, since each category has an answer of its own.
        """
        gold, rejections = self.aligned_gold(example)[rows], self.rejected_labels(example)
        if rejections is None:
            return gold != 0
        asked_rows = {row for row, _ in rejections} if not self.kind.of_documents else set()
        units = zip(rows.tolist(), hashes.tolist(), gold.tolist(), strict=True)
        return np.array(
            [(row, key) in rejections or (row not in asked_rows and key == right) for row, key, right in units], dtype=bool
        )

    @property
    def gold(self) -> Annotation:
        """The annotation of the gold Docs, which may have labels of another scheme."""
        return self

    def in_scheme(self, counterpart: Callable[[str], str]) -> Annotation:
        """Return the annotation of gold Docs with other labels. counterpart (Callable): Label -> gold label, "" for none."""
        return self

    # Spans, for annotations that have them

    def spans_on(self, doc: Doc) -> Sequence[Span]:
        """Return the spans of a Doc."""
        return ()

    def known_tokens(self, doc: Doc) -> NDArray[np.bool_]:
        """Return for each token of a gold Doc whether its spans are annotated."""
        return np.zeros(len(doc), dtype=bool)

    def gold_span_label(self, label: int) -> int:
        """Return the hash of the gold label that makes a predicted span with this label right."""
        return label

    def foreign_labels(self, docs: Iterable[Doc]) -> list[str]:
        """Return the gold labels that belong to another component or scheme and are left out."""
        return []

    def count_spans(self, docs: Iterable[Doc]) -> Counter[str]:
        """Count the span labels in gold."""
        return Counter(span.label_ for doc in docs for span in self.spans_on(doc))

    def count_gold(self, docs: Iterable[Doc]) -> Counter[str]:
        """Count the labels in gold, without units that have none."""
        counts: Counter[int] = Counter()
        strings = None
        for doc in docs:
            strings = doc.vocab.strings
            keys, n = np.unique(self.gold_hashes(doc), return_counts=True)
            counts.update(dict(zip(keys.tolist(), n.tolist(), strict=True)))
        counts.pop(0, None)
        return Counter({self._string(key, strings): n for key, n in counts.items()})

    def _string(self, key: int, strings: object) -> str:
        return strings[key]  # type: ignore[index]


def _align(example: Example) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the predicted words that align with one gold token, and the index of that token."""
    partners = example.alignment.x2y  # computed at each access
    lengths = _lengths(example, partners)
    rows = np.flatnonzero((lengths == 1) & ~is_space(example.predicted))
    return rows, np.asarray(partners.data)[(np.cumsum(lengths) - lengths)[rows]]


def _lengths(example: Example, partners: Any) -> NDArray[np.intp]:
    """Return the number of gold tokens that each predicted token aligns with. partners: `example.alignment.x2y`."""
    # If only one of the two Docs ends in white space, spaCy's alignment has a row after the last token.
    return np.asarray(partners.lengths)[: len(example.predicted)]


def mark_rejected(annotation: Annotation, gold: Hashes, example: Example) -> Hashes:
    """Set the gold of predicted units with only rejected labels to ONLY_REJECTED, in place, and return it."""
    rows = [row for row, _ in annotation.rejected_labels(example) or ()]
    gold[rows] = np.where(gold[rows] == 0, ONLY_REJECTED, gold[rows])
    return gold


def count_misaligned(annotation: Annotation, examples: Iterable[Example]) -> dict[str, int]:
    """Count the predicted "tokens" except white space, and those without exactly one aligned gold token ("left_out")."""
    counts = {"tokens": 0, "left_out": 0}
    for example in examples:
        if annotation.gold_hashes(example.reference).any():
            words = ~is_space(example.predicted)
            counts["tokens"] += int(words.sum())
            counts["left_out"] += int((words & (_lengths(example, example.alignment.x2y) != 1)).sum())
    return counts


def rejected_in(annotation: Annotation, doc: Doc) -> list[tuple[int, int, int]] | None:
    """Return (start, end, label hash) of the rejected spans of a gold Doc; None if its gold does not consist of answers."""
    if annotation.kind.rejected_key not in doc.spans:
        return None
    return [(span.start, span.end, span.label) for span in doc.spans[annotation.kind.rejected_key]]


def has_gold(annotation: Annotation, doc: Doc) -> bool:
    """Return whether a gold Doc has any annotation of this kind."""
    return bool(annotation.gold_hashes(doc).any() or len(annotation.spans_on(doc)) or rejected_in(annotation, doc))


def texts_of(annotation: Annotation, doc: Doc) -> list[str]:
    """Return the text of each unit."""
    return [token.text for token in doc] if not annotation.kind.of_documents else [doc.text][: annotation.n_units(doc)]


def is_blank(annotation: Annotation, doc: Doc) -> NDArray[np.bool_]:
    """Return whether each unit of a Doc is white space."""
    if not annotation.kind.of_documents:
        return is_space(doc)
    return np.array([text.isspace() for text in texts_of(annotation, doc)], dtype=bool)


def is_space(doc: Doc) -> NDArray[np.bool_]:
    """Return whether each token is white space, by its text: the vocab of a Doc without a Language has no flag IS_SPACE."""
    strings = doc.vocab.strings
    return map_unique(doc.to_array(["ORTH"]), lambda key: strings[key].isspace()).astype(bool)


def map_unique(codes: NDArray[Any], to_hash: Callable[[Any], int]) -> Hashes:
    """Apply a function to each code, once for each distinct one."""
    code_list = codes.tolist()
    values = {code: to_hash(code) for code in dict.fromkeys(code_list)}
    return np.array([values[code] for code in code_list], dtype=np.uint64)


def label_hashes(labels: Iterable[str]) -> Hashes:
    return np.array([get_string_id(label) for label in labels], dtype=np.uint64)


@lru_cache(maxsize=64)
def sorted_hashes(labels: tuple[str, ...]) -> tuple[Hashes, NDArray[np.intp]]:
    """Return the hashes of labels in ascending order, and the column of each."""
    hashes = label_hashes(labels)
    order = np.argsort(hashes)
    return hashes[order], order


def columns_of(hashes: Hashes, labels: Sequence[str]) -> NDArray[np.intp]:
    """Return the column of each label hash: -1 for another label, -2 for no label (0)."""
    columns = np.full(len(hashes), -1, dtype=np.intp)
    if len(labels):
        sorted_keys, column = sorted_hashes(tuple(labels))
        index = np.minimum(np.searchsorted(sorted_keys, hashes), len(sorted_keys) - 1)
        np.copyto(columns, column[index], where=sorted_keys[index] == hashes)
    columns[hashes == 0] = -2
    return columns


def column_of(doc: Doc, attribute: str) -> NDArray[Any]:
    """Return one attribute of all tokens as signed integers."""
    return doc.to_array([attribute]).astype(np.uint64, copy=False).reshape(-1).view(np.int64)


# The identity of an entity that matches no candidate.
NIL = EntityLinker.NIL


def get_label_comparison(doc: Doc, annotation_name: str) -> LabelComparison | None:
    """Return how to compare the labels of a gold Doc with another scheme; None if they are compared as they are."""
    comparison: LabelComparison | None = doc.user_data.get(GOLD_LABELS, {}).get(annotation_name)
    return comparison


def resolve_gold(annotation: Annotation, gold: Hashes, example: Example) -> Hashes:
    """Return the gold of predicted tokens in the scheme of the pipe, if the gold Doc has another scheme."""
    comparison = get_label_comparison(example.reference, annotation.name)
    return gold if comparison is None or not len(example.predicted) else comparison.resolve(annotation, gold, example)
