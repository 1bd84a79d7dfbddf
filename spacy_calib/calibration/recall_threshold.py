"""The search for cut-offs that reach a recall, by fixed sequence testing. No Docs are needed."""

from __future__ import annotations

import numpy as np

from ..types import Floats, Ints, check_lengths
from .thresholds import check_shares

# The design effect of documents is also computed at a cut-off that misses so many times the allowed share.
_WIDER = 5


def find_recall_threshold(scores: Floats, documents: Ints, recall: float, confidence: float = 0.95) -> float | None:
    """Return the highest cut-off that reaches a recall with a confidence, or None if there is none.

    A cut-off is right if, of n scores from other such documents, at most a share 1 - recall is below it; for at most a share
    1 - confidence of data sets a wrong one is found. Cut-offs are tested from low to high until one fails. The p value is the
    probability that more than floor((1 - recall) n) of n new scores are below the cut-off, given how many of the observed ones
    are (a negative hypergeometric distribution; Thatcher 1964). Since higher cut-offs miss more, a wrong cut-off is found only
    if the lowest wrong one passes its test, so many tests need no correction (fixed sequence testing, as in "Learn then Test",
    Angelopoulos et al. 2021). Scores of one document are alike: a design effect turns n into a number of independent scores.

    scores (Floats): Scores of the tokens of gold entities, shape (n,). documents (Ints): The document of each token.
    recall, confidence (float): In (0, 1). RAISES C001: a number out of range. C002: lengths differ.
    """
    check_shares(recall=recall, confidence=confidence)
    check_lengths("A threshold", "score", len(scores), {"document": documents})
    n = len(scores)
    order = np.argsort(scores, kind="stable")
    sorted_scores = scores[order]
    # Equal scores are found or missed together, so a cut-off is at the first of them. Its index is the number of scores missed.
    n_missed = np.flatnonzero(np.append(True, sorted_scores[1:] != sorted_scores[:-1])[:n])  # [:n]: none if n is 0
    n_missed = n_missed[n_missed <= (1 - recall) * n]
    p_values = miss_p_values(n_missed, n, _effects(documents[order], n_missed, 1 - recall), 1 - recall)
    is_safe = p_values <= 1 - confidence
    n_passed = len(is_safe) if is_safe.all() else int(np.argmin(is_safe))
    if not n_passed:
        return None
    return float(sorted_scores[n_missed[n_passed - 1]])


def miss_p_values(n_missed: Ints, n: int, effects: Floats, share: float) -> Floats:
    """Return the probability at each cut-off that more than this share of n new scores are missed (Thatcher's upper limit).

    n_missed (Ints): How many of the n observed scores each cut-off misses. effects (Floats): Design effect at each cut-off.
    """
    from scipy.stats import betabinom

    size, k = n / effects, n_missed / effects  # in independent scores
    new_size = np.maximum(1, np.round(size))
    return betabinom.sf(np.floor(share * new_size + 1e-9), new_size, k + 1, size - k)


def _effects(documents: Ints, n_missed: Ints, share: float) -> Floats:
    """Return the design effect of documents (Kish 1965) at each cut-off: how many scores are worth one independent score.

    The effect is the variance of the share missed, with documents sampled as wholes, over that of independent scores; at least
    1. If few scores are missed, they may be of different documents by chance and show no effect; so the effect is at least the
    one at a cut-off that misses five times the allowed share (at most half).

    documents (Ints): Document of each score, lowest score first. n_missed (Ints): Number of scores missed at each cut-off.
    share (float): Allowed share of missed scores.
    """
    n = len(documents)
    if not n:
        return np.ones(len(n_missed))
    effects = design_effects(documents)
    n_missed_wider = max(1, int(min(_WIDER * share, 0.5) * n))
    return np.maximum(effects[n_missed], effects[n_missed_wider])


def design_effects(documents: Ints) -> Floats:
    """Return the design effect of documents for each i from 0 to n, if the first i of n scores are missed, shape (n + 1,).

    Effects are at least 1. If each score has its own document they are 1. With one document the variance between documents is
    not known, and they are n. documents (Ints): The document of each score, lowest score first.
    """
    n = len(documents)
    _, codes, sizes = np.unique(documents, return_inverse=True, return_counts=True)
    if len(sizes) in (1, n):
        return np.full(n + 1, n / max(1, len(sizes)))
    # kk and kn: for each i, sums over documents of k^2 and k n, where k of a document's n scores are among the first i. If k
    # grows by 1, k^2 grows by 2 k + 1 and k n by n.
    order = np.argsort(codes, kind="stable")
    n_before = np.empty(n)
    n_before[order] = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    kk, kn = (np.append(0.0, np.cumsum(part)) for part in (2 * n_before + 1, sizes[codes].astype(np.float64)))
    return _effects_of(np.arange(n + 1) / n, kk, kn, sizes)


def effective_size(sizes: Ints, n_found: Ints) -> float:
    """Return how many independent tokens all are worth (Kish 1965). sizes, n_found: Tokens, and found ones, by document."""
    has_tokens = sizes > 0
    sizes, n_found = sizes[has_tokens], n_found[has_tokens]
    n = int(sizes.sum())
    if len(sizes) in (0, 1, n):  # one document counts as one token; tokens of n documents are all independent
        return float(len(sizes))
    share, kk, kn = (np.array([float(value)]) for value in (n_found.sum() / n, (n_found**2).sum(), (n_found * sizes).sum()))
    return n / float(_effects_of(share, kk, kn, sizes)[0])


def _effects_of(share: Floats, kk: Floats, kn: Floats, sizes: Ints) -> Floats:
    """Return the design effect (at least 1) at each share of scores that count as missed, or as found.

    kk, kn (Floats): At each share, sums over documents of k^2 and k n, where k of a document's n scores count.
    sizes (Ints): The n of each document.
    """
    n = int(sizes.sum())  # residual: the sum over documents of (k - share * n)^2
    residual = (kk - 2 * share * kn + share**2 * float((sizes**2).sum())) * len(sizes) / (len(sizes) - 1)
    independent = n * share * (1 - share)
    return np.maximum(1.0, np.divide(residual, independent, out=np.ones(len(share)), where=independent > 0))
