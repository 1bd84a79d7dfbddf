"""Finding the cut-offs that bound what is missed. Knows arrays, never Docs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import calib_error
from ..types import Floats, Ints

# How much the tokens of a document are missed together is looked at where so many times the share allowed is missed, too.
_WIDER = 5


@dataclass(frozen=True)
class RecallThreshold:
    """A cut-off and what it finds; n tokens of gold entities were looked at.

    cutoff (float | None): The highest score that misses few enough; None where no cut-off is sure to.
    tokens, found (int): Tokens of gold entities; those at or above the cut-off (all of them where there is none: then every token is flagged).
    """

    cutoff: float | None
    tokens: int
    found: int

    @property
    def recall(self) -> float | None:
        """Share of the tokens of gold entities that is found."""
        return self.found / self.tokens if self.tokens else None


def find_recall_threshold(scores: Floats, documents: Ints, recall: float, confidence: float = 0.95) -> RecallThreshold:
    """The highest cut-off that is sure to find enough of what is to be found.

    Sure means: among as many units of other documents of the same source, the share below the cut-off is at most 1 - recall; the claim is
    false for at most 1 - confidence of all data sets. Cut-offs are tested one after the other towards higher scores, until one fails. Each test
    is the exact one of a prediction: how often a new sample of this size holds its (floor((1 - recall) n) + 1)-th lowest score so far above
    those seen (a negative hypergeometric, which is a beta-binomial, distribution; Thatcher 1964). What a cut-off misses grows with
    it, so that a wrong cut-off can only be chosen where the test at the first wrong one fails to stop: the tests need no correction for their number
    (fixed sequence testing, as in "Learn then Test", Angelopoulos et al. 2021). Documents are drawn as wholes: units are counted as so many
    independent ones as they are worth, see `_effects`.

    scores (Floats): Of the units that are to be found (tokens of gold entities), shape (n,). documents (Ints): The document of each.
    recall, confidence (float): In (0, 1).
    RAISES C001: a number out of range. C002: lengths differ.
    """
    for name, value in (("recall", recall), ("confidence", confidence)):
        if not 0 < value < 1:
            raise calib_error("C001", name=name, wanted="a number between 0 and 1", given=value)
    if len(documents) != len(scores):
        raise calib_error(
            "C002", what="A threshold", first="score", second="document", n_first=len(scores), n_second=len(documents)
        )
    n = len(scores)
    order = np.argsort(scores, kind="stable")
    ranked = scores[order]
    # Equal scores are found or missed together: a cut-off stands at the first of them.
    missed = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1])[:n])
    missed = missed[missed <= (1 - recall) * n]
    chances = chance_of_missing(missed, n, _effects(documents[order], missed, 1 - recall), 1 - recall)
    passed = chances <= 1 - confidence
    n_passed = len(passed) if passed.all() else int(np.argmin(passed))
    if not n_passed:
        return RecallThreshold(None, n, n)
    chosen = int(missed[n_passed - 1])
    return RecallThreshold(float(ranked[chosen]), n, n - chosen)


def chance_of_missing(missed: Ints, n: int, effects: Floats, share: float) -> Floats:
    """How likely more than a share of as many new units is missed, at most, where so many of n are (Thatcher's upper prediction limit).

    missed (Ints): At each cut-off. effects (Floats): How many units are worth one independent one, at each. share (float): In (0, 1).
    """
    from scipy.stats import betabinom

    size, k = n / effects, missed / effects
    new = np.maximum(1, np.round(size))
    return betabinom.sf(np.floor(share * new + 1e-9), new, k + 1, size - k)


def _effects(documents: Ints, missed: Ints, share: float) -> Floats:
    """How many units are worth one independent one where so many are missed: the design effect of documents (Kish 1965).

    It is the variance of the share missed, with documents drawn as wholes, over that of independent units; at least 1. Few units can be missed
    by chance in documents of their own, and then show no effect: the effect where five times the share allowed is missed (at most half
    of the units) is the least that is supposed.

    documents (Ints): Of the units, the likeliest to be missed first. missed (Ints): How many of them are missed, in each case.
    share (float): That may be missed.
    """
    n = len(documents)
    if not n:
        return np.ones(len(missed))
    effects = design_effects(documents)
    return np.maximum(effects[missed], effects[max(1, int(min(_WIDER * share, 0.5) * n))])


def design_effects(documents: Ints) -> Floats:
    """The design effect of documents on the share of the first i of n units, for i from 0 to n: shape (n + 1,), at least 1.

    With one document alone nothing tells how others differ: the effect is n. Where each unit is a document it is 1.

    documents (Ints): Of each unit.
    """
    n = len(documents)
    _, codes, sizes = np.unique(documents, return_inverse=True, return_counts=True)
    if len(sizes) in (1, n):
        return np.full(n + 1, n / max(1, len(sizes)))
    # Sums over documents of k^2 and k n, where k of the document's n units are among the first i, give the squared residuals (k - p n)^2.
    place = np.argsort(codes, kind="stable")
    before = np.empty(n)
    before[place] = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    kk, kn = (np.append(0.0, np.cumsum(part)) for part in (2 * before + 1, sizes[codes].astype(np.float64)))
    return _effects_of(np.arange(n + 1) / n, kk, kn, sizes)


def effective_size(sizes: Ints, found: Ints) -> float:
    """How many independent units the units of some documents are worth, as to the share of them that is found.

    sizes, found (Ints): Of each document, how many units it has, and how many of them are found.
    """
    held = sizes > 0
    sizes, found = sizes[held], found[held]
    n = int(sizes.sum())
    if len(sizes) in (0, 1, n):  # see `design_effects`
        return float(len(sizes))
    share, kk, kn = (np.array([float(value)]) for value in (found.sum() / n, (found**2).sum(), (found * sizes).sum()))
    return n / float(_effects_of(share, kk, kn, sizes)[0])


def _effects_of(share: Floats, kk: Floats, kn: Floats, sizes: Ints) -> Floats:
    """Design effects, at least 1, where this share of all units is found; kk, kn (Floats): Sums over documents of k^2 and k n, where k of n are found."""
    n = int(sizes.sum())
    residual = (kk - 2 * share * kn + share**2 * float((sizes**2).sum())) * len(sizes) / (len(sizes) - 1)
    independent = n * share * (1 - share)
    return np.maximum(1.0, np.divide(residual, independent, out=np.ones(len(share)), where=independent > 0))
