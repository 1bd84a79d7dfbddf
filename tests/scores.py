"""Made-up scores of a tagger that is too sure of itself, as arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LABELS = ["ADJ", "ADV", "NOUN", "VERB", "X"]


class Made(NamedTuple):
    """P: Raw scores of 600 units, shape (600, 5). y: Gold labels. documents: Of each unit, twelve in all."""

    P: NDArray[np.float64]
    y: NDArray[np.str_]
    documents: NDArray[np.intp]


def made_scores() -> Made:
    rng = np.random.default_rng(0)
    true = rng.dirichlet(np.array([2.0, 1.0, 4.0, 3.0, 0.5]) / 4, 600)
    y = np.array([LABELS[rng.choice(5, p=row)] for row in true])
    P = true**2
    return Made(P / P.sum(axis=1, keepdims=True), y, np.arange(600) // 50)
