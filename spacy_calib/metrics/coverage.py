"""Accuracy of the most confident share: what is left wrong when the least confident rest goes to somebody else."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..types import Floats, as_hits, as_probabilities


def accuracy_at_coverage(scores: ArrayLike, hits: ArrayLike, shares: ArrayLike) -> Floats:
    """The share of hits among the highest-scored share of all.

    Of equal scores at the cut as many are kept as fit, with the accuracy that equal scores have on average: their order says nothing.

    scores, hits: n of each, at least one. shares: In (0, 1], shape (m,). RETURNS (Floats): Shape (m,).
    RAISES C001: values out of range. C002: lengths differ.
    """
    given = as_probabilities("scores", scores)
    distinct, place, counts = np.unique(-given, return_inverse=True, return_counts=True)
    of_value = np.bincount(place.reshape(-1), as_hits(hits, len(given)), len(distinct))
    kept = as_probabilities("shares", shares) * len(given)
    return np.interp(kept, np.cumsum([0, *counts]), np.cumsum([0.0, *of_value])) / kept
