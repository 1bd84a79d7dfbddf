"""Finding the cut-offs that reach a precision. Knows arrays, never Docs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from ..errors import calib_error
from ..types import Floats, Ints

# The tests begin at each of these shares of the spans, with an equal part of the error rate.
_STARTS = (0.05, 0.1, 0.2, 0.4, 0.8)


@dataclass(frozen=True)
class Threshold:
    """A cut-off and what it keeps; n spans were looked at.

    cutoff (float | None): The least score that is accepted; None where no cut-off is sure enough to reach the precision.
    spans, kept, right (int): Spans in all; those at or above the cut-off; those of them that are right.
    low, high (float | None): Where the precision among as many spans of other documents of the same source lies; false in at most
        1 - confidence of all data sets. `low` is lower than it would be for a cut-off named in advance, since a lucky data set is likelier
        to have a cut-off at all.
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

    Cut-offs are tested one after the other towards lower scores, each by an exact binomial test of the precision of what it keeps (fixed
    sequence testing, as in "Learn then Test", Angelopoulos et al. 2021). The error rate 1 - confidence is divided equally among five
    starting points. A test has the parts of the starting points passed so far; where it fails, they are spent. With the confidence asked
    for, no cut-off that passes falls short of the precision (the fallback procedure, Wiens 2003). The lowest that passes is chosen.

    scores (Floats): Calibrated, shape (n,). hits: Whether each span is right, (n,). documents (Ints): The document of each: what several
        spans of one document say counts for less where they are right or wrong together.
    precision, confidence (float): In (0, 1).
    RAISES C001: a number out of range. C002: lengths differ.
    """
    for name, value in (("precision", precision), ("confidence", confidence)):
        if not 0 < value < 1:
            raise calib_error("C001", name=name, wanted="a number between 0 and 1", given=value)
    for second, array in (("hit", hits), ("document", documents)):
        if len(array) != len(scores):
            raise calib_error(
                "C002", what="A threshold", first="score", second=second, n_first=len(scores), n_second=len(array)
            )
    order = np.argsort(-scores, kind="stable")
    ranked, right = scores[order], hits[order].astype(bool)
    # Equal scores are kept or dropped together.
    ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True)) + 1 if len(ranked) else np.zeros(0, dtype=np.intp)
    kept, n_right = ends, np.cumsum(right)[ends - 1]
    size = _effective_sizes(right, documents[order], kept, n_right)
    chosen = _lowest_passed(chance_of_more(n_right / np.maximum(kept, 1), size, precision), kept, 1 - confidence)
    if chosen is None:
        return Threshold(None, len(scores))
    seen = float(n_right[chosen] / kept[chosen])
    low = prediction_interval(seen, size[chosen], size[chosen], _level(confidence))[0]
    high = prediction_interval(seen, size[chosen], size[chosen], confidence)[1]
    return Threshold(float(ranked[kept[chosen] - 1]), len(scores), int(kept[chosen]), int(n_right[chosen]), low, high)


def highest_reached(
    scores: Floats, hits: NDArray[np.bool_], documents: Ints, precision: float, confidence: float = 0.95
) -> tuple[float, Threshold] | None:
    """The highest precision below the one wanted that some cut-off reaches, in thousandths, and what its lowest cut-off keeps; None where none
    is reached. Chosen by looking, it is what to ask for of other gold, and no promise. The arguments are those of `find_threshold`.
    """
    found, low, high = None, 1, ceil(1000 * precision) - 1
    while low <= high:
        middle = (low + high) // 2
        reached = find_threshold(scores, hits, documents, middle / 1000, confidence)
        if reached.cutoff is None:
            high = middle - 1
        else:
            found, low = (middle / 1000, reached), middle + 1
    return found


def _level(confidence: float) -> float:
    """The confidence of one part of the error rate."""
    return 1 - (1 - confidence) / len(_STARTS)


def _lowest_passed(chances: Floats, kept: Ints, error: float) -> int | None:
    """The last cut-off that passes; None where none does.

    chances (Floats): Of each cut-off, see `chance_of_more`. kept (Ints): Of each, ascending. error (float): To be divided.
    """
    if not len(kept):
        return None
    starts = np.searchsorted(kept, np.array(_STARTS) * kept[-1])
    parts = np.bincount(starts, minlength=len(kept))
    lowest, held = None, 0
    for at, (chance, part) in enumerate(zip(chances.tolist(), parts.tolist(), strict=True)):
        held += part
        if held and chance <= error * held / len(_STARTS):
            lowest = at
        else:
            held = 0
    return lowest


def _effective_sizes(right: NDArray[np.bool_], documents: Ints, kept: Ints, n_right: Ints) -> Floats:
    """How many independent spans those kept at each cut-off are worth: their number over the design effect of documents.

    The effect is the variance of the share right, with documents drawn as wholes, over that of independent spans (Kish 1965), at least 1.
    """
    sizes = kept.astype(np.float64)
    if len(np.unique(documents)) == len(documents):
        return sizes
    _, codes = np.unique(documents, return_inverse=True)
    n_of, k_of = np.zeros(codes.max() + 1), np.zeros(codes.max() + 1)
    # Running sums over documents of k^2, k n and n^2 give the squared residuals (k - p n)^2 at every cut-off.
    kk = kn = nn = 0.0
    sums = np.empty((len(right), 3))
    for i, (code, hit) in enumerate(zip(codes.tolist(), right.tolist(), strict=True)):
        k, n = k_of[code], n_of[code]
        kk -= k * k
        kn -= k * n
        nn -= n * n
        k, n = k + hit, n + 1
        k_of[code], n_of[code] = k, n
        kk += k * k
        kn += k * n
        nn += n * n
        sums[i] = kk, kn, nn
    share = n_right / kept
    at = sums[kept - 1]
    residual = at[:, 0] - 2 * share * at[:, 1] + share**2 * at[:, 2]
    independent = kept * share * (1 - share)
    effect = np.maximum(1.0, np.divide(residual, independent, out=np.ones(len(kept)), where=independent > 0))
    # Few spans can be all right by luck, and then show no effect: the correlation inside documents is that among all spans.
    whole = at[:, 2] / kept - 1
    together = (effect[-1] - 1) / whole[-1] if independent[-1] > 0 else 1.0
    return sizes / np.maximum(effect, 1 + min(1.0, together) * whole)


def chance_of_more(share: Floats, size: Floats, precision: float) -> Floats:
    """How likely at least as many right ones are if the true share is no greater than `precision` (the one-sided exact binomial test).

    share (Floats): Seen. size (Floats): Among how many (fractions are allowed). precision (float): In (0, 1).
    """
    from scipy.special import betainc

    k = share * size
    return np.where(k > 0, betainc(np.maximum(k, 1e-9), size - k + 1, precision), 1.0)


def prediction_interval(share: float, size: float, new_size: float, confidence: float) -> tuple[float, float]:
    """Where the share among new units will lie (beta-binomial, Jeffreys' prior).

    share (float): Seen. size (float): Among how many. new_size (float): How many new ones. confidence (float): Two-sided, in (0, 1).
    """
    from scipy.stats import betabinom

    n_new = max(1, round(new_size))
    k = share * size
    new = betabinom(n_new, k + 0.5, size - k + 0.5)
    tail = (1 - confidence) / 2
    return float(new.ppf(tail) / n_new), float(new.ppf(1 - tail) / n_new)


def find_thresholds(
    scores: Floats, hits: NDArray[np.bool_], documents: Ints, keys: Sequence[str], precision: float, confidence: float = 0.95
) -> dict[str, Threshold]:
    """One threshold for each key; the confidence holds for each of them on its own.

    keys (Sequence[str]): The key of each span, shape (n,).
    """
    of_key = np.array(keys, dtype=object)
    return {
        key: find_threshold(scores[own], hits[own], documents[own], precision, confidence)
        for key in dict.fromkeys(keys)
        for own in [np.flatnonzero(of_key == key)]
    }
