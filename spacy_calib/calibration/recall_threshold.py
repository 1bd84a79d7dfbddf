"""The search for cut-offs that reach a recall, by fixed sequence testing. No Docs are needed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..types import Floats, Ints, check_lengths
from .thresholds import check_shares

# The design effect of documents is also computed at a cut-off that misses so many times the allowed share.
_WIDER = 5


@dataclass(frozen=True)
class RecallThreshold:
    """A cut-off with its recall.

    cutoff (float | None): The highest cut-off that reaches the recall; None if there is none.
    tokens, n_found (int): Number of tokens of gold entities, and of those at or above the cut-off (of all if it is None).
    """

    cutoff: float | None
    tokens: int
    n_found: int

    @property
    def recall(self) -> float | None:
        return self.n_found / self.tokens if self.tokens else None


def find_recall_threshold(scores: Floats, documents: Ints, recall: float, confidence: float = 0.95) -> RecallThreshold:
    """Find the highest cut-off that reaches a recall with a confidence.

    That is: among as many scores of other documents of the source, a share of at most 1 - recall is below it; this
    is false for at most 1 - confidence of all data sets. Cut-offs are tested towards higher scores until one fails,
    each by an exact test of a prediction: how often a new sample of this size has its k-th lowest score, k =
    floor((1 - recall) n) + 1, so far above the observed ones (a negative hypergeometric distribution; Thatcher 1964). The
    share missed grows with the cut-off, so a wrong cut-off is chosen only if the test of the first wrong one passes: the
    number of tests needs no correction (fixed sequence testing, as in "Learn then Test", Angelopoulos et al. 2021).
    Documents are sampled as wholes: scores count for as many independent ones as they are worth.

    scores (Floats): Of the tokens of gold entities, shape (n,). documents (Ints): The document of each.
    recall, confidence (float): In (0, 1).
    RAISES C001: a number out of range. C002: lengths differ.
    """
    check_shares(recall=recall, confidence=confidence)
    check_lengths("A threshold", "score", len(scores), {"document": documents})
    n = len(scores)
    order = np.argsort(scores, kind="stable")
    sorted_scores = scores[order]
    # Equal scores are found or missed together: a cut-off is at the first of them.
    n_missed = np.flatnonzero(np.append(True, sorted_scores[1:] != sorted_scores[:-1])[:n])
    n_missed = n_missed[n_missed <= (1 - recall) * n]
    p_values = miss_p_values(n_missed, n, _effects(documents[order], n_missed, 1 - recall), 1 - recall)
    is_safe = p_values <= 1 - confidence
    n_passed = len(is_safe) if is_safe.all() else int(np.argmin(is_safe))
    if not n_passed:
        return RecallThreshold(None, n, n)
    n_below = int(n_missed[n_passed - 1])
    return RecallThreshold(float(sorted_scores[n_below]), n, n - n_below)


def miss_p_values(n_missed: Ints, n: int, effects: Floats, share: float) -> Floats:
    """Return P(more than a share of n new scores are missed) at each cut-off (Thatcher's upper limit).

    n_missed (Ints), effects (Floats): Scores missed, and design effect, at each cut-off.
    """
    from scipy.stats import betabinom

    size, k = n / effects, n_missed / effects
    new_size = np.maximum(1, np.round(size))
    return betabinom.sf(np.floor(share * new_size + 1e-9), new_size, k + 1, size - k)


def _effects(documents: Ints, n_missed: Ints, share: float) -> Floats:
    """Return the design effect of documents (Kish 1965) at each cut-off: how many scores are worth one independent score.

    It is the variance of the share missed, with documents sampled as wholes, over that of independent scores; at least 1.
    A few scores can be missed in different documents by chance; so it is at least the effect at a cut-off that misses five
    times the allowed share (at most half).

    documents (Ints): Of the scores, lowest first. n_missed (Ints): Scores missed at each cut-off. share (float): Allowed share.
    """
    n = len(documents)
    if not n:
        return np.ones(len(n_missed))
    effects = design_effects(documents)
    return np.maximum(effects[n_missed], effects[max(1, int(min(_WIDER * share, 0.5) * n))])


def design_effects(documents: Ints) -> Floats:
    """Return the design effect of documents, at least 1, if the first i of n scores are missed, i from 0 to n: (n + 1,).

    With one document the variance between documents is not known: the effect is n. If each score has its own document it is 1.

    documents (Ints): Of each score.
    """
    n = len(documents)
    _, codes, sizes = np.unique(documents, return_inverse=True, return_counts=True)
    if len(sizes) in (1, n):
        return np.full(n + 1, n / max(1, len(sizes)))
    # Sums over documents of k^2 and k n, with k of its n scores among the first i, give the residuals (k - p n)^2.
    order = np.argsort(codes, kind="stable")
    n_before = np.empty(n)
    n_before[order] = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    kk, kn = (np.append(0.0, np.cumsum(part)) for part in (2 * n_before + 1, sizes[codes].astype(np.float64)))
    return _effects_of(np.arange(n + 1) / n, kk, kn, sizes)


def effective_size(sizes: Ints, n_found: Ints) -> float:
    """Return the effective number of independent tokens. sizes, n_found (Ints): Tokens, and found ones, of each document."""
    has_tokens = sizes > 0
    sizes, n_found = sizes[has_tokens], n_found[has_tokens]
    n = int(sizes.sum())
    if len(sizes) in (0, 1, n):  # see `design_effects`
        return float(len(sizes))
    share, kk, kn = (np.array([float(value)]) for value in (n_found.sum() / n, (n_found**2).sum(), (n_found * sizes).sum()))
    return n / float(_effects_of(share, kk, kn, sizes)[0])


def _effects_of(share: Floats, kk: Floats, kn: Floats, sizes: Ints) -> Floats:
    """Return the design effects, at least 1, at each share.

    kk, kn (Floats): At each share, sums over documents of k^2 and k n, where k of its n scores count. sizes (Ints): n of each.
    """
    n = int(sizes.sum())
    residual = (kk - 2 * share * kn + share**2 * float((sizes**2).sum())) * len(sizes) / (len(sizes) - 1)
    independent = n * share * (1 - share)
    return np.maximum(1.0, np.divide(residual, independent, out=np.ones(len(share)), where=independent > 0))
