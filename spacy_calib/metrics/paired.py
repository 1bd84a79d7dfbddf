"""Two pipelines on the same gold: the difference of a figure, other less model, with its interval by document."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

import numpy as np

from ..pairs.build import JudgedPairs
from ..pairs.documents import document_codes
from ..types import Floats, Ints
from .by_document import Interval, Resampled, resample_error, resample_means, resample_sums
from .gaps import errors_of, gap_of, p_values, totals_of
from .proper import log_losses

# Of these, more is better.
RISING = frozenset({"accuracy", "precision", "recall", "f"})
N_SAMPLES = 1000


class ComparisonRow(TypedDict):
    """A figure of two pipelines.

    difference: Other less model, with "low" and "high" of its 95 % interval (None in a single document). better: "model", "other", or
    None where the interval contains 0.
    """

    figure: str
    model: float
    other: float
    difference: float
    low: float | None
    high: float | None
    better: str | None


def unit_rows(model: JudgedPairs, other: JudgedPairs, seed: int = 0) -> list[ComparisonRow]:
    """Accuracy and log loss of n units that both label: one pair each, of the label and whether it is right.

    The intervals are those of means. RETURNS (list): See `row_of`; none without units.
    """
    values = [(side.pairs.hits.astype(np.float64), log_losses(side.calibrated, side.pairs.hits)) for side in (model, other)]
    differences = resample_means([b - a for a, b in zip(*values, strict=True)], model.documents, seed=seed)
    return [
        row_of(name, float(a.mean()), float(b.mean()), difference.interval())
        for name, a, b, difference in zip(("accuracy", "log_loss"), *values, differences, strict=False)
    ]


def error_row(model: JudgedPairs, other: JudgedPairs, n_bins: int = 10, seed: int = 0) -> ComparisonRow | None:
    """The calibration error (SMCE) of each side, as a row of `row_of`; None where one has no pairs."""
    among = np.union1d(model.documents, other.documents)
    a, b = (
        resample_error(side.calibrated, side.pairs.hits, side.documents, n_bins, seed=seed, among=among)
        for side in (model, other)
    )
    return None if a is None or b is None else row_of("smce", a.estimate, b.estimate, b.difference(a))


def found_rows(model: Floats, other: Floats, seed: int = 0) -> list[ComparisonRow]:
    """Precision, recall and F of what is found, such as entities; the intervals are the percentiles of resamples.

    model, other (Floats): In each document, how many are right, found, and in the gold: shape (3, documents).
    RETURNS (list): See `row_of`; none where either finds nothing, or there is nothing to find.
    """
    if not (model.sum(axis=1)[1:].all() and other.sum(axis=1)[1:].all()):
        return []
    rows, sums = [], np.split(resample_sums(np.concatenate([model, other]), N_SAMPLES, seed), 2)
    figures: dict[str, Callable[[Any], Any]] = {
        "precision": lambda sums: sums[0] / np.maximum(sums[1], 1),
        "recall": lambda sums: sums[0] / np.maximum(sums[2], 1),
        "f": lambda sums: 2 * sums[0] / np.maximum(sums[1] + sums[2], 1),
    }
    for name, figure in figures.items():
        a, b = (float(figure(side.sum(axis=1))) for side in (model, other))
        difference = Resampled(b - a, figure(sums[1]) - figure(sums[0]), model.shape[1])
        rows.append(row_of(name, a, b, difference.interval()))
    return rows


def row_of(figure: str, model: float, other: float, interval: Interval) -> ComparisonRow:
    """Make a row of a comparison."""
    low, high, better = interval.low, interval.high, None
    if low is not None and high is not None and not low <= 0 <= high:
        better = "other" if (low > 0) == (figure in RISING) else "model"
    return ComparisonRow(figure=figure, model=model, other=other, difference=other - model, low=low, high=high, better=better)


def part_row(right: Floats, right_other: Floats, documents: Ints) -> dict[str, Any]:
    """Compare how many units of a part of the data are right under either pipeline, n each.

    The test is that of `gap_of`, whose error is never taken for smaller than that of as many independent units that
    differ. RETURNS (dict): "n", "documents", "model", "other", "difference", "low", "high" and "p".
    """
    gap = gap_of(right_other, right > 0, documents)
    codes, n = document_codes(documents, len(right))
    changes = right_other - right
    totals = totals_of(changes, changes**2, codes)
    error, freedom = errors_of(totals)
    p = 1.0 if gap is None or not changes.any() else float(p_values(totals[0] / error, freedom)[0])
    figures = {} if gap is None else gap.to_dict()
    names = {"model": "right", "other": "score", "difference": "gap", "low": "low", "high": "high"}
    return {"n": len(right), "documents": n, **{name: figures.get(key) for name, key in names.items()}, "p": p}
