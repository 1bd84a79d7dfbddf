"""Sample annotations by the probabilities of their parts. The first ten of a hundred samples equal ten samples of one seed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...types import Floats, Ints
from .messages import calib_error

# No entry was sampled for the unit: the probabilities of its entries sum to less than 1.
REST = -1


def make_rng(n: int, seed: int, text: int) -> np.random.Generator:
    """Return the random generator for n samples of a text. text (int): Its hash. RAISES C001: n or seed is negative."""
    for name, value in (("n", n), ("seed", seed)):
        if not isinstance(value, (int, np.integer)) or value < 0:
            raise calib_error("C001", name=name, wanted="a whole number, 0 or more", given=repr(value))
    return np.random.default_rng([int(seed), text])


def scale_to_one(sums: NDArray[Any]) -> Floats:
    """Return the factor that scales each sum of probabilities down to 1; 1 for smaller sums."""
    return 1.0 / np.maximum(1.0, sums)


def draw_entries(rows: Ints, scores: Floats, n_units: int, n: int, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Sample at most one entry for each unit, units independently.

    rows (Ints): Unit of each entry, ascending, shape (m,). scores (Floats): Probability of each entry, (m,); those of a unit
    are scaled down if they sum to more than 1. RETURNS (tuple): Index of the sampled entry or REST for each sample and unit,
    shape (n, n_units); scale of each unit, (n_units,).
    """
    scale = scale_to_one(np.bincount(rows, weights=scores, minlength=n_units))
    starts = np.searchsorted(rows, np.arange(n_units + 1))
    sums = np.concatenate([[0.0], np.cumsum(scores * scale[rows])])
    ends = sums[1:] - sums[starts[rows]]  # cumulative probability within the unit, up to the entry
    units = np.arange(n_units)
    entries = np.searchsorted(rows + np.minimum(ends, 1.0), units + rng.random((n, n_units)), side="right")
    return np.where(entries < starts[1:], entries, REST), scale


def draw_columns(weights: Floats, uniforms: Floats) -> Ints:
    """Sample a column of each row in proportion to its weight.

    weights (Floats): At least 0, shape (n, K). uniforms (Floats): Random numbers in [0, 1), (n,).
    """
    sums = np.cumsum(weights, axis=1)
    total = sums[:, -1]
    columns: Ints = (sums <= np.minimum(uniforms * total, np.nextafter(total, 0.0))[:, None]).sum(axis=1)
    return columns


def draw_each(scores: Floats, n: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Sample whether each of some independent events happens, shape (n, n_events)."""
    return rng.random((n, len(scores))) < scores


def draw_apart(starts: Ints, ends: Ints, scores: Floats, n: int, rng: np.random.Generator) -> tuple[NDArray[np.bool_], Floats]:
    """Sample sets of spans that do not overlap, so that each span is in a set with its own probability.

    From left to right: if no sampled span covers a token, at most one span that starts there is sampled, with its score divided
    by the probability that the token is free. That is exact if the scores of spans over each token sum to at most 1; otherwise
    they are scaled down.

    starts, ends (Ints): First token of each span, and the token after the last, shape (m,). scores (Floats): Probability of
    each span, (m,). RETURNS (tuple): Whether each span is in each sample, shape (n, m); scale of each span, (m,).
    """
    cover = np.zeros(int(ends.max(initial=0)) + 1)
    np.add.at(cover, starts, scores)
    np.subtract.at(cover, ends, scores)
    sums = np.cumsum(cover)
    scale = np.array([scale_to_one(sums[a:b].max()) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)])
    probabilities = scores * scale if len(scale) else scores
    firsts = np.unique(starts)
    uniforms = rng.random((n, len(firsts)))
    in_sample = np.zeros((n, len(starts)), dtype=bool)
    free_from = np.zeros(n, dtype=np.intp)
    for first, uniform in zip(firsts.tolist(), uniforms.T, strict=True):
        starting_here = np.flatnonzero(starts == first)
        free = 1.0 - probabilities[(starts < first) & (ends > first)].sum()
        bounds = np.cumsum(probabilities[starting_here]) / max(free, np.finfo(float).tiny)
        choice = np.searchsorted(bounds, uniform, side="right")
        samples = np.flatnonzero((choice < len(starting_here)) & (free_from <= first))
        spans = starting_here[choice[samples]]
        in_sample[samples, spans] = True
        free_from[samples] = ends[spans]
    return in_sample, scale
