"""Temperature, Platt and beta scaling: logistic regression on one to three functions of the score, never falling."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from ...schema import InvalidState, floats
from ...types import Floats, Ints
from ..solvers import CLIP, PRIOR, combine, fit_logistic, log_odds, sigmoid
from .isotonic import sum_by_score
from .recalibrator import MapTable, Recalibrator


class LogisticMap(Recalibrator):
    """Base class of maps sigmoid(features(score) @ coefficients_); features never fall as the score rises.

    A coefficient that would be negative is set to 0 and the others are fitted again (Kull et al. 2017, section 4).
    slopes (int): Number of features but the constant. no_change (tuple): Coefficients of the map that returns each score.
    coefficients_ (Floats): Coefficient of each feature, then the constant if there is one.
    """

    _learned = ("coefficients_",)
    slopes: ClassVar[int]
    no_change: ClassVar[tuple[float, ...]]
    coefficients_: Floats

    @abstractmethod
    def features(self, scores: Floats) -> Floats:
        """Return the features of each score, with a last column of ones if the map has a constant, shape (n, k)."""

    def _fit(self, scores: Floats, hits: NDArray[np.bool_], weights: Floats | None) -> None:
        """Fit a logistic regression of hits; a negative slope becomes 0, the others are refitted. weights: None for 1."""
        # Equal scores are merged first, so that the order of rows does not change the last bit.
        distinct, mass, hit_mass = sum_by_score(scores, hits, weights)
        features = self.features(distinct)
        mean = np.array(self.no_change)  # of the prior
        is_used = np.ones(len(mean), dtype=bool)
        coefficients = np.zeros(len(mean))
        while is_used.any():
            coefficients[is_used] = fit_logistic(features[:, is_used], hit_mass / mass, mass, mean[is_used], PRIOR)
            falling = np.flatnonzero(coefficients[: self.slopes] < 0)
            if not len(falling):
                break
            is_used[falling[np.argmin(coefficients[falling])]] = False
            coefficients[:] = 0.0
        self.coefficients_ = coefficients

    def load_learned(self, values: dict[str, Any]) -> LogisticMap:
        if values.get("coefficients_") is not None:
            coefficients = floats()(values["coefficients_"], "learned.coefficients_")
            if len(coefficients) != len(self.no_change) or (coefficients[: self.slopes] < 0).any():
                requirement = f"{len(self.no_change)} numbers, the first {self.slopes} of at least 0"
                raise InvalidState("learned.coefficients_", requirement)
            self.coefficients_ = coefficients
        return self

    def as_table(self, maps: Sequence[Recalibrator]) -> MapTable | None:
        """Return one function for all maps: a table has a row of coefficients per map. None if a map is of another method."""
        if any(type(recalibrator) is not type(self) for recalibrator in maps):
            return None
        table = np.stack([cast(LogisticMap, recalibrator).coefficients_ for recalibrator in maps])
        return partial(self._margins_of, table)

    def _margins_of(self, table: Floats, scores: Floats, map_indices: Ints) -> Floats:
        """Return calibrated log-odds. table: A row of coefficients per map. map_indices: The map of each score."""
        return combine(self.features(scores), table[map_indices])

    def _predict(self, scores: Floats) -> Floats:
        return sigmoid(combine(self.features(scores), self.coefficients_))


class Temperature(LogisticMap):
    """Temperature scaling of a binary score q: sigmoid(a * log(q / (1 - q))), a = 1 / temperature >= 0 (Guo et al. 2017)."""

    registered = "spacy-calib.Temperature.v1"
    short = "temperature"
    n_parameters = 1
    slopes = 1
    no_change = (1.0,)

    def features(self, scores: Floats) -> Floats:
        return log_odds(scores)[:, None]


class Platt(LogisticMap):
    """Platt scaling on the log-odds of the score q: sigmoid(a * log(q / (1 - q)) + c), a >= 0 (Platt 1999)."""

    registered = "spacy-calib.Platt.v1"
    short = "platt"
    n_parameters = 2
    slopes = 1
    no_change = (1.0, 0.0)

    def features(self, scores: Floats) -> Floats:
        return np.stack([log_odds(scores), np.ones(len(scores))], axis=1)


class Beta(LogisticMap):
    """Beta calibration of a score q: sigmoid(a * log q - b * log(1 - q) + c), a, b >= 0 (Kull et al. 2017, equation 4)."""

    registered = "spacy-calib.Beta.v1"
    short = "beta"
    n_parameters = 3
    slopes = 2
    no_change = (1.0, 1.0, 0.0)

    def features(self, scores: Floats) -> Floats:
        probabilities = np.clip(scores, CLIP, 1 - CLIP)
        return np.stack([np.log(probabilities), -np.log1p(-probabilities), np.ones(len(scores))], axis=1)
