"""The penalized log loss of a log-linear scaling, and its minimization."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...pairs.progress import UNREPORTED, Progress
from ...types import Floats, Ints, Pairs
from ..solvers import PRIOR, minimize_smooth
from .entries import Entries, lay_out, number_codes

if TYPE_CHECKING:
    from .scaling import Scaling

# The penalty on a bias is this share of the ridge: inputs range from 0 to 9, so a weight changes a margin about ten times as
# much as a bias of its size, and penalties are on squares.
_SHARE_OF_BIASES = 0.01
_MOST_STEPS = 300
_MEMORY = 20  # pairs of steps and gradients that L-BFGS keeps


class ScalingWeights(NamedTuple):
    """The parameters of a log-linear scaling.

    factor (Floats): What log p is multiplied by, shape (1,). biases (Floats): Of each tag, the rest (tags below FLOOR),
        and tags unknown to the fit. codes (Ints), weights (Floats): Pairs of tags, source * (n_tags + 2) + target, ascending.
    """

    factor: Floats
    biases: Floats
    codes: Ints
    weights: Floats


class Objective:
    """The penalized log loss of some tokens as a function of one vector: factor, biases and weights of a log-linear scaling.

    Each element is scaled by the curvature of the loss at the start, or the search would take several times as many steps.
    scaling (Scaling): Its `pairwise` and `biased` decide which weights there are; its `ridge_` is their L2 penalty.
    pairs (Pairs): Pairs that reach FLOOR. n_tags (int): Number of tags. Attributes: `gold`: whether each of the `entries` is
    the right outcome. `codes`: the pairs of tags with a weight. `penalty`, `units`: L2 penalty and scale of each parameter.
    """

    def __init__(self, scaling: Scaling, pairs: Pairs, n_tags: int):
        """Build the sparse design matrix of the entries, the penalties, and the unit of each parameter: 1 / sqrt(curvature)."""
        from scipy.sparse import csr_matrix

        self.entries = entries = lay_out(pairs.rows, pairs.tags, pairs.scores, n_tags, scaling.pairwise == "all")
        self.gold = _find_gold(entries, pairs)
        self.n_biases = n_tags + 2 if scaling.biased else 0  # two more: the rest, and tags unknown to the fit
        # The design matrix has a row for each entry (target) and a column for each pair of tags (source, target) that occurs.
        if scaling.pairwise == "all":
            codes, targets, inputs = entries.codes, entries.targets, entries.inputs[entries.sources]  # of pairs of entries
        else:
            n = len(entries) if scaling.pairwise == "self" else 0  # "none": no weights
            # Source and target are one tag, so its code, source * (n_tags + 2) + target, is tag * (n_tags + 3).
            codes, targets, inputs = (entries.tags * (n_tags + 3))[:n], np.arange(n), entries.inputs[:n]
        self.codes, column = number_codes(codes, (n_tags + 2) ** 2)
        self.design = csr_matrix((inputs, (targets, column)), (len(entries), len(self.codes)))
        bias_penalty = scaling.ridge_ * _SHARE_OF_BIASES
        self.penalty = np.repeat([PRIOR, bias_penalty, scaling.ridge_], [1, self.n_biases, len(self.codes)])
        probabilities = np.exp(entries.logs)
        # The curvature of the log loss: the sum of p (1 - p) * feature^2, which `_gradient` adds up for squared features.
        variance = probabilities * (1.0 - probabilities)
        curvature = self._gradient(variance, entries.logs**2, self.design.power(2)) + self.penalty
        curvature[0] += 1.0  # never 0, whatever the data are like
        self.units = 1.0 / np.sqrt(curvature)

    def minimize(self, start: ScalingWeights | None, tolerance: float) -> ScalingWeights:
        """Return the parameters of minimum loss. start: Initial ones; None: no change. tolerance: Relative gain to stop at."""
        values = np.zeros(len(self.units))
        values[0] = 1.0  # a factor of 1 with biases and weights of 0: no change
        if start is not None:
            values[0] = start.factor[0]
            values[1 : 1 + self.n_biases] = start.biases[: self.n_biases]
            if len(start.codes):  # pairs of tags that never occurred together in that fit keep 0
                index = np.minimum(np.searchsorted(start.codes, self.codes), len(start.codes) - 1)
                values[1 + self.n_biases :] = np.where(start.codes[index] == self.codes, start.weights[index], 0.0)
        vector = minimize_smooth(self.loss, values / self.units, tolerance, _MOST_STEPS, _MEMORY)
        return self.unpack(vector * self.units)

    def unpack(self, values: Floats) -> ScalingWeights:
        """Split a vector, not scaled by `units`, into factor, biases (0 if not fitted), and weights of the pairs `codes`."""
        biases = values[1 : 1 + self.n_biases] if self.n_biases else np.zeros(self.entries.n_tags + 2)  # 2: rest, unknown
        return ScalingWeights(values[:1].copy(), biases.copy(), self.codes, values[1 + self.n_biases :].copy())

    def loss(self, vector: Floats) -> tuple[float, Floats]:
        """Return the loss and its gradient by `vector`, which contains the parameters divided by their scales (`units`)."""
        values = vector * self.units
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
        distances[0] -= 1.0  # the penalty shrinks the factor towards 1, all others towards 0
        gradient = self._gradient(residuals, self.entries.logs, self.design) + self.penalty * distances
        return float(-logs[self.gold].sum() + 0.5 * (self.penalty * distances**2).sum()), gradient * self.units

    def _gradient(self, residuals: Floats, logs: Floats, design: Any) -> Floats:
        """Return the sum over entries of residual * feature, for the factor (logs), each bias, and each weight (design)."""
        biases = np.bincount(self.entries.tags, residuals, self.n_biases) if self.n_biases else np.zeros(0)
        return np.concatenate([[float((residuals * logs).sum())], biases, design.T @ residuals])


def _find_gold(entries: Entries, pairs: Pairs) -> NDArray[np.bool_]:
    """Return whether each entry of these pairs is its token's gold outcome: the tag that hits, or the rest if no tag hits."""
    is_rest = entries.origin < 0
    is_hit = np.zeros(len(entries), dtype=bool)
    is_hit[~is_rest] = pairs.hits[entries.origin[~is_rest]]
    has_hit = np.add.reduceat(is_hit, entries.starts) > 0
    return is_hit | (is_rest & ~has_hit[entries.tokens])


def descend(start: int, n: int, loss: Callable[[int], float], progress: Progress = UNREPORTED) -> int:
    """Return an index in [0, n) at a local minimum of the loss (of equal values the first), by steps of 1 from the start."""
    best, losses = start, {start: loss(start)}
    for step in (-1, 1):
        while 0 <= (neighbour := best + step) < n:
            if neighbour not in losses:
                progress.update(len(losses) / n)  # at most n losses are computed
                losses[neighbour] = loss(neighbour)
            is_better = (losses[neighbour], neighbour) < (losses[best], best)  # of equal losses that of the lower index
            if not is_better:
                break
            best = neighbour
    return best
