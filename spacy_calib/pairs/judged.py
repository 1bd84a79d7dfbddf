"""Pairs before and after calibration: what every figure, table and picture is made from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..types import Floats, Ints, Pairs
from .documents import DOCUMENT


@dataclass(frozen=True, eq=False)
class JudgedPairs:
    """n pairs with gold.

    pairs (Pairs): Raw scores and hits. calibrated (Floats): The calibrated score of each pair.
    documents (Ints): The document of each. unit (str): What a document is.
    """

    pairs: Pairs
    calibrated: Floats
    documents: Ints
    unit: str = DOCUMENT

    def __len__(self) -> int:
        return len(self.pairs)


def no_pairs() -> JudgedPairs:
    """No pairs: every figure of them is None."""
    none = np.zeros(0, dtype=np.intp)
    return JudgedPairs(Pairs(none, none, np.zeros(0), np.zeros(0, dtype=bool), 0), np.zeros(0), none)
