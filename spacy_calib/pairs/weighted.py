"""Equal pairs as one weighted pair: what makes fitting on millions of pairs fast, without changing its result."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..types import Floats


class WeightedPairs(NamedTuple):
    """Distinct (score, hit) with how often each occurs, ascending by score, misses before hits; of one length."""

    scores: Floats
    hits: NDArray[np.bool_]
    weights: Floats


def _keys(scores: Floats, hits: NDArray[np.bool_]) -> tuple[NDArray[Any], type]:
    """One integer per pair, made of the score's bits and the hit, and the float type of the bits.

    The bits of floats in [0, 1] sort as the floats do; the shift drops the sign of -0.0 and makes room for the hit.
    Scores that are float32 numbers (of heads that normalize in float32) need half the memory and half the time.
    """
    keys: NDArray[Any] = scores.astype(np.float32)
    kind: type = np.float32
    if (keys == scores).all():
        keys = keys.view(np.uint32)
    else:
        keys, kind = scores.astype(np.float64).view(np.uint64), np.float64
    np.left_shift(keys, 1, out=keys)
    np.bitwise_or(keys, hits, out=keys)
    return keys, kind


def collapse(scores: Floats, hits: NDArray[np.bool_]) -> WeightedPairs:
    """Count equal pairs by sorting integer keys. Exact for float32- and float64-valued scores.

    scores (Floats): n numbers in [0, 1]. hits (NDArray[bool]): n booleans.
    """
    return collapse_groups(scores, hits, np.zeros(len(scores), dtype=np.int8), 1)[0]


def collapse_groups(
    scores: Floats, hits: NDArray[np.bool_], groups: NDArray[Any], n_groups: int
) -> tuple[WeightedPairs, list[WeightedPairs]]:
    """Count equal pairs within each group.

    scores, hits: As in `collapse`. groups (NDArray): The group of each pair in [0, n_groups), -1 for none.
    RETURNS (tuple): The weighted pairs of all groups, those of no group first (equal ones of different groups are not
        merged), and the weighted pairs of each group, as views of them.
    """
    keys, kind = _keys(scores, hits)
    counts = np.bincount(groups + 1, minlength=n_groups + 1)
    bounds = np.concatenate([[0], np.cumsum(counts)])
    if np.count_nonzero(counts) > 1:
        keys = keys[np.argsort(groups, kind="stable")]
    for start, end in zip(bounds[:-1], bounds[1:], strict=True):
        keys[start:end].sort()
    is_last = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=is_last[:-1])
    is_last[bounds[1:][counts > 0] - 1] = True
    ends = np.flatnonzero(is_last)
    distinct = keys[ends]
    del keys, is_last
    cuts = np.searchsorted(ends, bounds)
    weights = np.diff(ends, prepend=-1).astype(np.float64)
    is_hit = (distinct & 1).astype(bool)
    np.right_shift(distinct, 1, out=distinct)
    values = distinct.view(kind).astype(np.float64, copy=False)
    parts = [WeightedPairs(values[a:b], is_hit[a:b], weights[a:b]) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
    return WeightedPairs(values, is_hit, weights), parts[1:]
