"""Confidence intervals of a calibration error by sampling."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..pairs.bins import check_count, make_binner
from .calibration_error import table_of


def calibration_error_interval(
    scores: ArrayLike,
    hits: ArrayLike,
    n_bins: int = 10,
    bin_size: int | None = None,
    n_samples: int = 1000,
    seed: int = 0,
    weights: ArrayLike | None = None,
) -> tuple[float, float] | None:
    """95 % interval of the l2 calibration error (Nguyen & O'Connor 2015, Algorithm 2).

    Each bin's share of hits is drawn from its normal approximation, clipped to [0, 1]; the interval is the mean of the errors of the draws,
    plus and minus 1.96 of their standard deviations, cut at 0. weights (ArrayLike | None): One for each pair, above 0.

    RETURNS (tuple): (low, high); None without pairs.
    RAISES C001: values out of range, n_samples below 1. C002: lengths differ.
    """
    if not np.size(scores):
        return None
    table = table_of(scores, hits, make_binner(n_bins, bin_size), weights)
    rng = np.random.default_rng(seed)
    spread = np.sqrt(table.mean_hit * (1 - table.mean_hit) / table.counts)
    shape = (check_count("n_samples", n_samples), len(table))
    drawn = np.clip(rng.normal(table.mean_hit, spread, size=shape), 0.0, 1.0)
    share = table.counts / table.counts.sum()
    errors = np.sqrt((share * (table.mean_score - drawn) ** 2).sum(axis=1))
    half = 1.96 * errors.std()
    return max(0.0, float(errors.mean() - half)), float(errors.mean() + half)
