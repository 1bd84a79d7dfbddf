"""How soon an order of units finds the errors: by gold, and as the scores expect (Mejer & Crammer 2010, section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....pairs.scored_corpus import UNKNOWN, WRONG, ScoredCorpus
from ....types import Floats, Ints
from .orders import unit_doubts
from .units import ReviewUnits

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)  # shares of the units that are reported


def review_order(doubts: Floats, ties: Floats) -> Ints:
    """Return the indices of the units, most doubtful first; ties by `ties` (higher first), then by index."""
    return np.lexsort([-ties, -doubts])


def average_precision(doubts: Floats, ties: Floats, wrong: NDArray[np.bool_]) -> float | None:
    """Return the average precision of an order: the share of errors among the units up to an error, averaged over the errors.

    doubts, ties: The higher, the sooner a unit is reviewed, shape (n,); units with equal values in both count as reviewed
    together. wrong: Whether each unit is an error, shape (n,). RETURNS (float | None): In [0, 1]; None without errors.
    """
    from sklearn.metrics import average_precision_score

    # Place of each unit's (doubt, tie) among the distinct ones, which equal units share.
    ranks = np.unique(np.stack([doubts, ties], axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    return float(average_precision_score(wrong, ranks)) if wrong.any() else None


def recall_at(order: Ints, weight: NDArray, shares: Sequence[float] = SHARES) -> list[float | None]:
    """Return the share of all errors among the first units of an order, for each share of the units.

    order (Ints): Indices of n units, first to last. weight (NDArray): 1 for an error, or its probability, shape (n,). shares
        (Sequence[float]): Shares of the units, in [0, 1], rounded to whole units. RETURNS (list): All None without errors.
    """
    total = float(weight.sum())
    n_found = np.concatenate([[0.0], np.cumsum(weight[order])])
    return [float(n_found[round(share * len(order))]) / total if total > 0 else None for share in shares]


def summarize_order(corpus: ScoredCorpus, units: ReviewUnits, order: str, seed: int = 0) -> dict[str, Any]:
    """Summarize how soon one of ORDERS finds the errors among the units; raw scores break ties.

    RETURNS (dict): Numbers of "units", of those with gold ("known"), of "wrong" ones by gold (or None), and of "expected_wrong"
        ones by the scores. "shares": SHARES. "expected": share of all errors that the scores expect among the first 1 %, 2 %,
        5 % etc. (SHARES) of the units, the least probable first. "average_precision" of the order, and "found", the share of
        all errors among the first 1 %, 2 %, 5 % etc. of its units; both are by gold, and None without gold.
    """
    has_gold = units.right != UNKNOWN
    wrong, is_known = units.right[has_gold] == WRONG, bool(has_gold.any())
    doubts, raw_doubts = unit_doubts(corpus, units, order, seed)[has_gold], 1 - units.raw
    error_probabilities, ties = 1 - units.calibrated, raw_doubts[has_gold]
    least_probable_first = review_order(error_probabilities, raw_doubts)  # not `order`, which may ignore the scores
    return {
        "units": len(units),
        "known": len(wrong),
        "wrong": int(wrong.sum()) if is_known else None,
        "expected_wrong": float(error_probabilities.sum()),
        "shares": list(SHARES),
        "expected": recall_at(least_probable_first, error_probabilities),
        "average_precision": average_precision(doubts, ties, wrong) if is_known else None,
        "found": recall_at(review_order(doubts, ties), wrong) if is_known else None,
    }
