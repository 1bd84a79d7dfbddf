"""The search for cut-offs that reach a recall, by fixed sequence testing. No Docs are needed."""

from __future__ import annotations

import numpy as np

from ..types import Floats, Ints, check_lengths
from .thresholds import check_shares

_WIDER = 5  # the design effect of documents is also computed at a cut-off that misses so many times the allowed share


def find_recall_threshold(scores: Floats, documents: Ints, recall: float, confidence: float = 0.95) -> float | None:
    """Return the highest cut-off that reaches a recall with a confidence, or None if there is none.

    A cut-off misses the scores below it. It is wrong if it misses more than a share 1 - recall of n new scores from similar
    documents. A wrong cut-off is returned for at most a share 1 - confidence of data sets. Cut-offs are tested from low to high
    until one fails. Higher cut-offs miss more, so a wrong one is returned only if the lowest wrong one passes its test. Thus
    many tests need no correction (fixed sequence testing, as in "Learn then Test", Angelopoulos et al. 2021).
    scores (Floats): Scores of the tokens of gold entities, shape (n,). documents (Ints): The document of each token. Scores of
        one document are alike, so n is reduced to a number of independent scores. recall, confidence (float): In (0, 1).
    RAISES C001: a number out of range. C002: lengths differ.
    """
    check_shares(recall=recall, confidence=confidence)
    check_lengths("A threshold", "score", len(scores), {"document": documents})
    n = len(scores)
    if not n:
        return None
    order = np.argsort(scores, kind="stable")
    sorted_scores = scores[order]
    # Equal scores are found or missed together, so a cut-off is at the first of them. Its index is the number of scores missed.
    n_missed = np.flatnonzero(np.append(True, sorted_scores[1:] != sorted_scores[:-1]))
    n_missed = n_missed[n_missed <= (1 - recall) * n]
    # The design effect of documents (Kish 1965). If few scores are missed, they may be of different documents by chance, and
    # show none. So it is at least the one at a cut-off that misses five times the allowed share (at most half).
    effects = design_effects(documents[order])
    effects = np.maximum(effects[n_missed], effects[max(1, int(min(_WIDER * (1 - recall), 0.5) * n))])
    is_safe = miss_p_values(n_missed, n, effects, 1 - recall) <= 1 - confidence
    n_passed = len(is_safe) if is_safe.all() else int(np.argmin(is_safe))  # number of tests before the first that fails
    return float(sorted_scores[n_missed[n_passed - 1]]) if n_passed else None


def miss_p_values(n_missed: Ints, n: int, effects: Floats, share: float) -> Floats:
    """Return the probability at each cut-off that more than this share of n new scores are missed (Thatcher's upper limit).

    n_missed (Ints): How many of the n observed scores each cut-off misses. effects (Floats): How many scores are worth one
        independent score, at each cut-off. The number of new scores missed is beta-binomial (a negative hypergeometric).
    """
    from scipy.stats import betabinom

    size, missed = n / effects, n_missed / effects  # in independent scores
    new_size = np.maximum(1, np.round(size))
    n_allowed = np.floor(share * new_size + 1e-9)  # 1e-9: a rounding error must not make it one less
    return betabinom.sf(n_allowed, new_size, missed + 1, size - missed)  # + 1: the upper one of Thatcher's limits


def design_effects(documents: Ints) -> Floats:
    """Return the design effect of documents for each i from 0 to n, if the first i of n scores are missed, shape (n + 1,).

    This is the variance of the share missed, with documents sampled as wholes, over that of independent scores; at least 1. If
    each score has its own document it is 1. With one document the variance between documents is not known, and it is n.
    documents (Ints): The document of each score, lowest score first.
    """
    n = len(documents)
    _, codes, sizes = np.unique(documents, return_inverse=True, return_counts=True)
    if len(sizes) in (1, n):  # one document: n scores are worth one; n documents: each score is independent
        return np.full(n + 1, n / max(1, len(sizes)))
    # kk and kn: for each i, sums over documents of k^2 and k n, where k of a document's n scores are among the first i. If k
    # grows by 1, k^2 grows by 2 k + 1 and k n by n.
    order = np.argsort(codes, kind="stable")  # by document, then by score
    n_before = np.empty(n)  # number of lower scores of the same document: the k before this score is missed
    n_before[order] = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    increments = 2 * n_before + 1, sizes[codes].astype(np.float64)
    kk, kn = (np.append(0.0, np.cumsum(increment)) for increment in increments)
    return _effects_from_sums(np.arange(n + 1) / n, kk, kn, sizes)


def effective_size(sizes: Ints, n_found: Ints) -> float:
    """Return how many independent tokens all are worth (Kish 1965). sizes, n_found: Tokens and found tokens by document."""
    has_tokens = sizes > 0
    sizes, n_found = sizes[has_tokens], n_found[has_tokens]
    n = int(sizes.sum())
    if len(sizes) in (0, 1, n):  # one document counts as one token; tokens of n documents are all independent
        return float(len(sizes))
    sums = n_found.sum() / n, (n_found**2).sum(), (n_found * sizes).sum()
    share, kk, kn = (np.array([float(value)]) for value in sums)  # arrays of one share
    return n / float(_effects_from_sums(share, kk, kn, sizes)[0])


def _effects_from_sums(share: Floats, kk: Floats, kn: Floats, sizes: Ints) -> Floats:
    """Return the design effect (at least 1) at each share of scores that count as missed, or as found.

    kk, kn (Floats): At each share, sums over documents of k^2 and k n, where k of a document's n scores count.
    sizes (Ints): The n of each document.
    """
    n = int(sizes.sum())
    # The sum over documents of (k - share * n)^2, times the factor that makes the variance of a sample unbiased.
    residual = (kk - 2 * share * kn + share**2 * float((sizes**2).sum())) * len(sizes) / (len(sizes) - 1)
    independent = n * share * (1 - share)
    return np.maximum(1.0, np.divide(residual, independent, out=np.ones(len(share)), where=independent > 0))
