"""Proper scores per pair (Brier, log loss) and accuracy per token."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..pairs.build import top_pairs
from ..types import Floats, Ints, Pairs, as_hits, as_probabilities
from .metric import MeanLoss, mean_loss

# Log loss clips probabilities to this distance from 0 and 1, or a single miss that was scored 1 would make it infinite.
CLIP = 1e-6


def log_losses(scores: ArrayLike, hits: ArrayLike) -> Floats:
    """Log loss of each pair, shape (n,); `log_loss` is their mean. RAISES C001, C002: see `log_loss`."""
    given = as_probabilities("scores", scores)
    clipped = np.clip(given, CLIP, 1 - CLIP)
    return -np.log(np.where(as_hits(hits, len(given)), clipped, 1 - clipped))


def squared_losses(scores: ArrayLike, hits: ArrayLike) -> Floats:
    """Squared difference of score and hit of each pair, shape (n,); `brier` is their mean. RAISES C001, C002: see `brier`."""
    given = as_probabilities("scores", scores)
    return (given - as_hits(hits, len(given))) ** 2


def brier(scores: ArrayLike, hits: ArrayLike, weights: ArrayLike | None = None) -> float | None:
    """Mean squared difference of score and hit (Brier 1950), binary, per pair. None without pairs. weights: One for each pair.

    RAISES C001: values out of range. C002: lengths differ.
    """
    return mean_loss(squared_losses(scores, hits), weights) if np.size(scores) else None


def log_loss(scores: ArrayLike, hits: ArrayLike, weights: ArrayLike | None = None) -> float | None:
    """Mean of -log(score) for hits and -log(1 - score) for misses, scores clipped to [1e-6, 1 - 1e-6]. None without pairs. weights: As for `brier`.

    RAISES C001: values out of range. C002: lengths differ.
    """
    return mean_loss(log_losses(scores, hits), weights) if np.size(scores) else None


def accuracy(pairs: Pairs, weights: Floats | None = None, top: Ints | None = None) -> float | None:
    """Share of tokens whose highest-scored tag is the gold one; a token without any pair counts as wrong. None without tokens.

    weights (Floats | None): Of the pairs. top (Ints | None): Index of the highest-scored ones, where rows do not tell.
    """
    if not pairs.n_units:
        return None
    top = top_pairs(pairs) if top is None else top
    right = pairs.hits[top]
    return float((np.count_nonzero(right) if weights is None else weights[top][right].sum()) / pairs.n_units)


class Brier(MeanLoss):
    """`brier` as a metric. Registered as spacy-calib.Brier.v1."""

    registered = "spacy-calib.Brier.v1"
    short = "brier"
    title = "Brier"

    def losses(self, scores: ArrayLike, hits: ArrayLike) -> Floats:
        """See `squared_losses`."""
        return squared_losses(scores, hits)


class LogLoss(MeanLoss):
    """`log_loss` as a metric. Registered as spacy-calib.LogLoss.v1."""

    registered = "spacy-calib.LogLoss.v1"
    short = "nll"
    title = "Log loss"

    def losses(self, scores: ArrayLike, hits: ArrayLike) -> Floats:
        """See `log_losses`."""
        return log_losses(scores, hits)


# What tables show where no metrics are handed in.
PROPER: dict[str, MeanLoss] = {metric.short: metric for metric in (Brier(), LogLoss())}


def make_brier() -> Brier:
    """Registered as spacy-calib.Brier.v1."""
    return Brier()


def make_log_loss() -> LogLoss:
    """Registered as spacy-calib.LogLoss.v1."""
    return LogLoss()


def mean_with_error(values: Floats, documents: Ints) -> tuple[float, float]:
    """(mean of n values, its standard error over documents). documents (Ints): Of each value."""
    mean = float(values.mean())
    _, codes = np.unique(documents, return_inverse=True)
    residuals = np.bincount(codes, weights=values) - mean * np.bincount(codes)
    return mean, float(np.sqrt((residuals**2).sum()) / len(values))
