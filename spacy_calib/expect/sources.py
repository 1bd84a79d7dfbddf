"""How far counting what was found is off from source to source, learned of each label. Knows arrays, never Docs.

What annotators of another source hold for right, no fit can know: there, what its maps expect may be farther off than what the model found, and
documents of one source say nothing of it. The number that the gold of a source counts of a label is that found and an error, which is a shift of
log-odds times v, the sum of p (1 - p) of its units (see `effects`), and noise. A label has few sources to learn the width of these shifts from, and
is drawn towards the other labels: their widths have a common distribution on a grid, which expectation maximization learns (empirical Bayes;
Kiefer and Wolfowitz 1956). It has long tails: of most labels sources agree, of some not at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..types import Floats, Ints
from .effects import WIDTHS, Effects
from .estimates import sum_by

# The grid weighs as much beforehand as so many labels; labels with fewer open units tell nothing of it; steps of the maximization.
_PRIOR, _OPEN, _STEPS = 1.0, 0.5, 100


class SourceSums(NamedTuple):
    """What was counted of S sources and L labels, shapes (S, L).

    gold, found (Floats): What the gold counts, and what the model found. opens (Floats): The sums of p (1 - p). squares (Floats): Those of documents,
    squared and summed.
    """

    gold: Floats
    found: Floats
    opens: Floats
    squares: Floats


def source_sums(
    chances: Floats, documents: Ints, labels: Ints, found: Ints, gold: tuple[Ints, Ints], of_sources: Ints, n_labels: int
) -> SourceSums:
    """chances (Floats), documents, labels (Ints): Of each pair of a unit and a label. found (Ints): The likeliest pair of each unit, by number.
    gold (tuple): (document, label) of each unit with gold. of_sources (Ints): Number of each document's source, -1 where it has no name.
    """
    names, sources = np.unique(of_sources, return_inverse=True)
    n_docs, shape = len(of_sources), (len(names), n_labels)

    def counted(own_documents: Ints, own_labels: Ints, values: Floats | None = None) -> Floats:
        places = sources[own_documents] * n_labels + own_labels
        return sum_by(places, values, shape[0] * n_labels).reshape(shape)

    opens = chances * (1 - chances)
    both, inverse = np.unique(documents * n_labels + labels, return_inverse=True)
    of_documents = sum_by(inverse, opens, len(both))
    squares = counted(both // n_labels, both % n_labels, np.square(of_documents)) if n_docs else np.zeros(shape)
    return SourceSums(counted(*gold), counted(documents[found], labels[found]), counted(documents, labels, opens), squares)


def with_widths(effects: Mapping[str, Effects], sums: SourceSums, names: Sequence[str]) -> dict[str, Effects]:
    """The effects of labels, with the widths of the shifts by which found numbers are off. names (Sequence[str]): Of the labels."""
    made = dict(effects)
    own = np.array([place for place, name in enumerate(names) if name in effects], dtype=np.intp)
    some = SourceSums(*(table[:, own] for table in sums))
    between = np.array([effects[names[place]].between for place in own.tolist()])
    weights = weights_of(some.gold - some.found, some.opens, some.opens + between * some.squares)
    for place, held in zip(own.tolist(), weights.tolist() if weights is not None else (), strict=False):
        made[names[place]] = replace(effects[names[place]], sources=len(sums.gold), widths=tuple(held))
    return made


def between_sources(errors: Floats, opens: Floats, noise: Floats) -> float:
    """The variance of the shift of log-odds of a source about all of them, by moments; of a single number, in place of one of each label.

    errors (Floats): What the gold of each source counts less what its scores expect, shape (S,). opens, noise (Floats): See `weights_of`.
    RETURNS (float): 0 of a single source, of which it cannot be known.
    """
    n, squares = len(errors), float(np.square(opens).sum())
    excess = float((np.square(errors) - noise).sum())
    return max(0.0, excess) / squares * n / (n - 1) if n > 1 and squares > 0 else 0.0


def weights_of(errors: Floats, opens: Floats, noise: Floats) -> Floats | None:
    """How likely each label has each of WIDTHS, shape (L, n_widths); None where no label has open units.

    errors, opens (Floats): Of each source and label, (S, L). noise (Floats): Variance of an error without a shift.
    """
    telling = (opens > _OPEN).any(axis=0)
    if not telling.any():
        return None
    variance = np.square(WIDTHS * opens[..., None]) + np.maximum(noise, 1e-9)[..., None]
    logs = -0.5 * (np.square(errors)[..., None] / variance + np.log(variance)).sum(axis=0)
    likely = np.exp(logs - logs.max(axis=1, keepdims=True))
    common = np.full(len(WIDTHS), 1 / len(WIDTHS))
    for _ in range(_STEPS):
        shares = _shares(likely[telling], common).sum(axis=0) + _PRIOR / len(WIDTHS)
        common = shares / shares.sum()
    return _shares(likely, common)


def _shares(likely: Floats, common: Floats) -> Floats:
    weighed = likely * common
    return np.asarray(weighed / weighed.sum(axis=1, keepdims=True))
