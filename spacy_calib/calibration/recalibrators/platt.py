"""Platt scaling: a line through the log-odds."""

from __future__ import annotations

import numpy as np

from ...types import Floats
from .logistic import LogisticMap, log_odds


class Platt(LogisticMap):
    """sigmoid(a * log(q / (1 - q)) + c), a at least 0 (Platt 1999, on the log-odds of the score)."""

    registered = "spacy-calib.Platt.v1"
    short = "platt"
    n_parameters = 2
    tried_by_auto = True
    slopes = 1
    unchanged = (1.0, 0.0)

    def features(self, scores: Floats) -> Floats:
        """See LogisticMap."""
        return np.stack([log_odds(scores), np.ones(len(scores))], axis=1)
