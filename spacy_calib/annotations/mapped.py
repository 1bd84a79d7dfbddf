"""An annotation whose labels are mapped to those of the gold.

Its name contains the label map, so the name alone is enough to read scores from a saved Doc.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from spacy.strings import get_string_id
from spacy.tokens import Doc, Token
from spacy.training import Example

from ..pairs.label_map import LabelMap, map_label
from ..types import OUTSIDE
from .annotation import Annotation, Hashes, label_hashes, resolve_gold

# Separator in the name of a mapped annotation, between the inner name and the label map as JSON, of which it is the beginning.
MAPPED = ' {"'


class MappedAnnotation(Annotation):
    """The labels of another annotation (`inner`), replaced by those of the gold. table: Label -> gold label, "" for none."""

    def __init__(self, inner: Annotation, table: LabelMap):
        """Map the labels that `inner` reads from predicted Docs. Gold Docs have gold labels, so their labels are not mapped."""
        self.inner, self.table, self.kind = inner, dict(table), inner.kind
        self.name = f"{inner.name} {json.dumps(self.table, ensure_ascii=False)}"
        self.partners, self.partner = inner.partners, inner.partner  # type: ignore[method-assign]
        evaluate_spans: Any = type(inner).evaluate_spans  # None, or a function: called with `self`, it compares mapped labels
        self.evaluate_spans = evaluate_spans and partial(evaluate_spans, self)
        self._no_counterpart = OUTSIDE if self.kind.has_types else ""  # the gold label of labels that are mapped to ""
        self._gold = inner.in_scheme(self.counterpart)  # reads gold Docs: `inner`, or for categories one with those of the gold
        # A label map changes neither the units and spans of a Doc, which `inner` reads, nor gold labels, which `_gold` reads.
        for name in ("n_units", "unit_texts", "spans_on", "known_tokens"):
            setattr(self, name, getattr(inner, name))
        for name in ("gold_hashes", "is_gold", "is_known", "rejected_labels", "foreign_labels", "count_gold"):
            setattr(self, name, getattr(self._gold, name))
        # Label hash -> hash of its gold label; that of "" is 0.
        self._gold_hash = {get_string_id(label): get_string_id(gold_label) for label, gold_label in self.table.items()}

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
        keys, first_units, inverse = np.unique(self.inner.hashes(doc), return_index=True, return_inverse=True)
        distinct = zip(keys.tolist(), first_units.tolist(), strict=True)  # each distinct label's hash, and a unit that has it
        names = [self.label_at(doc, unit) if key else "" for key, unit in distinct]
        return label_hashes(names)[inverse.reshape(-1)]

    def label(self, token: Token) -> str:
        return self.counterpart(self.inner.label(token))

    def label_at(self, doc: Doc, unit: int) -> str:
        return self.counterpart(self.inner.label_at(doc, unit))

    def gold_span_label(self, label: int) -> int:
        return self._gold_hash.get(label, label)

    def count_spans(self, docs: Iterable[Doc]) -> Counter[str]:
        """Return label -> number of gold spans; a label of the component has the number of its gold label."""
        gold = self.inner.count_spans(docs)
        return Counter({**gold, **{label: gold[gold_label] for label, gold_label in self.table.items()}})
