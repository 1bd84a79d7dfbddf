"""Text categories: what `doc.cats` says of a whole document. A Doc is one unit, and has one row of probabilities.

Several components may write into one `doc.cats`, so that the name of an annotation holds the categories that are its own:
'cats ["neg", "pos"]' of classes that exclude each other, 'cats:multi ["film", "music"]' of others. Without a list all are meant.
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
# Stands for the gold of a document that has none of the categories.
NO_CATEGORY = "(none)"
# A gold category counts where its value is greater.
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

    labels (Sequence[str]): The categories that count; () for all. overlapping (bool): Whether a document may have several of them.
    """

    def __init__(self, labels: Sequence[str] = (), overlapping: bool = False):
        self.labels = tuple(labels)
        self.overlapping = overlapping
        self.none = (NO_CATEGORY,) if overlapping else ()
        # A brace would be taken for the beginning of a map: see `mapped`.
        listed = json.dumps(self.labels, ensure_ascii=False).replace("{", "\\u007b")
        self.name = (MULTI if overlapping else CATS) + (f" {listed}" if self.labels else "")

    def values(self, doc: Doc) -> dict[str, float]:
        """The own categories of a Doc with their values; those without a value are left out."""
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
        """Of classes that do not exclude each other, each by itself: a gold Doc may leave some out, as for spaCy's scorer."""
        if not self.overlapping:
            return super().is_known(example, rows, hashes)
        return np.isin(hashes, label_hashes(self.values(example.reference)))

    def foreign(self, docs: Iterable[Doc]) -> list[str]:
        return sorted({name for doc in docs for name in doc.cats} - set(self.labels)) if self.labels else []

    def count(self, docs: Iterable[Doc]) -> Counter[str]:
        """Of a category that excludes others also where it is not among the own ones: the component does not know it."""
        if self.overlapping:
            return Counter(label for doc in docs for label in _positive(self.values(doc)))
        gold = self.gold
        return Counter(label for doc in docs if (label := gold.label_at(doc, 0)))


class GoldCats(DocumentAnnotation):
    """The category that a gold Doc has, of those of another annotation. A Doc that names none of them has no gold.

    Of classes that exclude each other it is the one with the highest value; where all of them have 0, the only other category that has more, which the
    component does not know.
    Of others it is one of those that have more than 0.5, or "(none)".

    of (CatsAnnotation): The other annotation. RAISES C261 (when it is read): several categories have the highest value.
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
    """What a Doc says of a category; None where that is nothing."""
    value = doc.cats.get(name)
    return float(value) if isinstance(value, Real) and not isnan(value) else None


def _positive(values: dict[str, float]) -> list[str]:
    """The categories that a document has, those with the highest values first."""
    return sorted((name for name, value in values.items() if value > _HALF), key=lambda name: -values[name])


@cache
def named_cats(name: str) -> CatsAnnotation | None:
    """The annotation of this name; None for one of another kind."""
    kind, _, listed = name.partition(" ")
    return CatsAnnotation(json.loads(listed) if listed else (), kind == MULTI) if kind in (CATS, MULTI) else None
