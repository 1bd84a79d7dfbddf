"""Temperature scaling on the score: one number."""

from __future__ import annotations

from ...types import Floats
from .logistic import LogisticMap, log_odds


class Temperature(LogisticMap):
    """sigmoid(a * log(q / (1 - q))), a = 1 / temperature at least 0 (Guo et al. 2017, of a binary score)."""

    registered = "spacy-calib.Temperature.v1"
    short = "temperature"
    n_parameters = 1
    tried_by_auto = True
    slopes = 1
    unchanged = (1.0,)

    def features(self, scores: Floats) -> Floats:
        """See LogisticMap."""
        return log_odds(scores)[:, None]
