"""The only code that turns a probability into a bin: edges, ties, empty bins and exactly 1.0 are decided here.

A *binner* takes N scores and returns edges, the ascending lower ends of bins 1, 2, ... (bin 0 has none). `assign` puts any
score into the last bin whose lower end it reaches. So equal scores share a bin, and a score that the binner never saw has one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import calib_error
from ..types import BinTable, Floats, Ints

Binner = Callable[..., Floats]
# (scores, hits, weights): distinct pairs, ascending by score, misses before hits; and how often each occurs.
WeightedPairs = tuple[Floats, NDArray[np.bool_], Floats]
MOST_COUNTED = 1_000_000_000  # of groups, bins or tokens in a setting: far above any use, small enough for sums of integers


def check_count(name: str, value: int) -> int:
    """Return the value of a setting as an int. RAISES C001: it is not a whole number from 1 to MOST_COUNTED."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise calib_error("C001", name=name, wanted="a whole number of at least 1", given=repr(value))
    if value > MOST_COUNTED:
        raise calib_error("C001", name=name, wanted=f"a whole number of at most {MOST_COUNTED:,}", given=repr(value))
    return int(value)


def make_binner(n_bins: int = 10, bin_size: int | None = None) -> Binner:
    """Return a function (scores, weights=None) -> edges of n_bins bins of equal mass or, if given, of bin_size pairs each.

    Edges are the ascending lower ends of bins 1, 2, ... RAISES C001: a size that is not a whole number of at least 1.
    """
    if bin_size is None:
        return partial(equal_mass_edges, n_bins=check_count("n_bins", n_bins))
    return partial(equal_mass_edges, bin_size=check_count("bin_size", bin_size))


def equal_mass_edges(scores: Floats, weights: Floats | None = None, *, n_bins: int = 10, bin_size: int | None = None) -> Floats:
    """Return the edges of B bins with about equal counts, or of bins with beta pairs each; equal scores always share a bin.

    The bin of a value is that of its middle rank, (2 * n_below + n_equal) * B // (2 * N), with the numbers of scores below and
    equal: the adaptive bins of Nguyen & O'Connor (2015, section 3.1) with a rule for ties. With a bin size it is
    (2 * n_below + n_equal) // (2 * beta), and a smaller last bin merges into the one before (as in their Algorithm 1).

    scores (Floats): N scores, in any order. weights (Floats | None): One per score, above 0. n_bins (int): B.
    bin_size (int | None): beta, which replaces B. RETURNS (Floats): B - 1 edges, or max(1, N // beta) - 1, ascending. The lower
    end of bin b is the smallest float64 that the rule puts into bin b or a higher one.
    """
    if not len(scores):
        return np.full(n_bins - 1 if bin_size is None else 0, np.inf)  # any value is in bin 0
    if weights is None:
        distinct, mass = np.unique(scores, return_counts=True)
    else:
        distinct, inverse = np.unique(scores, return_inverse=True)
        mass = np.bincount(inverse, weights=weights, minlength=len(distinct))
    mass_below = np.cumsum(mass) - mass
    total = mass_below[-1] + mass[-1]
    if bin_size is None:  # the rule is: bin = rank * factor // divisor
        factor, divisor, last_bin = n_bins, 2 * total, n_bins - 1
    else:
        factor, divisor, last_bin = 1, 2 * bin_size, max(1, int(total // bin_size)) - 1
    # The bin of each distinct score, and the bin of the values just above it, which equal no score.
    bin_of_score = np.minimum((2 * mass_below + mass) * factor // divisor, last_bin)
    bin_just_above = np.minimum(2 * (mass_below + mass) * factor // divisor, last_bin)
    bins = np.arange(1, last_bin + 1)
    # Each bin begins either at the first score that is in it (or in a higher bin), or just above the score before that one.
    score_index, before_index = np.searchsorted(bin_of_score, bins), np.searchsorted(bin_just_above, bins)
    edges = np.append(distinct, np.inf)[score_index]  # inf: no score reaches the bin
    begins_before = before_index < score_index  # the values just above an earlier score are in the bin already
    edges[begins_before] = np.nextafter(distinct, np.inf)[before_index[begins_before]]
    return edges


def fixed_edges(n_bins: int) -> Floats:
    """Return the lower ends of bins 1, 2, ... of n_bins equally wide bins on [0, 1]. RAISES C001: n_bins is no integer > 0."""
    return np.arange(1, check_count("n_bins", n_bins)) / n_bins


def assign(scores: Floats, edges: Floats) -> Ints:
    """Return the number of each score's bin, from 0 to len(edges). edges: Lower ends of bins 1, 2, ..., ascending."""
    return np.searchsorted(edges, scores, side="right")


def between(low: Floats, high: Floats) -> Floats:
    """Return for each interval a number x with few binary digits, low < x <= high; `high` itself if there is none.

    A fit saves such numbers in place of scores, so that nobody who guesses a text can find its scores among them.
    """
    # The highest power of two that is not above the length of the interval: a multiple of it must lie in the interval.
    exponents = np.frexp(high - low)[1] - 1
    multiples = np.ldexp(np.floor(np.ldexp(high, -exponents)), exponents)  # the highest ones that are not above `high`
    return np.where((low < multiples) & (multiples <= high), multiples, high)


def edges_between(edges: Floats, scores: Floats) -> Floats:
    """Move the lower ends of bins (edges) between scores, so that a fit saves no score. No score changes its bin."""
    distinct = np.unique(scores)
    next_score = np.searchsorted(distinct, edges)  # index of the lowest score that reaches each edge
    is_finite = next_score < len(distinct)
    # With 0 in front of the scores, the same index gives the score before.
    below, above = np.append(0.0, distinct)[next_score[is_finite]], distinct[next_score[is_finite]]
    # A number in the middle half of the gap between both scores; if the gap is too small for one, the score above.
    quarter = (above - below) / 4
    numbers = between(below + quarter, above - quarter)
    moved_edges = np.full(len(edges), np.inf)  # inf, which no score reaches, stays
    moved_edges[is_finite] = np.where(below < numbers, numbers, above)
    return moved_edges


def bin_table(scores: Floats, hits: Floats, edges: Floats) -> BinTable:
    """Return count, mean score and mean hit (0 or 1) of each non-empty bin, ascending. edges: Lower ends of bins 1, 2, ..."""
    bins = assign(scores, edges)
    size = len(edges) + 1
    counts = np.bincount(bins, minlength=size).astype(np.float64)
    is_filled = counts > 0
    filled_counts = counts[is_filled]
    score_sum = np.bincount(bins, weights=scores, minlength=size)[is_filled]
    hit_sum = np.bincount(bins, weights=hits, minlength=size)[is_filled]
    return BinTable(filled_counts, score_sum / filled_counts, hit_sum / filled_counts)


def collapse(scores: Floats, hits: NDArray[np.bool_]) -> WeightedPairs:
    """Return the distinct (score, hit) pairs and how often each occurs; exact for scores in [0, 1], float32 or float64."""
    return collapse_groups(scores, hits, np.zeros(len(scores), dtype=np.int8), 1)[0]


def collapse_groups(
    scores: Floats, hits: NDArray[np.bool_], groups: NDArray[Any], n_groups: int
) -> tuple[WeightedPairs, list[WeightedPairs]]:
    """Find the distinct (score, hit) pairs of each group and how often each occurs.

    scores, hits: n pairs; scores in [0, 1]. groups (NDArray): The group of each pair in [0, n_groups), -1 for none.
    RETURNS (tuple): (the weighted pairs of all groups one after the other, those of no group first; a list of the weighted
        pairs of each group, as views of the former). Equal pairs of different groups are not merged.
    """
    # The bits of floats in [0, 1] sort as the floats do; the shift drops the sign of -0.0 and makes room for the hit.
    # Scores that are float32 numbers (of heads that normalize in float32) need half the memory and half the time.
    keys: NDArray[Any] = scores.astype(np.float32)  # each becomes an integer: bits of the score, then the hit
    dtype: type = np.float32
    if (keys == scores).all():
        keys = keys.view(np.uint32)
    else:
        keys, dtype = scores.astype(np.float64).view(np.uint64), np.float64
    np.left_shift(keys, 1, out=keys)
    np.bitwise_or(keys, hits, out=keys)
    counts = np.bincount(groups + 1, minlength=n_groups + 1)  # the first count is of pairs without a group (-1)
    bounds = np.concatenate([[0], np.cumsum(counts)])  # of the groups in keys that are sorted by group
    if np.count_nonzero(counts) > 1:
        keys = keys[np.argsort(groups, kind="stable")]
    for start, end in zip(bounds[:-1], bounds[1:], strict=True):
        keys[start:end].sort()
    is_last = np.ones(len(keys), dtype=bool)  # whether each key is the last of equal ones in its group
    np.not_equal(keys[1:], keys[:-1], out=is_last[:-1])
    is_last[bounds[1:][counts > 0] - 1] = True  # the last key of each group, even if the next group begins with an equal one
    last_indices = np.flatnonzero(is_last)
    distinct = keys[last_indices]
    del keys, is_last  # frees memory before more is taken
    starts = np.searchsorted(last_indices, bounds)  # start of each group in `distinct`, and the end of the last
    weights = np.diff(last_indices, prepend=-1).astype(np.float64)  # number of equal keys
    is_hit = (distinct & 1).astype(bool)
    np.right_shift(distinct, 1, out=distinct)  # the bits of the scores again
    distinct_scores = distinct.view(dtype).astype(np.float64, copy=False)
    slices = [slice(start, end) for start, end in zip(starts[1:-1], starts[2:], strict=True)]  # without the pairs of no group
    return (distinct_scores, is_hit, weights), [(distinct_scores[group], is_hit[group], weights[group]) for group in slices]
