"""The search for cut-offs that reach a precision, by fixed sequence testing. No Docs are needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from ..errors import calib_error
from ..types import Floats, Ints, check_lengths

# Number of sequences of tests, each of which starts at another cut-off.
_STARTS = 8
# Number of random walks that estimate the probability that one of the first tests passes by chance.
_WALKS = 10_000


@dataclass(frozen=True)
class Threshold:
    """A cut-off of span scores, with the precision of the spans that reach it.

    cutoff (float | None): Minimum score that is accepted; None if no cut-off reaches the precision with the confidence.
    spans (int): Number of spans. kept (int): Number at or above the cut-off. right (int): Number of these that are right.
    low, high (float | None): Prediction interval. If the cut-off keeps as many spans of new documents of this kind, the
        interval contains their precision with the confidence. `low` allows for the choice of a cut-off with a high precision on
        these data.
    """

    cutoff: float | None
    spans: int
    kept: int = 0
    right: int = 0
    low: float | None = None
    high: float | None = None

    @property
    def precision(self) -> float | None:
        """Share of the kept spans that are right; None if none is kept."""
        return self.right / self.kept if self.kept else None

    @property
    def share(self) -> float | None:
        """Share of the spans that are kept; None without spans."""
        return self.kept / self.spans if self.spans else None


def find_threshold(
    scores: Floats, hits: NDArray[np.bool_], documents: Ints, precision: float, confidence: float = 0.95
) -> Threshold:
    """Find the lowest cut-off that reaches a precision with a confidence.

    Each cut-off has an exact binomial test of the precision of the spans it keeps. From several starts, cut-offs are tested
    towards lower scores until a test fails (fixed sequence testing, as in "Learn then Test", Angelopoulos et al. 2021). The
    level of the tests is so low that with the confidence no cut-off of a lower true precision passes. The lowest to
    pass is taken.
    scores (Floats): Calibrated score of each span, (n,). hits: Whether each span is right, (n,). documents (Ints): The
        document of each span; spans of one document count for less if they are right or wrong together.
    precision, confidence (float): In (0, 1). RETURNS (Threshold): Its `cutoff` is None if no cut-off passes.
    RAISES C001: a number is out of range. C002: lengths differ.
    """
    check_shares(precision=precision, confidence=confidence)
    check_lengths("A threshold", "score", len(scores), {"hit": hits, "document": documents})
    order = np.argsort(-scores, kind="stable")
    descending, right = scores[order], hits[order].astype(bool)
    if not len(scores):
        return Threshold(None, 0)
    # The number of spans that each cut-off keeps; equal scores are kept or dropped together. A cut-off is an index in it.
    n_kept = np.flatnonzero(np.append(descending[1:] != descending[:-1], True)) + 1
    n_right = np.cumsum(right)[n_kept - 1]
    error = 1 - confidence
    size = effective_sizes(right, documents[order], n_kept, n_right)
    starts = _find_starts(n_kept, size, precision, error)
    p_values = binomial_p_values(n_right / n_kept, size, precision)
    accepted_cutoffs = _find_accepted(p_values <= _shared_level(size[starts], precision, error), starts)
    if not len(accepted_cutoffs):
        return Threshold(None, len(scores))
    index = int(accepted_cutoffs[-1])  # the lowest: the tests alone guarantee the precision (scripts/promise_table.py)
    share_right = float(n_right[index] / n_kept[index])
    # The lower bound allows for the choice of the cut-off: its error rate is divided by the number of sequences (Bonferroni).
    low, _ = prediction_interval(share_right, size[index], size[index], 1 - error / _STARTS)
    _, high = prediction_interval(share_right, size[index], size[index], confidence)
    return Threshold(float(descending[n_kept[index] - 1]), len(scores), int(n_kept[index]), int(n_right[index]), low, high)


def check_shares(**settings: float) -> None:
    """Check settings that are shares. RAISES C001: one of them is not between 0 and 1."""
    for name, value in settings.items():
        if not 0 < value < 1:
            raise calib_error("C001", name=name, wanted="a number between 0 and 1", given=value)


def _find_accepted(passes: NDArray[np.bool_], starts: Ints) -> Ints:
    """Return each index i with passes[j] True for all j from s to i, where s is the last of `starts` (indices) up to i."""
    cutoffs = np.arange(len(passes))
    last_starts = np.maximum.accumulate(np.where(np.isin(cutoffs, starts), cutoffs, -1))
    last_failures = np.maximum.accumulate(np.where(passes, -1, cutoffs))
    return np.flatnonzero(last_starts > last_failures)  # no test has failed since the last start


def _find_starts(n_kept: Ints, size: Floats, precision: float, error: float) -> Ints:
    """Return the indices of the cut-offs where sequences of tests start, log-equally spaced in the number of kept spans.

    The first keeps just enough spans to pass if all are right; the last keeps all. n_kept (Ints), size (Floats): Number of kept
    spans, and of independent ones, at each cut-off. precision (float): The required one. error (float): 1 - confidence.
    """
    # If all of `size` spans are right, the p value is precision ** size. It must be at most an equal part of the error.
    is_enough = size >= log(error / _STARTS) / log(precision)
    first = n_kept[is_enough.argmax() if is_enough.any() else -1]
    # 1e-12 less, since the last number may be rounded to more spans than there are.
    return np.unique(np.searchsorted(n_kept, np.geomspace(first, n_kept[-1], _STARTS) * (1 - 1e-12)))


def _shared_level(size: Floats, precision: float, error: float) -> float:
    """Return the significance level for all tests of `find_threshold` at which a wrong cut-off passes with P = `error`.

    The level is that at which P(any start passes) = error if the precision is just missed at all starts. Tests share spans, and
    tend to pass together, so the level can be above error / n_starts (as in Westfall and Young 1993, by simulation). The later
    tests hardly raise P: the first wrong cut-off that is tested must pass, and it is the same one from all starts above it.
    size (Floats): Number of independent spans that each start keeps, (n_starts,), ascending except for the effect of documents.
    precision, error (float): The required precision, and 1 - confidence.
    """
    sizes = np.maximum(1, np.maximum.accumulate(np.round(size))).astype(np.int64)  # whole numbers that never fall
    return _level_of(tuple(sizes.tolist()), precision, error)


@lru_cache(maxsize=64)
def _level_of(sizes: tuple[int, ...], precision: float, error: float) -> float:
    """Return the level at which P(any start passes) = error, if P(a span is right) = precision. sizes: Spans at each start."""
    # A walk simulates the number of right spans among the first n, for each size n.
    steps = np.random.default_rng(0).binomial(np.diff(sizes, prepend=0), precision, (_WALKS, len(sizes)))
    lowest_p_values = np.ones(_WALKS)  # of each walk
    for n, n_right in zip(sizes, np.cumsum(steps, axis=1).T, strict=True):
        p_values = binomial_p_values(np.arange(n + 1) / n, np.full(n + 1, float(n)), precision)
        lowest_p_values = np.minimum(lowest_p_values, p_values[n_right])
    # A walk passes if its lowest p value is at most the level. The level is the highest at which no more than a share `error`
    # of the walks passes, less one standard error, since the simulation is not exact.
    n_passing = error * _WALKS
    too_high = np.sort(lowest_p_values)[int(n_passing - sqrt(n_passing))]
    levels = lowest_p_values[lowest_p_values < too_high]
    return max(error / len(sizes), float(levels.max(initial=0.0)))  # never lower than Bonferroni's level


def effective_sizes(right: NDArray[np.bool_], documents: Ints, n_kept: Ints, n_right: Ints) -> Floats:
    """Return how many independent spans carry as much information as the spans kept at each cut-off, shape (n_cutoffs,).

    It is their number divided by the design effect of documents (Kish 1965). right, documents: Whether each span is right, and
    its document, by falling score, (n_spans,). n_kept, n_right (Ints): Spans kept at each cut-off, and right ones (n_cutoffs,).
    """
    sizes = n_kept.astype(np.float64)
    if len(np.unique(documents)) == len(documents):
        return sizes
    # The effect is the sum over documents of (k - share * n)^2, divided by its expected value for independent spans. Of a
    # document, n spans are kept, and k of these are right; kk, kn and nn are the sums of k^2, k n and n^2.
    kk, kn, nn = _sums_over_documents(right, documents)[n_kept - 1].T
    share = n_right / n_kept
    residual = kk - 2 * share * kn + share**2 * nn
    independent = n_kept * share * (1 - share)
    effect = np.maximum(1.0, np.divide(residual, independent, out=np.ones(len(n_kept)), where=independent > 0))
    # A few spans can all be right by luck, and show no effect. So the effect is at least what the correlation would cause that
    # the spans of a document have at the last cut-off (-1), which keeps all spans.
    mean_others = nn / n_kept - 1  # mean number of other kept spans in a span's document
    correlation = (effect[-1] - 1) / mean_others[-1] if independent[-1] > 0 else 1.0
    return sizes / np.maximum(effect, 1 + min(1.0, correlation) * mean_others)


def _sums_over_documents(right: NDArray[np.bool_], documents: Ints) -> Floats:
    """Return for each i the sums over documents of k^2, k n and n^2, where spans 0 to i are kept, shape (n_spans, 3).

    Of a document, n spans are kept, of which k are right. right, documents: As for `effective_sizes`, by falling score.
    """
    order = np.argsort(documents, kind="stable")  # by document, then as before
    is_first = np.append(True, documents[order][1:] != documents[order][:-1])  # of its document
    first = np.maximum.accumulate(np.where(is_first, np.arange(len(order)), 0))  # index of the first span of the document
    hit, n_hits = right[order].astype(np.intp), np.cumsum(right[order])
    # The numbers n and k of each span's document, if this span is the last one kept.
    n: Ints = np.arange(len(order)) - first + 1
    k: Ints = n_hits - (n_hits - hit)[first]  # hits up to this span, less those before its document
    # Keeping a span adds this to k^2, k n and n^2 of its document: they were (k - hit)^2, (k - hit) (n - 1) and (n - 1)^2.
    increments = np.empty((len(order), 3))
    increments[order] = np.stack([hit * (2 * k - hit), k * n - (k - hit) * (n - 1), 2 * n - 1], axis=1)
    return np.cumsum(increments, axis=0)


def binomial_p_values(share: Floats, size: Floats, precision: float) -> Floats:
    """Return p values of exact binomial tests: P(at least share * size of `size` spans are right), each with P = precision."""
    from scipy.special import betainc

    k = share * size  # number of right spans; like the size it may be a fraction, which `betainc` allows
    return np.where(k > 0, betainc(np.maximum(k, 1e-9), size - k + 1, precision), 1.0)  # P(at least k)


def prediction_interval(share: float, size: float, new_size: float, confidence: float) -> tuple[float, float]:
    """Return (low, high), between which the share of hits in `new_size` new cases lies with this confidence.

    share, size (float): The share of hits in observed cases, and the number of these. The prediction is beta-binomial.
    """
    from scipy.stats import betabinom

    n_new = max(1, round(new_size))
    n_hits = share * size
    new_hits = betabinom(n_new, n_hits + 0.5, size - n_hits + 0.5)  # 0.5: the prior of Jeffreys
    tail = (1 - confidence) / 2
    return float(new_hits.ppf(tail) / n_new), float(new_hits.ppf(1 - tail) / n_new)


def round_down(scores: Floats) -> Floats:
    """Round scores down, to three digits of the smaller of p and 1 - p: 0.8537 -> 0.853, 0.994178 -> 0.99417.

    Cut-offs are chosen among rounded scores, so that no exact score of a private text is saved. No result is above its score.
    """
    distance = np.maximum(np.minimum(scores, 1 - scores), 1e-9)  # from 0 or 1
    scale = 10.0 ** (2 - np.floor(np.log10(distance)))
    # 1e-6, so that a number of three digits stays despite rounding errors.
    return np.minimum(np.floor(scores * scale + 1e-6) / scale, scores)


def find_thresholds(
    scores: Floats,
    hits: NDArray[np.bool_],
    documents: Ints,
    keys: Sequence[str],
    precision: Mapping[str, float],
    confidence: float,
) -> dict[str, Threshold]:
    """Find the threshold of each key (such as a label) among its rounded scores; the confidence holds for each key by itself.

    scores, hits, documents, keys: Score of each span, whether it is right, its document and its key, shape (n_spans,).
    precision (Mapping): Key -> required precision; other keys get no threshold. RETURNS (dict): Key -> its Threshold.
    """
    scores, key_array = round_down(scores), np.array(keys, dtype=object)
    thresholds = {}
    for key in dict.fromkeys(keys):
        if key in precision:
            index = np.flatnonzero(key_array == key)
            thresholds[key] = find_threshold(scores[index], hits[index], documents[index], precision[key], confidence)
    return thresholds
