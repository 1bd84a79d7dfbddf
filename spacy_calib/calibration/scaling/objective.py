"""The penalized log loss of a log-linear scaling, the search for its minimum, and the choice of the penalty's strength."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...pairs.documents import cross_fit, folds_of, thin_out
from ...pairs.progress import UNREPORTED, Progress
from ...types import Floats, Ints, Pairs
from ..recalibrators.logistic import PRIOR, minimize_smooth
from .entries import LEAST, lay_out, number_codes

if TYPE_CHECKING:
    from .log_linear import LogLinearScaling

# The penalty on a bias is this share of the ridge: inputs reach from 0 to 9, so that a weight moves a margin about ten
# times as far as a bias of its size, and penalties are on squares.
_SHARE_OF_BIASES = 0.01
_MOST_STEPS = 300
# Pairs of steps and gradients that L-BFGS keeps.
_MEMORY = 20


class Weights(NamedTuple):
    """factor (Floats): Of log p, shape (1,). biases (Floats): Per tag, the rest, and tags past the end.

    codes (Ints), weights (Floats): Pairs of tags as of `Entries.codes`, ascending, and their weights.
    """

    factor: Floats
    biases: Floats
    codes: Ints
    weights: Floats


class Objective:
    """Penalized log loss of some tokens as a function of one vector: factor, biases, weights.

    The vector is in units of its own curvature, or the search would take several times as many steps.

    scaling (LogLinearScaling): Says which weights there are, and what holds them near 0: half of a penalty times the
        square of each. pairs (Pairs): Those that reach the floor.
    """

    def __init__(self, scaling: LogLinearScaling, pairs: Pairs, n_tags: int):
        from scipy.sparse import csr_matrix

        entries = lay_out(pairs.rows, pairs.tags, pairs.scores, n_tags, scaling.floor, scaling.pairwise == "all")
        bias_penalty = scaling.ridge_ * _SHARE_OF_BIASES if scaling.bias_ridge is None else scaling.bias_ridge
        self.biased, self.entries = scaling.biased, entries
        self.n_biases = entries.n_tags + 2 if scaling.biased else 0
        is_hit = np.zeros(len(entries.tags), dtype=bool)
        is_tag = entries.origin >= 0
        is_hit[is_tag] = pairs.hits[entries.origin[is_tag]]
        has_hit = np.add.reduceat(is_hit, entries.starts) > 0
        self.gold = is_hit | ((entries.origin < 0) & ~has_hit[entries.tokens])
        if scaling.pairwise == "all":
            codes, targets, inputs = entries.codes, entries.targets, entries.inputs[entries.sources]
        else:
            n = len(entries.tags) if scaling.pairwise == "self" else 0
            codes, targets, inputs = (entries.tags * (entries.n_tags + 3))[:n], np.arange(n), entries.inputs[:n]
        self.codes, column = number_codes(codes, (entries.n_tags + 2) ** 2)
        self.design = csr_matrix((inputs, (targets, column)), (len(entries.tags), len(self.codes)))
        self.penalty = np.concatenate(
            [np.full(1, PRIOR), np.full(self.n_biases, bias_penalty), np.full(len(self.codes), scaling.ridge_)]
        )
        chance = np.exp(entries.logs)
        variance = chance * (1.0 - chance)
        curvature = self._gather(variance, entries.logs**2, self.design.power(2)) + self.penalty
        curvature[0] += 1.0  # never 0, whatever the data are like
        self.units = 1.0 / np.sqrt(curvature)

    def minimize(self, start: Weights | None, tolerance: float) -> Weights:
        """The weights of least loss. start: None begins at no change. tolerance: Share of the loss that ends the search."""
        values = np.zeros(len(self.units))
        values[0] = 1.0
        if start is not None:
            values[0] = start.factor[0]
            values[1 : 1 + self.n_biases] = start.biases[: self.n_biases]
            if len(start.codes):  # pairs of tags that never met in that fit keep 0
                index = np.minimum(np.searchsorted(start.codes, self.codes), len(start.codes) - 1)
                values[1 + self.n_biases :] = np.where(start.codes[index] == self.codes, start.weights[index], 0.0)
        vector = minimize_smooth(self.loss, values / self.units, tolerance, _MOST_STEPS, _MEMORY)
        return self.unpack(vector * self.units)

    def unpack(self, values: Floats) -> Weights:
        """The weights of a vector that is not in its units."""
        biases = values[1 : 1 + self.n_biases] if self.biased else np.zeros(self.entries.n_tags + 2)
        return Weights(values[:1].copy(), biases.copy(), self.codes, values[1 + self.n_biases :].copy())

    def loss(self, scaled: Floats) -> tuple[float, Floats]:
        """(loss, gradient) at a vector in its units."""
        values = scaled * self.units
        weights = self.unpack(values)
        margins = weights.factor[0] * self.entries.logs + weights.biases[self.entries.tags]
        if len(weights.weights):
            margins += self.design @ weights.weights
        tokens, starts = self.entries.tokens, self.entries.starts
        highest = np.maximum.reduceat(margins, starts)
        log_sums = highest + np.log(np.add.reduceat(np.exp(margins - highest[tokens]), starts))
        logs = margins - log_sums[tokens]
        residuals = np.exp(logs) - self.gold
        distances = values.copy()
        distances[0] -= 1.0
        gradient = self._gather(residuals, self.entries.logs, self.design) + self.penalty * distances
        return float(-logs[self.gold].sum() + 0.5 * (self.penalty * distances**2).sum()), gradient * self.units

    def _gather(self, residuals: Floats, logs: Floats, design: Any) -> Floats:
        """Sums of the residuals times what each value is multiplied with."""
        biases = np.bincount(self.entries.tags, residuals, self.n_biases) if self.biased else np.zeros(0)
        return np.concatenate([[float((residuals * logs).sum())], biases, design.T @ residuals])


DEFAULT_RIDGE = 100.0
# Choices, the strongest first: with the first, little but the temperature is learned.
RIDGES = (10_000.0, 3000.0, 1000.0, 300.0, DEFAULT_RIDGE, 30.0)
# To choose, at most so many pairs are looked at, in so many folds, no closer than needed to tell ridges apart.
_MOST_PAIRS = 40_000
_FOLDS = 3
_TOLERANCE = 1e-5


def choose_ridge(scaling: LogLinearScaling, pairs: Pairs, documents: Ints, n_tags: int) -> LogLinearScaling:
    """A scaling like this one with the ridge of least log loss on held-out documents, fitted on some of the pairs.

    The search begins at the default ridge and goes where the loss falls; of equal ridges the strongest is taken.
    documents (Ints): Of the pairs, two at least.
    """
    index = thin_out(documents, _MOST_PAIRS)
    some_pairs, of_pair = pairs.take(index), documents[index]
    default_place = RIDGES.index(DEFAULT_RIDGE)
    scaling_by_place: dict[int, LogLinearScaling] = {}

    def loss(place: int) -> float:
        candidate = scaling.clone()
        candidate.ridge_ = RIDGES[place]
        scaling_by_place[place] = candidate.fit(some_pairs, n_tags, scaling_by_place.get(default_place), _TOLERANCE)

        def score(train: Ints, test: Ints) -> Floats:
            return candidate.refit(some_pairs.take(train), n_tags, _TOLERANCE).scale_pairs(some_pairs.take(test))

        scores = cross_fit(folds_of(of_pair, _FOLDS), score)
        return -float(np.log(np.maximum(np.where(some_pairs.hits, scores, 1.0 - scores), LEAST)).sum())

    return scaling_by_place[lowest_from(default_place, len(RIDGES), loss)]


def lowest_from(place: int, n: int, loss: Callable[[int], float], progress: Progress = UNREPORTED) -> int:
    """The place in [0, n) where walking downhill from this one ends; of equals the first."""
    losses = {place: loss(place)}
    for step in (-1, 1):
        while 0 <= (neighbour := place + step) < n:
            if neighbour not in losses:
                progress.update(len(losses) / n)  # of n at most
                losses[neighbour] = loss(neighbour)
            if not (losses[neighbour], neighbour) < (losses[place], place):
                break
            place = neighbour
    return place
