"""Venn-Abers predictors: two probabilities for every score, one of which is calibrated whatever the data are like."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import calib_error
from ...schema import Misfit, floats, lengths, record
from ...types import Floats, as_probabilities
from .base import Recalibrator
from .isotonic import masses


def _steps_agree(held: dict[str, Any]) -> str:
    if not len(held["low_x_"]) or not len(held["high_x_"]):
        return "there are no steps"
    return lengths({"low_": len(held["low_x_"]), "high_": len(held["high_x_"])}, held)


class VennAbers(Recalibrator):
    """Inductive Venn-Abers predictor (Vovk and Petej 2014, section 3; Vovk, Petej and Fedorova 2015, section 2).

    The isotonic regression of the fit pairs and one more, the score with a miss (or a hit), gives `low` (or `high`)
    there. If all are exchangeable, the one of the two that belongs to what then happens is perfectly calibrated
    (Proposition 1). Both are steps in the score, which are worked out for every fit score beforehand, in O(n log n).

    low_x_, low_ (Floats): From low_x_[i] on (itself included) `low` is low_[i]; below low_x_[0] it is 0.
    high_x_, high_ (Floats): Up to high_x_[i] (itself included) `high` is high_[i]; above high_x_[-1] it is 1.
    """

    registered = "spacy-calib.VennAbers.v1"
    short = "venn-abers"
    n_parameters = 40  # two isotonic maps, each of about 20 steps
    _learned = ("low_x_", "low_", "high_x_", "high_")
    learned_form = record(
        {
            "low_x_": floats(0.0, 1.0, rising="rises"),
            "low_": floats(0.0, 1.0, rising="never falls"),
            "high_x_": floats(0.0, 1.0, rising="rises"),
            "high_": floats(0.0, 1.0, rising="never falls"),
        },
        _steps_agree,
    )
    low_x_: Floats
    low_: Floats
    high_x_: Floats
    high_: Floats

    @property
    def min_pairs(self) -> int:
        """0: a single pair is enough, even without a miss; few pairs give wide intervals."""
        return 0

    def load_learned(self, learned: dict[str, Any]) -> VennAbers:
        """Take over what was learned. RAISES Misfit: not of the form declared, or `low` passes `high`."""
        super().load_learned(learned)
        if self.fitted:
            low, high = self.interval(np.concatenate([self.low_x_, self.high_x_]))
            if (low > high).any():
                raise Misfit("learned.low_", "at most 'high_' everywhere")
        return self

    def _fit(self, scores: Floats, hits: NDArray[np.bool_], weights: Floats | None) -> None:
        x, mass, hit_mass = masses(scores, hits, weights)
        # With hits and misses exchanged and scores turned round, a miss added is a hit added.
        sums, misses = _with_a_hit_added(mass[::-1], (mass - hit_mass)[::-1])
        low = ((sums - misses) / sums)[::-1]
        sums, hit_sums = _with_a_hit_added(mass, hit_mass)
        high = hit_sums / sums
        first = np.flatnonzero(np.append(True, low[1:] != low[:-1]))
        last = np.flatnonzero(np.append(high[1:] != high[:-1], True))
        self.low_x_, self.low_ = x[first], low[first]
        self.high_x_, self.high_ = x[last], high[last]

    def interval(self, scores: ArrayLike) -> tuple[Floats, Floats]:
        """The probabilities (low, high) of n scores, low < high, shape (n,) each; neither falls as the score rises.

        RAISES C001: values out of range. C004: not fitted.
        """
        if not self.fitted:
            raise calib_error("C004", what=type(self).__name__)
        given = as_probabilities("scores", scores)
        low = np.append(0.0, self.low_)[np.searchsorted(self.low_x_, given, side="right")]
        high = np.append(self.high_, 1.0)[np.searchsorted(self.high_x_, given, side="left")]
        return low, high

    def _predict(self, scores: Floats) -> Floats:
        return minimax(*self.interval(scores))


def minimax(low: Floats, high: Floats) -> Floats:
    """One probability for both: high / (1 - low + high), shape (n,).

    Its log loss exceeds that of `low` after a miss as much as that of `high` after a hit; any other probability has a
    greater worst regret (Vovk, Petej and Fedorova 2015, section 4). low, high: (n,), 0 <= low < high <= 1.
    """
    return high / (1.0 - low + high)


def _with_a_hit_added(mass: Floats, hit_mass: Floats) -> tuple[Floats, Floats]:
    """Isotonic regression at each of k points after a hit of mass 1 was added there: (mass, mass of hits) of its block.

    mass, hit_mass (Floats): At the points, ascending by score, k >= 1.
    """
    # Neighbouring scores that saw nothing but hits have the same value.
    full = hit_mass == mass
    starts = np.flatnonzero(np.append(True, ~(full[1:] & full[:-1])))
    sums, hit_sums = _bridges(np.add.reduceat(mass, starts), np.add.reduceat(hit_mass, starts))
    lengths = np.diff(starts, append=len(mass))
    return np.repeat(sums, lengths), np.repeat(hit_sums, lengths)


def _bridges(mass: Floats, hit_mass: Floats) -> tuple[Floats, Floats]:
    """As `_with_a_hit_added`, from the cumulative sum diagram: P[j] = (mass, mass of hits) of the first j points.

    A hit added at point i moves P[i], P[i + 1], ... by (1, 1). The value at i is then the slope of the edge of the
    lower convex hull from P[0 .. i - 1] to the moved ones: a bridge from P[a] to P[b] + (1, 1). As i rises, slope, a
    and b never fall, so that each point is passed once (Vovk, Petej and Fedorova 2015, Algorithms 1 to 4).
    """
    k = len(mass)
    across = [0.0, *np.cumsum(mass).tolist()]
    up = [0.0, *np.cumsum(hit_mass).tolist()]
    following = _hulls_of_rests(across, up)
    chain: list[int] = []  # the lower hull of P[a .. i - 1], from `head` on
    head, b = 0, 1
    sums, hit_sums = [0.0] * k, [0.0] * k
    for i in range(1, k + 1):
        x, y = across[i - 1], up[i - 1]
        while len(chain) - head > 1:
            p, q = chain[-2], chain[-1]
            if (y - up[q]) * (across[q] - across[p]) > (up[q] - up[p]) * (x - across[q]):
                break
            chain.pop()
        chain.append(i - 1)
        if b < i:
            b = i
        while True:
            a = chain[head]
            dx, dy = across[b] - across[a] + 1.0, up[b] - up[a] + 1.0
            while b < k:
                # From P[a], the farther end b that makes the slope least.
                n = following[b]
                nx, ny = across[n] - across[a] + 1.0, up[n] - up[a] + 1.0
                if ny * dx > dy * nx:
                    break
                b, dx, dy = n, nx, ny
            if head + 1 == len(chain):
                break
            # The bridge starts at P[a] unless the next point of the hull lies below it.
            n = chain[head + 1]
            if (up[n] - up[a]) * dx >= dy * (across[n] - across[a]):
                break
            head += 1
        sums[i - 1], hit_sums[i - 1] = dx, dy
    return np.array(sums), np.array(hit_sums)


def _hulls_of_rests(across: list[float], up: list[float]) -> list[int]:
    """For each point the next corner of the lower convex hull of it and all later points; the last one names itself."""
    last = len(across) - 1
    following = [last] * (last + 1)
    for j in range(last - 1, -1, -1):
        x, y = across[j], up[j]
        n = j + 1
        while n < last:
            m = following[n]
            if (up[m] - y) * (across[n] - x) > (up[n] - y) * (across[m] - x):
                break
            n = m
        following[j] = n
    return following
