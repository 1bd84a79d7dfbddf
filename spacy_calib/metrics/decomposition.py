"""What the Brier score is made of: calibration, refinement, and what the bins hide."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..pairs.bins import Binner, assign, bin_table, edges_of, make_binner
from ..types import Floats, as_hits, as_probabilities, as_weights
from .metric import mean_loss


@dataclass(frozen=True)
class Decomposition:
    """Parts of the Brier score of n pairs over bins; means over the pairs, in squared units of probability.

    With q and y the score and hit of a pair, q_b and p_b the mean score and share of hits of its bin, and p the share of all hits:

    reliability (float): mean (q_b - p_b)^2: the calibration MSE of Nguyen & O'Connor 2015, eq. 1; its root is the calibration error.
    refinement (float): mean p_b (1 - p_b), which is uncertainty - resolution (eq. 1); low where the scores part hits from misses.
    resolution (float): mean (p_b - p)^2. uncertainty (float): p (1 - p): what saying p of everything would cost.
    within_variance (float): mean (q - q_b)^2. within_covariance (float): 2 mean (q - q_b)(y - p_b). The bins hide both
        (Stephenson, Coelho & Jolliffe 2008); they are 0 where all scores of a bin are equal.
    sharpness (float): Variance of the scores, whatever the hits (Murphy & Winkler 1987). claimed (float): mean q (1 - q), the
        refinement that the scores promise; far below `refinement` they are too sure.
    n (int): Pairs. bins (int): Bins that hold any.
    """

    reliability: float
    refinement: float
    resolution: float
    uncertainty: float
    within_variance: float
    within_covariance: float
    sharpness: float
    claimed: float
    n: int
    bins: int

    @property
    def brier(self) -> float:
        """reliability + refinement + within_variance - within_covariance: the Brier score to rounding, whatever the bins."""
        return self.reliability + self.refinement + self.within_variance - self.within_covariance


def decompose(
    scores: ArrayLike, hits: ArrayLike, binner: Binner | None = None, weights: ArrayLike | None = None
) -> Decomposition | None:
    """Split the Brier score (Murphy 1973; Nguyen & O'Connor 2015, eq. 1; the thesis, section 3.1.3).

    Murphy's three parts add up only where the scores of a bin are equal. Writing q - y = (q_b - p_b) + (q - q_b) - (y - p_b), whose
    first term is constant in a bin and whose others have mean 0 there, gives the two parts that are missing.

    scores: n probabilities. hits: n booleans. binner (Binner | None): See `make_binner`; None takes 10 adaptive bins.
    weights: n whole numbers above 0, or None: a weight of 2 is the same pair twice.
    RETURNS (Decomposition): None without pairs.
    RAISES C001: values out of range. C002: lengths differ.
    """
    given = as_probabilities("scores", scores)
    right: Floats = as_hits(hits, len(given)).astype(np.float64)
    if not len(given):
        return None
    mass = as_weights(weights, len(given))
    edges = edges_of(make_binner() if binner is None else binner, given, mass)
    table = bin_table(given, right, edges, mass)
    share, base = table.counts / table.counts.sum(), mean_loss(right, mass)
    at = np.unique(assign(given, edges), return_inverse=True)[1].reshape(-1)
    score_rest, hit_rest = given - table.mean_score[at], right - table.mean_hit[at]
    return Decomposition(
        reliability=float(share @ (table.mean_score - table.mean_hit) ** 2),
        refinement=float(share @ (table.mean_hit * (1 - table.mean_hit))),
        resolution=float(share @ (table.mean_hit - base) ** 2),
        uncertainty=base * (1 - base),
        within_variance=mean_loss(score_rest**2, mass),
        within_covariance=2 * mean_loss(score_rest * hit_rest, mass),
        sharpness=float(given.var()) if mass is None else mean_loss((given - mean_loss(given, mass)) ** 2, mass),
        claimed=mean_loss(given * (1 - given), mass),
        n=int(table.counts.sum()),
        bins=len(table),
    )
