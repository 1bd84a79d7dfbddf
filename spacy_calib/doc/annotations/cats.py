"""Text categories, `doc.cats`: the Doc is one unit, with one row of probabilities.

Several components may write into one `doc.cats`, so the annotation's name lists its own categories: 'cats ["a", "b"]'
where they exclude each other, 'cats:multi ["a", "b"]' where not. Without a list it means all categories.
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

from ...errors import calib_error
from ...pairs.documents import DOCUMENT
from .base import Annotation, Hashes, label_hashes

CATS, MULTI = "cats", "cats:multi"
# The gold of a document that has none of the categories.
NO_CATEGORY = "(none)"
# A document has a gold category whose value is greater.
_HALF = 0.5


class DocumentAnnotation(Annotation):
    """Labels of whole documents."""

    unit = DOCUMENT

    def n_units(self, doc: Doc) -> int:
        return min(1, len(doc))

    def places(self, doc: Doc) -> Hashes:
        return np.array([[0, get_string_id(doc.text)]], dtype=np.uint64)[: self.n_units(doc)]

    def texts(self, doc: Doc) -> list[str]:
        return [doc.text][: self.n_units(doc)]

    def hashes(self, doc: Doc) -> Hashes:
        label = self.label_at(doc, 0)
        return np.array([get_string_id(label) if label else 0], dtype=np.uint64)[: self.n_units(doc)]

    @abstractmethod
    def label_at(self, doc: Doc, row: int) -> str: ...

    def label(self, token: Token) -> str:
        """Tokens carry none."""
        return ""

    def gold_hashes(self, doc: Doc) -> Hashes:
        return self.gold.hashes(doc)

    def aligned_gold(self, example: Example) -> Hashes:
        return self.gold_hashes(example.reference)[: self.n_units(example.predicted)]


class CatsAnnotation(DocumentAnnotation):
    """The likeliest of the categories in `doc.cats`.

    labels (Sequence[str]): Its categories; () for all. overlapping (bool): Whether a document may have several.
    """

    def __init__(self, labels: Sequence[str] = (), overlapping: bool = False):
        self.labels = tuple(labels)
        self.overlapping = overlapping
        self.none = (NO_CATEGORY,) if overlapping else ()
        # In the name a brace would begin a map of labels: see `mapped`.
        listed = json.dumps(self.labels, ensure_ascii=False).replace("{", "\\u007b")
        self.name = (MULTI if overlapping else CATS) + (f" {listed}" if self.labels else "")

    def values(self, doc: Doc) -> dict[str, float]:
        """The annotation's categories in a Doc with their values; those without a value are left out."""
        names = self.labels or doc.cats
        return {name: value for name in names if (value := _value(doc, name)) is not None}

    def label_at(self, doc: Doc, row: int) -> str:
        values = self.values(doc)
        return max(values, key=values.__getitem__) if values else ""

    @property
    def gold(self) -> Annotation:
        return GoldCats(self)

    def in_scheme(self, counterpart: Callable[[str], str]) -> Annotation:
        found = dict.fromkeys(filter(None, map(counterpart, self.labels)))
        return CatsAnnotation(tuple(found), self.overlapping)

    def is_gold(self, example: Example, rows: NDArray[np.intp], hashes: Hashes) -> NDArray[np.bool_]:
        if not self.overlapping:
            return super().is_gold(example, rows, hashes)
        return np.isin(hashes, label_hashes(_positive(self.values(example.reference))))

    def is_known(self, example: Example, rows: NDArray[np.intp], hashes: Hashes) -> NDArray[np.bool_]:
        """Where categories overlap, of each by itself: like spaCy's scorer, it lets a gold Doc leave some out."""
        if not self.overlapping:
            return super().is_known(example, rows, hashes)
        return np.isin(hashes, label_hashes(self.values(example.reference)))

    def foreign(self, docs: Iterable[Doc]) -> list[str]:
        return sorted({name for doc in docs for name in doc.cats} - set(self.labels)) if self.labels else []

    def count(self, docs: Iterable[Doc]) -> Counter[str]:
        """Where categories exclude each other, also of one that is not in `labels`: the component does not know it."""
        if self.overlapping:
            return Counter(label for doc in docs for label in _positive(self.values(doc)))
        gold = self.gold
        return Counter(label for doc in docs if (label := gold.label_at(doc, 0)))


class GoldCats(DocumentAnnotation):
    """The category that a gold Doc has, among those of a `CatsAnnotation`; none where the Doc names none of them.

    Where categories exclude each other: the one with the highest value. If all of them are 0 and the Doc has one other
    category, it is that one, which the component does not know. Where they overlap: one that is above 0.5, or "(none)".

    of (CatsAnnotation): The annotation of the predicted Docs. RAISES C261 (when read): several values are the highest.
    """

    def __init__(self, of: CatsAnnotation):
        self.of = of
        self.name = MULTI if of.overlapping else CATS
        self.overlapping, self.none = of.overlapping, of.none

    def label_at(self, doc: Doc, row: int) -> str:
        values = self.of.values(doc)
        if not values:
            return ""
        if self.overlapping:
            return next(iter(_positive(values)), NO_CATEGORY)
        highest = [name for name, value in values.items() if 0 < value == max(values.values())]
        if len(highest) > 1:
            raise calib_error("C261", text=doc.text[:40], given=", ".join(highest))
        others = [name for name in doc.cats if _value(doc, name)] if not highest else []
        return highest[0] if highest else others[0] if len(others) == 1 else ""


def _value(doc: Doc, name: str) -> float | None:
    """The value of a category in a Doc; None where it has none."""
    value = doc.cats.get(name)
    return float(value) if isinstance(value, Real) and not isnan(value) else None


def _positive(values: dict[str, float]) -> list[str]:
    """The categories that a document has, those with the highest values first."""
    return sorted((name for name, value in values.items() if value > _HALF), key=lambda name: -values[name])


@cache
def named_cats(name: str) -> CatsAnnotation | None:
    """The annotation of text categories with this name; None if the name is no such annotation's."""
    kind, _, listed = name.partition(" ")
    return CatsAnnotation(json.loads(listed) if listed else (), kind == MULTI) if kind in (CATS, MULTI) else None
