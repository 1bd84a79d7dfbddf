"""Parts of the data that have something in common, and how well calibrated scores are in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

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


def slices_by(values: Sequence[str | None], docs: Ints, units: Ints) -> list[Slice]:
    """Return a slice for each value, sorted. values (Sequence): Of each Doc, or None. units (Ints): Places in the pairs."""
    names = sorted({value for value in values if value is not None})
    number = {name: place for place, name in enumerate(names)}
    of_docs = np.array([-1 if value is None else number[value] for value in values], dtype=np.intp)
    order = np.argsort(of_docs[docs], kind="stable")
    bounds = np.searchsorted(of_docs[docs][order], np.arange(len(names) + 1))
    return [Slice(name, units[order[bounds[place] : bounds[place + 1]]]) for name, place in number.items()]


def judge_slices(pairs: JudgedPairs, slices: Sequence[Slice], among: Ints, n_bins: int = 10, seed: int = 0) -> dict[str, Any]:
    """Evaluate the scores in each slice: those that are surely off first, then the largest gaps.

    judged (JudgedPairs): A pair of each unit and its label. among (Ints): Places of all units, which show how far documents
    differ. RETURNS (dict): "rate", "too_small" (slices not evaluated), and "rows" with the figures of `metrics.gaps` and
    `metrics.table.ErrorRow`.
    """
    tested_slices, small = [], 0
    document_spread = documents_apart(pairs.calibrated[among], pairs.pairs.hits[among], pairs.documents[among])
    for name, units in slices:
        gap = gap_of(pairs.calibrated[units], pairs.pairs.hits[units], pairs.documents[units], document_spread)
        if gap is None or gap.n < FEWEST_UNITS or gap.documents < FEWEST_DOCUMENTS:
            small += 1
        else:
            tested_slices.append((name, units, gap))
    off = stand([gap.p for _, _, gap in tested_slices])
    rows = [
        {**_row(pairs, name, units, gap, n_bins, seed), "off": bool(flag)}
        for (name, units, gap), flag in zip(tested_slices, off, strict=True)
    ]
    return {"rate": RATE, "too_small": small, "rows": sorted(rows, key=lambda row: (not row["off"], -abs(row["gap"])))}


def _row(pairs: JudgedPairs, name: str, units: Ints, gap: Gap, n_bins: int, seed: int) -> dict[str, Any]:
    judging = Judging(max(1, min(n_bins, gap.n // _IN_A_BIN)), seed, pairs.documents)
    errors = asdict(judging.row(name, 0, pairs.pairs, pairs.calibrated, units))
    names = ("pairs", "raw", "calibrated", "debiased", "true_low", "true_high", "floor", "floor95")
    return {"slice": name, **gap.to_dict(), **{key: errors[key] for key in names}}
