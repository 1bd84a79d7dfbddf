"""Functions of log-odds, and the two minimizers of all penalized fits: Newton's method for few coefficients, L-BFGS for many.

The offsets of tags alone have a Newton's method of their own, for all units at once (`calibration.tag_offsets`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..types import Floats

# Scores are clipped to this distance from 0 and 1 before their logarithm is taken, as in the log loss.
CLIP = 1e-6
FARTHEST_MARGIN = float(np.log(1 - CLIP) - np.log(CLIP))
# Weight, in pairs, of the prior towards no change: it decides only where the pairs leave the map open (all of them
# hit, or hits and misses do not overlap).
PRIOR = 0.01
_STEPS = 100
# Newton's method ends after a step that moves no log-odds by more than this; the error left is about its square.
_TOLERANCE = 1e-7
# A step that moves no log-odds by more than this is taken whole, without asking whether it lowers the loss.
_NEAR = 0.1
# Rows that are processed together, so that a fit needs little memory in addition to its features.
_CHUNK_ROWS = 1 << 20


def log_odds(scores: Floats, clip: float = CLIP) -> Floats:
    """Return log(q / (1 - q)) of scores clipped to this distance from 0 and 1."""
    probabilities = np.minimum(np.maximum(scores, clip), 1 - clip)  # several times as fast as np.clip for a few
    return np.log(probabilities) - np.log1p(-probabilities)


def sigmoid(margins: Floats) -> Floats:
    """Return 1 / (1 + exp(-x)) without overflow."""
    return 1.0 / (1.0 + np.exp(np.minimum(-margins, 700.0)))


def softplus(margins: Floats) -> Floats:
    """Return log(1 + exp(x)) without overflow; several times as fast as logaddexp(0, x)."""
    return np.maximum(margins, 0.0) + np.log1p(np.exp(-np.abs(margins)))


def combine(features: Floats, coefficients: Floats) -> Floats:
    """Return features @ coefficients, (n,), added up by column, so that a row's result depends on that row alone to the bit.

    features (Floats): Shape (n, k). coefficients (Floats): Shape (k,), or (n, k) for different ones in each row.
    """
    margins = features[:, 0] * coefficients[..., 0]
    for column in range(1, features.shape[1]):
        margins += features[:, column] * coefficients[..., column]
    return margins


def fit_logistic(
    features: Floats, hits: NDArray[Any], weights: Floats | None, prior_mean: Floats, prior: float | Floats
) -> Floats:
    """Fit a logistic regression with a Gaussian prior on its coefficients, by Newton's method.

    It minimizes the log loss plus prior / 2 times the squared distance of the coefficients from prior_mean.

    features (Floats): Shape (n, k). hits: (n,), booleans or shares of hits. weights (Floats | None): (n,).
    prior_mean (Floats): (k,). prior (float | Floats): Precision, for all or for each, (k,); 0 for no prior.
    RETURNS (Floats): The coefficients, shape (k,).
    """
    columns = np.asfortranarray(features)  # sums over contiguous columns, without BLAS: see `combine`
    mass = np.ones(len(hits)) if weights is None else weights
    k, chunks = len(prior_mean), [slice(start, start + _CHUNK_ROWS) for start in range(0, max(1, len(hits)), _CHUNK_ROWS)]
    coefficients = prior_mean.copy()

    def loss(size: float, step: Floats) -> float:
        """Return the penalized loss after a step of this size."""
        total = 0.5 * np.sum(prior * (coefficients - size * step - prior_mean) ** 2)
        for chunk in chunks:
            margins = combine(columns[chunk], coefficients) - size * combine(columns[chunk], step)
            total += (mass[chunk] * softplus(margins) - mass[chunk] * hits[chunk] * margins).sum()
        return float(total)

    for _ in range(_STEPS):
        gradient, hessian = _derivatives(columns, hits, mass, coefficients, chunks)
        gradient += prior * (coefficients - prior_mean)
        hessian.flat[:: k + 1] += prior
        step = np.asarray(np.linalg.solve(hessian, gradient), dtype=np.float64)
        largest_change = max(float(np.abs(combine(columns[chunk], step)).max(initial=0.0)) for chunk in chunks)
        size = 1.0
        # After a short step the curvature is nearly the same: Newton's method is safe, while differences of the loss would be
        # rounding noise.
        if largest_change > _NEAR:
            current = loss(0.0, step)
            while loss(size, step) > current and size > 1e-8:
                size /= 2
        coefficients = coefficients - size * step
        if largest_change < _TOLERANCE:
            break
    return coefficients


def _derivatives(
    columns: Floats, hits: NDArray[Any], mass: Floats, coefficients: Floats, chunks: Sequence[slice]
) -> tuple[Floats, Floats]:
    """Return (gradient, Hessian) of the summed log loss, shapes (k,) and (k, k). chunks: Slices of the rows."""
    k = len(coefficients)
    gradient, hessian = np.zeros(k), np.zeros((k, k))
    for chunk in chunks:
        rows, weights = columns[chunk], mass[chunk]
        probabilities = sigmoid(combine(rows, coefficients))
        residuals = weights * probabilities - weights * hits[chunk]
        curvature = weights * probabilities * (1.0 - probabilities)
        gradient += [(rows[:, i] * residuals).sum() for i in range(k)]
        for i in range(k):
            weighted_column = rows[:, i] * curvature
            hessian[i, : i + 1] += [(weighted_column * rows[:, j]).sum() for j in range(i + 1)]
            hessian[: i + 1, i] = hessian[i, : i + 1]
    return gradient, hessian


def minimize_smooth(
    loss: Callable[[Floats], tuple[float, Floats]], start: Floats, tolerance: float, most_steps: int, memory: int
) -> Floats:
    """Return the weights of minimum loss, by L-BFGS.

    loss (Callable): Weights -> (loss, its gradient). start (Floats): Initial weights. tolerance (float): The search ends with
        a step that lowers the loss by less than this share of it. memory (int): Pairs of steps and gradients that are kept.
    """
    from scipy.optimize import minimize

    options = {"maxiter": most_steps, "ftol": tolerance, "gtol": 1e-3, "maxcor": memory}
    # The vectors are short: threads would mostly wait for one another.
    with _thread_pools().limit(limits=1):
        weights: Floats = minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x
    return weights


@cache
def _thread_pools() -> Any:
    """Return the thread pools of the loaded libraries; cached, since finding them takes longer than a short minimization."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
