"""Slices that nobody named, in which scores are off: searched on one half of the documents, confirmed on the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ..errors import calib_error
from ..metrics.gaps import documents_apart, errors_of, p_values, stand
from ..types import Floats, Ints
from .properties import Property
from .slices import FEWEST_UNITS, Slice

# Slices that are taken to the other half, at most, and the p on the search half from which they are not.
MOST, _WORTH = 10, 0.001
# Of each half.
_FEWEST_DOCUMENTS = 10
# A slice of two properties has to be so much clearer than one of them.
_PLAINER = 0.9
Part = tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Judged:
    """n units of D documents. gaps (Floats): Score less hit. variances (Floats): score (1 - score). documents (Ints): From 0 to D - 1.
    apart (float): See `metrics.gaps.documents_apart`.
    """

    gaps: Floats
    variances: Floats
    documents: Ints
    apart: float

    @classmethod
    def of(cls, scores: Floats, hits: NDArray[np.bool_], documents: Ints) -> Judged:
        codes = np.unique(documents, return_inverse=True)[1]
        return cls(scores - hits, scores * (1.0 - scores), codes, documents_apart(scores, hits, codes))

    def tested(self, codes: Ints, gaps: Floats) -> tuple[Ints, Floats, Floats]:
        """(codes, t, p) of the parts that have enough units and documents. codes (Ints): Part of each unit; -1 for none. gaps: In the place of its own."""
        own = np.flatnonzero(codes >= 0)
        n_documents = int(self.documents.max(initial=0)) + 1
        cells, place = np.unique(codes[own] * n_documents + self.documents[own], return_inverse=True)
        sizes, sums = np.bincount(place), np.bincount(place, gaps[own])
        parts, part = np.unique(cells // n_documents, return_inverse=True)
        variances = np.bincount(np.searchsorted(parts, codes[own]), self.variances[own])
        summed = [np.bincount(part, one) for one in (sums, sums**2, sizes, sizes**2, np.ones(len(sizes)))]
        totals = np.array([*summed, variances], dtype=np.float64)
        error, freedom = errors_of(totals, self.apart)
        far = totals[0] / error
        enough = (totals[2] >= FEWEST_UNITS) & (totals[4] >= _FEWEST_DOCUMENTS)
        return parts[enough], far[enough], p_values(far, freedom)[enough]


def find_slices(
    scores: Floats, hits: NDArray[np.bool_], documents: Ints, properties: Sequence[Property], seed: int = 0
) -> tuple[list[Slice], Ints]:
    """Parts of one property, or of two, whose scores are off.

    Half of the documents are searched: the clearest part first, then what is clearest once that is explained, ten at most. Of these, those are given that
    stand on the other half (`metrics.gaps.stand`) by themselves and beside those found before.

    scores, hits, documents: Of n units. properties (Sequence[Property]): Of these. seed (int): Of the halves.
    RETURNS (tuple): The slices, with all their units of the half that confirms, from which alone their figures may be made; those units.
    RAISES C610: there are too few documents.
    """
    names, codes = np.unique(documents, return_inverse=True)
    if len(names) < 2 * _FEWEST_DOCUMENTS:
        raise calib_error("C610", n=len(names), wanted=2 * _FEWEST_DOCUMENTS)
    searched = np.random.default_rng(seed).permutation(len(names))[codes] < len(names) // 2
    judged = Judged.of(scores[searched], hits[searched], codes[searched])
    parts = _search(judged, [Property(one.codes[searched], one.levels) for one in properties])
    confirming = np.flatnonzero(~searched)
    other = Judged.of(scores[confirming], hits[confirming], codes[confirming])
    members = [_members(properties, part)[confirming] for part, _ in parts]
    rest, p = other.gaps.copy(), []
    for own, (_, gap) in zip(members, parts, strict=True):
        tests = [other.tested(np.where(own, 0, -1), gaps)[2] for gaps in (other.gaps, rest)]
        p.append(max((float(one[0]) if len(one) else 1.0) for one in tests))
        rest = rest - gap * own
    kept = np.flatnonzero(stand(p))
    found = [Slice(_in_words(properties, parts[i][0]), confirming[members[i]]) for i in kept.tolist()]
    return found, confirming


def _search(judged: Judged, properties: Sequence[Property]) -> list[tuple[Part, float]]:
    """The parts that are clearest, each with the gap that is left of it once those before it are explained."""
    found: list[tuple[Part, float]] = []
    gaps = judged.gaps
    while len(found) < MOST:
        best, clearest = None, 0.0
        for part, far, p in _tested(judged, properties, gaps):
            clear = abs(far) * (1.0 if len(part) == 1 else _PLAINER)
            if p <= _WORTH and clear > clearest and part not in [one for one, _ in found]:
                best, clearest = part, clear
        if best is None:
            break
        own = _members(properties, best)
        gap = float(gaps[own].mean())
        found.append((best, gap))
        gaps = gaps - gap * own
    return found


def _tested(judged: Judged, properties: Sequence[Property], gaps: Floats) -> Iterator[tuple[Part, float, float]]:
    """(part, t, p): the clearest level of each property, and of each two properties."""
    for some in [*((i,) for i in range(len(properties))), *combinations(range(len(properties)), 2)]:
        sizes = [len(properties[i].levels) for i in some]
        codes = np.where(
            np.all([properties[i].codes >= 0 for i in some], axis=0),
            np.ravel_multi_index([np.maximum(properties[i].codes, 0) for i in some], sizes),
            -1,
        )
        parts, far, p = judged.tested(codes, gaps)
        for place in np.argsort(-np.abs(far))[: MOST + 1].tolist():
            levels = np.unravel_index(parts[place], sizes)
            yield tuple((i, int(level)) for i, level in zip(some, levels, strict=True)), float(far[place]), float(p[place])


def _members(properties: Sequence[Property], part: Part) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = np.all([properties[i].codes == level for i, level in part], axis=0)
    return found


def _in_words(properties: Sequence[Property], part: Part) -> str:
    return ", ".join(properties[i].levels[level] for i, level in part)
