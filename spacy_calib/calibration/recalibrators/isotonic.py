"""Isotonic regression, by scikit-learn: the map of minimum squared error among those that never fall."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...pairs.bins import between, collapse
from ...schema import floats, lengths, record
from ...types import Floats
from .recalibrator import Recalibrator


def sum_by_score(scores: Floats, hits: NDArray[np.bool_], weights: Floats | None = None) -> tuple[Floats, Floats, Floats]:
    """Return (distinct scores, ascending; sum of the weights at each; sum of the weights of its hits). weights: None for 1."""
    x, is_hit, mass = collapse(scores, hits) if weights is None else (scores, hits, weights)  # equal pairs as one
    hit_mass = mass * is_hit
    if (x[1:] < x[:-1]).any():
        order = np.argsort(x, kind="stable")  # takes ascending stretches as they are
        x, mass, hit_mass = x[order], mass[order], hit_mass[order]
    starts = np.flatnonzero(np.append(True, x[1:] != x[:-1]))
    return x[starts], np.add.reduceat(mass, starts), np.add.reduceat(hit_mass, starts)


def _ends_of_slopes(below: Floats, above: Floats) -> tuple[Floats, Floats]:
    """Return the scores at which the slope between two levels begins and ends: in the first and last quarter of their gap.

    These are numbers of few digits, so that no score of the fit is saved. If a gap is too small for them, the slope begins and
    ends at the scores themselves. below, above (Floats): The scores at the ends of each gap, (n_gaps,).
    """
    gap = above - below
    # `between` may return the upper end of its interval. So this end is not `above`, a score of the fit, but a little lower.
    lower, upper = between(below, below + gap / 4), between(above - gap / 4, above - gap / 32)
    is_free = (below < lower) & (lower < upper) & (upper < above)
    return np.where(is_free, lower, below), np.where(is_free, upper, above)


class IsotonicRegression(Recalibrator):
    """Isotonic regression (Zadrozny and Elkan 2002): level stretches, with a slope in the gap of scores between two of them.

    At the scores of the fit it equals scikit-learn's. A slope begins and ends inside its gap, so that no fitted score is saved.
    x_, y_ (Floats): Scores (ascending) and probabilities (never falling) of the points between which the map is linear.
    """

    registered = "spacy-calib.Isotonic.v1"
    short = "isotonic"
    n_parameters = 20  # about as many as it has steps
    _learned = ("x_", "y_")
    learned_form = record(
        {"x_": floats(0.0, 1.0, rising="rises"), "y_": floats(0.0, 1.0, rising="never falls")},
        lambda fields: lengths({"y_": len(fields["x_"])}, fields) if len(fields["x_"]) else "there are no points",
    )
    x_: Floats
    y_: Floats

    def _fit(self, scores: Floats, hits: NDArray[np.bool_], weights: Floats | None) -> None:
        from sklearn.isotonic import isotonic_regression

        x, mass, hit_mass = sum_by_score(scores, hits, weights)
        y = np.clip(isotonic_regression(hit_mass / mass, sample_weight=mass), 0.0, 1.0)
        ends = np.flatnonzero(y[1:] != y[:-1])  # index of the last score of each level but the highest
        lower, upper = _ends_of_slopes(x[ends], x[ends + 1])
        points, values = np.stack([lower, upper], axis=1).ravel(), np.stack([y[ends], y[ends + 1]], axis=1).ravel()
        # A score between two gaps without room for slopes is a point twice.
        distinct = np.append(True, points[1:] > points[:-1])[: len(points)]
        if len(ends):
            self.x_, self.y_ = points[distinct], values[distinct]
        else:  # a single level is a constant map, which any one point describes
            self.x_, self.y_ = np.array([0.5]), y[:1]

    def _predict(self, scores: Floats) -> Floats:
        probabilities = np.interp(scores, self.x_, self.y_)
        # Between points at a distance near 0 (a denormal number) the slope overflows. The value of the upper point is taken.
        overflown = np.flatnonzero(~np.isfinite(probabilities))
        probabilities[overflown] = self.y_[np.searchsorted(self.x_, scores[overflown])]
        return probabilities
