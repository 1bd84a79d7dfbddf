"""Annotations of text categories (`doc.cats`), where a document is one unit, and of labels mapped to another scheme.

Several components may write to one `doc.cats`, so the annotation's name lists its categories: 'cats ["a", "b"]' if exclusive,
else 'cats:multi ["a", "b"]'; a name without a list means all categories. The name of a mapped annotation contains its label
map, so the name alone is enough to read scores from a saved Doc.
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
from spacy.tokens import Doc, Token
from spacy.training import Example

from ..errors import calib_error
from ..pairs.label_map import LabelMap, map_label
from ..types import OUTSIDE
from .annotation import ONLY_REJECTED, Annotation, Hashes, label_hashes, rejected_in, resolve_gold
from .kinds import CATEGORIES, MULTI_CATEGORIES

CATS, MULTI = "cats", "cats:multi"
# A document has a gold category if its value is greater.
_POSITIVE = 0.5
# Separator in the name of a mapped annotation, between the inner name and the label map as JSON, of which it is the beginning.
MAPPED = ' {"'


class DocumentAnnotation(Annotation):
    """An annotation whose only unit is the whole document, row 0; a Doc without tokens has no unit."""

    kind = CATEGORIES

    def n_units(self, doc: Doc) -> int:
        return min(1, len(doc))

    def unit_texts(self, doc: Doc) -> Hashes:
        text = doc[:].text  # without the space after its last token, which a join may add
        return np.array([[0, len(text), get_string_id(text)]], dtype=np.uint64)[: self.n_units(doc)]

    def hashes(self, doc: Doc) -> Hashes:
        label = self.label_at(doc, 0)
        return np.array([get_string_id(label) if label else 0], dtype=np.uint64)[: self.n_units(doc)]

    @abstractmethod
    def label_at(self, doc: Doc, row: int) -> str: ...

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
        names = self.labels or doc.cats
        return {name: value for name in names if (value := _value(doc, name)) is not None}

    def label_at(self, doc: Doc, row: int) -> str:
        values = self.values(doc)
        return max(values, key=values.__getitem__) if values else ""

    @property
    def gold(self) -> Annotation:
        return GoldCats(self)

    def in_scheme(self, counterpart: Callable[[str], str]) -> Annotation:
        names = dict.fromkeys(filter(None, map(counterpart, self.labels)))
        return CatsAnnotation(tuple(names), self.kind.overlapping)

    def rejected_labels(self, example: Example) -> set[tuple[int, int]] | None:
        """Return (0, label hash) of each rejected category, 0 for the document; None if the gold decides without rejections."""
        # Overlapping categories have a value each, which decides; of two exclusive ones, a no to one is a yes to the other.
        needs_no_rejections = self.kind.overlapping or len(self.labels) == 2
        return None if needs_no_rejections else super().rejected_labels(example)

    def is_gold(self, example: Example, rows: NDArray[np.intp], hashes: Hashes) -> NDArray[np.bool_]:
        """Return for n labels whether each is right; overlapping ones are if their value in the gold is above 0.5."""
        if not self.kind.overlapping:
            return super().is_gold(example, rows, hashes)
        return np.isin(hashes, label_hashes(_positive(self.values(example.reference))))

    def is_known(self, example: Example, rows: NDArray[np.intp], hashes: Hashes) -> NDArray[np.bool_]:
        """Return for n labels whether the gold decides if each is right; overlapping ones need a value in `doc.cats`."""
        if not self.kind.overlapping:
            return super().is_known(example, rows, hashes)
        return np.isin(hashes, label_hashes(self.values(example.reference)))

    def foreign_labels(self, docs: Iterable[Doc]) -> list[str]:
        return sorted({name for doc in docs for name in doc.cats} - set(self.labels)) if self.labels else []

    def count_gold(self, docs: Iterable[Doc]) -> Counter[str]:
        """Return category -> number of gold Docs that have it; exclusive ones also if the component does not know them."""
        if self.kind.overlapping:
            return Counter(label for doc in docs for label in _positive(self.values(doc)))
        gold = self.gold
        return Counter(label for doc in docs if (label := gold.label_at(doc, 0)))


class GoldCats(DocumentAnnotation):
    """The category of gold Docs, for comparison with a CatsAnnotation; no label if `doc.cats` has none of its categories.

    Exclusive categories: the one with the highest value above 0. If none is above 0, the only category without a value, if
    annotators rejected all others; else the only other category of the Doc, which the component does not know. Overlapping
    categories: the highest above 0.5, or "(none)". categories (CatsAnnotation): The annotation of predicted Docs.
    """

    def __init__(self, categories: CatsAnnotation):
        self.categories = categories
        self.name = MULTI if categories.kind.overlapping else CATS
        self.kind = categories.kind

    def label_at(self, doc: Doc, row: int) -> str:
        """Return the gold category of a Doc, its only unit (row 0), "" for none. RAISES C261: several have the top value."""
        values = self.categories.values(doc)
        if not values:
            return ""
        if self.kind.overlapping:
            return next(iter(_positive(values)), self.kind.no_label_names[0])  # else "(none)"
        highest = [name for name, value in values.items() if 0 < value == max(values.values())]
        if len(highest) > 1:
            raise calib_error("C261", text=doc.text[:40], given=", ".join(highest))
        if highest:
            return highest[0]
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


class MappedAnnotation(Annotation):
    """The labels of another annotation (`inner`), replaced by those of the gold. table: Label -> gold label, "" for none."""

    def __init__(self, inner: Annotation, table: LabelMap):
        """Take units and spans from `inner`, gold from `inner.in_scheme`, and replace predicted labels by `table`."""
        self.inner, self.table, self.kind = inner, dict(table), inner.kind
        self.name = f"{inner.name} {json.dumps(self.table, ensure_ascii=False)}"
        self.partners, self.partner = inner.partners, inner.partner  # type: ignore[method-assign]
        evaluate_spans: Any = type(inner).evaluate_spans  # None, or a function: called with `self`, it compares mapped labels
        self.evaluate_spans = evaluate_spans and partial(evaluate_spans, self)
        self._no_counterpart = OUTSIDE if self.kind.has_types else ""  # the gold label of labels that are mapped to ""
        self._gold = inner.in_scheme(self.counterpart)  # reads gold Docs
        # Methods that a label map does not change are those of the two annotations.
        for name in ("n_units", "unit_texts", "spans_on", "known_tokens"):
            setattr(self, name, getattr(inner, name))
        for name in ("gold_hashes", "is_gold", "is_known", "rejected_labels", "foreign_labels", "count_gold"):
            setattr(self, name, getattr(self._gold, name))
        self._gold_hash = {  # label hash -> hash of its gold label
            get_string_id(label): get_string_id(gold_label) if gold_label else 0 for label, gold_label in self.table.items()
        }

    @property
    def gold(self) -> Annotation:
        return self._gold.gold

    def counterpart(self, label: str) -> str:
        """Return the gold label that a label of `inner` is mapped to: itself if the map lacks it, "" (or "O") for none."""
        return map_label(self.table, label, self._no_counterpart, self.kind.has_prefixes) if label else ""

    def aligned_gold(self, example: Example) -> Hashes:
        return resolve_gold(self, self._gold.aligned_gold(example), example)

    def hashes(self, doc: Doc) -> Hashes:
        """Return the hash of each unit's mapped label, 0 for none; each distinct label of `inner` is mapped once."""
        keys, first, inverse = np.unique(self.inner.hashes(doc), return_index=True, return_inverse=True)
        units = zip(keys.tolist(), first.tolist(), strict=True)  # each distinct label's hash, and the first unit that has it
        names = [self.label_at(doc, i) if key else "" for key, i in units]
        return np.array([get_string_id(name) if name else 0 for name in names], dtype=np.uint64)[inverse.reshape(-1)]

    def label(self, token: Token) -> str:
        return self.counterpart(self.inner.label(token))

    def label_at(self, doc: Doc, row: int) -> str:
        return self.counterpart(self.inner.label_at(doc, row))

    def gold_span_label(self, label: int) -> int:
        return self._gold_hash.get(label, label)

    def count_spans(self, docs: Iterable[Doc]) -> Counter[str]:
        """Return label -> number of gold spans; a label of the component has the number of its gold label."""
        gold = self.inner.count_spans(docs)
        return Counter({**gold, **{label: gold[gold_label] for label, gold_label in self.table.items()}})
