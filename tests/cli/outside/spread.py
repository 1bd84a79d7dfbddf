"""A metric: how far scores are from one half."""

import numpy as np
from numpy.typing import ArrayLike


class Spread:
    """Mean distance of scores from one half."""

    short = "spread"
    title = "Mean spread"

    def __call__(self, scores: ArrayLike, hits: ArrayLike) -> float | None:
        return float(np.mean(np.abs(np.asarray(scores) - 0.5))) if np.size(scores) else None
