"""Whole annotations drawn by the probabilities of their parts: a label of each unit, a set of spans.

What is drawn first does not depend on how much is drawn: the first ten of a hundred are the ten of ten.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import calib_error
from ..types import Floats, Ints

# None of the labels: the rest of the probability fell to this draw.
REST = -1


def generator(n: int, seed: int, text: int) -> np.random.Generator:
    """The random numbers for the draws of a text.

    n (int): How many draws. text (int): A hash of it, so that draws of different texts with one seed are independent.
    RAISES C001: n or seed is negative, or not whole.
    """
    for name, value in (("n", n), ("seed", seed)):
        if not isinstance(value, (int, np.integer)) or value < 0:
            raise calib_error("C001", name=name, wanted="a whole number, 0 or more", given=repr(value))
    return np.random.default_rng([int(seed), text])


def within_one(sums: NDArray[Any]) -> Floats:
    """Factors that bring sums of probabilities of exclusive events down to 1; 1 for sums up to 1."""
    return 1.0 / np.maximum(1.0, sums)


def draw_entries(rows: Ints, scores: Floats, n_units: int, n: int, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """One entry of each unit, or none, each with its own probability, independent of other units.

    rows (Ints): Unit of each entry, ascending. scores (Floats): Its probability; a unit's are scaled down to 1 in sum.
    RETURNS (tuple): Place of each draw's and unit's entry, or REST, shape (n, n_units); each unit's scale, (n_units,).
    """
    scale = within_one(np.bincount(rows, weights=scores, minlength=n_units))
    starts = np.searchsorted(rows, np.arange(n_units + 1))
    sums = np.concatenate([[0.0], np.cumsum(scores * scale[rows])])
    ends = sums[1:] - sums[starts[rows]]  # of the stretch of [0, 1) that is the entry's
    units = np.arange(n_units)
    place = np.searchsorted(rows + np.minimum(ends, 1.0), units + rng.random((n, n_units)), side="right")
    return np.where(place < starts[1:], place, REST), scale


def draw_columns(weights: Floats, chances: Floats) -> Ints:
    """A column of each row, by its share of the row. weights (Floats): 0 or more, (n, K). chances (Floats): Uniform in [0, 1), (n,)."""
    sums = np.cumsum(weights, axis=1)
    total = sums[:, -1]
    found: Ints = (sums <= np.minimum(chances * total, np.nextafter(total, 0.0))[:, None]).sum(axis=1)
    return found


def draw_each(scores: Floats, n: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Whether each of some events, which do not exclude each other, happens: shape (n, n_events)."""
    return rng.random((n, len(scores))) < scores


def draw_apart(starts: Ints, ends: Ints, scores: Floats, n: int, rng: np.random.Generator) -> tuple[NDArray[np.bool_], Floats]:
    """Sets of spans that do not overlap, in which each span has its own probability.

    From left to right: where spans begin and no earlier one covers their first token, one is drawn with its score over
    the probability that the token is free. That is exact if the scores over each token sum to at most 1. If not, no
    distribution has these scores, and the spans there are scaled down until they do.

    starts, ends (Ints): First token, and the one after the last, of m spans in any order; none is empty.
    RETURNS (tuple): Whether each is in each draw, shape (n, m); the scale of each span's score, (m,).
    """
    cover = np.zeros(int(ends.max(initial=0)) + 1)
    np.add.at(cover, starts, scores)
    np.subtract.at(cover, ends, scores)
    sums = np.cumsum(cover)
    scale = np.array([within_one(sums[a:b].max()) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)])
    wanted = scores * scale if len(scale) else scores
    firsts = np.unique(starts)
    chances = rng.random((n, len(firsts)))
    held = np.zeros((n, len(starts)), dtype=bool)
    free_from = np.zeros(n, dtype=np.intp)
    for first, chance in zip(firsts.tolist(), chances.T, strict=True):
        own = np.flatnonzero(starts == first)
        free = 1.0 - wanted[(starts < first) & (ends > first)].sum()
        bounds = np.cumsum(wanted[own]) / max(free, np.finfo(float).tiny)
        place = np.searchsorted(bounds, chance, side="right")
        begins = np.flatnonzero((place < len(own)) & (free_from <= first))
        held[begins, own[place[begins]]] = True
        free_from[begins] = ends[own[place[begins]]]
    return held, scale
