"""Isotonic regression: of all maps that never fall the one of least squared error, by scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...pairs.bins import collapse
from ...schema import floats, lengths, record
from ...types import Floats
from .base import Recalibrator


def masses(scores: Floats, hits: NDArray[np.bool_], weights: Floats | None = None) -> tuple[Floats, Floats, Floats]:
    """Distinct scores, ascending, with the mass and the mass of hits at each; n > 0 scores. weights: Above 0, or None."""
    x, hit, mass = collapse(scores, hits) if weights is None else (scores, hits, weights)
    hit_mass = mass * hit
    if (x[1:] < x[:-1]).any():
        order = np.argsort(x, kind="stable")  # takes ascending stretches as they are
        x, mass, hit_mass = x[order], mass[order], hit_mass[order]
    starts = np.flatnonzero(np.append(True, x[1:] != x[:-1]))
    return x[starts], np.add.reduceat(mass, starts), np.add.reduceat(hit_mass, starts)


def _one_value_per_point(held: dict[str, Any]) -> str:
    return lengths({"y_": len(held["x_"])}, held) if len(held["x_"]) else "there are no points"


class IsotonicRegression(Recalibrator):
    """Zadrozny and Elkan (2002): a piecewise linear map through points, x_ ascending, y_ never falling, flat beyond them."""

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

        x, mass, hit_mass = masses(scores, hits, weights)
        y = np.clip(isotonic_regression(hit_mass / mass, sample_weight=mass), 0.0, 1.0)
        # Inside a level stretch only its two ends matter.
        keep = np.ones(len(y), dtype=bool)
        keep[1:-1] = (y[1:-1] != y[:-2]) | (y[1:-1] != y[2:])
        self.x_, self.y_ = x[keep], y[keep]

    def _predict(self, scores: Floats) -> Floats:
        calibrated = np.interp(scores, self.x_, self.y_)
        # Where points are denormal numbers apart the slope overflows; the upper point's value is taken.
        overflown = np.flatnonzero(~np.isfinite(calibrated))
        calibrated[overflown] = self.y_[np.searchsorted(self.x_, scores[overflown])]
        return calibrated
