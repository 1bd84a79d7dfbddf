"""Equal pairs as one weighted pair: what makes fitting on millions of pairs fast, without changing its result."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .types import Floats


class WeightedPairs(NamedTuple):
    """Distinct (score, hit) with how often each occurs, ascending by score, misses before hits; arrays of one length.

    scores (Floats), hits (NDArray[bool]), weights (Floats).
    """

    scores: Floats
    hits: NDArray[np.bool_]
    weights: Floats


def collapse(scores: Floats, hits: NDArray[np.bool_]) -> WeightedPairs:
    """Count equal pairs by sorting one integer key made of the score's bits and the hit.

    The bits of floats in [0, 1] sort as the floats do and leave the two highest bits free, so that the hit fits in below them. Scores
    that are float32 numbers (what a head gives that normalizes in float32) need keys of half the width: half the memory, half the
    time. Exact for both.

    scores (Floats): n numbers in [0, 1]. hits (NDArray[bool]): likewise.
    """
    if not len(scores):
        return WeightedPairs(np.zeros(0), np.zeros(0, dtype=bool), np.zeros(0))
    narrow = scores.astype(np.float32)
    fits = bool((narrow == scores).all())
    # Adding 0.0 turns -0.0 into 0.0, whose bits sort first.
    keys: NDArray[Any] = (narrow + np.float32(0)).view(np.uint32) if fits else (scores + 0.0).view(np.uint64)
    del narrow
    np.left_shift(keys, 1, out=keys)
    np.bitwise_or(keys, hits, out=keys)
    keys.sort()
    ends = np.append(np.flatnonzero(keys[1:] != keys[:-1]), len(keys) - 1)
    distinct = keys[ends]
    values = (distinct >> 1).view(np.float32 if fits else np.float64).astype(np.float64)
    return WeightedPairs(values, (distinct & 1).astype(bool), np.diff(ends, prepend=-1).astype(np.float64))


def join(parts: list[WeightedPairs]) -> WeightedPairs:
    """The weighted pairs of several sets one after the other; equal ones of different sets are not merged."""
    return WeightedPairs(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
