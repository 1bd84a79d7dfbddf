"""How soon an order of units finds the errors: by gold, and as the scores expect (Mejer & Crammer 2010, section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ....pairs.scored_corpus import UNKNOWN, WRONG, ScoredCorpus
from ....types import Floats, Ints
from ..messages import calib_error
from .orders import REVIEW, unit_doubts
from .units import ReviewUnits

# Shares of the units that are reported.
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


def review_order(doubt: Floats, ties: Floats | None = None) -> Ints:
    """Return the indices of the units, most doubtful first; ties by `ties` (higher first), then by index."""
    return np.lexsort([-doubt] if ties is None else [-ties, -doubt])


def dense_ranks(doubt: Floats, ties: Floats | None = None) -> Ints:
    """Return a rank for each unit, higher for more doubt, then for higher `ties`; equal only if both are equal."""
    keys = np.stack([doubt, doubt if ties is None else ties], axis=1)
    return np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)


def average_precision(ranks: ArrayLike, wrong: ArrayLike) -> float | None:
    """Return the average precision of an order: the mean, over the errors, of the share of errors among the units up to there.

    ranks: A number for each unit, higher is reviewed sooner, shape (n,); units of equal rank count as reviewed together. wrong:
        Whether each unit is an error, shape (n,). RETURNS (float | None): In [0, 1]; None without errors.
    """
    from sklearn.metrics import average_precision_score

    errors = np.asarray(wrong, dtype=bool)
    return float(average_precision_score(errors, np.asarray(ranks))) if errors.any() else None


def recall_at(order: Ints, weight: NDArray, shares: Sequence[float] = SHARES) -> list[float | None]:
    """Return the share of all errors among the first units of an order, for each share of the units.

    order (Ints): Indices of n units, first to last. weight (NDArray): 1 for an error, or its probability, shape (n,). shares
        (Sequence[float]): Shares of the units, in [0, 1], rounded to whole units. RETURNS (list): None for each without errors.
    """
    total = float(weight.sum())
    n_found = np.concatenate([[0.0], np.cumsum(weight[order])])
    return [float(n_found[round(share * len(order))]) / total if total > 0 else None for share in shares]


@dataclass(frozen=True)
class OrderQuality:
    """How soon an order of units finds the errors among them.

    order (str): Name in REVIEW. average_precision (float | None): In [0, 1]; None without errors. found (list): Share of all
    errors that are among the first 1 %, 2 %, 5 % etc. (SHARES) of the units; None without errors.
    """

    order: str
    average_precision: float | None
    found: list[float | None]


def compare_orders(corpus: ScoredCorpus, units: ReviewUnits, seed: int = 0) -> list[OrderQuality]:
    """Return the quality of each order, from units with gold; raw scores break ties. RAISES C076: no unit has gold."""
    index = np.flatnonzero(units.right != UNKNOWN)
    if not len(index):
        raise calib_error("C076", unit=units.kind)
    wrong = units.right[index] == WRONG
    raw = unit_doubts(corpus, units, "raw")[index]
    rows = []
    for name in REVIEW:
        doubt = unit_doubts(corpus, units, name, seed)[index]
        rows.append(
            OrderQuality(name, average_precision(dense_ranks(doubt, raw), wrong), recall_at(review_order(doubt, raw), wrong))
        )
    return rows


def expected_recall(units: ReviewUnits) -> list[float | None]:
    """Return the share of all errors that the scores expect among the most doubtful units: 1 %, 2 %, 5 % etc. (SHARES)."""
    doubt = 1 - units.calibrated
    return recall_at(review_order(doubt, 1 - units.raw), doubt)


def summarize_orders(corpus: ScoredCorpus, units: ReviewUnits, seed: int = 0) -> dict[str, Any]:
    """Summarize how soon the orders find the errors.

    RETURNS (dict): Numbers of "units", of those with gold ("known"), of "wrong" ones by gold (or None), and of "expected_wrong"
        ones by the scores. "shares": SHARES. "expected": share of all errors that the scores expect among the most doubtful
        1 %, 2 %, 5 % etc. (SHARES) of the units. "signals": each OrderQuality by gold, as a dict, or None without gold.
    """
    n_gold = int((units.right != UNKNOWN).sum())
    return {
        "units": len(units),
        "known": n_gold,
        "wrong": int((units.right == WRONG).sum()) if n_gold else None,
        "expected_wrong": float((1 - units.calibrated).sum()),
        "shares": list(SHARES),
        "expected": expected_recall(units),
        "signals": [asdict(row) for row in compare_orders(corpus, units, seed=seed)] if n_gold else None,
    }
