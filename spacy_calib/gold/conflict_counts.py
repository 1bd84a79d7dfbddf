"""Counts how often several annotations of one text differ; the counts are kept in the user data of the gold Doc."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from spacy.tokens import Doc

CONFLICTS = "calib_conflicts"  # key of `Doc.user_data` with the fields of a GoldConflicts


@dataclass
class GoldConflicts:
    """Counts of the labels that several annotations of a text give, and of those on which the annotations differ.

    copies (int): Docs merged into another Doc of the same text. compared, differing (Counter): Layer ("ner", "TAG") -> number
    of labels that several annotations give, and on which they differ. overlapping (int): Entities with a second label, or which
    overlap another one, in one annotation, so that neither can be taken. labels (set): Labels of spans that differ.
    """

    copies: int = 0
    compared: Counter[str] = field(default_factory=Counter)
    differing: Counter[str] = field(default_factory=Counter)
    overlapping: int = 0
    labels: set[str] = field(default_factory=set)

    def note(self, layer: str, values: Iterable[Any]) -> bool:
        """Count under `layer` the values that annotations give to one token, span or category. RETURNS: Whether they differ."""
        value_list = list(values)
        differs = len(set(value_list)) > 1
        self.compared[layer] += len(value_list) > 1
        self.differing[layer] += differs
        return differs

    def add(self, doc: Doc) -> None:
        """Add to these counts those in the user data of a Doc."""
        counts = doc.user_data.get(CONFLICTS, {})
        self.copies += counts.get("copies", 0)
        self.compared.update(counts.get("compared", {}))
        self.differing.update(counts.get("differing", {}))
        self.overlapping += counts.get("overlapping", 0)
        self.labels.update(counts.get("labels", ()))

    def to_dict(self) -> dict[str, Any]:
        """Return the counts for the user data of a Doc, which may be saved."""
        return {**vars(self), "compared": dict(self.compared), "differing": dict(self.differing), "labels": sorted(self.labels)}
