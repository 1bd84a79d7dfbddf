"""The contract of a recalibrator: two one-dimensional arrays in, a map out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import calib_error
from ...schema import registered_part
from ...types import Floats, Ints, as_hits, as_probabilities, as_weights
from ..saved import Part

# Several fitted maps as one function: (n scores, the number of the map that each belongs to) -> n calibrated log-odds.
MapTable = Callable[[Floats, Ints], Floats]

# The form of a saved map: the registered name, settings, and what its class learned.
MAP = registered_part("@calib_recalibrators")


class Recalibrator(Part):
    """A map score -> probability. Settings are constructor arguments; what was learned ends in an underscore.

    registered (str): Name in the registry `calib_recalibrators`, by which a saved map finds its class.
    short (str): Name on the command line and in the settings of `auto`; "" where that is the registered name.
    n_parameters (int): About how many free numbers a fit has; `info` shows it.
    monotone (bool): Whether the map never falls as the score rises.
    min_pairs (int): The smallest number of pairs for a sensible fit: a group with fewer uses the pooled map.
    """

    kind = "@calib_recalibrators"
    short: ClassVar[str] = ""
    n_parameters: ClassVar[int] = 20
    monotone: ClassVar[bool] = True
    min_pairs: int = 2

    def fit(self, scores: ArrayLike, hits: ArrayLike, weights: ArrayLike | None = None) -> Recalibrator:
        """Learn the map.

        scores (ArrayLike): n probabilities. hits (ArrayLike): n booleans, or zeros and ones.
        weights (ArrayLike | None): n positive numbers: a weight of 2 is the same pair twice.
        RETURNS (Recalibrator): Itself.
        RAISES C001: values out of range. C002: lengths differ. C003: no pairs.
        """
        probabilities = as_probabilities("scores", scores)
        if not len(probabilities):
            raise calib_error("C003", what=type(self).__name__, threshold="the threshold")
        self._fit(probabilities, as_hits(hits, len(probabilities)), as_weights(weights, len(probabilities)))
        return self

    def predict(self, scores: ArrayLike) -> Floats:
        """The calibrated probabilities of n scores, of any range. RAISES C001: values out of [0, 1]. C004: not fitted."""
        if not self.fitted:
            raise calib_error("C004", what=type(self).__name__)
        return self._predict(as_probabilities("scores", scores))

    def as_table(self, maps: Sequence[Recalibrator]) -> MapTable | None:
        """Fitted maps of this method as one function, which is faster than one map after the other.

        RETURNS (MapTable | None): None where the method has no such function, or a map is of another method.
        """
        return None

    @abstractmethod
    def _fit(self, scores: Floats, hits: NDArray[np.bool_], weights: Floats | None) -> None: ...

    @abstractmethod
    def _predict(self, scores: Floats) -> Floats: ...
