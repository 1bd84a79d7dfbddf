"""The share of yes among the k nearest rows of the fit data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...pairs.bins import check_count
from ...schema import floats, lengths, record
from ...types import Floats
from .base import UNITS, Forecaster, units_of


def _agree(held: dict[str, Any]) -> str:
    if not held["rows_"].size:
        return "there are no rows"
    width = held["rows_"].shape[1]
    return lengths({"hits_": len(held["rows_"]), "centre_": width, "spread_": width}, held)


class Neighbours(Forecaster):
    """k-NN (Kuleshov and Liang 2015, section 5.1: k = 100), distances in standard deviations of each feature. Of rows
    at one distance it takes as many as it needs: features with few values suit trees better.

    rows_ (Floats): The fit data in those units, (n, k). hits_ (Floats): 1 or 0 of each. centre_, spread_: By feature.
    """

    registered = "spacy-calib.Neighbours.v1"
    short = "k-NN"
    size_name = "k"
    _learned = ("rows_", "hits_", "centre_", "spread_")
    learned_form = record({"rows_": floats(ndim=2), "hits_": floats(0.0, 1.0), **UNITS}, _agree)
    rows_: Floats
    hits_: Floats
    centre_: Floats
    spread_: Floats

    def __init__(self, k: int = 100):
        """k (int): Neighbours. RAISES C001: below 1."""
        self.k = check_count("k", k)

    @property
    def width(self) -> int:
        return self.rows_.shape[1]

    def settings(self) -> dict[str, Any]:
        return {"k": self.k}

    def _fit(self, features: Floats, hits: NDArray[np.bool_]) -> None:
        self.centre_, self.spread_ = units_of(features)
        self.rows_, self.hits_ = (features - self.centre_) / self.spread_, hits.astype(np.float64)

    def _predict(self, features: Floats) -> Floats:
        return self._nearest_hits(features, self.k).mean(axis=1)

    def predict_sizes(self, features: Floats, hits: NDArray[np.bool_], asked: Floats, sizes: Sequence[int]) -> Floats:
        """See `Forecaster`; one search for all sizes."""
        made = Neighbours(max(sizes))
        made._fit(features, hits)
        sums = made._nearest_hits(asked, made.k).cumsum(axis=1)
        last = np.minimum(sizes, sums.shape[1])
        return (sums[:, last - 1] / last).T

    def _nearest_hits(self, features: Floats, k: int) -> Floats:
        """Hits of the nearest rows, nearest first, shape (n, at most k)."""
        from sklearn.neighbors import NearestNeighbors

        search = NearestNeighbors(n_neighbors=min(k, len(self.rows_))).fit(self.rows_)
        return self.hits_[search.kneighbors((features - self.centre_) / self.spread_, return_distance=False)]
