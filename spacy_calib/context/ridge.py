"""Logistic regression on the log-odds of a score and on features, with an L2 penalty that shrinks it towards no change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..calibration.solvers import combine, fit_logistic, sigmoid
from ..metrics.proper import log_losses
from ..pairs.documents import cross_fit, folds_of
from ..schema import Serializable, floats, number, saved_field
from ..types import Floats, Ints

# L2 penalties, of which cross-validation chooses.
RIDGES = (1.0, 10.0, 100.0, 1000.0)
_FOLDS = 5
_PRIOR = 1.0  # weight of the prior on slope and constant, in pairs: just enough to make them unique
ROUNDING = 1e-9  # a column with a standard deviation below this is constant up to rounding errors


@dataclass(frozen=True, eq=False)
class RidgeModel(Serializable):
    """The map sigmoid(slope * log-odds + constant + features @ weights); slope >= 0 keeps the order if features are equal."""

    slope: float = saved_field(number(0.0))
    constant: float = saved_field(number())
    weights: Floats = saved_field(floats())

    def margins(self, columns: Sequence[Floats]) -> Floats:
        """Return constant + features @ weights, (n,), bit-identical with any number of threads. columns: Each feature, (n,)."""
        margins = np.full(len(columns[0]), self.constant, dtype=np.float64)
        for column, weight in zip(columns, self.weights.tolist(), strict=True):
            if weight:
                margins += weight * column
        return margins

    def predict(self, log_odds: Floats, margins: Floats) -> Floats:
        """Return the probabilities of n scores, (n,), from their log-odds and their margins (constant + features @ weights)."""
        return sigmoid(self.slope * log_odds + margins)


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """A fitted model and the result of its cross-validation.

    model (RidgeModel): Fitted on all data. held_out (Floats): Out-of-fold probabilities. ridge (float): The chosen L2 penalty.
    weights (Floats): Change of the log-odds per standard deviation of each feature.
    """

    model: RidgeModel
    held_out: Floats
    ridge: float
    weights: Floats


def fit_ridge(log_odds: Floats, columns: Sequence[Floats], hits: NDArray[np.bool_], documents: Ints) -> RidgeFit:
    """Fit the model with the L2 penalty of the lowest log loss on held-out documents.

    log_odds (Floats): Log-odds of n scores. columns (Sequence[Floats]): k features, each of shape (n,).
    hits, documents: Whether each score is of a hit, and its document; at least two documents.
    """
    deviations = np.array([column.std() for column in columns])
    deviations = np.where(deviations > ROUNDING, deviations, 1.0)
    centers = np.array([column.mean() for column in columns])
    design = np.empty((len(log_odds), len(columns) + 2), order="F")
    design[:, 0], design[:, 1] = log_odds, 1.0
    for i, column in enumerate(columns):
        design[:, 2 + i] = (column - centers[i]) / deviations[i]
    folds = folds_of(documents, _FOLDS)

    def score_fold(train: Ints, test: Ints, ridge: float) -> Floats:
        return sigmoid(combine(design[test], _coefficients(design[train], hits[train], ridge)))

    held_out_scores = [cross_fit(folds, partial(score_fold, ridge=ridge)) for ridge in RIDGES]
    best = int(np.argmin([log_losses(scores, hits).sum() for scores in held_out_scores]))
    slope, constant, *weights = _coefficients(design, hits, RIDGES[best]).tolist()
    weights_per_unit = np.array(weights) / deviations  # for features that are not standardized
    model = RidgeModel(slope, constant - float(weights_per_unit @ centers), weights_per_unit)
    return RidgeFit(model, held_out_scores[best], RIDGES[best], weights_per_unit * deviations)


def _coefficients(design: Floats, hits: NDArray[np.bool_], ridge: float) -> Floats:
    """Fit a logistic regression with L2 penalty `ridge`; return the coefficients of log-odds (>= 0), constant, features."""
    prior_mean = np.zeros(design.shape[1])
    prior_mean[0] = 1.0  # a slope of 1: no change
    prior_weight = np.full(design.shape[1], ridge)
    prior_weight[:2] = _PRIOR  # slope and constant
    coefficients = fit_logistic(design, hits, None, prior_mean, prior_weight)
    if coefficients[0] < 0:  # scores must not change order: the slope is set to 0, and the others are fitted again
        coefficients = np.append(0.0, fit_logistic(design[:, 1:], hits, None, prior_mean[1:], prior_weight[1:]))
    return coefficients
