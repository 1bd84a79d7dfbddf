"""Which forecaster, and how large its regions: chosen by cross-validation over whole units of the recalibration set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..metrics.proper import squared_losses
from ..pairs.folds import cross_fit, folds_of
from ..types import Floats, Ints
from .forecasters.base import Forecaster, as_features

# Of k in k-NN and of the least leaf of a tree (Kuleshov and Liang 2015, section 5.3).
SIZES = tuple(range(5, 501, 5))


@dataclass(frozen=True, eq=False)
class Tried:
    """A forecaster fitted on all rows. held_out (Floats): The forecast of each row by one that did not see its unit. loss (float): Its mean squared loss."""

    forecaster: Forecaster
    held_out: Floats
    loss: float


def tune(
    prototype: Forecaster,
    features: Floats,
    hits: NDArray[np.bool_],
    units: Ints,
    sizes: Sequence[int] = SIZES,
    n_folds: int = 10,
) -> Tried:
    """The forecaster with the size of least squared loss on held-out units; of equal ones the largest, whose regions hold most.

    prototype (Forecaster): One with a `size_name`, or without, which has nothing to choose. features (Floats): Shape (n, k). hits: (n,).
    units (Ints): The unit of each row (word, document). sizes: Those above the number of rows that are learned from are left out.
    RAISES C372, C373: see `Forecaster.fit`.
    """
    given, folds = as_features(features), folds_of(units, n_folds)
    fewest = len(given) - int(np.bincount(folds, minlength=1).max()) if len(given) else 0
    kept = [size for size in sizes if size <= fewest] or [min(sizes)]

    def score(outside: Ints, inside: Ints) -> Floats:
        if prototype.size_name:
            return prototype.predict_sizes(given[outside], hits[outside], given[inside], kept)
        return prototype.clone().fit(given[outside], hits[outside]).predict(given[inside])[None]

    if len(np.unique(folds)) < 2:  # nothing can be held out
        made = prototype.clone().fit(given, hits)
        forecasts = made.predict(given)
        return Tried(made, forecasts, float(squared_losses(forecasts, hits).mean()))
    found = np.clip(cross_fit(folds, score), 0.0, 1.0)
    losses = ((found - hits) ** 2).mean(axis=1)
    best = len(losses) - 1 - int(np.argmin(losses[::-1]))
    made = prototype.sized(kept[best]) if prototype.size_name else prototype.clone()
    return Tried(made.fit(given, hits), found[best], float(losses[best]))


def choose(tried: Sequence[Tried]) -> Tried:
    """The one of least held-out loss; of equal ones the first."""
    return min(tried, key=lambda one: one.loss)
