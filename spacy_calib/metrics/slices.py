"""Slices: parts of the data that share a property, and how well calibrated scores are in each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypedDict

import numpy as np

from ..pairs.build import JudgedPairs
from ..types import Ints
from .gaps import RATE, Gap, document_overdispersion, find_discoveries, gap_of
from .table import TableSettings

# A slice with fewer units, or documents, is not evaluated.
FEWEST_UNITS, FEWEST_DOCUMENTS = 30, 2
# Minimum number of units in each bin of a slice.
_IN_A_BIN = 20


class Slice(NamedTuple):
    """A part of the data. name (str): The property that its units (tokens or entities) share, in words.

    units (Ints): Indices of its units, shape (n_units,); `judge_slices` wants the index of each unit's pair of its top label.
    """

    name: str
    units: Ints


class SliceRow(TypedDict):
    """An evaluated slice. slice: Its name. off: Whether its scores are significantly too high or too low.

    n, documents, score, right, gap, low, high, p: The fields of the `Gap` of its units. pairs, raw, calibrated, debiased,
    true_low, true_high, floor, floor95: Those fields of the `ErrorRow` of its pairs.
    """

    slice: str
    n: int
    documents: int
    score: float
    right: float
    gap: float
    low: float | None
    high: float | None
    p: float
    pairs: int
    raw: float | None
    calibrated: float | None
    debiased: float | None
    true_low: float | None
    true_high: float | None
    floor: float | None
    floor95: float | None
    off: bool


class SliceTable(TypedDict):
    """Evaluated slices (`rows`). rate (float): False discovery rate of `off`. too_small (int): Number of slices left out."""

    rate: float
    too_small: int
    rows: list[SliceRow]


def slices_by(values: Sequence[str | None], docs: Ints, units: Ints) -> list[Slice]:
    """Return a slice for each distinct value, with the units of the Docs with that value; sorted by value.

    values (Sequence): The value of each Doc, or None for no slice. docs, units (Ints): Doc of each unit, and the index of the
        unit that goes into `Slice.units`, shape (n_units,).
    """
    names = sorted({value for value in values if value is not None})
    number = {name: i for i, name in enumerate(names)}
    number_of_doc = np.array([-1 if value is None else number[value] for value in values], dtype=np.intp)
    order = np.argsort(number_of_doc[docs], kind="stable")
    bounds = np.searchsorted(number_of_doc[docs][order], np.arange(len(names) + 1))
    return [Slice(name, units[order[bounds[i] : bounds[i + 1]]]) for name, i in number.items()]


def judge_slices(view: JudgedPairs, slices: Sequence[Slice], among: Ints, n_bins: int = 10, seed: int = 0) -> SliceTable:
    """Evaluate the scores in each slice: those that are significantly off first, then the largest gaps.

    view (JudgedPairs): All pairs with gold; slices have indices of them. among (Ints): Indices of the pairs of all units with
        their top labels, shape (n_units,), which show how much more documents vary than independent scores.
    """
    slice_gaps: list[tuple[str, Ints, Gap]] = []
    hits = view.pairs.hits
    overdispersion = document_overdispersion(view.calibrated[among], hits[among], view.documents[among])
    for name, units in slices:
        gap = gap_of(view.calibrated[units], hits[units], view.documents[units], overdispersion)
        if gap is not None and gap.n >= FEWEST_UNITS and gap.documents >= FEWEST_DOCUMENTS:
            slice_gaps.append((name, units, gap))
    is_off = find_discoveries([gap.p for _, _, gap in slice_gaps]).tolist()
    rows = []
    for (name, units, slice_gap), off in zip(slice_gaps, is_off, strict=True):
        settings = TableSettings(max(1, min(n_bins, slice_gap.n // _IN_A_BIN)), seed, view.documents)
        rows.append(_slice_row(view, Slice(name, units), slice_gap, off, settings))
    rows.sort(key=lambda row: (not row["off"], -abs(row["gap"])))
    return SliceTable(rate=RATE, too_small=len(slices) - len(slice_gaps), rows=rows)


def _slice_row(view: JudgedPairs, part: Slice, gap: Gap, off: bool, settings: TableSettings) -> SliceRow:
    """Return the row of a slice: its gap, and the calibration errors of its pairs."""
    errors = settings.row(part.name, 0, view.pairs, view.calibrated, part.units)
    return SliceRow(
        slice=part.name, n=gap.n, documents=gap.documents, score=gap.score, right=gap.right, gap=gap.gap, low=gap.low,
        high=gap.high, p=gap.p,
        pairs=errors.pairs, raw=errors.raw, calibrated=errors.calibrated, debiased=errors.debiased, true_low=errors.true_low,
        true_high=errors.true_high, floor=errors.floor, floor95=errors.floor95, off=off,
    )  # fmt: skip
