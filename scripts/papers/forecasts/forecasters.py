"""The base class of forecasters, which predict P(yes) from features; logistic regression and k-NN."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spacy_calib.calibration.recalibrators.logistic import combine, fit_logistic, sigmoid
from spacy_calib.calibration.saved import Part
from spacy_calib.pairs.bins import check_count
from spacy_calib.schema import floats, lengths, number, record
from spacy_calib.types import Floats, as_hits

# Columns with a smaller standard deviation are constant up to floating-point noise.
_ROUNDING = 1e-12


def as_features(values: ArrayLike) -> Floats:
    """Return a float64 array of shape (n, k), k at least 1. RAISES C372: another shape, or numbers that are not finite."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or not array.shape[1]:
        raise ValueError("features are a finite array with a row for each unit")
    if not np.isfinite(array).all():
        raise ValueError("features are a finite array with a row for each unit")
    return array


class Forecaster(Part):
    """Predicts P(yes | features). Settings are constructor arguments; names of learned arrays end in _.

    registered (str): Name in the registry `calib_forecasters`. short (str): Name in tables. learned_form (Form): Saved form of
    the learned arrays. size_name (str): The setting that `tune` chooses, or "".
    """

    kind = "@calib_forecasters"
    short: ClassVar[str]
    size_name: ClassVar[str] = ""
    n_features_: int

    def fit(self, features: ArrayLike, hits: ArrayLike) -> Forecaster:
        """Fit on features (n, k) and answers (n,). RAISES C372: no finite numbers. C002: lengths differ. C373: no rows."""
        rows = as_features(features)
        if not len(rows):
            raise ValueError("no examples")
        self._fit(rows, as_hits(hits, len(rows)))
        return self

    def predict(self, features: ArrayLike) -> Floats:
        """Return P(yes) of each row, shape (n,). RAISES C004: not fitted. C372: no finite numbers. C374: other features."""
        if not self.fitted:
            raise ValueError("not fitted")
        rows = as_features(features)
        if rows.shape[1] != self.width:
            raise ValueError("another number of features")
        return self._predict(rows) if len(rows) else np.zeros(0)

    def with_size(self, size: int) -> Forecaster:
        """Return an unfitted copy with this value of the setting `size_name`."""
        return type(self)(**{**self.settings(), self.size_name: size})

    def predict_sizes(self, features: Floats, hits: NDArray[np.bool_], new_features: Floats, sizes: Sequence[int]) -> Floats:
        """Fit forecasters of several sizes; return their predictions for new_features, shape (n_sizes, n_new)."""
        return np.stack([self.with_size(size).fit(features, hits).predict(new_features) for size in sizes])

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of features of the fit."""

    @abstractmethod
    def _fit(self, features: Floats, hits: NDArray[np.bool_]) -> None: ...

    @abstractmethod
    def _predict(self, features: Floats) -> Floats: ...


# Saved form of the mean and standard deviation of each feature.
SCALE_FORM = {"centre_": floats(), "spread_": floats(1e-12)}


def measure_scale(features: Floats) -> tuple[Floats, Floats]:
    """Return the mean and standard deviation of each feature; 1 as the deviation of a constant feature."""
    spread = features.std(axis=0)
    return features.mean(axis=0), np.where(spread > _ROUNDING, spread, 1.0)


# Weight of the prior on the constant, in rows: it matters only if all answers of the fit data are the same.
_PRIOR = 0.01


class Logistic(Forecaster):
    """Logistic regression on standardized features, with an L2 penalty."""

    registered = "spacy-calib.Logistic.v1"
    short = "logistic"
    _learned = ("weights_", "constant_", "centre_", "spread_")
    learned_form = record(
        {"weights_": floats(), "constant_": number(), **SCALE_FORM},
        lambda fields: lengths(dict.fromkeys(("centre_", "spread_"), len(fields["weights_"])), fields),
    )
    weights_: Floats
    constant_: float
    centre_: Floats
    spread_: Floats

    def __init__(self, ridge: float = 1.0):
        """ridge (float): Strength of the L2 penalty, half the sum of squared weights. RAISES C001: not above 0."""
        if not ridge > 0:
            raise ValueError("a setting is out of range")
        self.ridge = float(ridge)

    @property
    def width(self) -> int:
        return len(self.weights_)

    def settings(self) -> dict[str, Any]:
        return {"ridge": self.ridge}

    def _fit(self, features: Floats, hits: NDArray[np.bool_]) -> None:
        self.centre_, self.spread_ = measure_scale(features)
        k = features.shape[1]
        design = np.ones((len(features), k + 1))
        design[:, :k] = (features - self.centre_) / self.spread_
        coefficients = fit_logistic(design, hits, None, np.zeros(k + 1), np.append(np.full(k, self.ridge), _PRIOR))
        self.weights_, self.constant_ = coefficients[:k], float(coefficients[k])

    def _predict(self, features: Floats) -> Floats:
        return sigmoid(self.constant_ + combine((features - self.centre_) / self.spread_, self.weights_))


def _find_contradiction(fields: dict[str, Any]) -> str:
    if not fields["rows_"].size:
        return "there are no rows"
    width = fields["rows_"].shape[1]
    return lengths({"hits_": len(fields["rows_"]), "centre_": width, "spread_": width}, fields)


class NearestNeighbours(Forecaster):
    """k nearest neighbours on standardized features (Kuleshov and Liang 2015, section 5.1: k = 100).

    Ties at the largest distance are cut off arbitrarily: trees suit features with few values better. rows_ (Floats):
    Standardized features of the fit data, shape (n, width).
    """

    registered = "spacy-calib.Neighbours.v1"
    short = "k-NN"
    size_name = "k"
    _learned = ("rows_", "hits_", "centre_", "spread_")
    learned_form = record({"rows_": floats(ndim=2), "hits_": floats(0.0, 1.0), **SCALE_FORM}, _find_contradiction)
    rows_: Floats
    hits_: Floats
    centre_: Floats
    spread_: Floats

    def __init__(self, k: int = 100):
        """k (int): Number of neighbours. RAISES C001: below 1."""
        self.k = check_count("k", k)

    @property
    def width(self) -> int:
        return self.rows_.shape[1]

    def settings(self) -> dict[str, Any]:
        return {"k": self.k}

    def _fit(self, features: Floats, hits: NDArray[np.bool_]) -> None:
        self.centre_, self.spread_ = measure_scale(features)
        self.rows_, self.hits_ = (features - self.centre_) / self.spread_, hits.astype(np.float64)

    def _predict(self, features: Floats) -> Floats:
        return self._nearest_hits(features, self.k).mean(axis=1)

    def predict_sizes(self, features: Floats, hits: NDArray[np.bool_], new_features: Floats, sizes: Sequence[int]) -> Floats:
        """Predict for several sizes, with one search for the largest."""
        largest = NearestNeighbours(max(sizes))
        largest._fit(features, hits)
        sums = largest._nearest_hits(new_features, largest.k).cumsum(axis=1)
        last = np.minimum(sizes, sums.shape[1])
        return (sums[:, last - 1] / last).T

    def _nearest_hits(self, features: Floats, k: int) -> Floats:
        """Return the hits of the k nearest rows, nearest first, shape (n, at most k)."""
        from sklearn.neighbors import NearestNeighbors

        search = NearestNeighbors(n_neighbors=min(k, len(self.rows_))).fit(self.rows_)
        return self.hits_[search.kneighbors((features - self.centre_) / self.spread_, return_distance=False)]
