"""Finds slices in which scores are off: searched on one half of the documents, confirmed on the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ...metrics.gaps import document_overdispersion, errors_of, find_discoveries, p_values
from ...metrics.slices import FEWEST_UNITS, Slice
from ...types import Floats, Ints
from .messages import calib_error
from .properties import Property

# Slices that are taken to the other half, at most, and the p on the search half from which they are not.
MOST, _WORTH = 10, 0.001
# Of each half.
_FEWEST_DOCUMENTS = 10
# A slice of two properties has to be so much clearer than one of them.
_PLAINER = 0.9
Part = tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Judged:
    """n units of D documents. gaps (Floats): Score minus hit. variances (Floats): score (1 - score). apart: `document_overdispersion`."""

    gaps: Floats
    variances: Floats
    documents: Ints
    apart: float

    @classmethod
    def of(cls, scores: Floats, hits: NDArray[np.bool_], documents: Ints) -> Judged:
        codes = np.unique(documents, return_inverse=True)[1]
        return cls(scores - hits, scores * (1.0 - scores), codes, document_overdispersion(scores, hits, codes))

    def tested(self, codes: Ints, gaps: Floats) -> tuple[Ints, Floats, Floats]:
        """Return (codes, t, p) of the parts with enough units and documents. codes (Ints): Part of each unit, -1 for none."""
        member_units = np.flatnonzero(codes >= 0)
        n_documents = int(self.documents.max(initial=0)) + 1
        cells, place = np.unique(codes[member_units] * n_documents + self.documents[member_units], return_inverse=True)
        sizes, sums = np.bincount(place), np.bincount(place, gaps[member_units])
        parts, part = np.unique(cells // n_documents, return_inverse=True)
        variances = np.bincount(np.searchsorted(parts, codes[member_units]), self.variances[member_units])
        part_sums = [np.bincount(part, values) for values in (sums, sums**2, sizes, sizes**2, np.ones(len(sizes)))]
        totals = np.array([*part_sums, variances], dtype=np.float64)
        error, freedom = errors_of(totals, self.apart)
        t_values = totals[0] / error
        enough = (totals[2] >= FEWEST_UNITS) & (totals[4] >= _FEWEST_DOCUMENTS)
        return parts[enough], t_values[enough], p_values(t_values, freedom)[enough]


def find_slices(
    scores: Floats, hits: NDArray[np.bool_], documents: Ints, properties: Sequence[Property], seed: int = 0
) -> tuple[list[Slice], Ints]:
    """Find parts of one property, or of two, whose scores are off.

    On half of the documents the clearest part is taken, then the clearest once that is explained, ten at most. Returned are
    those that the other half confirms (`metrics.gaps.find_discoveries`), by themselves and beside those found before. RETURNS: The slices,
    with their units of the confirming half; all its units. RAISES C610: there are too few documents.
    """
    names, codes = np.unique(documents, return_inverse=True)
    if len(names) < 2 * _FEWEST_DOCUMENTS:
        raise calib_error("C610", n=len(names), wanted=2 * _FEWEST_DOCUMENTS)
    in_search = np.random.default_rng(seed).permutation(len(names))[codes] < len(names) // 2
    search_half = Judged.of(scores[in_search], hits[in_search], codes[in_search])
    parts = _search(search_half, [Property(prop.codes[in_search], prop.levels) for prop in properties])
    confirming = np.flatnonzero(~in_search)
    other_half = Judged.of(scores[confirming], hits[confirming], codes[confirming])
    members = [_members(properties, part)[confirming] for part, _ in parts]
    residual_gaps, p = other_half.gaps.copy(), []
    for in_part, (_, gap) in zip(members, parts, strict=True):
        tests = [other_half.tested(np.where(in_part, 0, -1), gaps)[2] for gaps in (other_half.gaps, residual_gaps)]
        p.append(max((float(prop[0]) if len(prop) else 1.0) for prop in tests))
        residual_gaps = residual_gaps - gap * in_part
    standing = np.flatnonzero(find_discoveries(p))
    names_of_parts = [", ".join(properties[i].levels[level] for i, level in part) for part, _ in parts]
    slices = [Slice(names_of_parts[i], confirming[members[i]]) for i in standing.tolist()]
    return slices, confirming


def _search(units: Judged, properties: Sequence[Property]) -> list[tuple[Part, float]]:
    """Return the clearest parts, each with the gap that remains once those before it are explained."""
    parts: list[tuple[Part, float]] = []
    gaps = units.gaps
    while len(parts) < MOST:
        best, clearest = None, 0.0
        for part, t, p in _test_parts(units, properties, gaps):
            clear = abs(t) * (1.0 if len(part) == 1 else _PLAINER)
            if p <= _WORTH and clear > clearest and part not in [known_part for known_part, _ in parts]:
                best, clearest = part, clear
        if best is None:
            break
        members = _members(properties, best)
        gap = float(gaps[members].mean())
        parts.append((best, gap))
        gaps = gaps - gap * members
    return parts


def _test_parts(units: Judged, properties: Sequence[Property], gaps: Floats) -> Iterator[tuple[Part, float, float]]:
    """Yield (part, t, p) of the clearest levels of each property, and of each two properties."""
    for chosen_properties in [*((i,) for i in range(len(properties))), *combinations(range(len(properties)), 2)]:
        sizes = [len(properties[i].levels) for i in chosen_properties]
        codes = np.where(
            np.all([properties[i].codes >= 0 for i in chosen_properties], axis=0),
            np.ravel_multi_index([np.maximum(properties[i].codes, 0) for i in chosen_properties], sizes),
            -1,
        )
        parts, t_values, p = units.tested(codes, gaps)
        for place in np.argsort(-np.abs(t_values))[: MOST + 1].tolist():
            levels = np.unravel_index(parts[place], sizes)
            yield (
                tuple((i, int(level)) for i, level in zip(chosen_properties, levels, strict=True)),
                float(t_values[place]),
                float(p[place]),
            )


def _members(properties: Sequence[Property], part: Part) -> NDArray[np.bool_]:
    members: NDArray[np.bool_] = np.all([properties[i].codes == level for i, level in part], axis=0)
    return members
