"""The two parts of a squared loss, calibration and sharpness (Kuleshov and Liang 2015, section 2)."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from ..metrics.decomposition import decompose
from ..pairs.bins import check_count, fixed_edges


@dataclass(frozen=True)
class Parts:
    """Parts of the squared loss of n forecasts F of yes-or-no questions y, with T the share of yes among those whose forecast is in the same
    bin as F: loss = uncertainty - sharpness + calibration, but for what the bins hide.

    loss (float): Mean (y - F)^2. calibration (float): Mean (T - F)^2. sharpness (float): Variance of T. uncertainty (float): Variance of y.
    """

    loss: float
    calibration: float
    sharpness: float
    uncertainty: float
    n: int


def split_loss(forecasts: ArrayLike, hits: ArrayLike, n_bins: int = 10, weights: ArrayLike | None = None) -> Parts | None:
    """Equation 3 of the paper, over bins of equal width: [0, .1), [.1, .2) ... out of the box.

    forecasts: n probabilities. hits: n booleans. weights: n whole numbers above 0, or None. RETURNS (Parts): None without any.
    RAISES C001: values out of range. C002: lengths differ.
    """
    edges = fixed_edges(check_count("n_bins", n_bins))
    found = decompose(forecasts, hits, lambda scores, weights=None: edges, weights)
    if found is None:
        return None
    calibration = found.reliability + found.within_variance
    return Parts(found.brier, calibration, found.resolution, found.uncertainty, found.n)
