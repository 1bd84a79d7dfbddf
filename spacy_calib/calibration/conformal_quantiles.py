"""Conformal quantiles: how much nonconformity a set must take in to hold the gold tag as often as it promises."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ..schema import Saved, floats, kept, lengths, wholes
from ..types import Floats, Ints


@dataclass(frozen=True, eq=False)
class Cuts(Saved):
    """What was learned for some conditions.

    values (Floats): The greatest nonconformity that a set takes in, shape (n_conditions,); 1 if no less will do.
    tokens (Ints): Fit tokens under each condition.
    """

    values: Floats = kept(floats(0.0, 1.0))
    tokens: Ints = kept(wholes())

    @classmethod
    def agree(cls, held: dict[str, Any]) -> str:
        return lengths({"tokens": len(held["values"])}, held)


def quantile_rank(n: int, alpha: float) -> int:
    """ceil((n + 1)(1 - alpha)), exact for alpha as written in decimals; above n where n tokens are too few."""
    exact = Fraction(repr(float(alpha)))
    return n + 1 - int((n + 1) * exact)


def cuts_of(nonconformity: Floats, conditions: Ints, n_conditions: int, alpha: float) -> Cuts:
    """The cut of each condition.

    nonconformity (Floats): Of the gold tag of n tokens. conditions (Ints): Of each token, in [0, n_conditions).
    """
    order = np.lexsort((nonconformity, conditions))
    ascending = nonconformity[order]
    tokens = np.bincount(conditions, minlength=n_conditions)
    ranks = np.array([quantile_rank(n, alpha) for n in tokens.tolist()], dtype=np.intp)
    enough = np.flatnonzero(ranks <= tokens)
    values = np.ones(n_conditions)
    wanted = (np.cumsum(tokens) - tokens + ranks)[enough]
    values[enough] = ascending[wanted - 1]
    return Cuts(values, tokens)
