"""Logistic regression on features in units of their standard deviation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...calibration.recalibrators.logistic import combine, fit_logistic, sigmoid
from ...errors import calib_error
from ...schema import floats, lengths, number, record
from ...types import Floats
from .base import UNITS, Forecaster, units_of

# Weight of the prior on the constant, in rows: it decides only where all of the fit data were yes, or none.
_PRIOR = 0.01


class Logistic(Forecaster):
    """sigmoid(constant + sum of weights in standard deviations), with a ridge that draws the weights to 0.

    weights_ (Floats): Shape (k,). constant_ (float). centre_, spread_ (Floats): Of each feature.
    """

    registered = "spacy-calib.Logistic.v1"
    short = "logistic"
    _learned = ("weights_", "constant_", "centre_", "spread_")
    learned_form = record(
        {"weights_": floats(), "constant_": number(), **UNITS},
        lambda held: lengths(dict.fromkeys(("centre_", "spread_"), len(held["weights_"])), held),
    )
    weights_: Floats
    constant_: float
    centre_: Floats
    spread_: Floats

    def __init__(self, ridge: float = 1.0):
        """ridge (float): Factor of half the sum of squared weights in the log loss. RAISES C001: not above 0."""
        if not ridge > 0:
            raise calib_error("C001", name="ridge", wanted="above 0", given=repr(ridge))
        self.ridge = float(ridge)

    @property
    def width(self) -> int:
        return len(self.weights_)

    def settings(self) -> dict[str, Any]:
        return {"ridge": self.ridge}

    def _fit(self, features: Floats, hits: NDArray[np.bool_]) -> None:
        self.centre_, self.spread_ = units_of(features)
        k = features.shape[1]
        design = np.ones((len(features), k + 1))
        design[:, :k] = (features - self.centre_) / self.spread_
        found = fit_logistic(design, hits, None, np.zeros(k + 1), np.append(np.full(k, self.ridge), _PRIOR))
        self.weights_, self.constant_ = found[:k], float(found[k])

    def _predict(self, features: Floats) -> Floats:
        return sigmoid(self.constant_ + combine((features - self.centre_) / self.spread_, self.weights_))
