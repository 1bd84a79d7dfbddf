"""Beta calibration: the log-odds may bend differently near 0 and near 1."""

from __future__ import annotations

import numpy as np

from ...types import Floats
from .logistic import CLIP, LogisticMap


class Beta(LogisticMap):
    """sigmoid(a * log q - b * log(1 - q) + c), a and b at least 0 (Kull, Silva Filho and Flach 2017, equation 4)."""

    registered = "spacy-calib.Beta.v1"
    short = "beta"
    n_parameters = 3
    tried_by_auto = True
    slopes = 2
    unchanged = (1.0, 1.0, 0.0)

    def features(self, scores: Floats) -> Floats:
        """See LogisticMap."""
        clipped = np.clip(scores, CLIP, 1 - CLIP)
        return np.stack([np.log(clipped), -np.log1p(-clipped), np.ones(len(scores))], axis=1)
