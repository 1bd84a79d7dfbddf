"""Probability distributions of a count: of independent positives (Poisson-binomial), a sum, a mixture, or samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...types import ROUNDING, Floats
from .messages import calib_error

# Units of a block, to whose distribution they are added one by one; and blocks handled at once (a power of 2, so that the
# result does not depend on it). Convolution then joins the blocks.
_BLOCK_SIZE, _N_BLOCKS = 64, 1 << 10
# Smaller probabilities at the ends of a distribution are cut off: rounding errors of the sums are larger.
_NEGLIGIBLE = 1e-18


@dataclass(frozen=True, eq=False)
class CountDistribution:
    """The probability distribution of a count: P(count = first + i) = probabilities[i], which sum to 1."""

    first: int
    probabilities: Floats

    @property
    def support(self) -> Floats:
        """The counts from `first` to the last one with a probability."""
        return self.first + np.arange(len(self.probabilities), dtype=np.float64)

    @property
    def mean(self) -> float:
        return float(self.support @ self.probabilities)

    @property
    def variance(self) -> float:
        return float(np.square(self.support - self.mean) @ self.probabilities)

    def interval(self, confidence: float = 0.95) -> tuple[int, int]:
        """Return the (lowest, highest) count of the interval with at most (1 - confidence) / 2 beyond each end. RAISES C001."""
        if not 0 < confidence < 1:
            raise calib_error("C001", name="confidence", wanted="a number between 0 and 1", given=confidence)
        tail = (1 - confidence) / 2
        cumulative = np.cumsum(self.probabilities)
        reverse_cumulative = np.cumsum(self.probabilities[::-1])
        low = int(np.searchsorted(cumulative, tail + ROUNDING, side="right"))
        high = len(reverse_cumulative) - 1 - int(np.searchsorted(reverse_cumulative, tail + ROUNDING, side="right"))
        return self.first + low, self.first + max(low, high)


def poisson_binomial(probabilities: Any) -> CountDistribution:
    """Return the distribution of how many independent units are positive, given the probability of each; exact up to rounding.

    Distributions of halves are convolved without their negligible ends: n units cost about n log n, and far less if most are
    nearly certain. probabilities (Floats): In [0, 1], shape (n,); n may be 0. RAISES C390: they are no probabilities.
    """
    p = np.asarray(probabilities, dtype=np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():  # NaN fails this too
        raise calib_error("C390")
    n_certain = int((p == 1).sum())
    uncertain = np.sort(p[(p > 0) & (p < 1)])  # similar ones in one block, so that its ends become negligible sooner
    size = _BLOCK_SIZE * _N_BLOCKS
    total = _convolve_all(
        [_convolve_all(_make_blocks(uncertain[start : start + size])) for start in range(0, max(1, len(uncertain)), size)]
    )
    return CountDistribution(total.first + n_certain, total.probabilities / total.probabilities.sum())


def _convolve_all(parts: list[CountDistribution]) -> CountDistribution:
    """Return the distribution of the sum of independent counts; neighbours are convolved first."""
    while len(parts) > 1:
        sums = [convolve(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = sums + parts[len(sums) * 2 :]
    return parts[0]


def _make_blocks(probabilities: Floats) -> list[CountDistribution]:
    """Return the distribution of each block of units."""
    n_blocks = max(1, -(-len(probabilities) // _BLOCK_SIZE))
    padded = np.zeros(n_blocks * _BLOCK_SIZE)
    padded[: len(probabilities)] = probabilities
    units = padded.reshape(n_blocks, _BLOCK_SIZE)
    rows = np.zeros((n_blocks, _BLOCK_SIZE + 1))
    rows[:, 0] = 1.0
    for column in range(_BLOCK_SIZE):
        p = units[:, column, None]
        carry = rows[:, :-1] * p
        rows *= 1 - p
        rows[:, 1:] += carry
    return [_trim(0, row) for row in rows]


def convolve(a: CountDistribution, b: CountDistribution) -> CountDistribution:
    """Return the distribution of the sum of two independent counts."""
    from scipy import signal

    return _trim(a.first + b.first, np.maximum(signal.convolve(a.probabilities, b.probabilities), 0.0))


def _trim(first: int, probabilities: Floats) -> CountDistribution:
    """Return the distribution without its negligible ends."""
    indices = np.flatnonzero(probabilities > _NEGLIGIBLE)
    if not len(indices):
        return CountDistribution(first, probabilities)
    return CountDistribution(first + int(indices[0]), probabilities[indices[0] : indices[-1] + 1])


def mixture(parts: Sequence[CountDistribution], weights: Floats) -> CountDistribution:
    """Return a mixture of distributions. weights (Floats): Weight of each part; they sum to 1."""
    first = min(part.first for part in parts)
    probabilities = np.zeros(max(part.first + len(part.probabilities) for part in parts) - first)
    for part, weight in zip(parts, weights.tolist(), strict=True):
        probabilities[part.first - first : part.first - first + len(part.probabilities)] += weight * part.probabilities
    return CountDistribution(first, probabilities)
