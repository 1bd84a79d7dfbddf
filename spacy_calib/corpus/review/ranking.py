"""Doubts -> the order of review, and how soon it finds the errors (Mejer & Crammer 2010, section 5: relative confidence)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import calib_error
from ...types import Floats, Ints
from ..doubt import DOUBTS
from ..scored import UNKNOWN, WRONG, ScoredCorpus
from .units import Units, unit_doubts

# Shares of the units that a reader is told of.
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


def review_order(doubt: Floats, ties: Floats | None = None) -> Ints:
    """The units, most doubtful first; equal ones by `ties` (higher first), then in the order given."""
    keys = [-doubt] if ties is None else [-ties, -doubt]
    return np.lexsort(keys)


def dense_ranks(doubt: Floats, ties: Floats | None = None) -> Ints:
    """A number for each unit that rises with its place in `review_order`, the same for those that no key tells apart."""
    both = np.stack([doubt, doubt if ties is None else ties], axis=1)
    return np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)


def average_precision(ranks: ArrayLike, wrong: ArrayLike) -> float | None:
    """How well an order finds the errors: the mean, over the errors, of the share of errors among the units up to there.

    ranks: A number for each unit, higher is reviewed sooner, shape (n,). wrong: Whether it is an error, shape (n,). Units of equal rank
        count as reviewed together (scikit-learn's average precision).
    RETURNS (float | None): In [0, 1]; None where there is no error.
    """
    from sklearn.metrics import average_precision_score

    errors = np.asarray(wrong, dtype=bool)
    return float(average_precision_score(errors, np.asarray(ranks))) if errors.any() else None


def found_shares(order: Ints, weight: NDArray, shares: Sequence[float] = SHARES) -> list[float | None]:
    """Which share of the errors the first units of an order hold.

    order (Ints): n units, first to last. weight (NDArray): 1 for an error, or its probability, shape (n,). shares (Sequence[float]): Of
        the units, in [0, 1]; rounded to whole units.
    RETURNS (list): For each share; None where there are no errors.
    """
    total = float(weight.sum())
    found = np.concatenate([[0.0], np.cumsum(weight[order])])
    return [float(found[round(share * len(order))]) / total if total > 0 else None for share in shares]


@dataclass(frozen=True)
class Finding:
    """How soon one signal finds the errors.

    by (str): The signal. average_precision (float | None): See `average_precision`. found (list): Share of the errors in the first
    units, for each of the shares.
    """

    by: str
    average_precision: float | None
    found: list[float | None]


def compare_signals(
    corpus: ScoredCorpus, units: Units, shares: Sequence[float] = SHARES, signals: Sequence[str] = DOUBTS, seed: int = 0
) -> list[Finding]:
    """A row for each signal: over the units whose gold is known. Calibrated scores that are equal are ordered by the raw ones.

    RAISES C076: no unit has gold.
    """
    known = np.flatnonzero(units.right != UNKNOWN)
    if not len(known):
        raise calib_error("C076", unit=units.kind)
    wrong = units.right[known] == WRONG
    raw = unit_doubts(corpus, units, "raw")[known]
    rows = []
    for by in signals:
        doubt = unit_doubts(corpus, units, by, seed)[known]
        found = found_shares(review_order(doubt, raw), wrong, shares)
        rows.append(Finding(by, average_precision(dense_ranks(doubt, raw), wrong), found))
    return rows


def expected_shares(units: Units, shares: Sequence[float] = SHARES) -> list[float | None]:
    """What the first units are expected to hold of the errors if the calibrated probabilities are true; needs no gold."""
    doubt = 1 - units.calibrated
    return found_shares(review_order(doubt, 1 - units.raw), doubt, shares)
