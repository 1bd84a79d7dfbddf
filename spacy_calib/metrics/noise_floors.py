"""The error that exactly true scores would still show, because hits are random."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..pairs.bins import Binner, assign, check_count, make_binner
from ..types import Floats, Groups, Ints, Pairs, as_hits, as_probabilities
from .calibration_errors import group_slices

_CELLS_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class NoiseFloor:
    """Mean and 95 % quantile of the simulated errors."""

    mean: float
    q95: float


def noise_floor(
    scores: ArrayLike,
    n_bins: int = 10,
    bin_size: int | None = None,
    n_samples: int = 200,
    seed: int = 0,
) -> NoiseFloor | None:
    """The l2 error that exactly true scores would show: hits are drawn as independent Bernoulli(score).

    scores: n scores: all of them for the floor of SMCE, those of one group for that of its GMCE.
    n_samples (int): Simulated data sets. seed (int): Of the random numbers.
    RETURNS (NoiseFloor): A measured error near it cannot be improved. None without scores.
    RAISES C001: values out of range, n_samples below 1.
    """
    probabilities = as_probabilities("scores", scores)
    binner = make_binner(n_bins, bin_size)
    check_count("n_samples", n_samples)
    return _floor_of(_errors(probabilities, binner, n_samples, np.random.default_rng(seed))) if len(probabilities) else None


def mean_gmce_floor(
    pairs: Pairs,
    groups: Groups,
    scores: ArrayLike | None = None,
    n_bins: int = 10,
    n_samples: int = 200,
    seed: int = 0,
) -> NoiseFloor | None:
    """The noise floor of the mean GMCE, which is unweighted and over the groups that have pairs.

    Its quantile is far below the mean of the groups' own quantiles: seldom are all groups unlucky at once.

    scores: Replace the pairs' raw scores. n_bins, n_samples, seed: As in `noise_floor`.
    RETURNS (NoiseFloor): None where no group has pairs.
    RAISES C001: values out of range, n_samples below 1. C002: not one score per pair.
    """
    groups_with_pairs = as_probabilities("scores", pairs.scores if scores is None else scores)
    as_hits(pairs.hits, len(groups_with_pairs))
    binner = make_binner(n_bins)
    check_count("n_samples", n_samples)
    # One stream of random numbers for all groups: their hits are independent.
    rng = np.random.default_rng(seed)
    errors = [_errors(groups_with_pairs[index], binner, n_samples, rng) for index in group_slices(pairs, groups) if len(index)]
    return _floor_of(np.mean(errors, axis=0)) if errors else None


def _floor_of(errors: Floats) -> NoiseFloor:
    return NoiseFloor(float(errors.mean()), float(np.quantile(errors, 0.95)))


def _errors(scores: Floats, binner: Binner, n_samples: int, rng: np.random.Generator) -> Floats:
    """The l2 errors of n_samples simulated data sets."""
    bins = assign(scores, binner(scores))
    counts = np.bincount(bins)
    score_sums = np.bincount(bins, weights=scores)
    hit_sums = _draw_hits(scores, bins, n_samples, rng)
    is_filled = counts > 0
    gaps = (score_sums - hit_sums)[:, is_filled] / counts[is_filled]
    return np.sqrt((gaps**2 * (counts[is_filled] / counts.sum())).sum(axis=1))


def _draw_hits(scores: Floats, bins: Ints, n_samples: int, rng: np.random.Generator) -> Floats:
    """Hits per bin of n_samples simulated data sets, shape (n_samples, n_bins).

    Equal scores share a bin, so their hits are drawn at once as a binomial: few distinct scores cost next to nothing.
    """
    distinct, first, counts = np.unique(scores, return_index=True, return_counts=True)
    starts = np.flatnonzero(np.diff(bins[first], prepend=-1))
    of_bin = bins[first][starts]
    drawn = np.zeros((n_samples, int(of_bin[-1]) + 1))
    step = max(1, _CELLS_AT_ONCE // len(distinct))
    for begin in range(0, n_samples, step):
        end = min(n_samples, begin + step)
        hits = rng.binomial(counts, distinct, size=(end - begin, len(distinct)))
        drawn[begin:end, of_bin] = np.add.reduceat(hits, starts, axis=1)
    return drawn
