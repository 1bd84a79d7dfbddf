"""Whole annotations sampled by the probabilities of their parts; the first ten of a hundred samples are the ten of ten."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...types import Floats, Ints
from .messages import calib_error

# None of the labels: the rest of the probability fell to this draw.
REST = -1


def generator(n: int, seed: int, text: int) -> np.random.Generator:
    """Return random numbers for samples of a text. text (int): Its hash. RAISES C001: n or seed is negative, or not whole."""
    for name, value in (("n", n), ("seed", seed)):
        if not isinstance(value, (int, np.integer)) or value < 0:
            raise calib_error("C001", name=name, wanted="a whole number, 0 or more", given=repr(value))
    return np.random.default_rng([int(seed), text])


def within_one(sums: NDArray[Any]) -> Floats:
    """Return factors that bring sums of probabilities of exclusive events down to 1."""
    return 1.0 / np.maximum(1.0, sums)


def draw_entries(rows: Ints, scores: Floats, n_units: int, n: int, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Sample one entry of each unit, or none, independently.

    rows (Ints): Unit of each entry, ascending. scores (Floats): Its probability; a unit's are scaled down to 1 in sum. RETURNS
    (tuple): Place of each sample's and unit's entry, or REST, shape (n, n_units); each unit's scale, (n_units,).
    """
    scale = within_one(np.bincount(rows, weights=scores, minlength=n_units))
    starts = np.searchsorted(rows, np.arange(n_units + 1))
    sums = np.concatenate([[0.0], np.cumsum(scores * scale[rows])])
    ends = sums[1:] - sums[starts[rows]]  # of the stretch of [0, 1) that is the entry's
    units = np.arange(n_units)
    place = np.searchsorted(rows + np.minimum(ends, 1.0), units + rng.random((n, n_units)), side="right")
    return np.where(place < starts[1:], place, REST), scale


def draw_columns(weights: Floats, chances: Floats) -> Ints:
    """Sample a column of each row, by its share. weights (Floats): From 0 up, (n, K). chances (Floats): Uniform in [0, 1)."""
    sums = np.cumsum(weights, axis=1)
    total = sums[:, -1]
    columns: Ints = (sums <= np.minimum(chances * total, np.nextafter(total, 0.0))[:, None]).sum(axis=1)
    return columns


def draw_each(scores: Floats, n: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Sample whether each event, none exclusive, happens: shape (n, n_events)."""
    return rng.random((n, len(scores))) < scores


def draw_apart(starts: Ints, ends: Ints, scores: Floats, n: int, rng: np.random.Generator) -> tuple[NDArray[np.bool_], Floats]:
    """Sample sets of spans that do not overlap, in which each span has its own probability.

    From left to right: where spans begin and no earlier one covers their first token, one is sampled with its score over the
    probability that the token is free. That is exact if the scores over each token sum to at most 1; otherwise they are scaled
    down until they do.

    starts, ends (Ints): First token, and the one after the last, of m spans. RETURNS (tuple): Whether each is in each sample,
    (n, m); each span's scale.
    """
    cover = np.zeros(int(ends.max(initial=0)) + 1)
    np.add.at(cover, starts, scores)
    np.subtract.at(cover, ends, scores)
    sums = np.cumsum(cover)
    scale = np.array([within_one(sums[a:b].max()) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)])
    probabilities = scores * scale if len(scale) else scores
    firsts = np.unique(starts)
    chances = rng.random((n, len(firsts)))
    in_sample = np.zeros((n, len(starts)), dtype=bool)
    free_from = np.zeros(n, dtype=np.intp)
    for first, chance in zip(firsts.tolist(), chances.T, strict=True):
        starting_here = np.flatnonzero(starts == first)
        free = 1.0 - probabilities[(starts < first) & (ends > first)].sum()
        bounds = np.cumsum(probabilities[starting_here]) / max(free, np.finfo(float).tiny)
        place = np.searchsorted(bounds, chance, side="right")
        begins = np.flatnonzero((place < len(starting_here)) & (free_from <= first))
        in_sample[begins, starting_here[place[begins]]] = True
        free_from[begins] = ends[starting_here[place[begins]]]
    return in_sample, scale
