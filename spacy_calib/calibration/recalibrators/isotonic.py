"""Isotonic regression, by scikit-learn: the map of minimum squared error among those that never fall."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...pairs.bins import collapse
from ...schema import floats, lengths, record
from ...types import Floats
from .recalibrator import Recalibrator


def sum_by_score(scores: Floats, hits: NDArray[np.bool_], weights: Floats | None = None) -> tuple[Floats, Floats, Floats]:
    """Return (distinct scores, ascending; sum of the weights at each; that of the hits) of n > 0 scores."""
    x, hit, mass = collapse(scores, hits) if weights is None else (scores, hits, weights)
    hit_mass = mass * hit
    if (x[1:] < x[:-1]).any():
        order = np.argsort(x, kind="stable")  # takes ascending stretches as they are
        x, mass, hit_mass = x[order], mass[order], hit_mass[order]
    starts = np.flatnonzero(np.append(True, x[1:] != x[:-1]))
    return x[starts], np.add.reduceat(mass, starts), np.add.reduceat(hit_mass, starts)


def _one_value_per_point(fields: dict[str, Any]) -> str:
    return lengths({"y_": len(fields["x_"])}, fields) if len(fields["x_"]) else "there are no points"


class IsotonicRegression(Recalibrator):
    """Isotonic regression (Zadrozny and Elkan 2002): a piecewise linear map through points, constant beyond them.

    x_ (Floats): Scores of the points, ascending. y_ (Floats): Their probabilities, never falling.
    """

    registered = "spacy-calib.Isotonic.v1"
    short = "isotonic"
    n_parameters = 20  # about as many as it has steps
    _learned = ("x_", "y_")
    learned_form = record(
        {"x_": floats(0.0, 1.0, rising="rises"), "y_": floats(0.0, 1.0, rising="never falls")}, _one_value_per_point
    )
    x_: Floats
    y_: Floats

    def _fit(self, scores: Floats, hits: NDArray[np.bool_], weights: Floats | None) -> None:
        from sklearn.isotonic import isotonic_regression

        x, mass, hit_mass = sum_by_score(scores, hits, weights)
        y = np.clip(isotonic_regression(hit_mass / mass, sample_weight=mass), 0.0, 1.0)
        # Of a stretch of equal values only the two ends matter.
        keep = np.ones(len(y), dtype=bool)
        keep[1:-1] = (y[1:-1] != y[:-2]) | (y[1:-1] != y[2:])
        self.x_, self.y_ = x[keep], y[keep]

    def _predict(self, scores: Floats) -> Floats:
        probabilities = np.interp(scores, self.x_, self.y_)
        # Where points are denormal numbers apart the slope overflows; the upper point's value is taken.
        overflown = np.flatnonzero(~np.isfinite(probabilities))
        probabilities[overflown] = self.y_[np.searchsorted(self.x_, scores[overflown])]
        return probabilities
