"""Search for miscalibrated slices on one half of the documents, and confirm them on the other."""

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

# Maximum number of slices to confirm, and their maximum p value on the search half.
MAX_SLICES, _MAX_P = 10, 0.001
# Minimum number of documents of each half.
_MIN_DOCUMENTS = 10
# The t value of a slice of two properties is multiplied by this, in favour of simpler slices.
_PAIR_PENALTY = 0.9
# The (property, level) pairs that all units of a part have.
Part = tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class UnitGaps:
    """Gaps of n units; arrays of shape (n,)."""

    gaps: Floats  # score minus hit
    variances: Floats  # score (1 - score)
    documents: Ints  # number of the document
    overdispersion: float  # variance of the documents' gaps over that of independent calibrated scores, at least 1

    @classmethod
    def from_scores(cls, scores: Floats, hits: NDArray[np.bool_], documents: Ints) -> UnitGaps:
        codes = np.unique(documents, return_inverse=True)[1]
        return cls(scores - hits, scores * (1.0 - scores), codes, document_overdispersion(scores, hits, codes))

    def test_parts(self, codes: Ints, gaps: Floats) -> tuple[Ints, Floats, Floats]:
        """Return (codes, t values, p values) of the parts with enough units and documents, shape (n_parts,) each.

        codes (Ints): Part of each unit, -1 for none, shape (n,). gaps (Floats): Gap of each unit, shape (n,).
        """
        member_units = np.flatnonzero(codes >= 0)
        n_documents = int(self.documents.max(initial=0)) + 1
        # a cell is the units of one document in one part
        cells, cell = np.unique(codes[member_units] * n_documents + self.documents[member_units], return_inverse=True)
        sizes, sums = np.bincount(cell), np.bincount(cell, gaps[member_units])
        parts, part = np.unique(cells // n_documents, return_inverse=True)
        variances = np.bincount(np.searchsorted(parts, codes[member_units]), self.variances[member_units])
        part_sums = [np.bincount(part, values) for values in (sums, sums**2, sizes, sizes**2, np.ones(len(sizes)))]
        totals = np.array([*part_sums, variances], dtype=np.float64)
        error, freedom = errors_of(totals, self.overdispersion)
        t_values = totals[0] / error
        is_large = (totals[2] >= FEWEST_UNITS) & (totals[4] >= _MIN_DOCUMENTS)
        return parts[is_large], t_values[is_large], p_values(t_values, freedom)[is_large]


def find_slices(
    scores: Floats, hits: NDArray[np.bool_], documents: Ints, properties: Sequence[Property], seed: int = 0
) -> tuple[list[Slice], Ints]:
    """Find slices, of one property or of two, whose scores are miscalibrated.

    On half of the documents the slice with the highest t value is taken, then the one with the highest after its gap is
    removed, and so on, up to MAX_SLICES. A slice is confirmed if the other half rejects calibration, by the false discovery
    rate, with and without the gaps of the slices before it. scores (Floats), hits (NDArray[bool]), documents (Ints): Of each
    unit, (n,). seed (int): Of the halves.
    RETURNS (tuple): (confirmed slices, with their units of the confirming half; all units of that half). RAISES C610: too few
    documents.
    """
    names, codes = np.unique(documents, return_inverse=True)
    if len(names) < 2 * _MIN_DOCUMENTS:
        raise calib_error("C610", n=len(names), wanted=2 * _MIN_DOCUMENTS)
    in_search = np.random.default_rng(seed).permutation(len(names))[codes] < len(names) // 2
    search_half = UnitGaps.from_scores(scores[in_search], hits[in_search], codes[in_search])
    parts = _search(search_half, [Property(prop.codes[in_search], prop.levels) for prop in properties])
    confirming = np.flatnonzero(~in_search)
    other_half = UnitGaps.from_scores(scores[confirming], hits[confirming], codes[confirming])
    members = [_members(properties, part)[confirming] for part, _ in parts]
    residual_gaps, p = other_half.gaps.copy(), []
    for in_part, (_, gap) in zip(members, parts, strict=True):
        tests = [other_half.test_parts(np.where(in_part, 0, -1), gaps)[2] for gaps in (other_half.gaps, residual_gaps)]
        p.append(max((float(prop[0]) if len(prop) else 1.0) for prop in tests))
        residual_gaps = residual_gaps - gap * in_part
    confirmed_parts = np.flatnonzero(find_discoveries(p))
    part_names = [", ".join(properties[i].levels[level] for i, level in part) for part, _ in parts]
    slices = [Slice(part_names[i], confirming[members[i]]) for i in confirmed_parts.tolist()]
    return slices, confirming


def _search(units: UnitGaps, properties: Sequence[Property]) -> list[tuple[Part, float]]:
    """Return the parts with the highest t values, each with its gap after those of the parts before it are removed."""
    parts: list[tuple[Part, float]] = []
    gaps = units.gaps
    while len(parts) < MAX_SLICES:
        best, best_t = None, 0.0
        for part, t, p in _test_parts(units, properties, gaps):
            penalized_t = abs(t) * (1.0 if len(part) == 1 else _PAIR_PENALTY)
            if p <= _MAX_P and penalized_t > best_t and part not in [known_part for known_part, _ in parts]:
                best, best_t = part, penalized_t
        if best is None:
            break
        members = _members(properties, best)
        gap = float(gaps[members].mean())
        parts.append((best, gap))
        gaps = gaps - gap * members
    return parts


def _test_parts(units: UnitGaps, properties: Sequence[Property], gaps: Floats) -> Iterator[tuple[Part, float, float]]:
    """Yield (part, t, p) of the MAX_SLICES + 1 levels of each property, and of each two properties, with the highest |t|.

    gaps (Floats): Gap of each unit, shape (n,).
    """
    for chosen_properties in [*((i,) for i in range(len(properties))), *combinations(range(len(properties)), 2)]:
        sizes = [len(properties[i].levels) for i in chosen_properties]
        codes = np.where(
            np.all([properties[i].codes >= 0 for i in chosen_properties], axis=0),
            np.ravel_multi_index([np.maximum(properties[i].codes, 0) for i in chosen_properties], sizes),
            -1,
        )
        parts, t_values, p = units.test_parts(codes, gaps)
        for index in np.argsort(-np.abs(t_values))[: MAX_SLICES + 1].tolist():
            levels = np.unravel_index(parts[index], sizes)
            part = tuple((i, int(level)) for i, level in zip(chosen_properties, levels, strict=True))
            yield part, float(t_values[index]), float(p[index])


def _members(properties: Sequence[Property], part: Part) -> NDArray[np.bool_]:
    members: NDArray[np.bool_] = np.all([properties[i].codes == level for i, level in part], axis=0)
    return members
