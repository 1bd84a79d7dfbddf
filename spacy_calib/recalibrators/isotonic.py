"""Isotonic regression: the best map that never falls, by scikit-learn's pool-adjacent-violators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..types import Floats
from .base import Recalibrator


def _collapse_sorted_keys(scores: Floats, hits: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
    """Collapse without weights: sort one integer key made of the score's bits and the hit.

    The bits of floats in [0, 1] sort as the floats do and leave the two highest bits free, so that the hit fits in below them. Scores that
    are float32 numbers (what a tagger's softmax gives when it runs in float32) need keys of half the width: half the memory and time.
    """
    narrow = scores.astype(np.float32)
    fits = bool((narrow == scores).all())
    # Adding 0.0 turns -0.0 into 0.0, whose bits sort first.
    keys: NDArray[Any] = (narrow + np.float32(0)).view(np.uint32) if fits else (scores + 0.0).view(np.uint64)
    del narrow
    np.left_shift(keys, 1, out=keys)
    np.bitwise_or(keys, hits, out=keys)
    keys.sort()
    is_last = np.empty(len(keys), dtype=bool)
    is_last[-1] = True
    np.not_equal(keys[1:], keys[:-1], out=is_last[:-1])
    ends = np.flatnonzero(is_last)
    distinct_keys = keys[ends]
    counts = np.diff(ends, prepend=-1)
    is_hit = (distinct_keys & 1).astype(bool)
    bits = distinct_keys >> 1
    starts = np.flatnonzero(np.append(True, bits[1:] != bits[:-1]))
    mass = np.add.reduceat(counts, starts).astype(np.float64)
    hit_mass = np.add.reduceat(np.where(is_hit, counts, 0), starts).astype(np.float64)
    distinct = bits[starts].view(np.float32 if fits else np.float64).astype(np.float64)
    return distinct, mass, hit_mass


def collapse(scores: Floats, hits: NDArray[np.bool_], weights: Floats | None = None) -> tuple[Floats, Floats, Floats]:
    """Distinct scores, ascending, with the mass and the mass of hits at each. Exact for float32- and float64-valued scores.

    scores (Floats): n numbers in [0, 1], n > 0. hits: likewise. weights: likewise, or None.
    RETURNS (tuple): distinct scores, mass, mass of hits; float64, all of one length.
    """
    if weights is None:
        return _collapse_sorted_keys(scores, hits)
    distinct, inverse = np.unique(scores, return_inverse=True)
    mass = np.bincount(inverse, weights=weights).astype(np.float64)
    return distinct, mass, np.bincount(inverse, weights=weights * hits, minlength=len(distinct)).astype(np.float64)


class IsotonicRegression(Recalibrator):
    """Zadrozny and Elkan (2002): a piecewise linear map through the pooled points, flat beyond them.

    x_, y_ (Floats): The points, x_ ascending, y_ never falling.
    """

    registered = "spacy-calib.Isotonic.v1"
    _learned = ("x_", "y_")
    x_: Floats
    y_: Floats

    def _fit(self, scores: Floats, hits: NDArray[np.bool_], weights: Floats | None) -> None:
        from sklearn.isotonic import isotonic_regression

        x, mass, hit_mass = collapse(scores, hits, weights)
        y = np.clip(isotonic_regression(hit_mass / mass, sample_weight=mass), 0.0, 1.0)
        # Inside a level stretch only its two ends bear on the interpolation.
        keep = np.ones(len(y), dtype=bool)
        keep[1:-1] = (y[1:-1] != y[:-2]) | (y[1:-1] != y[2:])
        self.x_, self.y_ = x[keep], y[keep]

    def _predict(self, scores: Floats) -> Floats:
        return np.interp(scores, self.x_, self.y_)


def make_isotonic() -> IsotonicRegression:
    """Registered as spacy-calib.Isotonic.v1."""
    return IsotonicRegression()
