"""The interval of the calibration error by Algorithm 2 of Nguyen & O'Connor (2015), which samples bins, not documents."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from spacy_calib.metrics.calibration_errors import table_of
from spacy_calib.pairs.bins import check_count, make_binner


def calibration_error_interval(
    scores: ArrayLike, hits: ArrayLike, n_bins: int = 10, bin_size: int | None = None, n_samples: int = 1000, seed: int = 0
) -> tuple[float, float] | None:
    """Return the 95 % interval of the l2 calibration error (Nguyen & O'Connor 2015, Algorithm 2).

    Each bin's share of hits is sampled from its normal approximation, clipped to [0, 1]; the interval is the mean of the
    errors of the samples, plus and minus 1.96 of their standard deviations, cut at 0.

    scores (ArrayLike): n probabilities. hits (ArrayLike): n booleans, or zeros and ones. n_bins (int): Adaptive bins.
    bin_size (int | None): Pairs per bin; replaces n_bins. n_samples (int): Samples. seed (int): Of the random numbers.
    RETURNS (tuple | None): (low, high); None without pairs. RAISES C001: bad values, n_samples below 1. C002: lengths differ.
    """
    if not np.size(scores):
        return None
    table = table_of(scores, hits, make_binner(n_bins, bin_size))
    rng = np.random.default_rng(seed)
    spread = np.sqrt(table.mean_hit * (1 - table.mean_hit) / table.counts)
    shape = (check_count("n_samples", n_samples), len(table))
    samples = np.clip(rng.normal(table.mean_hit, spread, size=shape), 0.0, 1.0)
    share = table.counts / table.counts.sum()
    errors = np.sqrt((share * (table.mean_score - samples) ** 2).sum(axis=1))
    half = 1.96 * errors.std()
    return max(0.0, float(errors.mean() - half)), float(errors.mean() + half)
