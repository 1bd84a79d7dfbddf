"""Learners of sparse features (Mejer & Crammer 2010): averaged perceptron, passive-aggressive, confidence-weighted, AROW.

A model has a mean weight mu and a variance sigma of each parameter (section 2). A rule reads the difference Delta between the
features of the right labelling and of a rival, as the parameters where it is not zero.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from spacy_calib.types import Floats, Ints

from .best import k_best_one, viterbi_one
from .features import SparseFeatures


class Difference(NamedTuple):
    """Features of the right labelling minus a rival's, where not 0, and the number of labels that differ (Hamming distance)."""

    parameters: Ints
    amounts: Floats
    distance: int


class Step(NamedTuple):
    """A change of some parameters. mean (Floats): Added to mu. variance (Floats | None): Subtracted from sigma."""

    parameters: Ints
    mean: Floats
    variance: Floats | None = None


@dataclass(frozen=True)
class Rule(ABC):
    """How weights change after a sequence."""

    short: ClassVar[str] = ""
    n_rivals: ClassVar[int] = 1  # number of best labellings that are compared with the right one
    by_distance: ClassVar[bool] = False  # whether a rival counts only if its score is above the right one's minus its errors

    @abstractmethod
    def steps(self, mu: Floats, sigma: Floats, rivals: Sequence[Difference]) -> list[Step]:
        """Return the changes after one sequence.

        mu, sigma (Floats): Mean and variance of each parameter, shape (n_parameters,). rivals (Sequence): Differences to
        labellings other than the right one.
        """


@dataclass(frozen=True)
class Perceptron(Rule):
    """Adds the difference of the features to the weights (Collins 2002)."""

    short = "perceptron"

    def steps(self, mu: Floats, sigma: Floats, rivals: Sequence[Difference]) -> list[Step]:
        return [Step(rival.parameters, rival.amounts) for rival in rivals]


@dataclass(frozen=True)
class PassiveAggressive(Rule):
    """The smallest change that puts the right labelling above k rivals by Hamming distance (Crammer et al. 2005)."""

    short = "pa"
    by_distance = True
    k: int = 5  # number of rivals
    most: float = 1.0  # maximum weight of a rival, C
    rounds: int = 20  # maximum number of rounds over the rivals

    @property
    def n_rivals(self) -> int:  # type: ignore[override]
        return self.k

    def steps(self, mu: Floats, sigma: Floats, rivals: Sequence[Difference]) -> list[Step]:
        violations = np.array([rival.distance - mu[rival.parameters] @ rival.amounts for rival in rivals])
        products = _products(rivals)
        weights = np.zeros(len(rivals))
        for _ in range(self.rounds):
            previous = weights.copy()
            for i in range(len(rivals)):
                violation = violations[i] - products[i] @ weights
                weights[i] = min(self.most, max(0.0, weights[i] + violation / max(products[i, i], 1e-12)))
            if (weights == previous).all():
                break
        weighted_rivals = zip(rivals, weights.tolist(), strict=True)
        return [Step(rival.parameters, weight * rival.amounts) for rival, weight in weighted_rivals if weight > 0]


def _products(rivals: Sequence[Difference]) -> Floats:
    """Return the inner products of all pairs of differences, shape (k, k)."""
    parameters, column = np.unique(np.concatenate([rival.parameters for rival in rivals]), return_inverse=True)
    table = np.zeros((len(rivals), len(parameters)))
    table[np.repeat(np.arange(len(rivals)), [len(rival.parameters) for rival in rivals]), column.reshape(-1)] = np.concatenate(
        [rival.amounts for rival in rivals]
    )
    return table @ table.T


@dataclass(frozen=True)
class _Gaussian(Rule):
    """Rules with variances, a diagonal Sigma: mu += alpha Sigma Delta (Algorithm 1, equation 2)."""

    def steps(self, mu: Floats, sigma: Floats, rivals: Sequence[Difference]) -> list[Step]:
        steps = []
        for rival in rivals:
            direction = sigma[rival.parameters] * rival.amounts
            v, m = float(direction @ rival.amounts), float(mu[rival.parameters] @ rival.amounts)
            alpha, beta = self.rates(v, m, rival.distance)
            if alpha > 0:
                steps.append(Step(rival.parameters, alpha * direction, beta * direction**2 / (1 + beta * v)))
        return steps

    @abstractmethod
    def rates(self, v: float, m: float, distance: int) -> tuple[float, float]:
        """Return (alpha, beta). v (float): Delta' Sigma Delta. m (float): mu . Delta. distance (int): Labels that differ."""


@dataclass(frozen=True)
class ConfidenceWeighting(_Gaussian):
    """Confidence-weighted learning (equation 3; Crammer et al. 2008). phi: Normal quantile of the confidence, above 0."""

    short = "cw"
    phi: float = 1.0

    def rates(self, v: float, m: float, distance: int) -> tuple[float, float]:
        factor, double_factor, phi = 1 + self.phi**2 / 2, 1 + self.phi**2, self.phi
        alpha = max(0.0, (-m * factor + np.sqrt(m**2 * phi**4 / 4 + v * phi**2 * double_factor)) / (v * double_factor))
        root = 0.5 * (-alpha * v * phi + np.sqrt(alpha**2 * v**2 * phi**2 + 4 * v))  # of v+
        return float(alpha), float(alpha * phi / root)


@dataclass(frozen=True)
class Arow(_Gaussian):
    """Adaptive regularization (equation 4): alpha = max(0, distance - m) / (r + v), beta = 1 / r. r (float): Above 0."""

    short = "arow"
    r: float = 1.0

    def rates(self, v: float, m: float, distance: int) -> tuple[float, float]:
        return max(0.0, distance - m) / (self.r + v), 1 / self.r


RULES: dict[str, type[Rule]] = {rule.short: rule for rule in (Perceptron, PassiveAggressive, ConfidenceWeighting, Arow)}


def make_rule(name: str, **settings: float) -> Rule:
    """Return the rule of this name."""
    return RULES[name](**settings)


class OnlineLearner:
    """Weights of (feature, label) at feature * K + label, and of (previous, label) at (n_features + previous) * K + label.

    mu, sigma (Floats): Mean and variance of each weight, at first 0 and 1. late (Floats): mu minus its average, times n_seen. n_seen
    (int): Sequences seen.
    """

    def __init__(self, n_features: int, n_labels: int, rule: Rule):
        self.n_features, self.n_labels, self.rule = n_features, n_labels, rule
        size = (n_features + n_labels) * n_labels
        self.mu, self.late, self.sigma = np.zeros(size), np.zeros(size), np.ones(size)
        self.n_seen = 0

    @property
    def mean(self) -> Floats:
        """The average of mu over all sequences seen, which predicts better than the last one."""
        return self.mu - self.late / max(1, self.n_seen)

    def mean_rows(self, rows: Ints) -> Floats:
        """Return the average weights of some features, shape (n, K); rows from n_features on are those of previous labels."""
        mu, lag = (array.reshape(-1, self.n_labels)[rows] for array in (self.mu, self.late))
        return mu - lag / max(1, self.n_seen)

    def scores(self, weights: Floats, tokens: SparseFeatures) -> Floats:
        """Return the score of each label at each token, shape (n, K)."""
        table = weights[: self.n_features * self.n_labels].reshape(-1, self.n_labels)
        return np.add.reduceat(table[tokens.rows], tokens.starts[:-1], axis=0)

    def transitions(self, weights: Floats) -> Floats:
        """Return the score of each label (column) after each (row), shape (K, K)."""
        return weights[self.n_features * self.n_labels :].reshape(self.n_labels, self.n_labels)

    def update(self, tokens: SparseFeatures, gold: Ints) -> None:
        """Learn from one sequence. gold (Ints): Label of each token, shape (n_tokens,)."""
        scores, transitions = self.scores(self.mu, tokens), self.transitions(self.mu)
        if self.rule.by_distance and _beats_all(scores, transitions, gold):
            self.n_seen += 1
            return
        if self.rule.n_rivals == 1:
            rivals = [viterbi_one(scores, transitions)]
        else:
            rivals = list(k_best_one(scores, transitions, self.rule.n_rivals))
        differences = [self.difference(tokens, gold, rival) for rival in rivals if (rival != gold).any()]
        for step in self.rule.steps(self.mu, self.sigma, differences) if differences else ():
            self.mu[step.parameters] += step.mean
            self.late[step.parameters] += self.n_seen * step.mean
            if step.variance is not None:
                self.sigma[step.parameters] -= step.variance
        self.n_seen += 1

    def difference(self, tokens: SparseFeatures, gold: Ints, rival: Ints) -> Difference:
        """Return the features of the right labelling minus those of a rival: of tokens and transitions whose labels differ.

        gold, rival (Ints): Label of each token, shape (n_tokens,); they are not equal.
        """
        width, offset = self.n_labels, self.n_features * self.n_labels
        differ = np.flatnonzero(gold != rival)
        feature_codes = np.concatenate([tokens.rows[tokens.starts[i] : tokens.starts[i + 1]] for i in differ.tolist()]) * width
        token_of_row = np.repeat(differ, tokens.starts[differ + 1] - tokens.starts[differ])
        transitions = np.flatnonzero((gold[1:] != rival[1:]) | (gold[:-1] != rival[:-1]))
        codes = np.concatenate([
            feature_codes + gold[token_of_row], offset + gold[transitions] * width + gold[transitions + 1],
            feature_codes + rival[token_of_row], offset + rival[transitions] * width + rival[transitions + 1],
        ])  # fmt: skip
        signs = np.ones(len(codes))
        signs[len(codes) // 2 :] = -1  # the second half is the rival's
        parameters, inverse = np.unique(codes, return_inverse=True)
        amounts = np.bincount(inverse.reshape(-1), weights=signs, minlength=len(parameters))
        nonzero = amounts != 0
        return Difference(parameters[nonzero], amounts[nonzero], len(differ))


def _beats_all(scores: Floats, transitions: Floats, gold: Ints) -> bool:
    """Return whether gold scores above every other labelling by at least the number of labels that differ."""
    with_cost = scores + 1
    with_cost[np.arange(len(gold)), gold] -= 1
    return bool((viterbi_one(with_cost, transitions) == gold).all())
