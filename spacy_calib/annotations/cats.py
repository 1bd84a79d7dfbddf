"""Annotations of text categories (`doc.cats`), where a document is one unit.

Several components may write to one `doc.cats`, so the annotation's name lists its categories: 'cats ["a", "b"]' if exclusive,
else 'cats:multi ["a", "b"]'; a name without a list means all categories.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from math import isnan
from numbers import Real

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc, Token
from spacy.training import Example

from ..errors import calib_error
from .annotation import ONLY_REJECTED, Annotation, Hashes, label_hashes, rejected_in
from .kinds import CATEGORIES, MULTI_CATEGORIES

CATS, MULTI = "cats", "cats:multi"
_POSITIVE = 0.5  # a document has a gold category if its value is greater


class DocumentAnnotation(Annotation):
    """An annotation whose only unit is the whole document, with index 0; a Doc without tokens has no unit."""

    kind = CATEGORIES

    def n_units(self, doc: Doc) -> int:
        return min(1, len(doc))

    def unit_texts(self, doc: Doc) -> Hashes:
        text = doc[:].text  # without the space after its last token, which a join may add
        first_length_hash = np.array([[0, len(text), get_string_id(text)]], dtype=np.uint64)
        return first_length_hash[: self.n_units(doc)]  # an empty Doc has no unit

    def hashes(self, doc: Doc) -> Hashes:
        label = self.label_at(doc, 0)
        return np.array([get_string_id(label) if label else 0], dtype=np.uint64)[: self.n_units(doc)]  # none for an empty Doc

    @abstractmethod
    def label_at(self, doc: Doc, unit: int) -> str: ...

    def label(self, token: Token) -> str:
        """Return "": tokens have no label."""
        return ""

    def gold_hashes(self, doc: Doc) -> Hashes:
        return self.gold.hashes(doc)

    def aligned_gold(self, example: Example) -> Hashes:
        gold = self.gold_hashes(example.reference)[: self.n_units(example.predicted)]
        return np.where((gold == 0) & bool(self.rejected_labels(example)), ONLY_REJECTED, gold)

    def rejected_labels(self, example: Example) -> set[tuple[int, int]] | None:
        spans = rejected_in(self, example.reference)
        return None if spans is None else {(0, label) for _, _, label in spans}


class CatsAnnotation(DocumentAnnotation):
    """The category with the highest value in `doc.cats`. labels: Categories, () for all. overlapping: Several can be right."""

    def __init__(self, labels: Sequence[str] = (), overlapping: bool = False):
        self.labels = tuple(labels)
        self.kind = MULTI_CATEGORIES if overlapping else CATEGORIES
        # A brace in the name would begin a label map (MAPPED).
        names = json.dumps(self.labels, ensure_ascii=False).replace("{", "\\u007b")
        self.name = (MULTI if overlapping else CATS) + (f" {names}" if self.labels else "")

    def values(self, doc: Doc) -> dict[str, float]:
        """Return category -> value in `doc.cats`, for the annotation's categories that have a number there."""
        return {name: value for name in self.labels or doc.cats if (value := _value(doc, name)) is not None}

    def label_at(self, doc: Doc, unit: int) -> str:
        values = self.values(doc)
        return max(values, key=values.__getitem__) if values else ""

    @property
    def gold(self) -> Annotation:
        return GoldCats(self)

    def in_scheme(self, counterpart: Callable[[str], str]) -> Annotation:
        gold_labels = dict.fromkeys(filter(None, map(counterpart, self.labels)))  # distinct, without "" for none
        return CatsAnnotation(tuple(gold_labels), self.kind.overlapping)

    def rejected_labels(self, example: Example) -> set[tuple[int, int]] | None:
        """Return (0 for the document, hash) of rejected categories; None without yes/no answers, or if `doc.cats` suffices."""
        # Each overlapping category has a value, which decides. With two exclusive ones a no to one is a yes to the other.
        needs_no_rejections = self.kind.overlapping or len(self.labels) == 2
        return None if needs_no_rejections else super().rejected_labels(example)

    def is_gold(self, example: Example, units: NDArray[np.intp], hashes: Hashes) -> NDArray[np.bool_]:
        """Return whether each of n label hashes is right: if overlapping, whether its gold value exceeds 0.5. units: All 0."""
        if not self.kind.overlapping:
            return super().is_gold(example, units, hashes)
        return np.isin(hashes, label_hashes(_positive(self.values(example.reference))))

    def is_known(self, example: Example, units: NDArray[np.intp], hashes: Hashes) -> NDArray[np.bool_]:
        """Return whether the gold decides on each of n label hashes: if overlapping, whether it has a value. units: All 0."""
        if not self.kind.overlapping:
            return super().is_known(example, units, hashes)
        return np.isin(hashes, label_hashes(self.values(example.reference)))

    def foreign_labels(self, docs: Iterable[Doc]) -> list[str]:
        return sorted({name for doc in docs for name in doc.cats} - set(self.labels)) if self.labels else []

    def count_gold(self, docs: Iterable[Doc]) -> Counter[str]:
        """Return category -> number of gold Docs that have it. Exclusive ones may be categories that the component lacks."""
        if self.kind.overlapping:
            return Counter(label for doc in docs for label in _positive(self.values(doc)))
        gold = self.gold
        return Counter(label for doc in docs if (label := gold.label_at(doc, 0)))


class GoldCats(DocumentAnnotation):
    """The category of gold Docs, for comparison with a CatsAnnotation; no label if `doc.cats` has none of its categories.

    Of exclusive categories the one with the highest value above 0 counts. If no category of the component has such a value, the
    only one without a value counts, if annotators rejected the others; else the Doc's only category with a value above 0, which
    the component does not know. Of overlapping categories the one with the highest value above 0.5 counts, else "(none)".
    categories (CatsAnnotation): Reads the predicted Docs.
    """

    def __init__(self, categories: CatsAnnotation):
        self.categories = categories
        self.name = MULTI if categories.kind.overlapping else CATS
        self.kind = categories.kind

    def label_at(self, doc: Doc, unit: int) -> str:
        """Return the gold category of a Doc, its only unit (index 0); "" for none. RAISES C261: several have the top value."""
        values = self.categories.values(doc)
        if not values:
            return ""
        if self.kind.overlapping:
            return next(iter(_positive(values)), self.kind.no_label_names[0])  # else "(none)"
        highest_value = max(values.values())
        top_names = [name for name, value in values.items() if value == highest_value and value > 0]
        if len(top_names) > 1:
            raise calib_error("C261", text=doc.text[:40], given=", ".join(top_names))
        if top_names:
            return top_names[0]
        unanswered_names = [name for name in self.categories.labels if name not in values]
        if self.kind.rejected_key in doc.spans and len(unanswered_names) == 1:  # annotators rejected all others
            return unanswered_names[0]
        # No category of the component is right: it may be one that the component does not know.
        other_names = [name for name in doc.cats if _value(doc, name)]
        return other_names[0] if len(other_names) == 1 else ""


def _value(doc: Doc, name: str) -> float | None:
    """Return the value of a category in `doc.cats`; None if it is missing or not a number."""
    value = doc.cats.get(name)
    return float(value) if isinstance(value, Real) and not isnan(value) else None


def _positive(values: dict[str, float]) -> list[str]:
    """Return the categories with a value above 0.5, highest first. values: Category -> value."""
    return sorted((name for name, value in values.items() if value > _POSITIVE), key=lambda name: -values[name])


@cache
def cats_from_name(name: str) -> CatsAnnotation | None:
    """Return the annotation of text categories with this name; None if the name is that of another annotation."""
    kind, _, names = name.partition(" ")
    return CatsAnnotation(json.loads(names) if names else (), kind == MULTI) if kind in (CATS, MULTI) else None
