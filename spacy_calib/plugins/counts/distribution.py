"""The distribution of a whole number: a sum of independent yes-or-no units, a mixture, or samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...types import ROUNDING, Floats
from .messages import calib_error

# Units per block, whose distribution is made unit by unit before blocks are joined; and blocks made at once (a power of
# 2, so that joins do not depend on it).
_BLOCK, _TOGETHER = 64, 1 << 10
# Ends of a distribution with less than this are cut off: rounding of the sums is larger.
_NOTHING = 1e-18


@dataclass(frozen=True, eq=False)
class Counted:
    """P(count = first + i) for i = 0, 1, ...; other numbers have probability 0. chances (Floats): They sum to 1."""

    first: int
    chances: Floats

    @property
    def numbers(self) -> Floats:
        """All numbers with a probability."""
        return self.first + np.arange(len(self.chances), dtype=np.float64)

    @property
    def mean(self) -> float:
        """The expected number."""
        return float(self.numbers @ self.chances)

    @property
    def variance(self) -> float:
        """The variance of the number."""
        return float(np.square(self.numbers - self.mean) @ self.chances)

    def interval(self, confidence: float = 0.95) -> tuple[int, int]:
        """Return (lowest, highest) number of an interval with at most (1 - confidence) / 2 outside on each side. RAISES C001."""
        if not 0 < confidence < 1:
            raise calib_error("C001", name="confidence", wanted="a number between 0 and 1", given=confidence)
        tail = (1 - confidence) / 2
        cumulative = np.cumsum(self.chances)
        reverse_cumulative = np.cumsum(self.chances[::-1])
        low = int(np.searchsorted(cumulative, tail + ROUNDING, side="right"))
        high = len(reverse_cumulative) - 1 - int(np.searchsorted(reverse_cumulative, tail + ROUNDING, side="right"))
        return self.first + low, self.first + max(low, high)


def independent(chances: Any) -> Counted:
    """Return how many independent units with unequal chances hold: the Poisson-binomial distribution, exact up to rounding.

    Halves are joined by convolution, without their empty ends: n units cost about n log n, and far less where most are nearly
    certain. chances (Floats): Of each unit, in [0, 1]; n may be 0. RAISES C390: no probabilities.
    """
    probabilities = np.asarray(chances, dtype=np.float64)
    if probabilities.ndim != 1 or not ((probabilities >= 0) & (probabilities <= 1)).all():  # NaN fails this too
        raise calib_error("C390")
    n_certain = int((probabilities == 1).sum())
    open_ = np.sort(
        probabilities[(probabilities > 0) & (probabilities < 1)]
    )  # equal ones together: the ends of a block hold nothing sooner
    size = _BLOCK * _TOGETHER
    joined_blocks = _join([_join(_blocks(open_[start : start + size])) for start in range(0, max(1, len(open_)), size)])
    return Counted(joined_blocks.first + n_certain, joined_blocks.chances / joined_blocks.chances.sum())


def _join(parts: list[Counted]) -> Counted:
    """Sum independent numbers, neighbours first."""
    while len(parts) > 1:
        sums = [added(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = sums + parts[len(sums) * 2 :]
    return parts[0]


def _blocks(chances: Floats) -> list[Counted]:
    """Return the distribution of each block of units."""
    n_blocks = max(1, -(-len(chances) // _BLOCK))
    padded_chances = np.zeros(n_blocks * _BLOCK)
    padded_chances[: len(chances)] = chances
    units = padded_chances.reshape(n_blocks, _BLOCK)
    rows = np.zeros((n_blocks, _BLOCK + 1))
    rows[:, 0] = 1.0
    for column in range(_BLOCK):
        chance = units[:, column, None]
        carry = rows[:, :-1] * chance
        rows *= 1 - chance
        rows[:, 1:] += carry
    return [_trim(0, row) for row in rows]


def added(a: Counted, b: Counted) -> Counted:
    """Return the sum of two independent numbers."""
    from scipy.signal import convolve

    return _trim(a.first + b.first, np.maximum(convolve(a.chances, b.chances), 0.0))


def _trim(first: int, chances: Floats) -> Counted:
    """Return the distribution without empty ends."""
    nonzero = np.flatnonzero(chances > _NOTHING)
    if not len(nonzero):
        return Counted(first, chances)
    return Counted(first + int(nonzero[0]), chances[nonzero[0] : nonzero[-1] + 1])


def mixed(parts: Sequence[Counted], weights: Floats) -> Counted:
    """Return the mixture of some distributions. weights (Floats): They sum to 1."""
    first = min(part.first for part in parts)
    chances = np.zeros(max(part.first + len(part.chances) for part in parts) - first)
    for part, weight in zip(parts, weights.tolist(), strict=True):
        chances[part.first - first : part.first - first + len(part.chances)] += weight * part.chances
    return Counted(first, chances)


def drawn(numbers: Any) -> Counted:
    """Return the distribution of samples, for dependent units (entities by sampled clusterings).

    numbers (Ints): The count in each sample, shape (n,), or (n, n_parts) to be summed over the parts. RAISES C391: no samples,
    or no whole numbers from 0 up.
    """
    counts = np.asarray(numbers)
    counts = counts.sum(axis=1) if counts.ndim == 2 else counts
    if counts.ndim != 1 or not len(counts) or not np.issubdtype(counts.dtype, np.integer) or counts.min() < 0:
        raise calib_error("C391")
    first = int(counts.min())
    return Counted(first, np.bincount(counts - first) / len(counts))
