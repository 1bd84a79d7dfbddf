"""The contract of a forecaster, a probability for each row of features; and two: logistic regression and neighbours."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...calibration.recalibrators.logistic import combine, fit_logistic, sigmoid
from ...calibration.saved import Part
from ...errors import calib_error
from ...pairs.bins import check_count
from ...schema import floats, lengths, number, record
from ...types import Floats, as_hits

# A column whose standard deviation is below this is constant: what is left is floating-point noise.
_ROUNDING = 1e-12


def as_features(values: ArrayLike) -> Floats:
    """A float64 array of shape (n, k), k at least 1. RAISES C372: another shape, or numbers that are not finite."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or not array.shape[1]:
        raise calib_error("C372", given=f"an array of shape {array.shape}")
    if not np.isfinite(array).all():
        raise calib_error("C372", given="NaN or an infinite number")
    return array


class Forecaster(Part):
    """P(yes | features). Settings are constructor arguments; what was learned is arrays, named with a last _.

    registered (str): Name in the registry `calib_forecasters`. short (str): Name in tables. learned_form (Form): The
    saved form of what was learned. size_name (str): The setting that `tune` chooses, or "".
    """

    kind = "@calib_forecasters"
    short: ClassVar[str]
    size_name: ClassVar[str] = ""
    n_features_: int

    def fit(self, features: ArrayLike, hits: ArrayLike) -> Forecaster:
        """Learn from n rows of k features and whether each is a yes. RETURNS (Forecaster): Itself.

        RAISES C372: features that are no finite numbers. C002: lengths differ. C373: no rows.
        """
        given = as_features(features)
        if not len(given):
            raise calib_error("C373", what=type(self).__name__)
        self._fit(given, as_hits(hits, len(given)))
        return self

    def predict(self, features: ArrayLike) -> Floats:
        """The probability of each of n rows. RAISES C004: not fitted. C372: features that are no finite numbers.
        C374: another number of features than was learned.
        """
        if not self.fitted:
            raise calib_error("C004", what=type(self).__name__)
        given = as_features(features)
        if given.shape[1] != self.width:
            raise calib_error("C374", what=type(self).__name__, given=given.shape[1], wanted=self.width)
        return self._predict(given) if len(given) else np.zeros(0)

    def sized(self, size: int) -> Forecaster:
        """A new one, not fitted, with this value of the setting `size_name`."""
        return type(self)(**{**self.settings(), self.size_name: size})

    def predict_sizes(self, features: Floats, hits: NDArray[np.bool_], asked: Floats, sizes: Sequence[int]) -> Floats:
        """What forecasters of these sizes, fitted on features and hits, give for `asked`, (len(sizes), len(asked))."""
        return np.stack([self.sized(size).fit(features, hits).predict(asked) for size in sizes])

    @property
    @abstractmethod
    def width(self) -> int:
        """How many features it learned from."""

    @abstractmethod
    def _fit(self, features: Floats, hits: NDArray[np.bool_]) -> None: ...

    @abstractmethod
    def _predict(self, features: Floats) -> Floats: ...


# The saved form of each feature's mean and standard deviation.
UNITS = {"centre_": floats(), "spread_": floats(1e-12)}


def units_of(features: Floats) -> tuple[Floats, Floats]:
    """(mean, standard deviation) of each feature; 1 for the deviation of a constant one."""
    spread = features.std(axis=0)
    return features.mean(axis=0), np.where(spread > _ROUNDING, spread, 1.0)


# Weight of the prior on the constant, in rows: it decides only where all of the fit data were yes, or none.
_PRIOR = 0.01


class Logistic(Forecaster):
    """sigmoid(constant + sum of weights in standard deviations), with a ridge that draws the weights to 0.

    weights_ (Floats): Shape (k,). constant_ (float). centre_, spread_ (Floats): Of each feature.
    """

    registered = "spacy-calib.Logistic.v1"
    short = "logistic"
    _learned = ("weights_", "constant_", "centre_", "spread_")
    learned_form = record(
        {"weights_": floats(), "constant_": number(), **UNITS},
        lambda held: lengths(dict.fromkeys(("centre_", "spread_"), len(held["weights_"])), held),
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
        found = fit_logistic(design, hits, None, np.zeros(k + 1), np.append(np.full(k, self.ridge), _PRIOR))
        self.weights_, self.constant_ = found[:k], float(found[k])

    def _predict(self, features: Floats) -> Floats:
        return sigmoid(self.constant_ + combine((features - self.centre_) / self.spread_, self.weights_))


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
