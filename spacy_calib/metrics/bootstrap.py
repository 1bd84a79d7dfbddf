"""Intervals of figures over pairs: by resampling whole documents, and of a calibration error by sampling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from ..pairs.bins import check_count, make_binner
from ..types import Floats, Pairs
from .calibration_error import smce, table_of
from .error_interval import error_interval
from .proper import brier, log_loss, log_losses, squared_losses
from .resampling import (
    ONE_DOCUMENT,
    Interval,
    check_coverage,
    checked_scores,
    document_codes,
    mean_interval,
    percentiles,
    rank_of,
    resamples,
)

Statistic = Callable[[Pairs, Floats, Floats], "float | None"]


def document_bootstrap(
    statistic: Statistic | Callable[..., float | None],
    pairs: Pairs,
    documents: ArrayLike,
    scores: ArrayLike | None = None,
    n_samples: int = 1000,
    seed: int = 0,
    coverage: float = 0.95,
) -> Interval | None:
    """Interval of any figure over pairs, by document.

    statistic: `log_loss`, `brier` or `smce` itself, which are resampled by their sums over documents; or a function of
        (pairs, scores, weights), called for each resample with a weight of 0, 1, 2 ... for each pair. Its interval is
        of percentiles (moved outwards where documents are few: Hesterberg 2015), which suits smooth figures but no
        calibration errors. Resamples where it gives None are left out.
    documents: The document of each pair. scores: Replace the pairs' raw scores.
    RETURNS (Interval): None where the figure of all pairs is None.
    RAISES C001: scores out of range, n_samples too few for the coverage. C002: lengths differ.
    """
    judged = checked_scores(pairs, scores)
    if statistic is log_loss or statistic is brier:
        losses = (log_losses if statistic is log_loss else squared_losses)(judged, pairs.hits)
        return mean_interval(losses, documents, n_samples, seed, coverage)
    if statistic is smce:
        return error_interval(judged, pairs.hits, documents, n_samples=n_samples, seed=seed, coverage=coverage)
    codes, n_documents = document_codes(documents, len(pairs))
    check_coverage(coverage)
    rank_of((1 - coverage) / 2, check_count("n_samples", n_samples))
    estimate = statistic(pairs, judged, np.ones(len(pairs))) if len(pairs) else None
    if estimate is None:
        return None
    if n_documents < 2:
        return Interval(float(estimate), None, None, None, coverage, n_documents, reason=ONE_DOCUMENT)
    drawn = [
        value
        for weights in resamples(n_documents, n_samples, seed)
        for column in range(weights.shape[1])
        if (value := statistic(pairs, judged, weights[codes, column])) is not None
    ]
    return percentiles(np.array(drawn), float(estimate), coverage, n_documents)


def calibration_error_interval(
    scores: ArrayLike,
    hits: ArrayLike,
    n_bins: int = 10,
    bin_size: int | None = None,
    n_samples: int = 1000,
    seed: int = 0,
) -> tuple[float, float] | None:
    """95 % interval of the l2 calibration error (Nguyen & O'Connor 2015, Algorithm 2).

    Each bin's share of hits is drawn from its normal approximation, clipped to [0, 1]; the interval is the mean of the
    errors of the draws, plus and minus 1.96 of their standard deviations, cut at 0.

    RETURNS (tuple): (low, high); None without pairs.
    RAISES C001: values out of range, n_samples below 1. C002: lengths differ.
    """
    if not np.size(scores):
        return None
    table = table_of(scores, hits, make_binner(n_bins, bin_size))
    rng = np.random.default_rng(seed)
    spread = np.sqrt(table.mean_hit * (1 - table.mean_hit) / table.counts)
    shape = (check_count("n_samples", n_samples), len(table))
    drawn = np.clip(rng.normal(table.mean_hit, spread, size=shape), 0.0, 1.0)
    share = table.counts / table.counts.sum()
    errors = np.sqrt((share * (table.mean_score - drawn) ** 2).sum(axis=1))
    half = 1.96 * errors.std()
    return max(0.0, float(errors.mean() - half)), float(errors.mean() + half)
