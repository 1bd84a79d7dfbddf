"""Temperature, Platt and beta scaling: logistic regression on one to three functions of the score, never falling."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...schema import InvalidState, floats
from ...types import Floats, Ints
from .base import MapTable, Recalibrator
from .isotonic import sum_by_score

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


class LogisticMap(Recalibrator):
    """The map sigmoid(features(score) @ coefficients_): functions of the score that never fall, and perhaps a constant.

    A slope that would be negative is left out and the rest fitted again (Kull et al. 2017, section 4).

    slopes (int): Number of functions. no_change (tuple): Coefficients of the map that returns each score.
    coefficients_ (Floats): One for each function, then the constant.
    """

    _learned = ("coefficients_",)
    slopes: ClassVar[int]
    no_change: ClassVar[tuple[float, ...]]
    coefficients_: Floats

    @abstractmethod
    def features(self, scores: Floats) -> Floats:
        """Return the functions of the score, then the constant if there is one, shape (n, k)."""

    def _fit(self, scores: Floats, hits: NDArray[np.bool_], weights: Floats | None) -> None:
        """Fit by penalized logistic regression; a negative slope is fixed at its prior and the rest is fitted again."""
        # Equal scores are merged first, so that the order of rows does not matter to the bit.
        distinct, mass, hit_mass = sum_by_score(scores, hits, weights)
        features = self.features(distinct)
        mean = np.array(self.no_change)
        is_used = np.ones(len(mean), dtype=bool)
        while True:
            coefficients = np.zeros(len(mean))
            coefficients[is_used] = fit_logistic(features[:, is_used], hit_mass / mass, mass, mean[is_used], PRIOR)
            falling = np.flatnonzero(coefficients[: self.slopes] < 0)
            if not len(falling):
                break
            is_used[falling[np.argmin(coefficients[falling])]] = False
            if not is_used.any():
                coefficients[:] = 0.0
                break
        self.coefficients_ = coefficients

    def load_learned(self, values: dict[str, Any]) -> LogisticMap:
        if values.get("coefficients_") is not None:
            coefficients = floats()(values["coefficients_"], "learned.coefficients_")
            if len(coefficients) != len(self.no_change) or (coefficients[: self.slopes] < 0).any():
                raise InvalidState(
                    "learned.coefficients_", f"{len(self.no_change)} numbers, the first {self.slopes} of at least 0"
                )
            self.coefficients_ = coefficients
        return self

    def as_table(self, maps: Sequence[Recalibrator]) -> MapTable | None:
        """Combine the coefficients of all maps into one table, from which each score takes its map's row."""
        if any(type(recalibrator) is not type(self) for recalibrator in maps):
            return None
        table = np.stack([recalibrator.coefficients_ for recalibrator in maps if isinstance(recalibrator, LogisticMap)])
        return partial(self._margins_of, table)

    def _margins_of(self, table: Floats, scores: Floats, map_indices: Ints) -> Floats:
        return combine(self.features(scores), table[map_indices])

    def _predict(self, scores: Floats) -> Floats:
        return sigmoid(combine(self.features(scores), self.coefficients_))


class Temperature(LogisticMap):
    """Temperature scaling of a binary score: sigmoid(a * log(q / (1 - q))), a = 1 / temperature >= 0 (Guo et al. 2017)."""

    registered = "spacy-calib.Temperature.v1"
    short = "temperature"
    n_parameters = 1
    slopes = 1
    no_change = (1.0,)

    def features(self, scores: Floats) -> Floats:
        return log_odds(scores)[:, None]


class Platt(LogisticMap):
    """Platt scaling on the log-odds of the score: sigmoid(a * log(q / (1 - q)) + c), a >= 0 (Platt 1999)."""

    registered = "spacy-calib.Platt.v1"
    short = "platt"
    n_parameters = 2
    slopes = 1
    no_change = (1.0, 0.0)

    def features(self, scores: Floats) -> Floats:
        return np.stack([log_odds(scores), np.ones(len(scores))], axis=1)


class Beta(LogisticMap):
    """Beta calibration: sigmoid(a * log q - b * log(1 - q) + c), a, b >= 0 (Kull, Silva Filho and Flach 2017, equation 4)."""

    registered = "spacy-calib.Beta.v1"
    short = "beta"
    n_parameters = 3
    slopes = 2
    no_change = (1.0, 1.0, 0.0)

    def features(self, scores: Floats) -> Floats:
        probabilities = np.clip(scores, CLIP, 1 - CLIP)
        return np.stack([np.log(probabilities), -np.log1p(-probabilities), np.ones(len(scores))], axis=1)
