"""The distribution of a whole number: a sum of independent yes-or-no units, a mixture, or draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import calib_error
from ..types import ROUNDING, Floats

# Units per block, whose distribution is made unit by unit before blocks are joined; and blocks made at once (a power of
# 2, so that joins do not depend on it).
_BLOCK, _TOGETHER = 64, 1 << 10
# Ends of a distribution with less than this are cut off: rounding of the sums is larger.
_NOTHING = 1e-18


@dataclass(frozen=True, eq=False)
class Counted:
    """P(count = first + i) for i = 0, 1, ...; other numbers have chance 0.

    first (int): The least number. chances (Floats): They sum to 1, shape (m,), m at least 1.
    """

    first: int
    chances: Floats

    @property
    def numbers(self) -> Floats:
        """All numbers with a chance, shape (m,)."""
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
        """(least, greatest) number inside: at most half of 1 - confidence lies outside on each side.

        RAISES C001: confidence out of range.
        """
        if not 0 < confidence < 1:
            raise calib_error("C001", name="confidence", wanted="a number between 0 and 1", given=confidence)
        tail = (1 - confidence) / 2
        below = np.cumsum(self.chances)
        above = np.cumsum(self.chances[::-1])
        least = int(np.searchsorted(below, tail + ROUNDING, side="right"))
        most = len(above) - 1 - int(np.searchsorted(above, tail + ROUNDING, side="right"))
        return self.first + least, self.first + max(least, most)


def independent(chances: Any) -> Counted:
    """How many independent units with unequal chances hold: the Poisson-binomial distribution, exact up to rounding.

    Halves are joined by convolution, without their empty ends: n units cost about n log n, and far less where most are
    nearly sure. chances (Floats): Of each unit, in [0, 1], shape (n,), n may be 0. RAISES C390: no probabilities.
    """
    given = np.asarray(chances, dtype=np.float64)
    if given.ndim != 1 or not ((given >= 0) & (given <= 1)).all():  # NaN fails this too
        raise calib_error("C390")
    sure = int((given == 1).sum())
    open_ = np.sort(given[(given > 0) & (given < 1)])  # equal ones together: the ends of a block hold nothing sooner
    size = _BLOCK * _TOGETHER
    found = _joined([_joined(_blocks(open_[at : at + size])) for at in range(0, max(1, len(open_)), size)])
    return Counted(found.first + sure, found.chances / found.chances.sum())


def _joined(parts: list[Counted]) -> Counted:
    """The sum of independent numbers, neighbours added first."""
    while len(parts) > 1:
        joined = [added(one, other) for one, other in zip(parts[::2], parts[1::2], strict=False)]
        parts = joined + parts[len(joined) * 2 :]
    return parts[0]


def _blocks(chances: Floats) -> list[Counted]:
    """The distribution of each block of units, all at once."""
    n_blocks = max(1, -(-len(chances) // _BLOCK))
    filled = np.zeros(n_blocks * _BLOCK)
    filled[: len(chances)] = chances
    units = filled.reshape(n_blocks, _BLOCK)
    held = np.zeros((n_blocks, _BLOCK + 1))
    held[:, 0] = 1.0
    for column in range(_BLOCK):
        chance = units[:, column, None]
        moved = held[:, :-1] * chance
        held *= 1 - chance
        held[:, 1:] += moved
    return [_trimmed(0, row) for row in held]


def added(one: Counted, other: Counted) -> Counted:
    """The sum of two independent numbers."""
    from scipy.signal import convolve

    return _trimmed(one.first + other.first, np.maximum(convolve(one.chances, other.chances), 0.0))


def _trimmed(first: int, chances: Floats) -> Counted:
    """The distribution without empty ends."""
    kept = np.flatnonzero(chances > _NOTHING)
    if not len(kept):
        return Counted(first, chances)
    return Counted(first + int(kept[0]), chances[kept[0] : kept[-1] + 1])


def mixed(parts: Sequence[Counted], weights: Floats) -> Counted:
    """The mixture of some distributions. weights (Floats): Their chances, which sum to 1."""
    first = min(part.first for part in parts)
    chances = np.zeros(max(part.first + len(part.chances) for part in parts) - first)
    for part, weight in zip(parts, weights.tolist(), strict=True):
        chances[part.first - first : part.first - first + len(part.chances)] += weight * part.chances
    return Counted(first, chances)


def drawn(numbers: Any) -> Counted:
    """The distribution of draws, for units that depend on each other (entities by drawn clusterings).

    numbers (Ints): The count in each draw, shape (n_draws,), or (n_draws, n_parts) to be summed over the parts.
    RAISES C391: no draws, or not whole numbers from 0 up.
    """
    held = np.asarray(numbers)
    held = held.sum(axis=1) if held.ndim == 2 else held
    if held.ndim != 1 or not len(held) or not np.issubdtype(held.dtype, np.integer) or held.min() < 0:
        raise calib_error("C391")
    first = int(held.min())
    return Counted(first, np.bincount(held - first) / len(held))
