"""Spans -> the features that their recalibration looks at. Knows arrays, never Docs."""

from __future__ import annotations

import numpy as np

from ..types import Floats, Ints, Spans
from .recalibrators.logistic import log_odds

NAMES = ("minimum", "product", "1 - product", "mean", "own", "1 - own", "length")
# Probabilities are clipped to [SMALLEST, 1 - SMALLEST] before their logarithm, so that a few do not dominate the fit.
SMALLEST = 1e-4


def product_of(spans: Spans) -> Floats:
    """The product of the token probabilities of each span, shape (n_spans,)."""
    return np.multiply.reduceat(spans.token_scores, firsts_of(spans)) if len(spans) else np.zeros(0)


def span_features(spans: Spans) -> Floats:
    """One row per span, columns as in NAMES: logits of the least and the mean token probability, log p and log(1 - p)
    of the tokens' product and of the source's own probability (Kull et al. 2017), and log of the number of tokens.
    """
    if not len(spans):
        return np.zeros((0, len(NAMES)))
    lengths = spans.ends - spans.starts
    mean = np.add.reduceat(spans.token_scores, firsts_of(spans)) / lengths
    columns = [
        logit(np.minimum.reduceat(spans.token_scores, firsts_of(spans))),
        *_logs(product_of(spans)),
        logit(mean),
        *_logs(spans.own),
        np.log(lengths),
    ]
    return np.stack(columns, axis=1)


def design(spans: Spans, groups: Ints, n_groups: int) -> Floats:
    """The features, an indicator of the span's group, and the product's logit in the column of its group.

    groups (Ints): In [0, n_groups), -1 for none. RETURNS (Floats): Shape (n_spans, len(NAMES) + 2 * n_groups).
    """
    member = groups[:, None] == np.arange(n_groups)
    return np.concatenate([span_features(spans), member, member * logit(product_of(spans))[:, None]], axis=1)


def logit(probabilities: Floats) -> Floats:
    return log_odds(probabilities, SMALLEST)


def _logs(probabilities: Floats) -> tuple[Floats, Floats]:
    clipped = np.clip(probabilities, SMALLEST, 1 - SMALLEST)
    return np.log(clipped), np.log1p(-clipped)


def firsts_of(spans: Spans) -> Ints:
    """Where the tokens of each span begin, in an array of the tokens of all spans, shape (n_spans,)."""
    lengths = spans.ends - spans.starts
    return np.cumsum(lengths) - lengths
