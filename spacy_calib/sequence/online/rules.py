"""Update rules of linear online learners: averaged perceptron, passive-aggressive, confidence-weighted, AROW. Knows arrays only.

A model has a mean weight mu and a variance sigma of each parameter (Mejer & Crammer 2010, section 2). A rule sees the difference Delta between
the features of the right labelling and of a rival, as the parameters where it is not zero.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ...errors import calib_error
from ...types import Floats, Ints


class Difference(NamedTuple):
    """Features of the right labelling less those of a rival.

    at (Ints): Parameters, each once. by (Floats): How often the right one has each, less the rival. distance (int): Labels that differ.
    """

    at: Ints
    by: Floats
    distance: int


class Step(NamedTuple):
    """A change. at (Ints): Parameters. mean (Floats): What is added to mu there. variance (Floats | None): What is taken from sigma."""

    at: Ints
    mean: Floats
    variance: Floats | None = None


@dataclass(frozen=True)
class Rule(ABC):
    """How a model moves. n_rivals (int): The best labellings that it looks at. start (float): Variance of a parameter before its first update.
    by_distance (bool): Nothing is learned where the right labelling scores above every other one by the labels that differ.
    """

    short: ClassVar[str] = ""
    n_rivals: ClassVar[int] = 1
    start: ClassVar[float] = 1.0
    by_distance: ClassVar[bool] = False

    @abstractmethod
    def steps(self, mu: Floats, sigma: Floats, rivals: Sequence[Difference]) -> list[Step]:
        """The changes after one sequence; rivals that are the right labelling are not among `rivals`."""


@dataclass(frozen=True)
class Perceptron(Rule):
    """Adds the difference (Collins 2002)."""

    short = "perceptron"

    def steps(self, mu: Floats, sigma: Floats, rivals: Sequence[Difference]) -> list[Step]:
        return [Step(one.at, one.by) for one in rivals]


@dataclass(frozen=True)
class PassiveAggressive(Rule):
    """The least change by which the right labelling scores above each of the k best ones by its Hamming distance, each with a weight of at
    most `most` (Crammer et al. 2005; solved by Hildreth's method).

    k (int): Rivals. most (float): C of PA-I, greater than 0. rounds (int): Of Hildreth's method.
    """

    short = "pa"
    by_distance = True
    k: int = 5
    most: float = 1.0
    rounds: int = 20

    @property
    def n_rivals(self) -> int:  # type: ignore[override]
        return self.k

    def steps(self, mu: Floats, sigma: Floats, rivals: Sequence[Difference]) -> list[Step]:
        violations = np.array([one.distance - mu[one.at] @ one.by for one in rivals])
        products = _products(rivals)
        weights = np.zeros(len(rivals))
        for _ in range(self.rounds):
            before = weights.copy()
            for i in range(len(rivals)):
                left = violations[i] - products[i] @ weights
                weights[i] = min(self.most, max(0.0, weights[i] + left / max(products[i, i], 1e-12)))
            if (weights == before).all():
                break
        return [Step(one.at, weight * one.by) for one, weight in zip(rivals, weights.tolist(), strict=True) if weight > 0]


def _products(rivals: Sequence[Difference]) -> Floats:
    """Inner products of all pairs, shape (k, k)."""
    at, place = np.unique(np.concatenate([one.at for one in rivals]), return_inverse=True)
    table = np.zeros((len(rivals), len(at)))
    table[np.repeat(np.arange(len(rivals)), [len(one.at) for one in rivals]), place.reshape(-1)] = np.concatenate(
        [one.by for one in rivals]
    )
    return table @ table.T


@dataclass(frozen=True)
class _Gaussian(Rule):
    """mu += alpha Sigma Delta; of the full update of Sigma its diagonal is kept (Algorithm 1, with equation 2).

    variance (float): Initial variance a, greater than 0.
    """

    variance: float = 1.0

    @property
    def start(self) -> float:  # type: ignore[override]
        return self.variance

    def steps(self, mu: Floats, sigma: Floats, rivals: Sequence[Difference]) -> list[Step]:
        made = []
        for one in rivals:
            moved = sigma[one.at] * one.by
            v, m = float(moved @ one.by), float(mu[one.at] @ one.by)
            alpha, beta = self.rates(v, m, one.distance)
            if alpha > 0:
                made.append(Step(one.at, alpha * moved, beta * moved**2 / (1 + beta * v)))
        return made

    @abstractmethod
    def rates(self, v: float, m: float, distance: int) -> tuple[float, float]:
        """(alpha, beta). v (float): Delta' Sigma Delta. m (float): mu . Delta. distance (int): Labels that differ."""


@dataclass(frozen=True)
class ConfidenceWeighted(_Gaussian):
    """Equation 3, after Crammer et al. (2008).

    phi (float): Confidence asked for: the quantile of the normal distribution at it, greater than 0.
    """

    short = "cw"
    phi: float = 1.0

    def rates(self, v: float, m: float, distance: int) -> tuple[float, float]:
        one, two, phi = 1 + self.phi**2 / 2, 1 + self.phi**2, self.phi
        alpha = max(0.0, (-m * one + np.sqrt(m**2 * phi**4 / 4 + v * phi**2 * two)) / (v * two))
        root = 0.5 * (-alpha * v * phi + np.sqrt(alpha**2 * v**2 * phi**2 + 4 * v))  # of v+
        return float(alpha), float(alpha * phi / root)


@dataclass(frozen=True)
class Arow(_Gaussian):
    """Equation 4: alpha = max(0, Hamming distance - m) / (r + v), beta = 1 / r.

    r (float): Trade-off, greater than 0.
    """

    short = "arow"
    r: float = 1.0

    def rates(self, v: float, m: float, distance: int) -> tuple[float, float]:
        return max(0.0, distance - m) / (self.r + v), 1 / self.r


RULES: dict[str, type[Rule]] = {rule.short: rule for rule in (Perceptron, PassiveAggressive, ConfidenceWeighted, Arow)}


def make_rule(name: str, **settings: float) -> Rule:
    """RAISES C001: no rule has this name, or a setting is not greater than 0."""
    if name not in RULES:
        raise calib_error("C001", name="rule", wanted=f"one of {', '.join(RULES)}", given=repr(name))
    for setting, value in settings.items():
        if not value > 0:
            raise calib_error("C001", name=setting, wanted="greater than 0", given=value)
    return RULES[name](**settings)
