"""Finding the cut-offs that reach a precision. Knows arrays, never Docs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log, sqrt

import numpy as np
from numpy.typing import NDArray

from ..errors import calib_error
from ..types import Floats, Ints, check_lengths

# At how many places tests begin.
_STARTS = 8
# How many random walks say how likely one of these tests passes by luck.
_WALKS = 10_000


@dataclass(frozen=True)
class Threshold:
    """A cut-off and what it keeps; n spans were looked at.

    cutoff (float | None): The least score accepted; None where no cut-off is sure to reach the precision.
    spans, kept, right (int): Spans in all; those at or above the cut-off; those of them that are right.
    low, high (float | None): Where the precision among as many spans of other documents of the source lies; false in at
        most 1 - confidence of all data sets. `low` is lower than for a cut-off named in advance, since lucky data are
        likelier to have a cut-off.
    """

    cutoff: float | None
    spans: int
    kept: int = 0
    right: int = 0
    low: float | None = None
    high: float | None = None

    @property
    def precision(self) -> float | None:
        """Share of right ones among those kept."""
        return self.right / self.kept if self.kept else None

    @property
    def share(self) -> float | None:
        """Share of the spans that is kept."""
        return self.kept / self.spans if self.spans else None


def find_threshold(
    scores: Floats, hits: NDArray[np.bool_], documents: Ints, precision: float, confidence: float = 0.95
) -> Threshold:
    """The lowest cut-off that is sure to reach a precision.

    Cut-offs are tested towards lower scores, from several places on, each by an exact binomial test of the precision of
    what it keeps (fixed sequence testing, as in "Learn then Test", Angelopoulos et al. 2021), at one level so low that
    with the confidence asked for none passes by luck. Of those that pass, the lowest is chosen by which as many other
    spans reach the precision as well.

    scores (Floats): Calibrated, shape (n,). hits: Whether each span is right, (n,). documents (Ints): The document of
        each; spans of one document count for less where they are right or wrong together.
    precision, confidence (float): In (0, 1).
    RAISES C001: a number out of range. C002: lengths differ.
    """
    check_shares(precision=precision, confidence=confidence)
    check_lengths("A threshold", "score", len(scores), {"hit": hits, "document": documents})
    order = np.argsort(-scores, kind="stable")
    ranked, right = scores[order], hits[order].astype(bool)
    # Equal scores are kept or dropped together.
    ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True)) + 1 if len(ranked) else np.zeros(0, dtype=np.intp)
    kept, n_right = ends, np.cumsum(right)[ends - 1]
    size = _effective_sizes(right, documents[order], kept, n_right)
    if not len(kept):
        return Threshold(None, 0)
    error = 1 - confidence
    starts, chances = _starts(kept, size, precision, error), chance_of_more(n_right / kept, size, precision)
    passes = chances <= _shared_level(size[starts], precision, error)
    at = np.arange(len(passes))
    begun = np.maximum.accumulate(np.where(np.isin(at, starts), at, -1))
    failed = np.maximum.accumulate(np.where(passes, -1, at))
    passed = np.flatnonzero(begun > failed)
    if not len(passed):
        return Threshold(None, len(scores))
    chosen = _choose(passed, chances, error)
    seen = float(n_right[chosen] / kept[chosen])
    low = prediction_interval(seen, size[chosen], size[chosen], 1 - error / _STARTS)[0]
    high = prediction_interval(seen, size[chosen], size[chosen], confidence)[1]
    return Threshold(float(ranked[kept[chosen] - 1]), len(scores), int(kept[chosen]), int(n_right[chosen]), low, high)


def check_shares(**given: float) -> None:
    """RAISES C001: one of these settings is not between 0 and 1."""
    for name, value in given.items():
        if not 0 < value < 1:
            raise calib_error("C001", name=name, wanted="a number between 0 and 1", given=value)


def highest_reached(
    scores: Floats, hits: NDArray[np.bool_], documents: Ints, precision: float, confidence: float = 0.95
) -> tuple[float, Threshold] | None:
    """(highest precision below the one wanted, in thousandths; spans kept) of a cut-off; for other gold, no promise."""
    found, low, high = None, 1, ceil(1000 * precision) - 1
    while low <= high:
        middle = (low + high) // 2
        reached = find_threshold(scores, hits, documents, middle / 1000, confidence)
        if reached.cutoff is None:
            high = middle - 1
        else:
            found, low = (middle / 1000, reached), middle + 1
    return found


def _starts(kept: Ints, size: Floats, precision: float, error: float) -> Ints:
    """Where tests begin: log-equal steps from the fewest spans that could pass to all. size: `kept` as independent spans."""
    # With fewer a test would fail, even if all were right, at an equal part of the error rate.
    enough = size >= log(error / _STARTS) / log(precision)
    first = kept[enough.argmax() if enough.any() else -1]
    # A little less, since the last of these may be rounded to more than there are.
    return np.unique(np.searchsorted(kept, np.geomspace(first, kept[-1], _STARTS) * (1 - 1e-12)))


def _shared_level(size: Floats, precision: float, error: float) -> float:
    """The level of all tests: where the precision is just missed at all cut-offs, one of the first tests passes in a
    share `error` of all data sets.

    They look at the same spans and pass together, so the level is above an equal part of the error rate each (as in
    Westfall and Young 1993, by simulation). The walks from there add almost nothing: the cut-offs that miss and are met
    first lie in the same range, where tests in equal steps of log size pass together least.

    size (Floats): Independent spans at each start, ascending but for what documents hold together.
    """
    return _level_of(tuple(np.maximum(1, np.maximum.accumulate(np.round(size))).astype(np.int64).tolist()), precision, error)


@lru_cache(maxsize=64)
def _level_of(sizes: tuple[int, ...], precision: float, error: float) -> float:
    """`_shared_level` of whole, ascending sizes: the same for all data sets that have them."""
    steps = np.random.default_rng(0).binomial(np.diff(sizes, prepend=0), precision, (_WALKS, len(sizes)))
    least = np.ones(_WALKS)
    for n, right in zip(sizes, np.cumsum(steps, axis=1).T, strict=True):
        possible = chance_of_more(np.arange(n + 1) / n, np.full(n + 1, float(n)), precision)
        least = np.minimum(least, possible[right])
    # One standard error fewer than that share of walks, for the simulation is not exact.
    walks = error * _WALKS
    highest = np.sort(least)[int(walks - sqrt(walks))]
    lower = least[least < highest]
    return max(error / len(sizes), float(lower.max(initial=0.0)))


def _choose(passed: Ints, chances: Floats, error: float) -> int:
    """The lowest that passes by which as many other spans reach the precision, too; else the surest.

    Others vary as much as those seen, so it takes sqrt(2) times as many standard errors. The error rate is halved,
    since a walk ends where luck does.

    passed (Ints): At least one. chances (Floats): Of all cut-offs, by `chance_of_more`.
    """
    from scipy.special import ndtr, ndtri

    surer = passed[chances[passed] <= ndtr(sqrt(2) * ndtri(error / 2))]
    return int(surer[-1] if len(surer) else passed[chances[passed].argmin()])


def _effective_sizes(right: NDArray[np.bool_], documents: Ints, kept: Ints, n_right: Ints) -> Floats:
    """How many independent spans those kept at each cut-off are worth: their number over the design effect (Kish 1965)."""
    sizes = kept.astype(np.float64)
    if len(np.unique(documents)) == len(documents):
        return sizes
    # Running sums over documents of k^2, k n and n^2 give the squared residuals (k - p n)^2 at every cut-off.
    order = np.argsort(documents, kind="stable")
    first = np.append(True, documents[order][1:] != documents[order][:-1])
    begin = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    hit, so_far = right[order].astype(np.intp), np.cumsum(right[order])
    n: Ints = np.arange(len(order)) - begin + 1
    k: Ints = so_far - (so_far - right[order])[begin]
    more = np.empty((len(order), 3))
    more[order] = np.stack([hit * (2 * k - hit), k * n - (k - hit) * (n - 1), 2 * n - 1], axis=1)
    at = np.cumsum(more, axis=0)[kept - 1]
    share = n_right / kept
    residual = at[:, 0] - 2 * share * at[:, 1] + share**2 * at[:, 2]
    independent = kept * share * (1 - share)
    effect = np.maximum(1.0, np.divide(residual, independent, out=np.ones(len(kept)), where=independent > 0))
    # A few spans can all be right by luck and show no effect: the correlation within documents is that of all spans.
    whole = at[:, 2] / kept - 1
    together = (effect[-1] - 1) / whole[-1] if independent[-1] > 0 else 1.0
    return sizes / np.maximum(effect, 1 + min(1.0, together) * whole)


def chance_of_more(share: Floats, size: Floats, precision: float) -> Floats:
    """P(at least as many right ones) if the true share is `precision` (one-sided exact binomial test of `size` spans)."""
    from scipy.special import betainc

    k = share * size
    return np.where(k > 0, betainc(np.maximum(k, 1e-9), size - k + 1, precision), 1.0)


def prediction_interval(share: float, size: float, new_size: float, confidence: float) -> tuple[float, float]:
    """Where the share among `new_size` spans will lie after `share` of `size` (beta-binomial, Jeffreys' prior, two-sided)."""
    from scipy.stats import betabinom

    n_new = max(1, round(new_size))
    k = share * size
    new = betabinom(n_new, k + 0.5, size - k + 0.5)
    tail = (1 - confidence) / 2
    return float(new.ppf(tail) / n_new), float(new.ppf(1 - tail) / n_new)


def find_thresholds(
    scores: Floats, hits: NDArray[np.bool_], documents: Ints, keys: Sequence[str], precision: float, confidence: float = 0.95
) -> dict[str, Threshold]:
    """One threshold per key, each with the confidence on its own. keys (Sequence[str]): The key of each span, shape (n,)."""
    of_key = np.array(keys, dtype=object)
    return {
        key: find_threshold(scores[own], hits[own], documents[own], precision, confidence)
        for key in dict.fromkeys(keys)
        for own in [np.flatnonzero(of_key == key)]
    }
