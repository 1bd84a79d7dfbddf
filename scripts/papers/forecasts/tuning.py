"""The choice of a forecaster by cross-validation, and the parts of its loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spacy_calib.metrics.proper import decompose
from spacy_calib.pairs.bins import fixed_edges
from spacy_calib.pairs.documents import cross_fit, folds_of
from spacy_calib.types import Floats, Ints

from .forecasters import Forecaster

# Sizes to try for k in k-NN and the minimum leaf of a tree (Kuleshov and Liang 2015, section 5.3).
SIZES = tuple(range(5, 501, 5))


@dataclass(frozen=True, eq=False)
class TunedForecaster:
    """A forecaster fitted on all rows. loss (float): Mean squared loss of its cross-validated forecasts."""

    forecaster: Forecaster
    loss: float


def tune(
    prototype: Forecaster,
    features: Floats,
    hits: NDArray[np.bool_],
    units: Ints,
    sizes: Sequence[Any] = SIZES,
    n_folds: int = 10,
) -> TunedForecaster:
    """Fit a forecaster with the size of lowest cross-validated squared loss; of equal losses the last size.

    units (Ints): What folds do not split (word, document) of each row, shape (n,); two or more. sizes (Sequence): Those above
    the number of training rows are left out.
    """
    folds = folds_of(units, n_folds)
    n_train = len(features) - int(np.bincount(folds).max())
    valid_sizes = [size for size in sizes if size <= n_train] or [min(sizes)]
    held_out = cross_fit(
        folds, lambda train, test: prototype.predict_sizes(features[train], hits[train], features[test], valid_sizes)
    )
    losses = ((np.clip(held_out, 0.0, 1.0) - hits) ** 2).mean(axis=1)
    best = len(losses) - 1 - int(np.argmin(losses[::-1]))
    return TunedForecaster(prototype.with_size(valid_sizes[best]).fit(features, hits), float(losses[best]))


def choose_best(candidates: Sequence[TunedForecaster]) -> TunedForecaster:
    """Return the candidate with the lowest held-out loss, the first of equal ones."""
    return min(candidates, key=lambda candidate: candidate.loss)


@dataclass(frozen=True)
class LossParts:
    """Parts of the squared loss of forecasts F of yes-or-no answers y; T is the share of yes in F's bin.

    loss (float): Mean (y - F)^2, about the variance of y - sharpness + calibration: bins hide a little. calibration (float):
    Mean (T - F)^2. sharpness (float): Variance of T.
    """

    loss: float
    calibration: float
    sharpness: float


def split_loss(forecasts: ArrayLike, hits: ArrayLike, n_bins: int = 10) -> LossParts:
    """Split the squared loss over bins of equal width (Kuleshov and Liang 2015, equation 3)."""
    edges = fixed_edges(n_bins)
    parts = decompose(forecasts, hits, lambda scores: edges)
    assert parts is not None
    return LossParts(parts.brier, parts.reliability + parts.within_variance, parts.resolution)
