"""Counts of gold that several annotations give, and of the differences between these, kept in the user data of a Doc."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from spacy.tokens import Doc

# Key of `Doc.user_data` with the fields of a GoldConflicts.
CONFLICTS = "calib_conflicts"


@dataclass
class GoldConflicts:
    """Counts of the texts with several annotations, and of the differences between these.

    copies (int): Docs that were merged into another one of the same text. compared, differing (Counter): Layer -> number of
    labels with several annotations, and of those that differ. overlapping (int): Entities that have a second label or overlap
    another one in the same annotation, so that none can be taken. labels (set): Labels of the spans that differ.
    """

    copies: int = 0
    compared: Counter[str] = field(default_factory=Counter)
    differing: Counter[str] = field(default_factory=Counter)
    overlapping: int = 0
    labels: set[str] = field(default_factory=set)

    def note(self, layer: str, values: Iterable[Any]) -> bool:
        """Count the values that annotations give to one label. RETURNS (bool): Whether they differ."""
        value_list = list(values)
        differs = len(set(value_list)) > 1
        self.compared[layer] += len(value_list) > 1
        self.differing[layer] += differs
        return differs

    def add(self, doc: Doc) -> None:
        """Add the counts that a Doc has in its user data."""
        counts = doc.user_data.get(CONFLICTS, {})
        self.copies += counts.get("copies", 0)
        self.compared.update(counts.get("compared", {}))
        self.differing.update(counts.get("differing", {}))
        self.overlapping += counts.get("overlapping", 0)
        self.labels.update(counts.get("labels", ()))

    def to_dict(self) -> dict[str, Any]:
        """Return the counts for the user data of a Doc, which may be saved."""
        return {**vars(self), "compared": dict(self.compared), "differing": dict(self.differing), "labels": sorted(self.labels)}
