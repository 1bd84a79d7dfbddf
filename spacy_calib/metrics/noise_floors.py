"""The calibration error that perfectly calibrated scores would still show, because hits are random."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..pairs.bins import Binner, assign, check_count, make_binner
from ..types import Floats, Ints, as_probabilities, check_lengths

_CELLS_AT_ONCE = 1 << 22  # simulated data sets times distinct scores that are sampled at once


@dataclass(frozen=True)
class NoiseFloor:
    """Mean (`mean`) and 95 % quantile (`q95`) of the calibration errors of simulated, perfectly calibrated data."""

    mean: float
    q95: float


def noise_floor(
    scores: ArrayLike,
    n_bins: int = 10,
    bin_size: int | None = None,
    n_samples: int = 200,
    seed: int = 0,
    groups: ArrayLike | None = None,
) -> NoiseFloor | None:
    """Return the l2 error that perfectly calibrated scores would show: hits are sampled as independent Bernoulli(score).

    scores (ArrayLike): n scores: all of them for the floor of SMCE, the scores of one group for the floor of its GMCE.
    n_bins (int): Bins of equally many pairs. bin_size (int | None): Pairs per bin instead. n_samples: Simulated data sets.
    groups (ArrayLike | None): Group of each score, -1 for none, for the floor of the mean GMCE, the unweighted mean of the
        groups' errors. Its quantile is far below the mean quantile of single groups, whose errors are seldom all high at once.
    RETURNS (NoiseFloor | None): Mean and 95 % quantile; a measured error near them may be all noise. None without scores.
    RAISES C001: values out of range, n_samples below 1. C002: not one group per score.

        >>> noise_floor([0.0, 1.0])  # nothing is random
        NoiseFloor(mean=0.0, q95=0.0)
    """
    probabilities, binner = as_probabilities("scores", scores), make_binner(n_bins, bin_size)
    check_count("n_samples", n_samples)
    group_of_score = np.zeros(len(probabilities), dtype=np.intp) if groups is None else np.asarray(groups)
    check_lengths("A noise floor", "score", len(probabilities), {"group": group_of_score})
    # One stream of random numbers for all groups: their hits are independent.
    rng = np.random.default_rng(seed)
    distinct_groups = np.unique(group_of_score[group_of_score >= 0])
    errors = [_errors(probabilities[group_of_score == group], binner, n_samples, rng) for group in distinct_groups]
    if not errors:
        return None
    mean_errors = np.mean(errors, axis=0)  # of each simulated data set
    return NoiseFloor(float(mean_errors.mean()), float(np.quantile(mean_errors, 0.95)))


def _errors(scores: Floats, binner: Binner, n_samples: int, rng: np.random.Generator) -> Floats:
    """Sample hits of n_samples data sets with these scores; return the l2 error of each in binner's bins, (n_samples,)."""
    bins = assign(scores, binner(scores))
    counts = np.bincount(bins)
    score_sums = np.bincount(bins, weights=scores)
    hit_sums = _sample_hits(scores, bins, n_samples, rng)
    is_filled = counts > 0
    gaps = (score_sums - hit_sums)[:, is_filled] / counts[is_filled]
    return np.sqrt((gaps**2 * (counts[is_filled] / counts.sum())).sum(axis=1))


def _sample_hits(scores: Floats, bins: Ints, n_samples: int, rng: np.random.Generator) -> Floats:
    """Sample the number of hits in each bin for n_samples data sets, shape (n_samples, n_bins). bins: Bin of each score.

    Equal scores share a bin, so their hits are sampled at once as a binomial: few distinct scores cost next to nothing.
    """
    distinct, first, counts = np.unique(scores, return_index=True, return_counts=True)
    # Distinct scores ascend, and so do their bins: each bin is a run of them.
    run_starts = np.flatnonzero(np.diff(bins[first], prepend=-1))
    bin_of_run = bins[first][run_starts]
    hit_sums = np.zeros((n_samples, int(bin_of_run[-1]) + 1))  # a bin without scores has no hits
    samples_at_once = max(1, _CELLS_AT_ONCE // len(distinct))
    for begin in range(0, n_samples, samples_at_once):
        end = min(n_samples, begin + samples_at_once)
        hits = rng.binomial(counts, distinct, size=(end - begin, len(distinct)))
        hit_sums[begin:end, bin_of_run] = np.add.reduceat(hits, run_starts, axis=1)
    return hit_sums
