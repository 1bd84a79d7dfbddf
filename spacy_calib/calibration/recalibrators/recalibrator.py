"""The base class of recalibrators: fitted to n scores and hits, a recalibrator maps scores to probabilities."""

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

# Several fitted maps as one function: (n scores, index of each score's map) -> n calibrated log-odds.
MapTable = Callable[[Floats, Ints], Floats]

# The form of a saved map: registered name, settings, learned attributes.
MAP = registered_part("@calib_recalibrators")


class Recalibrator(Part):
    """A map from scores to probabilities. Constructor arguments are its settings; learned attributes end in an underscore.

    registered (str): Name in the registry `calib_recalibrators`, by which a saved map finds its class.
    short (str): Name on the command line and in the settings of `auto`; "" if that is the registered name.
    n_parameters (int): Approximate number of free parameters. monotone (bool): Whether the map never falls as the score rises.
    min_pairs (int): Minimum number of pairs for a fit: a group with fewer uses the pooled map.
    """

    kind = "@calib_recalibrators"
    short: ClassVar[str] = ""
    n_parameters: ClassVar[int] = 20
    monotone: ClassVar[bool] = True
    min_pairs: int = 2

    def fit(self, scores: ArrayLike, hits: ArrayLike, weights: ArrayLike | None = None) -> Recalibrator:
        """Learn the map from pairs.

        scores (ArrayLike): n probabilities. hits (ArrayLike): n booleans, or zeros and ones.
        weights (ArrayLike | None): n positive numbers: a weight of 2 is the same pair twice.
        RETURNS (Recalibrator): This recalibrator. RAISES C001: values out of range. C002: lengths differ. C003: no pairs.
        """
        probabilities = as_probabilities("scores", scores)
        if not len(probabilities):
            raise calib_error("C003", what=type(self).__name__, threshold="the threshold")
        self._fit(probabilities, as_hits(hits, len(probabilities)), as_weights(weights, len(probabilities)))
        return self

    def predict(self, scores: ArrayLike) -> Floats:
        """Return the calibrated probabilities of n scores. RAISES C001: values out of [0, 1]. C004: not fitted."""
        if not self.fitted:
            raise calib_error("C004", what=type(self).__name__)
        return self._predict(as_probabilities("scores", scores))

    def as_table(self, maps: Sequence[Recalibrator]) -> MapTable | None:
        """Combine fitted maps of this method into one function, which is faster than one map after the other.

        RETURNS (MapTable | None): (scores, index of each score's map) -> calibrated log-odds. None if the method has no such
            function, or a map is of another method.
        """
        return None

    @abstractmethod
    def _fit(self, scores: Floats, hits: NDArray[np.bool_], weights: Floats | None) -> None: ...

    @abstractmethod
    def _predict(self, scores: Floats) -> Floats: ...
