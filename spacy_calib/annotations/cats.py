"""Text categories, `doc.cats`: the Doc is one unit, with one row of probabilities. And labels mapped to another scheme.

Several components may write into one `doc.cats`, so the annotation's name lists its categories: 'cats ["a", "b"]' if exclusive,
else 'cats:multi ["a", "b"]'; without a list it means all. The name of a mapped annotation holds the map, so that a saved Doc
needs nothing else.
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
from ..pairs.documents import DOCUMENT
from ..pairs.label_map import LabelMap, map_label
from ..types import OUTSIDE
from .base import NOT_THOSE, REJECTED_CATS, Annotation, Hashes, label_hashes, rejected_in, resolve_gold
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
        """Return "": tokens have no label."""
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
    """The top category in `doc.cats`. labels (Sequence[str]): () for all. overlapping (bool): A document may have several."""

    def __init__(self, labels: Sequence[str] = (), overlapping: bool = False):
        self.labels = tuple(labels)
        self.overlapping = overlapping
        self.none = (NO_CATEGORY,) if overlapping else ()
        # In the name a brace would begin a map of labels: see `mapped`.
        names = json.dumps(self.labels, ensure_ascii=False).replace("{", "\\u007b")
        self.name = (MULTI if overlapping else CATS) + (f" {names}" if self.labels else "")

    def values(self, doc: Doc) -> dict[str, float]:
        """Return the values of the annotation's categories in a Doc."""
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
        return CatsAnnotation(tuple(names), self.overlapping)

    def refused(self, example: Example) -> set[tuple[int, int]] | None:
        """None also for two exclusive categories: an answer about one decides both."""
        return None if self.overlapping or len(self.labels) == 2 else super().refused(example)

    def is_gold(self, example: Example, rows: NDArray[np.intp], hashes: Hashes) -> NDArray[np.bool_]:
        if not self.overlapping:
            return super().is_gold(example, rows, hashes)
        return np.isin(hashes, label_hashes(_positive(self.values(example.reference))))

    def is_known(self, example: Example, rows: NDArray[np.intp], hashes: Hashes) -> NDArray[np.bool_]:
        """Where categories overlap, each by itself: like spaCy's scorer, it lets a gold Doc leave some out."""
        if not self.overlapping:
            return super().is_known(example, rows, hashes)
        return np.isin(hashes, label_hashes(self.values(example.reference)))

    def foreign(self, docs: Iterable[Doc]) -> list[str]:
        return sorted({name for doc in docs for name in doc.cats} - set(self.labels)) if self.labels else []

    def count(self, docs: Iterable[Doc]) -> Counter[str]:
        """Count also exclusive categories that are not in `labels`: the component does not know them."""
        if self.overlapping:
            return Counter(label for doc in docs for label in _positive(self.values(doc)))
        gold = self.gold
        return Counter(label for doc in docs if (label := gold.label_at(doc, 0)))


class GoldCats(DocumentAnnotation):
    """The category of a gold Doc, among those of a `CatsAnnotation`; none if the Doc names none of them.

    Of exclusive categories the one with the highest value; if all are 0 and the Doc has one other category, that one, which the
    component does not know. Of overlapping ones one above 0.5, or "(none)". of (CatsAnnotation): Of the predicted Docs. RAISES
    C261 (when read): several values are the highest.
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
        names_left = [name for name in self.of.labels if name not in values] if self.rejected_key in doc.spans else []
        if not highest and len(names_left) == 1:
            return names_left[0]
        if len(highest) > 1:
            raise calib_error("C261", text=doc.text[:40], given=", ".join(highest))
        other_names = [name for name in doc.cats if _value(doc, name)] if not highest else []
        return highest[0] if highest else other_names[0] if len(other_names) == 1 else ""


def _value(doc: Doc, name: str) -> float | None:
    """Return the value of a category in a Doc, or None."""
    value = doc.cats.get(name)
    return float(value) if isinstance(value, Real) and not isnan(value) else None


def _positive(values: dict[str, float]) -> list[str]:
    """Return the categories that a document has, highest values first."""
    return sorted((name for name, value in values.items() if value > _HALF), key=lambda name: -values[name])


@cache
def named_cats(name: str) -> CatsAnnotation | None:
    """Return the annotation of text categories with this name, or None."""
    kind, _, names = name.partition(" ")
    return CatsAnnotation(json.loads(names) if names else (), kind == MULTI) if kind in (CATS, MULTI) else None


# In the name of a mapped annotation: stands between the inner name and the map of labels as JSON, and begins the map.
MAPPED = ' {"'
_ENTITIES = ("ner", "biluo")


class MappedAnnotation(Annotation):
    """A predicted Doc's labels (`inner`) in the scheme of the gold. table (LabelMap): Label -> the gold's, "" for none."""

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
        self._no_counterpart = OUTSIDE if inner.name in _ENTITIES or inner.name.startswith(SPANS_PREFIX) else ""
        self._gold = inner.in_scheme(self.counterpart)
        for name in ("n_units", "places", "spans_on", "known_tokens"):
            setattr(self, name, getattr(inner, name))
        for name in ("gold_hashes", "is_gold", "is_known", "refused", "foreign", "count"):
            setattr(self, name, getattr(self._gold, name))
        self._spans = {
            get_string_id(label): get_string_id(gold_label) if gold_label else 0 for label, gold_label in self.table.items()
        }

    @property
    def gold(self) -> Annotation:
        return self._gold.gold

    def counterpart(self, label: str) -> str:
        """Return the gold's name for a label, or ""."""
        return map_label(self.table, label, self._no_counterpart, self.prefixed) if label else ""

    def aligned_gold(self, example: Example) -> Hashes:
        return resolve_gold(self, self._gold.aligned_gold(example), example)

    def hashes(self, doc: Doc) -> Hashes:
        keys, first, inverse = np.unique(self.inner.hashes(doc), return_index=True, return_inverse=True)
        units = zip(keys.tolist(), first.tolist(), strict=True)
        names = [self.label_at(doc, i) if key else "" for key, i in units]
        return np.array([get_string_id(name) if name else 0 for name in names], dtype=np.uint64)[inverse.reshape(-1)]

    def label(self, token: Token) -> str:
        return self.counterpart(self.inner.label(token))

    def label_at(self, doc: Doc, row: int) -> str:
        return self.counterpart(self.inner.label_at(doc, row))

    def gold_span_label(self, label: int) -> int:
        return self._spans.get(label, label)

    def count_spans(self, docs: Iterable[Doc]) -> Counter[str]:
        """Count the component's span labels by their counterparts in gold."""
        gold = self.inner.count_spans(docs)
        return Counter({**gold, **{label: gold[gold_label] for label, gold_label in self.table.items()}})


def named_map(name: str) -> tuple[str, LabelMap]:
    """Return (name of the inner annotation, map of labels) from the name of a mapped annotation."""
    inner, _, table = name.partition(MAPPED)
    return inner, json.loads(MAPPED.lstrip() + table)
