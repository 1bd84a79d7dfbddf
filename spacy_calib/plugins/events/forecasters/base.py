"""The contract of a forecaster, a probability for each row of features; and logistic regression and neighbours."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ....calibration.recalibrators.logistic import combine, fit_logistic, sigmoid
from ....calibration.saved import Part
from ....pairs.bins import check_count
from ....schema import floats, lengths, number, record
from ....types import Floats, as_hits
from ..messages import calib_error

# A column whose standard deviation is below this is constant: what is left is floating-point noise.
_ROUNDING = 1e-12


def as_features(values: ArrayLike) -> Floats:
    """Return a float64 array of shape (n, k), k at least 1. RAISES C372: another shape, or numbers that are not finite."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or not array.shape[1]:
        raise calib_error("C372", given=f"an array of shape {array.shape}")
    if not np.isfinite(array).all():
        raise calib_error("C372", given="NaN or an infinite number")
    return array


class Forecaster(Part):
    """P(yes | features). Settings are constructor arguments; learned arrays end in _.

    registered (str): Name in the registry `calib_forecasters`. short (str): Name in tables. learned_form (Form): Of the learned
    arrays. size_name (str): The setting that `tune` chooses, or "".
    """

    kind = "@calib_forecasters"
    short: ClassVar[str]
    size_name: ClassVar[str] = ""
    n_features_: int

    def fit(self, features: ArrayLike, hits: ArrayLike) -> Forecaster:
        """Learn from n rows of k features. RAISES C372: no finite numbers. C002: lengths differ. C373: no rows."""
        rows = as_features(features)
        if not len(rows):
            raise calib_error("C373", what=type(self).__name__)
        self._fit(rows, as_hits(hits, len(rows)))
        return self

    def predict(self, features: ArrayLike) -> Floats:
        """Return each row's probability. RAISES C004: not fitted. C372: no finite numbers. C374: another number of features."""
        if not self.fitted:
            raise calib_error("C004", what=type(self).__name__)
        rows = as_features(features)
        if rows.shape[1] != self.width:
            raise calib_error("C374", what=type(self).__name__, given=rows.shape[1], wanted=self.width)
        return self._predict(rows) if len(rows) else np.zeros(0)

    def sized(self, size: int) -> Forecaster:
        """Return an unfitted copy with this value of the setting `size_name`."""
        return type(self)(**{**self.settings(), self.size_name: size})

    def predict_sizes(self, features: Floats, hits: NDArray[np.bool_], new_features: Floats, sizes: Sequence[int]) -> Floats:
        """Return predictions of forecasters of these sizes, fitted on features and hits, (len(sizes), len(new_features))."""
        return np.stack([self.sized(size).fit(features, hits).predict(new_features) for size in sizes])

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of features that it learned from."""

    @abstractmethod
    def _fit(self, features: Floats, hits: NDArray[np.bool_]) -> None: ...

    @abstractmethod
    def _predict(self, features: Floats) -> Floats: ...


# The saved form of each feature's mean and standard deviation.
UNITS = {"centre_": floats(), "spread_": floats(1e-12)}


def units_of(features: Floats) -> tuple[Floats, Floats]:
    """Return (mean, standard deviation) of each feature; 1 for the deviation of a constant one."""
    spread = features.std(axis=0)
    return features.mean(axis=0), np.where(spread > _ROUNDING, spread, 1.0)


# Weight of the prior on the constant, in rows: it decides only where all of the fit data were yes, or none.
_PRIOR = 0.01


class Logistic(Forecaster):
    """sigmoid(constant + sum of weights in standard deviations), with a ridge penalty that shrinks the weights towards 0."""

    registered = "spacy-calib.Logistic.v1"
    short = "logistic"
    _learned = ("weights_", "constant_", "centre_", "spread_")
    learned_form = record(
        {"weights_": floats(), "constant_": number(), **UNITS},
        lambda fields: lengths(dict.fromkeys(("centre_", "spread_"), len(fields["weights_"])), fields),
    )
    weights_: Floats
    constant_: float
    centre_: Floats
    spread_: Floats

    def __init__(self, ridge: float = 1.0):
        """ridge (float): Factor of half the sum of squared weights in the log loss. RAISES C001: not above 0."""
        if not ridge > 0:
            raise calib_error("C001", name="ridge", wanted="above 0", given=repr(ridge))
        self.ridge = float(ridge)

    @property
    def width(self) -> int:
        return len(self.weights_)

    def settings(self) -> dict[str, Any]:
        return {"ridge": self.ridge}

    def _fit(self, features: Floats, hits: NDArray[np.bool_]) -> None:
        self.centre_, self.spread_ = units_of(features)
        k = features.shape[1]
        design = np.ones((len(features), k + 1))
        design[:, :k] = (features - self.centre_) / self.spread_
        coefficients = fit_logistic(design, hits, None, np.zeros(k + 1), np.append(np.full(k, self.ridge), _PRIOR))
        self.weights_, self.constant_ = coefficients[:k], float(coefficients[k])

    def _predict(self, features: Floats) -> Floats:
        return sigmoid(self.constant_ + combine((features - self.centre_) / self.spread_, self.weights_))


def _agree(fields: dict[str, Any]) -> str:
    if not fields["rows_"].size:
        return "there are no rows"
    width = fields["rows_"].shape[1]
    return lengths({"hits_": len(fields["rows_"]), "centre_": width, "spread_": width}, fields)


class Neighbours(Forecaster):
    """k-NN (Kuleshov and Liang 2015, section 5.1: k = 100), distances in standard deviations of each feature.

    Of rows at one distance it takes as many as it needs: features with few values suit trees better. rows_ (Floats): The fit
    data in those units.
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

    def predict_sizes(self, features: Floats, hits: NDArray[np.bool_], new_features: Floats, sizes: Sequence[int]) -> Floats:
        """Search once for all sizes."""
        largest = Neighbours(max(sizes))
        largest._fit(features, hits)
        sums = largest._nearest_hits(new_features, largest.k).cumsum(axis=1)
        last = np.minimum(sizes, sums.shape[1])
        return (sums[:, last - 1] / last).T

    def _nearest_hits(self, features: Floats, k: int) -> Floats:
        """Return hits of the nearest rows, nearest first, shape (n, at most k)."""
        from sklearn.neighbors import NearestNeighbors

        search = NearestNeighbors(n_neighbors=min(k, len(self.rows_))).fit(self.rows_)
        return self.hits_[search.kneighbors((features - self.centre_) / self.spread_, return_distance=False)]
