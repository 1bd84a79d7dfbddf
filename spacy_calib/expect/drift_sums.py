"""What is compared of new documents with those of the fit, as sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..types import Floats


def totals(tables: dict[str, Floats], weights: Any) -> dict[str, Floats]:
    """Each table summed over documents, by several weightings of them, shape (n_weightings, n_documents)."""
    return {name: weights @ table for name, table in tables.items()}


@dataclass(frozen=True)
class DriftSums:
    """What is compared of new documents; those of some documents and of others add up.

    totals (dict): Each table of `DriftProfile.tables` summed over documents. documents, tokens (int): With tokens; and these. stretched (DriftSums | None):
        The same with stretches for documents; None where documents are too many for that.
    """

    totals: dict[str, Floats]
    documents: int
    tokens: int
    stretched: DriftSums | None = None

    @classmethod
    def of(cls, tables: dict[str, Floats], tokens: int, stretched: DriftSums | None = None) -> DriftSums:
        """tokens (int): Of all documents."""
        with_tokens = int((tables["scores"].sum(axis=1) > 0).sum())
        return cls(totals(tables, np.ones((1, len(tables["scores"])))), with_tokens, tokens, stretched)

    def __add__(self, other: DriftSums) -> DriftSums:
        both = None if self.stretched is None or other.stretched is None else self.stretched + other.stretched
        summed = {name: table + other.totals[name] for name, table in self.totals.items()}
        return DriftSums(summed, self.documents + other.documents, self.tokens + other.tokens, both)
