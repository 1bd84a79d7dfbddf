"""Parts of the data that have something in common, and how well calibrated scores are in each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypedDict

import numpy as np

from ..pairs.build import JudgedPairs
from ..types import Ints
from .gaps import RATE, Gap, documents_apart, gap_of, stand
from .table import Judging

# A slice with fewer is not judged.
FEWEST_UNITS, FEWEST_DOCUMENTS = 30, 2
# Of each bin of a slice, at least.
_IN_A_BIN = 20


class Slice(NamedTuple):
    """name (str): In words. units (Ints): Places in the judged pairs, one for each token or entity."""

    name: str
    units: Ints


class SliceRow(TypedDict):
    """A slice: the figures of its `Gap`, those of its `metrics.table.ErrorRow`, and whether its scores are surely off."""

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
    """rate (float): The false discovery rate of "off". too_small (int): Slices that are not evaluated."""

    rate: float
    too_small: int
    rows: list[SliceRow]


def slices_by(values: Sequence[str | None], docs: Ints, units: Ints) -> list[Slice]:
    """Return a slice for each value, sorted. values (Sequence): Of each Doc, or None. units (Ints): Places in the pairs."""
    names = sorted({value for value in values if value is not None})
    number = {name: place for place, name in enumerate(names)}
    of_docs = np.array([-1 if value is None else number[value] for value in values], dtype=np.intp)
    order = np.argsort(of_docs[docs], kind="stable")
    bounds = np.searchsorted(of_docs[docs][order], np.arange(len(names) + 1))
    return [Slice(name, units[order[bounds[place] : bounds[place + 1]]]) for name, place in number.items()]


def judge_slices(view: JudgedPairs, slices: Sequence[Slice], among: Ints, n_bins: int = 10, seed: int = 0) -> SliceTable:
    """Evaluate the scores in each slice: those that are surely off first, then the largest gaps.

    view (JudgedPairs): A pair of each unit and its label. among (Ints): Places of all units, which show how far documents differ.
    """
    tested: list[tuple[str, Ints, Gap]] = []
    hits = view.pairs.hits
    document_spread = documents_apart(view.calibrated[among], hits[among], view.documents[among])
    for name, units in slices:
        gap = gap_of(view.calibrated[units], hits[units], view.documents[units], document_spread)
        if gap is not None and gap.n >= FEWEST_UNITS and gap.documents >= FEWEST_DOCUMENTS:
            tested.append((name, units, gap))
    rows = [
        _row(view, Slice(name, units), gap, off, Judging(max(1, min(n_bins, gap.n // _IN_A_BIN)), seed, view.documents))
        for (name, units, gap), off in zip(tested, stand([gap.p for _, _, gap in tested]).tolist(), strict=True)
    ]
    rows.sort(key=lambda row: (not row["off"], -abs(row["gap"])))
    return SliceTable(rate=RATE, too_small=len(slices) - len(tested), rows=rows)


def _row(view: JudgedPairs, part: Slice, gap: Gap, off: bool, judging: Judging) -> SliceRow:
    errors = judging.row(part.name, 0, view.pairs, view.calibrated, part.units)
    return SliceRow(
        slice=part.name, n=gap.n, documents=gap.documents, score=gap.score, right=gap.right, gap=gap.gap, low=gap.low, high=gap.high, p=gap.p,
        pairs=errors.pairs, raw=errors.raw, calibrated=errors.calibrated, debiased=errors.debiased, true_low=errors.true_low,
        true_high=errors.true_high, floor=errors.floor, floor95=errors.floor95, off=off,
    )  # fmt: skip
