"""A line through log-odds, drawn towards no change while few labelled documents speak against it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...schema import Saved, kept, number
from ...types import Floats, Ints
from ..recalibrators.logistic import fit_logistic, sigmoid, softplus

# A flatter line would make all scores alike; this slope keeps their order.
LEAST_SLOPE = 0.05
# The prior precision of a slope that is held fixed.
_HELD = 1e9


@dataclass(frozen=True)
class Prior:
    """What is believed of new texts before any is labelled; scripts/study_adapt.py compares beliefs about tokens.

    spreads (tuple[float, ...]): Standard deviations of the intercept around 0, in log-odds: an even mixture of
        Gaussians, which the labelled documents weigh; 0 is "no change". slope (float): Standard deviation of the slope
        around 1, as a share of the spread. between (float): That of what all tokens of one document share, in log-odds.
    within (float): That of what tokens of one tag, or group, share in one document: a tag wrong once is often wrong
        throughout. offsets (bool): Whether groups and tags may differ. far (bool): Whether one may be far off.
    """

    spreads: tuple[float, ...] = (0.0, 0.2, 0.5)
    slope: float = 0.5
    between: float = 0.3
    within: float = 1.0
    offsets: bool = True
    far: bool = True


OF_TOKENS = Prior()
# Whole entities are fewer, and elsewhere their scores are off by more: a recognizer finds names where there are none.
# They have few labels, none of which stands out by itself.
OF_SPANS = Prior(spreads=(0.0, 0.2, 0.5, 1.0), far=False)


@dataclass(frozen=True)
class Line(Saved):
    """log-odds -> slope * log-odds + intercept; slope above 0."""

    slope: float = kept(number(LEAST_SLOPE), 1.0)
    intercept: float = kept(number(), 0.0)

    def move(self, margins: Floats) -> Floats:
        return self.slope * margins + self.intercept


def document_weights(scores: Floats, documents: Ints, between: float, hits: NDArray[np.bool_] | None = None) -> Floats:
    """How much each of n entries counts, where those of one document are alike: 1 / (1 + between^2 * its information).

    A document's information on a shift of all its entries is the sum of p (1 - p). It also has a shift of its own, of
    variance between^2, so it tells of the common shift with variance 1 / information + between^2, as in a
    random-effects meta-analysis: even a long document counts at most 1 / between^2.

    scores (Floats), documents (Ints): Of each entry; or a number for each document and tag.
    hits (NDArray | None): Of each; where more miss than the scores say, the information is the sum of squared
        differences: sure scores that are wrong together say it once.
    """
    _, codes = np.unique(documents, return_inverse=True)
    information = np.bincount(codes, weights=scores * (1.0 - scores))
    if hits is not None:
        information = np.maximum(information, np.bincount(codes, weights=(hits - scores) ** 2))
    return np.asarray(1.0 / (1.0 + between**2 * information))[codes]


def fit_line(margins: Floats, hits: NDArray[np.bool_], weights: Floats, prior: Prior) -> Line:
    """The mean of the lines by the parts of the prior, weighted by how likely each makes the hits (its evidence).

    margins (Floats): Log-odds of n entries. hits, weights: Of each.
    """
    if not len(margins):
        return Line()
    found = [_fit(margins, hits, weights, spread, prior.slope) for spread in prior.spreads]
    evidence = np.array([one for _, one in found])
    share = np.exp(evidence - evidence.max())
    share /= share.sum()
    return Line(*(float(share @ [getattr(line, name) for line, _ in found]) for name in ("slope", "intercept")))


def _fit(margins: Floats, hits: NDArray[np.bool_], weights: Floats, spread: float, slope: float) -> tuple[Line, float]:
    """(the line of highest posterior density, its log evidence by Laplace's approximation)."""
    columns = np.column_stack([margins, np.ones(len(margins))])
    mean = np.array([1.0, 0.0])
    if not spread:
        return Line(), -_loss(margins, hits, weights)
    precision = np.array([slope**-2, 1.0]) / spread**2
    best = fit_logistic(columns, hits, weights, mean, precision)
    if best[0] < LEAST_SLOPE:
        held = np.array([_HELD, precision[1]])
        best = fit_logistic(columns, hits, weights, np.array([LEAST_SLOPE, 0.0]), held)
        best[0] = LEAST_SLOPE
    moved = best[0] * margins + best[1]
    chance = sigmoid(moved)
    curvature = (columns * (weights * chance * (1.0 - chance))[:, None]).T @ columns + np.diag(precision)
    penalty = 0.5 * float(np.sum(precision * (best - mean) ** 2))
    spare = 0.5 * (float(np.log(precision).sum()) - float(np.linalg.slogdet(curvature)[1]))
    return Line(float(best[0]), float(best[1])), spare - _loss(moved, hits, weights) - penalty


def _loss(margins: Floats, hits: NDArray[np.bool_], weights: Floats) -> float:
    """Summed log loss."""
    return float((weights * (softplus(margins) - hits * margins)).sum())
