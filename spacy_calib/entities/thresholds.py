"""Finding the cut-offs that reach a precision. Knows arrays, never Docs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import calib_error
from ..types import Floats, Ints

# Walks towards lower cut-offs that each begin at another share of the spans.
_STARTS = 5


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

    Cut-offs are tested one after the other towards lower scores, each by an exact (Clopper-Pearson) lower bound of the precision of what it
    keeps, and a walk ends at the first that fails: then one bound at the full level is enough for all (fixed sequence testing, as in "Learn
    then Test", Angelopoulos et al. 2021). Five walks begin at different shares of the spans and divide the level among them.

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
    passes = lower_bound(n_right / np.maximum(kept, 1), size, _level(confidence)) >= precision
    chosen = _lowest_passed(passes, kept, len(ranked))
    if chosen is None:
        return Threshold(None, len(scores))
    seen = float(n_right[chosen] / kept[chosen])
    low = prediction_interval(seen, size[chosen], size[chosen], _level(confidence))[0]
    high = prediction_interval(seen, size[chosen], size[chosen], confidence)[1]
    return Threshold(float(ranked[kept[chosen] - 1]), len(scores), int(kept[chosen]), int(n_right[chosen]), low, high)


def _level(confidence: float) -> float:
    """The confidence of a single walk, so that all together have the one asked for."""
    return 1 - (1 - confidence) / _STARTS


def _lowest_passed(passes: NDArray[np.bool_], kept: Ints, n: int) -> int | None:
    """The last cut-off before the first failure of the walk that gets farthest."""
    farthest = -1
    for start in range(1, _STARTS + 1):
        first = int(np.searchsorted(kept, start * n / _STARTS))
        failures = np.flatnonzero(~passes[first:])
        end = first + (int(failures[0]) if len(failures) else len(passes) - first) - 1
        if end >= first:
            farthest = max(farthest, end)
    return farthest if farthest >= 0 else None


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


def lower_bound(share: Floats, size: Floats, confidence: float) -> Floats:
    """One-sided Clopper-Pearson bounds of proportions.

    share (Floats): Seen. size (Floats): Among how many (fractions are allowed). confidence (float): In (0, 1).
    """
    from scipy.stats import beta

    k = share * size
    return np.where(k > 0, beta.ppf(1 - confidence, np.maximum(k, 1e-9), size - k + 1), 0.0)


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
