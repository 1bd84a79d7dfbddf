"""Two pipelines on the same gold: the difference of a figure, other less model, with its interval by document."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..pairs.build import JudgedPairs
from ..types import Floats, Ints
from .error_interval import resample_error
from .gaps import errors_of, gap_of, p_values, totals_of
from .proper import log_losses
from .resampling import Interval, document_codes, percentiles, resample_means, resamples

# Of these, more is better.
RISING = frozenset({"accuracy", "precision", "recall", "f"})
N_SAMPLES = 1000


def unit_rows(model: JudgedPairs, other: JudgedPairs, seed: int = 0) -> list[dict[str, Any]]:
    """Accuracy and log loss of n units that both label: one pair each, of the label and whether it is right.

    The intervals are those of `resampling`, for means. RETURNS (list): See `row_of`; none without units.
    """
    both = [(one.pairs.hits.astype(np.float64), log_losses(one.calibrated, one.pairs.hits)) for one in (model, other)]
    found = resample_means([b - a for a, b in zip(*both, strict=True)], model.documents, seed=seed) or []
    return [
        row_of(name, float(a.mean()), float(b.mean()), one.interval())
        for name, a, b, one in zip(("accuracy", "log_loss"), *both, found, strict=False)
    ]


def error_row(model: JudgedPairs, other: JudgedPairs, n_bins: int = 10, seed: int = 0) -> dict[str, Any] | None:
    """The calibration error of all pairs of each (SMCE), which need not be as many; the interval is `ResampledError.difference`.

    RETURNS (dict): See `row_of`; None where one has no pairs.
    """
    among = np.union1d(model.documents, other.documents)
    found = [
        resample_error(one.calibrated, one.pairs.hits, one.documents, n_bins, seed=seed, among=among) for one in (model, other)
    ]
    if found[0] is None or found[1] is None:
        return None
    return row_of("smce", found[0].estimate, found[1].estimate, found[1].difference(found[0]))


def found_rows(model: Floats, other: Floats, seed: int = 0) -> list[dict[str, Any]]:
    """Precision, recall and F of what is found, such as entities; the intervals are the percentiles of resamples.

    model, other (Floats): In each document, how many are right, found, and in the gold: shape (3, documents).
    RETURNS (list): See `row_of`; none where either finds nothing, or there is nothing to find.
    """
    if not (model.sum(axis=1)[1:].all() and other.sum(axis=1)[1:].all()):
        return []
    n, rows = model.shape[1], []
    drawn = np.concatenate([np.stack([model @ times, other @ times]) for times in resamples(n, N_SAMPLES, seed)], axis=2)
    figures: dict[str, Callable[[Any], Any]] = {
        "precision": lambda sums: sums[0] / np.maximum(sums[1], 1),
        "recall": lambda sums: sums[0] / np.maximum(sums[2], 1),
        "f": lambda sums: 2 * sums[0] / np.maximum(sums[1] + sums[2], 1),
    }
    for name, figure in figures.items():
        a, b = (float(figure(one.sum(axis=1))) for one in (model, other))
        estimate, spread = b - a, figure(drawn[1]) - figure(drawn[0])
        interval = Interval(estimate, None, None, None, 0.95, n) if n < 2 else percentiles(spread, estimate, 0.95, n)
        rows.append(row_of(name, a, b, interval))
    return rows


def row_of(figure: str, model: float, other: float, interval: Interval) -> dict[str, Any]:
    """RETURNS (dict): "figure", its value for "model" and "other", their "difference" with "low" and "high" of its 95 % interval (None in a single
    document), and which is "better": "model", "other", or None where the interval holds 0.
    """
    low, high, better = interval.low, interval.high, None
    if low is not None and high is not None and not low <= 0 <= high:
        better = "other" if (low > 0) == (figure in RISING) else "model"
    return {
        "figure": figure, "model": model, "other": other, "difference": other - model, "low": low, "high": high, "better": better,
    }  # fmt: skip


def part_row(right: Floats, right_other: Floats, documents: Ints) -> dict[str, Any]:
    """How many units of a part of the data are right, n each: "n", "documents", "model", "other", "difference", "low", "high" and "p".

    The test is that of `gap_of`, whose error is never taken for smaller than that of as many independent units that differ.
    """
    gap = gap_of(right_other, right > 0, documents)
    codes, n = document_codes(documents, len(right))
    apart = right_other - right
    totals = totals_of(apart, apart**2, codes)
    error, freedom = errors_of(totals)
    p = 1.0 if gap is None or not apart.any() else float(p_values(totals[0] / error, freedom)[0])
    held = {} if gap is None else gap.to_dict()
    return {
        "n": len(right), "documents": n, "model": held.get("right"), "other": held.get("score"), "difference": held.get("gap"),
        "low": held.get("low"), "high": held.get("high"), "p": p,
    }  # fmt: skip
