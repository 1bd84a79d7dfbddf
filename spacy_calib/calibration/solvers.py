"""Functions of log-odds, and the three minimizers of penalized fits.

Newton's method for few coefficients; for many L-BFGS, or Newton's method by products with the Hessian, which is more exact.

Only offsets of tags and groups are fitted elsewhere: `calibration.tag_offsets` has a Newton's method for all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..types import Floats

CLIP = 1e-6  # scores are clipped to this distance from 0 and 1 before their logarithm is taken, as in the log loss
FARTHEST_MARGIN = float(np.log(1 - CLIP) - np.log(CLIP))
# Weight, in pairs, of the prior towards no change. It decides only where pairs do not: all hit, or no miss is above a hit.
PRIOR = 0.01
_STEPS = 100
# Newton's method ends after a step that moves no log-odds by more than this; the error left is about its square.
_TOLERANCE = 1e-7
# A step that moves no log-odds by more than this is taken whole, without a check that it lowers the loss.
_SHORT_STEP = 0.1
# Rows that are processed together, so that a fit needs little memory in addition to its features.
_CHUNK_ROWS = 1 << 20


def log_odds(scores: Floats, clip: float = CLIP) -> Floats:
    """Return log(q / (1 - q)) of each score q, which is first clipped to [clip, 1 - clip]."""
    probabilities = np.minimum(np.maximum(scores, clip), 1 - clip)  # several times as fast as np.clip for short arrays
    return np.log(probabilities) - np.log1p(-probabilities)


def sigmoid(margins: Floats) -> Floats:
    """Return the probability 1 / (1 + exp(-x)) of each margin x (log-odds), without overflow."""
    return 1.0 / (1.0 + np.exp(np.minimum(-margins, 700.0)))


def softplus(margins: Floats) -> Floats:
    """Return log(1 + exp(x)) of each margin x (log-odds), without overflow; several times as fast as logaddexp(0, x)."""
    return np.maximum(margins, 0.0) + np.log1p(np.exp(-np.abs(margins)))


def combine(features: Floats, coefficients: Floats) -> Floats:
    """Return features @ coefficients, shape (n,). Columns are added one by one: BLAS may round a row differently in each batch.

    features (Floats): Shape (n, k). coefficients (Floats): Shape (k,), or (n, k) if each row has coefficients of its own.
    """
    margins = features[:, 0] * coefficients[..., 0]
    for column in range(1, features.shape[1]):
        margins += features[:, column] * coefficients[..., column]
    return margins


def fit_logistic(
    features: Floats, hits: NDArray[Any], weights: Floats | None, prior_mean: Floats, prior: float | Floats
) -> Floats:
    """Fit a logistic regression with a Gaussian prior on its coefficients, by Newton's method.

    It minimizes the weighted log loss plus prior / 2 times the squared distance of the coefficients from prior_mean.
    features (Floats): Shape (n, k). hits: Booleans, or shares of hits, shape (n,). weights (Floats | None): Weight of each row,
        (n,); None for 1. prior_mean (Floats): Mean of the prior, (k,). prior (float | Floats): Its precision, one number or
        one for each coefficient, (k,); 0 for no prior. RETURNS (Floats): The coefficients, shape (k,).
    """
    columns = np.asfortranarray(features)  # stored column by column, since `combine` adds up columns
    row_weights = np.ones(len(hits)) if weights is None else weights
    # At least one chunk of rows, even if there are no rows.
    chunks = [slice(start, start + _CHUNK_ROWS) for start in range(0, max(1, len(hits)), _CHUNK_ROWS)]
    coefficients = prior_mean.copy()

    def loss(size: float, step: Floats) -> float:
        """Return the penalized loss at coefficients - size * step, summed over chunks of rows."""
        total = 0.5 * np.sum(prior * (coefficients - size * step - prior_mean) ** 2)
        for chunk in chunks:
            margins = combine(columns[chunk], coefficients) - size * combine(columns[chunk], step)
            total += (row_weights[chunk] * softplus(margins) - row_weights[chunk] * hits[chunk] * margins).sum()
        return float(total)

    for _ in range(_STEPS):
        gradient, hessian = _derivatives(columns, hits, row_weights, coefficients, chunks)
        gradient += prior * (coefficients - prior_mean)
        hessian.flat[:: len(prior_mean) + 1] += prior  # the diagonal
        step = np.asarray(np.linalg.solve(hessian, gradient), dtype=np.float64)
        largest_change = max(float(np.abs(combine(columns[chunk], step)).max(initial=0.0)) for chunk in chunks)
        size = 1.0
        # A long step is halved until it lowers the loss. A short one needs no check: the curvature hardly changes, and
        # differences of the loss would be rounding noise.
        if largest_change > _SHORT_STEP:
            current = loss(0.0, step)
            while loss(size, step) > current and size > 1e-8:  # 1e-8: nothing is left but rounding errors
                size /= 2
        coefficients = coefficients - size * step
        if largest_change < _TOLERANCE:
            break
    return coefficients


def _derivatives(
    columns: Floats, hits: NDArray[Any], row_weights: Floats, coefficients: Floats, chunks: Sequence[slice]
) -> tuple[Floats, Floats]:
    """Return gradient, (k,), and Hessian, (k, k), of the weighted log loss without prior at these coefficients, (k,).

    columns: Features, (n, k). hits, row_weights: Hits or shares of hits, and weights, (n,). chunks: Rows processed together.
    """
    k = len(coefficients)
    gradient, hessian = np.zeros(k), np.zeros((k, k))
    for chunk in chunks:
        features, weights = columns[chunk], row_weights[chunk]
        probabilities = sigmoid(combine(features, coefficients))
        residuals = weights * probabilities - weights * hits[chunk]
        curvature = weights * probabilities * (1.0 - probabilities)
        gradient += [(features[:, i] * residuals).sum() for i in range(k)]
        for i in range(k):  # row i up to the diagonal, which is then mirrored into column i
            weighted_column = features[:, i] * curvature
            hessian[i, : i + 1] += [(weighted_column * features[:, j]).sum() for j in range(i + 1)]
            hessian[: i + 1, i] = hessian[i, : i + 1]
    return gradient, hessian


def minimize_smooth(
    loss: Callable[[Floats], tuple[float, Floats]], start: Floats, tolerance: float, most_steps: int, memory: int
) -> Floats:
    """Return the weights that minimize a smooth loss, found by L-BFGS.

    loss (Callable): Weights -> (loss, its gradient). start (Floats): Initial weights. tolerance (float): The search ends with
        a step that lowers the loss by less than this share of it. most_steps (int): Maximum number of steps. memory (int):
        Number of past steps, with their changes of the gradient, from which the curvature is estimated.
    """
    from scipy.optimize import minimize

    options = {"maxiter": most_steps, "ftol": tolerance, "gtol": 1e-3, "maxcor": memory}
    # The vectors are short: threads would mostly wait for one another.
    with _thread_pools().limit(limits=1):
        return minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x


def minimize_with_curvature(
    loss: Callable[[Floats], tuple[float, Floats]],
    curvature: Callable[[Floats], Callable[[Floats], Floats]],
    start: Floats,
    tolerance: float,
) -> Floats:
    """Return the weights that minimize a convex loss: Newton's method in a trust region, steps by conjugate gradients.

    loss (Callable): Weights -> (loss, its gradient). curvature (Callable): Weights -> the product of the Hessian there with a
        vector. start (Floats): Initial weights. tolerance (float): Norm of the gradient to stop at.
    """
    from scipy.optimize import minimize

    products = lru_cache(maxsize=1)(lambda weights: curvature(np.frombuffer(weights)))  # one step takes many at one place
    options = {"gtol": tolerance, "maxiter": 10 * _STEPS}

    def product(weights: Floats, vector: Floats) -> Floats:
        return products(weights.tobytes())(vector)

    with _thread_pools().limit(limits=1):
        return minimize(loss, start, jac=True, hessp=product, method="trust-ncg", options=options).x


@cache
def _thread_pools() -> Any:
    """Return the controller of all loaded libraries' thread pools; cached, since finding them takes longer than a short fit."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
