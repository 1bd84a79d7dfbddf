"""The conditional logit: which of several options is right, by features of each option (McFadden 1974). No Docs are needed.

The options of one choice are a *stretch* of consecutive rows. `starts` has the first row of each stretch, then the row count.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..types import Floats, Ints
from .solvers import minimize_smooth

_TOLERANCE, _MOST_STEPS, _MEMORY = 1e-10, 200, 10


def log_sums(scores: Floats, starts: Ints) -> Floats:
    """Return log(sum(exp(scores))) of each of n stretches of consecutive scores (the options of one choice), shape (n,).

    scores (Floats): Shape (n_options,). starts (Ints): First index of each stretch (none is empty), then n_options: (n + 1,).
    """
    lengths = np.diff(starts)
    top = np.maximum.reduceat(scores, starts[:-1])
    safe = np.where(np.isfinite(top), top, 0.0)  # a stretch may be -inf throughout
    with np.errstate(divide="ignore"):
        return safe + np.log(np.add.reduceat(np.exp(scores - np.repeat(safe, lengths)), starts[:-1]))


def softmax(scores: Floats, starts: Ints) -> Floats:
    """Return the softmax of the scores of each choice, (n_options,). starts: First index of each choice, then n_options."""
    return np.exp(scores - np.repeat(log_sums(scores, starts), np.diff(starts)))


def choice_loss(features: Any, starts: Ints, right: NDArray[np.bool_] | Floats, weights: Floats) -> tuple[float, Floats]:
    """Return (minus the log likelihood of the right options, its gradient by the weights).

    features: An array or a scipy sparse matrix of shape (n_options, n_features).
    starts (Ints): First row of each choice's options, then n_options, shape (n_choices + 1,).
    right (NDArray): Whether each option is right, or the likelihood of the observation if it is, in [0, 1]; shape (n_options,),
        above 0 for at least one option of each choice. weights (Floats): Shape (n_features,), as the gradient.
    """
    scores, lengths = features @ weights, np.diff(starts)
    with np.errstate(divide="ignore"):
        right_scores = scores + np.log(right, dtype=np.float64)
    all_sums, right_sums = log_sums(scores, starts), log_sums(right_scores, starts)
    # P(option) less P(option, given that a right one is chosen).
    residuals = np.exp(scores - np.repeat(all_sums, lengths)) - np.exp(right_scores - np.repeat(right_sums, lengths))
    return float((all_sums - right_sums).sum()), features.T @ residuals


def fit_choices(features: Floats, starts: Ints, right: NDArray[np.bool_] | Floats, towards: Floats, penalty: Floats) -> Floats:
    """Fit a conditional logit with an L2 penalty towards given weights; choices without a right option are left out.

    features (Floats): Shape (n_options, n_features). starts (Ints): First row of each choice's options, then n_options.
    right (NDArray): Whether each option is right, or the likelihood of the observation if it is, shape (n_options,).
    towards, penalty (Floats): Target and penalty of each weight, shape (n_features,); penalty / 2 times the squared distance
        from the target is added to the loss. RETURNS (Floats): The weights, shape (n_features,).
    """
    lengths = np.diff(starts)
    has_right = np.add.reduceat(right, starts[:-1]) > 0
    is_used = np.repeat(has_right, lengths)
    features, right = features[is_used], right[is_used]
    starts = np.concatenate([[0], np.cumsum(lengths[has_right])])  # of the options that are left

    def loss(weights: Floats) -> tuple[float, Floats]:
        value, gradient = choice_loss(features, starts, right, weights)
        distances = weights - towards
        return value + 0.5 * float(penalty @ distances**2), gradient + penalty * distances

    return minimize_smooth(loss, towards, _TOLERANCE, _MOST_STEPS, _MEMORY)
