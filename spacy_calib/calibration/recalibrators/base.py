"""The contract of a recalibrator: two one-dimensional arrays in, a map out."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import calib_error
from ...schema import Form, floats, record, registered
from ...types import Floats, Ints, as_hits, as_probabilities, as_weights

# Several fitted maps as one function: (n scores, the number of the map that each belongs to) -> n calibrated log-odds.
MapTable = Callable[[Floats, Ints], Floats]

# The saved form of a map; its settings are read by the registered function, and what it learned is read by its class (`Recalibrator.learned_form`), which the registered name tells.
MAP = registered("@calib_recalibrators")


class Recalibrator(ABC):
    """A map score -> probability. Settings are constructor arguments; what was learned ends in an underscore.

    registered (str): Name in the registry `calib_recalibrators`, by which a saved map finds its class.
    short (str): What it is called on the command line and in the settings of `auto`; "" for one that is called by its registered name.
    n_parameters (int): About how many free numbers a fit has: of maps that are equally good, `auto` takes the one with fewest.
    tried_by_auto (bool): Whether `auto` tries it where its settings name no methods.
    monotone (bool): Whether the map never falls as the score rises.
    """

    registered: ClassVar[str]
    short: ClassVar[str] = ""
    n_parameters: ClassVar[int] = 20
    tried_by_auto: ClassVar[bool] = False
    monotone: ClassVar[bool] = True
    _learned: ClassVar[tuple[str, ...]] = ()
    # The saved form of what was learned; None for one array of finite numbers each.
    learned_form: ClassVar[Form | None] = None

    @property
    def min_pairs(self) -> int:
        """Fewer pairs than this cannot be fitted sensibly: a group with fewer uses the pooled map."""
        return 2

    @property
    def fitted(self) -> bool:
        return all(hasattr(self, name) for name in self._learned)

    def fit(self, scores: ArrayLike, hits: ArrayLike, weights: ArrayLike | None = None) -> Recalibrator:
        """Learn the map.

        scores (ArrayLike): n probabilities. hits (ArrayLike): n booleans, or zeros and ones.
        weights (ArrayLike | None): n positive numbers: a weight of 2 is the same pair twice.
        RETURNS (Recalibrator): Itself.
        RAISES C001: values out of range. C002: lengths differ. C003: no pairs.
        """
        given = as_probabilities("scores", scores)
        if not len(given):
            raise calib_error("C003", what=type(self).__name__, threshold="the threshold")
        self._fit(given, as_hits(hits, len(given)), as_weights(weights, len(given)))
        return self

    def predict(self, scores: ArrayLike) -> Floats:
        """The calibrated probabilities of n scores, also of scores beyond the fit range.

        RAISES C001: values out of range. C004: not fitted.
        """
        if not self.fitted:
            raise calib_error("C004", what=type(self).__name__)
        return self._predict(as_probabilities("scores", scores))

    def as_table(self, maps: Sequence[Recalibrator]) -> MapTable | None:
        """Fitted maps of this method as one function of all pairs, which is faster than one map after the other.

        RETURNS (MapTable | None): None where the method has no such function, or where one of the maps is of another method.
        """
        return None

    def clone(self) -> Recalibrator:
        """A new one with the same settings, not fitted."""
        fresh = copy.copy(self)
        for name in self._learned:
            fresh.__dict__.pop(name, None)
        return fresh

    def settings(self) -> dict[str, Any]:
        """The constructor arguments, as plain data."""
        return {}

    def state(self) -> dict[str, Any]:
        """Name, settings and learned arrays: what `from_state` needs."""
        learned = {name: getattr(self, name, None) for name in self._learned}
        return {"@calib_recalibrators": self.registered, "settings": self.settings(), "learned": learned}

    def load_learned(self, learned: dict[str, Any]) -> Recalibrator:
        """Take over the learned arrays of a saved state; nothing where all are None.

        RAISES Misfit: they are not of the form declared.
        """
        if any(value is not None for value in learned.values()):
            form = type(self).learned_form or record({name: floats() for name in self._learned})
            for name, value in form(learned, "learned").items():
                setattr(self, name, value)
        return self

    @abstractmethod
    def _fit(self, scores: Floats, hits: NDArray[np.bool_], weights: Floats | None) -> None: ...

    @abstractmethod
    def _predict(self, scores: Floats) -> Floats: ...
