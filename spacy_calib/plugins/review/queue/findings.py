"""How soon an order finds the errors: with gold, as expected, and from sums over corpora (Mejer & Crammer 2010, section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ....pairs.scored_corpus import UNKNOWN, WRONG, ScoredCorpus
from ....types import Floats, Ints
from ..digest_counts import DistinctCounter
from ..messages import calib_error
from .choosing import ACCEPTED, IN, SHORT, QueuePlan, UnitPool
from .orders import REVIEW, token_values, unit_doubts
from .units import ReviewUnits, units_of

# Shares of the units that are reported.
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
# Doubts are counted in bins: float32 numbers without their last bits, at most 1/4096 of the doubt apart.
_DROPPED_BITS = 11
_N_BINS = (0x3F800000 >> _DROPPED_BITS) + 1


def review_order(doubt: Floats, ties: Floats | None = None) -> Ints:
    """Return the indices of the units, most doubtful first; ties by `ties` (higher first), then by index."""
    return np.lexsort([-doubt] if ties is None else [-ties, -doubt])


def dense_ranks(doubt: Floats, ties: Floats | None = None) -> Ints:
    """Return a rank for each unit, higher for units earlier in `review_order`, equal for units with equal keys."""
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
    """How soon an order finds the errors: its average precision, and the share of errors "found" at each share of the units."""

    order: str
    average_precision: float | None
    found: list[float | None]


def compare_orders(
    corpus: ScoredCorpus,
    units: ReviewUnits,
    shares: Sequence[float] = SHARES,
    orders: Sequence[str] = tuple(REVIEW),
    seed: int = 0,
) -> list[OrderQuality]:
    """Return the quality of each order, from units with gold; raw scores break ties. RAISES C076: no unit has gold."""
    index = np.flatnonzero(units.right != UNKNOWN)
    if not len(index):
        raise calib_error("C076", unit=units.kind)
    wrong = units.right[index] == WRONG
    raw = unit_doubts(corpus, units, "raw")[index]
    rows = []
    for name in orders:
        doubt = unit_doubts(corpus, units, name, seed)[index]
        recalls = recall_at(review_order(doubt, raw), wrong, shares)
        rows.append(OrderQuality(name, average_precision(dense_ranks(doubt, raw), wrong), recalls))
    return rows


def expected_recall(units: ReviewUnits, shares: Sequence[float] = SHARES) -> list[float | None]:
    """Return the expected share of the errors among the first units, for each share; needs calibrated scores and no gold."""
    doubt = 1 - units.calibrated
    return recall_at(review_order(doubt, 1 - units.raw), doubt, shares)


def summarize_orders(corpus: ScoredCorpus, units: ReviewUnits, seed: int = 0) -> dict[str, Any]:
    """Summarize how soon the orders find the errors.

    RETURNS (dict): Numbers of "units", of those with gold ("known"), of "wrong" ones (None without gold) and of
        "expected_wrong" ones. "expected": expected share of the errors among the first units, for each of "shares". "signals":
        the quality of each order by gold, or None.
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


@dataclass(eq=False)
class UnitSums:
    """Sums over the units of several corpora without gold, so that the units themselves need not stay in memory.

    plan (QueuePlan): Settings of the queue. n (int): Number of units. left_out (Ints): Number of units that are candidates,
    accepted, and too short, shape (3,). counts (Ints), doubts (Floats): Histogram of the doubt (1 - calibrated score): number
    of units, and sum of doubts, in each bin. tags (dict): The tags with a score, in order of occurrence.
    """

    plan: QueuePlan
    n: int = 0
    left_out: Ints = field(default_factory=lambda: np.zeros(3, dtype=np.int64))
    counts: Ints = field(default_factory=lambda: np.zeros(_N_BINS, dtype=np.int64))
    doubts: Floats = field(default_factory=lambda: np.zeros(_N_BINS))
    tags: dict[str, None] = field(default_factory=dict)
    _keys: DistinctCounter = field(default_factory=DistinctCounter)

    def add(self, corpus: ScoredCorpus) -> None:
        """Add the units of a corpus. RAISES C399: the temporary file cannot be written."""
        units = units_of(corpus, self.plan.kind)
        pool = UnitPool.from_corpus(corpus, units, token_values(corpus, self.plan.order), self.plan)
        doubt = 1 - units.calibrated
        bins = (doubt.astype(np.float32).clip(0, 1).view(np.int32) >> _DROPPED_BITS).astype(np.intp)
        self.counts += np.bincount(bins, minlength=_N_BINS)
        self.doubts += np.bincount(bins, doubt, minlength=_N_BINS)
        self.n += len(units)
        self.left_out += np.bincount(pool.left_out, minlength=3)
        self.tags.update(dict.fromkeys(corpus.tags_met()))
        if not self.plan.repeats:
            self._keys.add(pool.keys[pool.left_out == IN])

    def count_left_out(self) -> dict[str, int]:
        """Return the number of units that are "accepted", "too_short" and "repeats"."""
        repeats = 0 if self.plan.repeats else int(self.left_out[IN]) - self._keys.count()
        return {"accepted": int(self.left_out[ACCEPTED]), "too_short": int(self.left_out[SHORT]), "repeats": repeats}

    @property
    def expected_wrong(self) -> float:
        return float(self.doubts.sum())

    def expected_recall(self, shares: Sequence[float] = SHARES) -> list[float | None]:
        """Return the expected share of the errors among the first units; all units of a bin count with its mean doubt."""
        total = self.expected_wrong
        if total <= 0:
            return [None] * len(shares)
        n, sums = np.append(0, np.cumsum(self.counts[::-1])), np.append(0.0, np.cumsum(self.doubts[::-1]))
        return [float(np.interp(round(share * self.n), n, sums)) / total for share in shares]

    def summarize(self) -> dict[str, Any]:
        """Return the summary as `summarize_orders` does for a corpus without gold."""
        counts = {"units": self.n, "known": 0, "wrong": None, "expected_wrong": self.expected_wrong}
        return {**counts, "shares": list(SHARES), "expected": self.expected_recall(), "signals": None}
