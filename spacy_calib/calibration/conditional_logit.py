"""The conditional logit: which of several options is right, by features of each (McFadden 1974). Knows arrays, never Docs.

The options of one choice stand one after the other, a *stretch*; starts say where each stretch begins, and the end of the last.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..types import Floats, Ints
from .recalibrators.logistic import minimize_smooth

_TOLERANCE, _MOST_STEPS, _MEMORY = 1e-10, 200, 10


def log_sums(scores: Floats, starts: Ints) -> Floats:
    """log sum exp of each stretch, none of them empty. starts (Ints): Where each begins, and the end of the last."""
    lengths = np.diff(starts)
    if not len(lengths):
        return np.zeros(0)
    top = np.maximum.reduceat(scores, starts[:-1])
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return safe + np.log(np.add.reduceat(np.exp(scores - np.repeat(safe, lengths)), starts[:-1]))


def softmax(scores: Floats, starts: Ints) -> Floats:
    """The softmax of each stretch; the arguments are those of `log_sums`."""
    return np.exp(scores - np.repeat(log_sums(scores, starts), np.diff(starts)))


def choice_loss(features: Any, starts: Ints, right: NDArray[np.bool_] | Floats, weights: Floats) -> tuple[float, Floats]:
    """(minus the log likelihood of the right options, its slope by the weights).

    features: Of each option, an array or a scipy sparse matrix of shape (n_options, n_features). right (NDArray): Whether an option is right, or how likely
    what is known of its stretch would be if it were, in [0, 1]; shape (n_options,), above 0 for one of each stretch at least.
    """
    scores, lengths = features @ weights, np.diff(starts)
    with np.errstate(divide="ignore"):
        right_scores = scores + np.log(right, dtype=np.float64)
    all_sums, right_sums = log_sums(scores, starts), log_sums(right_scores, starts)
    slope = np.exp(scores - np.repeat(all_sums, lengths)) - np.exp(right_scores - np.repeat(right_sums, lengths))
    return float((all_sums - right_sums).sum()), features.T @ slope


def fit_choices(features: Floats, starts: Ints, right: NDArray[np.bool_] | Floats, towards: Floats, penalty: Floats) -> Floats:
    """Weights that minimize the loss of `choice_loss` plus penalty / 2 times the squares of their distances from `towards`.

    Stretches without a right option say nothing of the weights and are left out. towards, penalty (Floats): Of each weight, shape (n_features,). RETURNS (Floats): Shape (n_features,).
    """
    lengths = np.diff(starts)
    has_right = np.add.reduceat(right, starts[:-1]) > 0 if len(lengths) else np.zeros(0, dtype=bool)
    is_used = np.repeat(has_right, lengths)
    features, right, starts = features[is_used], right[is_used], np.concatenate([[0], np.cumsum(lengths[has_right])])

    def loss(weights: Floats) -> tuple[float, Floats]:
        value, slope = choice_loss(features, starts, right, weights)
        distances = weights - towards
        return value + 0.5 * float(penalty @ distances**2), slope + penalty * distances

    return minimize_smooth(loss, towards, _TOLERANCE, _MOST_STEPS, _MEMORY)
