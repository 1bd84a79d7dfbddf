"""Brier score and log loss of pairs, the decomposition of the Brier score, and accuracy, also of the highest scores only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..pairs.bins import Binner, assign, bin_table, make_binner
from ..pairs.pairing import top_pairs
from ..types import Floats, Ints, Pairs, as_hits, as_probabilities
from .metric import MeanLoss

CLIP = 1e-6  # log loss clips probabilities to this distance from 0 and 1: else a single miss with score 1 makes it infinite


def log_losses(scores: ArrayLike, hits: ArrayLike) -> Floats:
    """Return the log loss of each pair of score and hit, shape (n,). RAISES C001: values out of range. C002: lengths differ."""
    probabilities = as_probabilities("scores", scores)
    clipped_scores = np.clip(probabilities, CLIP, 1 - CLIP)
    return -np.log(np.where(as_hits(hits, len(probabilities)), clipped_scores, 1 - clipped_scores))


def squared_losses(scores: ArrayLike, hits: ArrayLike) -> Floats:
    """Return the squared difference of score and hit, shape (n,). RAISES C001: values out of range. C002: lengths differ."""
    probabilities = as_probabilities("scores", scores)
    return (probabilities - as_hits(hits, len(probabilities))) ** 2


def brier(scores: ArrayLike, hits: ArrayLike) -> float | None:
    """Return the mean squared difference of score and hit (Brier 1950).

    scores (ArrayLike): n probabilities. hits (ArrayLike): n booleans, or zeros and ones.
    RETURNS (float | None): None without pairs. RAISES C001: values out of range. C002: lengths differ.

        >>> round(brier([0.9, 0.4], [1, 0]), 6)
        0.085
    """
    return float(np.mean(squared_losses(scores, hits))) if np.size(scores) else None


def log_loss(scores: ArrayLike, hits: ArrayLike) -> float | None:
    """Return the mean log loss of scores clipped to [1e-6, 1 - 1e-6].

    scores (ArrayLike): n probabilities. hits (ArrayLike): n booleans, or zeros and ones.
    RETURNS (float | None): None without pairs. RAISES C001: values out of range. C002: lengths differ.

        >>> round(log_loss([0.5, 0.5], [1, 0]), 6)
        0.693147
    """
    return float(np.mean(log_losses(scores, hits))) if np.size(scores) else None


def accuracy(pairs: Pairs) -> float | None:
    """Return the share of tokens whose highest-scored tag is the gold tag; a token without a pair counts as wrong.

    pairs (Pairs): Of n_units tokens. RETURNS (float | None): None without tokens.

        >>> accuracy(Pairs(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([0.7, 0.3, 0.6]), [1, 0, 0], n_units=2))
        0.5
    """
    return float(np.count_nonzero(pairs.hits[top_pairs(pairs)]) / pairs.n_units) if pairs.n_units else None


class Brier(MeanLoss):
    registered = "spacy-calib.Brier.v1"
    short = "brier"
    title = "Brier"

    losses = staticmethod(squared_losses)


class LogLoss(MeanLoss):
    registered = "spacy-calib.LogLoss.v1"
    short = "nll"
    title = "Log loss"

    losses = staticmethod(log_losses)


# The default metrics of a table.
PROPER: dict[str, MeanLoss] = {metric.short: metric for metric in (Brier(), LogLoss())}


def mean_with_error(values: Floats, documents: Ints) -> tuple[float, float]:
    """Return (mean of n values, its standard error). documents (Ints): Document of each value; documents are independent."""
    mean = float(values.mean())
    _, codes = np.unique(documents, return_inverse=True)
    # Values of one document may be correlated, so their deviations are added up before they are squared.
    residuals = np.bincount(codes, weights=values) - mean * np.bincount(codes)
    return mean, float(np.sqrt((residuals**2).sum()) / len(values))


def accuracy_at_coverage(scores: ArrayLike, hits: ArrayLike, shares: ArrayLike) -> Floats:
    """Return the accuracy of the highest-scored pairs, for each share of all pairs that may be accepted.

    If only some pairs of equal score can be accepted, these count with the average accuracy of all that have this score.
    scores, hits (ArrayLike): n > 0 scores and hits. shares (ArrayLike): m shares of pairs to accept, in (0, 1].
    RETURNS (Floats): Share of hits among the accepted pairs for each of the shares, (m,).
    RAISES C001: values out of range. C002: lengths differ.
    """
    probabilities = as_probabilities("scores", scores)
    distinct, index, counts = np.unique(-probabilities, return_inverse=True, return_counts=True)  # the highest score first
    n_hits = np.bincount(index.reshape(-1), as_hits(hits, len(probabilities)), len(distinct))
    n_accepted = as_probabilities("shares", shares) * len(probabilities)
    # The number of hits among the accepted pairs is linear between distinct scores, so equal scores share their hits.
    return np.interp(n_accepted, np.cumsum([0, *counts]), np.cumsum([0.0, *n_hits])) / n_accepted


@dataclass(frozen=True)
class Decomposition:
    """Parts of the Brier score of n pairs that are sorted into bins by score; "mean (...)" averages over all pairs.

    q and y: score and hit of a pair; q_b and p_b: mean score and share of hits of its bin; p: share of hits of all pairs.
    reliability (float): mean (q_b - p_b)^2, the squared calibration error (Nguyen & O'Connor 2015, eq. 1).
    refinement (float): mean p_b (1 - p_b) = uncertainty - resolution (eq. 1); low if scores separate hits from misses.
    resolution (float): mean (p_b - p)^2. uncertainty (float): p (1 - p), the Brier score of predicting p for every pair.
    within_variance (float): mean (q - q_b)^2. within_covariance (float): 2 mean (q - q_b)(y - p_b). Both come from the
        differences of scores within bins, and are 0 if all scores of a bin are equal (Stephenson, Coelho & Jolliffe 2008).
    sharpness (float): Variance of the scores (Murphy & Winkler 1987). claimed (float): mean q (1 - q), the refinement expected
        from the scores. One far below `refinement` shows overconfidence. n, bins (int): Number of pairs, and of filled bins.
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
        """The Brier score: reliability + refinement + within_variance - within_covariance, whatever the bins."""
        return self.reliability + self.refinement + self.within_variance - self.within_covariance


def decompose(scores: ArrayLike, hits: ArrayLike, binner: Binner | None = None) -> Decomposition | None:
    """Decompose the Brier score (Murphy 1973; Nguyen & O'Connor 2015, eq. 1).

    Murphy's three parts (reliability, resolution, uncertainty) add up to the Brier score only if all scores of a bin are
    equal. Two more parts, within_variance and within_covariance, are what is missing: they follow from q - y =
    (q_b - p_b) + (q - q_b) - (y - p_b), whose first term is constant in a bin and whose other terms have mean 0 there.
    scores: n probabilities. hits: n booleans. binner (Binner | None): From `make_binner`; None takes 10 adaptive bins.
    RETURNS (Decomposition | None): None without pairs. RAISES C001: values out of range. C002: lengths differ.

        >>> parts = decompose([0.8, 0.8, 0.2, 0.2], [1, 0, 0, 0])
        >>> round(parts.reliability, 6), round(parts.refinement, 6), round(parts.brier, 6)
        (0.065, 0.125, 0.19)
    """
    probabilities = as_probabilities("scores", scores)
    right: Floats = as_hits(hits, len(probabilities)).astype(np.float64)
    if not len(probabilities):
        return None
    edges = (make_binner() if binner is None else binner)(probabilities)
    table = bin_table(probabilities, right, edges)
    share, base_rate = table.counts / table.counts.sum(), float(right.mean())
    table_row = np.unique(assign(probabilities, edges), return_inverse=True)[1].reshape(-1)  # of each pair: of filled bins only
    score_residual, hit_residual = probabilities - table.mean_score[table_row], right - table.mean_hit[table_row]
    return Decomposition(
        reliability=float(share @ (table.mean_score - table.mean_hit) ** 2),
        refinement=float(share @ (table.mean_hit * (1 - table.mean_hit))),
        resolution=float(share @ (table.mean_hit - base_rate) ** 2),
        uncertainty=base_rate * (1 - base_rate),
        within_variance=float(np.mean(score_residual**2)),
        within_covariance=2 * float(np.mean(score_residual * hit_residual)),
        sharpness=float(probabilities.var()),
        claimed=float(np.mean(probabilities * (1 - probabilities))),
        n=int(table.counts.sum()),
        bins=len(table),
    )
