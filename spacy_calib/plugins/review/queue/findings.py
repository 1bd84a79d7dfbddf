"""How soon an order finds the errors: with gold, by expectation, and from sums of units that are not held (Mejer & Crammer 2010, section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ....pairs.scored_corpus import UNKNOWN, WRONG, ScoredCorpus
from ....types import Floats, Ints
from ..digest_counts import Distinct
from ..messages import calib_error
from .choosing import ACCEPTED, IN, SHORT, Plan, Pool
from .orders import REVIEW, token_values, unit_doubts
from .units import Units, units_of

# Shares of the units that a reader is told of.
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
# Of a doubt as a float32 number these bits are left: cells of a width of 1/4096 of the doubt at most.
_LOST = 11
_CELLS = (0x3F800000 >> _LOST) + 1


def review_order(doubt: Floats, ties: Floats | None = None) -> Ints:
    """The units, most doubtful first; equal ones by `ties` (higher first), then in the order given."""
    return np.lexsort([-doubt] if ties is None else [-ties, -doubt])


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
    """How soon an order finds the errors: average precision, and the share found in the first units, for each of the shares."""

    order: str
    average_precision: float | None
    found: list[float | None]


def compare_orders(
    corpus: ScoredCorpus, units: Units, shares: Sequence[float] = SHARES, orders: Sequence[str] = tuple(REVIEW), seed: int = 0
) -> list[Finding]:
    """A row per order over units with gold; raw scores order equal calibrated ones. RAISES C076: no unit has gold."""
    known = np.flatnonzero(units.right != UNKNOWN)
    if not len(known):
        raise calib_error("C076", unit=units.kind)
    wrong = units.right[known] == WRONG
    raw = unit_doubts(corpus, units, "raw")[known]
    rows = []
    for name in orders:
        doubt = unit_doubts(corpus, units, name, seed)[known]
        found = found_shares(review_order(doubt, raw), wrong, shares)
        rows.append(Finding(name, average_precision(dense_ranks(doubt, raw), wrong), found))
    return rows


def expected_shares(units: Units, shares: Sequence[float] = SHARES) -> list[float | None]:
    """What the first units are expected to hold of the errors if the calibrated probabilities are true; needs no gold."""
    doubt = 1 - units.calibrated
    return found_shares(review_order(doubt, 1 - units.raw), doubt, shares)


def findings(corpus: ScoredCorpus, units: Units, seed: int = 0) -> dict[str, Any]:
    """What is known of the orders.

    RETURNS (dict): "units": how many there are, "known": those with gold, "wrong": errors among them or None without gold, "expected_wrong", "expected": share
        of the errors that the first units should hold, for each of "shares"; "signals": the same as found with gold, and the average precision of each order.
    """
    known = int((units.right != UNKNOWN).sum())
    return {
        "units": len(units),
        "known": known,
        "wrong": int((units.right == WRONG).sum()) if known else None,
        "expected_wrong": float((1 - units.calibrated).sum()),
        "shares": list(SHARES),
        "expected": expected_shares(units),
        "signals": [asdict(row) for row in compare_orders(corpus, units, seed=seed)] if known else None,
    }


@dataclass(eq=False)
class UnitSums:
    """Units of several corpora without gold, of which none is held.

    plan (Plan): Of the queue. n (int): Units. left_out (Ints): How many are IN, ACCEPTED and SHORT. counts (Ints), doubts (Floats): In each cell of doubt:
    units, and the sum of their doubts. tags (dict): The tags with a score, in the order in which they are met.
    """

    plan: Plan
    n: int = 0
    left_out: Ints = field(default_factory=lambda: np.zeros(3, dtype=np.int64))
    counts: Ints = field(default_factory=lambda: np.zeros(_CELLS, dtype=np.int64))
    doubts: Floats = field(default_factory=lambda: np.zeros(_CELLS))
    tags: dict[str, None] = field(default_factory=dict)
    _places: Distinct = field(default_factory=Distinct)

    def add(self, corpus: ScoredCorpus) -> None:
        """The units of one more corpus. RAISES C399: there is no room for a temporary file."""
        units = units_of(corpus, self.plan.kind)
        pool = Pool.of(corpus, units, token_values(corpus, self.plan.order), self.plan)
        doubt = 1 - units.calibrated
        cells = (doubt.astype(np.float32).clip(0, 1).view(np.int32) >> _LOST).astype(np.intp)
        self.counts += np.bincount(cells, minlength=_CELLS)
        self.doubts += np.bincount(cells, doubt, minlength=_CELLS)
        self.n += len(units)
        self.left_out += np.bincount(pool.left_out, minlength=3)
        self.tags.update(dict.fromkeys(corpus.tags_met()))
        if not self.plan.repeats:
            self._places.add(pool.keys[pool.left_out == IN])

    def left_out_of_all(self) -> dict[str, int]:
        """As `Queue.left_out`."""
        repeats = 0 if self.plan.repeats else int(self.left_out[IN]) - self._places.count()
        return {"accepted": int(self.left_out[ACCEPTED]), "too_short": int(self.left_out[SHORT]), "repeats": repeats}

    @property
    def expected_wrong(self) -> float:
        return float(self.doubts.sum())

    def expected_shares(self, shares: Sequence[float] = SHARES) -> list[float | None]:
        """As the function: in the cell that a share ends in, all doubts count as their mean."""
        total = self.expected_wrong
        if total <= 0:
            return [None] * len(shares)
        n, sums = np.append(0, np.cumsum(self.counts[::-1])), np.append(0.0, np.cumsum(self.doubts[::-1]))
        return [float(np.interp(round(share * self.n), n, sums)) / total for share in shares]

    def findings(self) -> dict[str, Any]:
        """As the function, without gold."""
        known = {"units": self.n, "known": 0, "wrong": None, "expected_wrong": self.expected_wrong}
        return {**known, "shares": list(SHARES), "expected": self.expected_shares(), "signals": None}
