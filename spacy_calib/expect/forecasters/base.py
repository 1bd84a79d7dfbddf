"""The contract of a forecaster: features and hits in, a probability for each row of features out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...calibration.saved import Part
from ...errors import calib_error
from ...schema import floats
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
