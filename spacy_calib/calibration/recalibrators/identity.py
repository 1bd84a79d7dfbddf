"""No recalibration: the raw score is the probability."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...types import Floats
from .recalibrator import Recalibrator


class Identity(Recalibrator):
    """The map that returns each score unchanged: a baseline, and the map of a pipe that is not fitted."""

    registered = "spacy-calib.Identity.v1"
    short = "identity"
    n_parameters = 0
    min_pairs = 0

    def _fit(self, scores: Floats, hits: NDArray[np.bool_], weights: Floats | None) -> None:
        pass

    def _predict(self, scores: Floats) -> Floats:
        return scores.copy()
