"""The step after a context that shrinks its scores towards a straight line through the raw log-odds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import calib_error
from ..types import Floats, Pairs
from .conventions import Convention
from .recalibrators import Platt
from .recalibrators.logistic import combine, log_odds, sigmoid
from .steps import Predictions


def check_shrink(shrink: float) -> float:
    """The setting itself. RAISES C001: it is no number in [0, 1]."""
    if isinstance(shrink, bool) or not isinstance(shrink, (int, float)) or not 0 <= shrink <= 1:
        raise calib_error("C001", name="shrink", wanted="a number from 0 to 1", given=repr(shrink))
    return float(shrink)


def fit_line(pairs: Pairs, conventions: Sequence[Convention]) -> Floats:
    """Fit Platt scaling (slope and constant) to raw scores, without the tokens on which conventions differ."""
    excluded = np.concatenate([np.zeros(0, dtype=np.intp), *(convention.rows for convention in conventions)])
    own_tokens = pairs.take(np.flatnonzero(~np.isin(pairs.rows, excluded)))
    line = Platt()
    line.fit(own_tokens.scores, own_tokens.hits)
    return line.coefficients_


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """The mean of two log-odds, that of the maps' score and that on the line.

    shrink (float): Weight of the line, in [0, 1]. line (Floats): Slope and constant, of raw log-odds.
    """

    shrink: float
    line: Floats

    def apply(self, given: Predictions) -> Predictions:
        """Shrink the scores of all entries."""
        on_line = combine(Platt().features(given.raw), self.line)
        return given.having(scores=sigmoid((1.0 - self.shrink) * log_odds(given.scores) + self.shrink * on_line))
