"""What temperature, Platt and beta scaling share: logistic regression on one to three functions of the score, never falling."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..types import Floats
from .base import Recalibrator

# Scores are clipped to this distance from 0 and 1 before their logarithm is taken, as in the log loss of DESIGN section 2.
CLIP = 1e-6
# Weight of the prior towards the map that changes nothing, in pairs: it decides only where the pairs leave the map open (all of them hit,
# or hits and misses do not overlap).
PRIOR = 0.01
_STEPS = 100
_TOLERANCE = 1e-10


def log_odds(scores: Floats) -> Floats:
    """log(q / (1 - q)), scores clipped."""
    clipped = np.clip(scores, CLIP, 1 - CLIP)
    return np.log(clipped) - np.log1p(-clipped)


def sigmoid(margins: Floats) -> Floats:
    """1 / (1 + exp(-x)) without overflow."""
    return 1.0 / (1.0 + np.exp(-np.clip(margins, -700.0, 700.0)))


def fit_logistic(features: Floats, hits: NDArray[np.bool_], weights: Floats | None, prior_mean: Floats, prior: float) -> Floats:
    """Coefficients that minimize the summed log loss plus prior / 2 times the squared distance from prior_mean, by Newton's method.

    features (Floats): Shape (n, k). hits: (n,). weights (Floats | None): (n,). prior_mean (Floats): (k,). prior (float): Above 0.
    """
    mass = np.ones(len(hits)) if weights is None else weights
    target = mass * hits
    coefficients = prior_mean.copy()

    def loss(values: Floats) -> float:
        margins = features @ values
        return float(mass @ np.logaddexp(0.0, margins) - target @ margins + 0.5 * prior * np.sum((values - prior_mean) ** 2))

    current = loss(coefficients)
    for _ in range(_STEPS):
        chance = sigmoid(features @ coefficients)
        gradient = features.T @ (mass * chance - target) + prior * (coefficients - prior_mean)
        spread = mass * chance * (1.0 - chance)
        hessian = (features * spread[:, None]).T @ features + prior * np.eye(len(coefficients))
        step = np.linalg.solve(hessian, gradient)
        size = 1.0
        while (proposed := loss(coefficients - size * step)) > current and size > 1e-8:
            size /= 2
        if proposed > current:
            break
        coefficients = coefficients - size * step
        done = current - proposed <= _TOLERANCE * max(1.0, abs(current))
        current = proposed
        if done:
            break
    return coefficients


class LogisticMap(Recalibrator):
    """sigmoid(features(score) @ coefficients): `slopes` functions of the score that never fall, and perhaps a constant.

    A slope that would be negative is left out and the rest fitted again, so that the map never falls (Kull et al. 2017, section 4).

    coefficients_ (Floats): One for each function.
    """

    _learned = ("coefficients_",)
    slopes: ClassVar[int]
    unchanged: ClassVar[tuple[float, ...]]
    coefficients_: Floats

    @abstractmethod
    def features(self, scores: Floats) -> Floats:
        """Shape (n, k): first the functions of the score, then a constant if there is one."""

    def _fit(self, scores: Floats, hits: NDArray[np.bool_], weights: Floats | None) -> None:
        features = self.features(scores)
        mean = np.array(self.unchanged)
        used = np.ones(len(mean), dtype=bool)
        while True:
            coefficients = np.zeros(len(mean))
            coefficients[used] = fit_logistic(features[:, used], hits, weights, mean[used], PRIOR)
            falling = np.flatnonzero(coefficients[: self.slopes] < 0)
            if not len(falling):
                break
            used[falling[np.argmin(coefficients[falling])]] = False
            if not used.any():
                coefficients[:] = 0.0
                break
        self.coefficients_ = coefficients

    def _predict(self, scores: Floats) -> Floats:
        return sigmoid(self.features(scores) @ self.coefficients_)
