"""Text categories, `doc.cats`: the Doc is one unit, with one row of probabilities.

Several components may write into one `doc.cats`, so the annotation's name lists its own categories: 'cats ["a", "b"]'
where they exclude each other, 'cats:multi ["a", "b"]' where not. Without a list it means all categories.

And the labels of any annotation in another scheme, whose name holds the map, so that a saved Doc needs nothing else.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from math import isnan
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, Token
from spacy.training import Example

from ...errors import calib_error
from ...pairs.documents import DOCUMENT
from ...pairs.label_map import LabelMap, map_label
from ...types import OUTSIDE
from .base import NOT_THOSE, REJECTED_CATS, Annotation, Hashes, label_hashes, rejected_in
from .spans import SPANS_PREFIX

CATS, MULTI = "cats", "cats:multi"
# The gold of a document that has none of the categories.
NO_CATEGORY = "(none)"
# A document has a gold category whose value is greater.
_HALF = 0.5


class DocumentAnnotation(Annotation):
    """Labels of whole documents."""

    unit = DOCUMENT
    rejected_key = REJECTED_CATS

    def n_units(self, doc: Doc) -> int:
        return min(1, len(doc))

    def places(self, doc: Doc) -> Hashes:
        return np.array([[0, get_string_id(doc.text)]], dtype=np.uint64)[: self.n_units(doc)]

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
        gold = self.gold_hashes(example.reference)[: self.n_units(example.predicted)]
        return np.where((gold == 0) & bool(self.refused(example)), NOT_THOSE, gold)

    def refused(self, example: Example) -> set[tuple[int, int]] | None:
        spans = rejected_in(self, example.reference)
        return None if spans is None else {(0, label) for _, _, label in spans}


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

    def refused(self, example: Example) -> set[tuple[int, int]] | None:
        """None also of two categories that exclude each other: what is said of one says all."""
        return None if self.overlapping or len(self.labels) == 2 else super().refused(example)

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
        left = [name for name in self.of.labels if name not in values] if self.rejected_key in doc.spans else []
        if not highest and len(left) == 1:
            return left[0]
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


# In the name of a mapped annotation: stands between the inner name and the map of labels as JSON, and begins the map.
MAPPED = ' {"'
_ENTITIES = ("ner", "biluo")


class MappedAnnotation(Annotation):
    """The labels that the units of a predicted Doc carry, mapped to the scheme of the gold; the gold is left as it is.

    inner (Annotation): The component's labels. table (LabelMap): Each label -> the gold's, "" for no counterpart.
    """

    def __init__(self, inner: Annotation, table: LabelMap):
        self.inner = inner
        self.table = dict(table)
        self.name = f"{inner.name} {json.dumps(self.table, ensure_ascii=False)}"
        self.unit, self.overlapping, self.none, self.first = inner.unit, inner.overlapping, inner.none, inner.first
        self.judges, self.any_label, self.accuracy_name = inner.judges, inner.any_label, inner.accuracy_name
        self.span_words, self.spans_first, self.span_event = inner.span_words, inner.spans_first, inner.span_event
        self.prefixed, self.arcs, self.rejected_key = inner.prefixed, inner.arcs, inner.rejected_key
        self.spans_are_units, self.of_entities = inner.spans_are_units, inner.of_entities
        self.partners, self.partner = inner.partners, inner.partner  # type: ignore[method-assign]
        judge: Any = type(inner).judge_spans
        self.judge_spans = judge and partial(judge, self)  # by what this one says of labels
        self._dropped = OUTSIDE if inner.name in _ENTITIES or inner.name.startswith(SPANS_PREFIX) else ""
        self._gold = inner.in_scheme(self.counterpart)
        self._spans = {get_string_id(label): get_string_id(other) if other else 0 for label, other in self.table.items()}

    @property
    def gold(self) -> Annotation:
        return self._gold.gold

    def n_units(self, doc: Doc) -> int:
        return self.inner.n_units(doc)

    def places(self, doc: Doc) -> Hashes:
        return self.inner.places(doc)

    def counterpart(self, label: str) -> str:
        """The gold's name for a label; "" where it has none."""
        return map_label(self.table, label, self._dropped, self.prefixed) if label else ""

    def hashes(self, doc: Doc) -> Hashes:
        found, first, inverse = np.unique(self.inner.hashes(doc), return_index=True, return_inverse=True)
        units = zip(found.tolist(), first.tolist(), strict=True)
        names = [self.label_at(doc, i) if key else "" for key, i in units]
        return np.array([get_string_id(name) if name else 0 for name in names], dtype=np.uint64)[inverse.reshape(-1)]

    def label(self, token: Token) -> str:
        return self.counterpart(self.inner.label(token))

    def label_at(self, doc: Doc, row: int) -> str:
        return self.counterpart(self.inner.label_at(doc, row))

    def gold_hashes(self, doc: Doc) -> Hashes:
        return self._gold.gold_hashes(doc)

    def aligned_gold(self, example: Example) -> Hashes:
        return self._gold.aligned_gold(example)

    def is_gold(self, example: Example, rows: NDArray[np.intp], hashes: Hashes) -> NDArray[np.bool_]:
        return self._gold.is_gold(example, rows, hashes)

    def is_known(self, example: Example, rows: NDArray[np.intp], hashes: Hashes) -> NDArray[np.bool_]:
        return self._gold.is_known(example, rows, hashes)

    def spans_on(self, doc: Doc) -> Sequence[Span]:
        return self.inner.spans_on(doc)

    def known_tokens(self, doc: Doc) -> NDArray[np.bool_]:
        return self.inner.known_tokens(doc)

    def refused(self, example: Example) -> set[tuple[int, int]] | None:
        return self._gold.refused(example)

    def gold_span_label(self, label: int) -> int:
        return self._spans.get(label, label)

    def foreign(self, docs: Iterable[Doc]) -> list[str]:
        return self._gold.foreign(docs)

    def count_spans(self, docs: Iterable[Doc]) -> Counter[str]:
        """Gold frequency by the component's span labels: each has the frequency of its counterpart."""
        gold = self.inner.count_spans(docs)
        return Counter({**gold, **{label: gold[other] for label, other in self.table.items()}})

    def count(self, docs: Iterable[Doc]) -> Counter[str]:
        return self._gold.count(docs)


def named_map(name: str) -> tuple[str, LabelMap]:
    """(name of the inner annotation, map of labels), from the name of a mapped annotation."""
    inner, _, table = name.partition(MAPPED)
    return inner, json.loads(MAPPED.lstrip() + table)
