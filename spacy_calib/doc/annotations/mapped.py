"""The labels of an annotation in another scheme. The name holds the map, so that a saved Doc needs nothing else."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, Token
from spacy.training import Example

from ...pairs.label_map import LabelMap, map_label
from ...types import OUTSIDE
from .base import Annotation, Hashes
from .spans import SPANS_PREFIX

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
        self.prefixed, self.arcs = inner.prefixed, inner.arcs
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

    def texts(self, doc: Doc) -> list[str]:
        return self.inner.texts(doc)

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
