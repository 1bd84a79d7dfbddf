"""Parts of the data that have something in common, and how true the scores are in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from ..metrics.gaps import RATE, Gap, documents_apart, gap_of, stand
from ..metrics.table import Judging
from ..pairs.build import JudgedPairs
from ..types import Ints

# A slice with fewer is not judged.
FEWEST_UNITS, FEWEST_DOCUMENTS = 30, 2
# Of each bin of a slice, at least.
_IN_A_BIN = 20


class Slice(NamedTuple):
    """name (str): In words. units (Ints): Places in the judged pairs, one for each token or entity."""

    name: str
    units: Ints


def slices_by(values: Sequence[str | None], docs: Ints, units: Ints) -> list[Slice]:
    """A slice for each value, in the order of the alphabet.

    values (Sequence): Of each Doc; None for one without. docs (Ints): Doc of each unit, as a place in values, shape (n,). units (Ints): Their places
    in the judged pairs, (n,).
    """
    names = sorted({value for value in values if value is not None})
    number = {name: place for place, name in enumerate(names)}
    of_docs = np.array([-1 if value is None else number[value] for value in values], dtype=np.intp)
    order = np.argsort(of_docs[docs], kind="stable")
    bounds = np.searchsorted(of_docs[docs][order], np.arange(len(names) + 1))
    return [Slice(name, units[order[bounds[place] : bounds[place + 1]]]) for name, place in number.items()]


def judge_slices(judged: JudgedPairs, slices: Sequence[Slice], among: Ints, n_bins: int = 10, seed: int = 0) -> dict[str, Any]:
    """How true the calibrated scores are in each slice, those that are surely off first, then the largest gaps.

    judged (JudgedPairs): One pair for each unit that a slice names: its label, and whether that is right. among (Ints): Places of all units, sliced or
        not, which tell how far documents differ.
    RETURNS (dict): "rate", "too_small" (how many slices are not judged) and "rows": "slice" (its name), "n" and "documents", mean "score", share
        "right", "gap" with "low" and "high" of its 95 % interval, "p" and "off" (see `metrics.gaps`), and the figures of
        `metrics.table.ErrorRow`, with bins of twenty or more.
    """
    found, small = [], 0
    apart = documents_apart(judged.calibrated[among], judged.pairs.hits[among], judged.documents[among])
    for name, units in slices:
        gap = gap_of(judged.calibrated[units], judged.pairs.hits[units], judged.documents[units], apart)
        if gap is None or gap.n < FEWEST_UNITS or gap.documents < FEWEST_DOCUMENTS:
            small += 1
        else:
            found.append((name, units, gap))
    off = stand([gap.p for _, _, gap in found])
    rows = [
        {**_row(judged, name, units, gap, n_bins, seed), "off": bool(one)}
        for (name, units, gap), one in zip(found, off, strict=True)
    ]
    return {"rate": RATE, "too_small": small, "rows": sorted(rows, key=lambda row: (not row["off"], -abs(row["gap"])))}


def _row(judged: JudgedPairs, name: str, units: Ints, gap: Gap, n_bins: int, seed: int) -> dict[str, Any]:
    judging = Judging(max(1, min(n_bins, gap.n // _IN_A_BIN)), seed, judged.documents)
    errors = asdict(judging.row(name, 0, judged.pairs, judged.calibrated, units))
    kept = ("pairs", "raw", "calibrated", "debiased", "true_low", "true_high", "floor", "floor95")
    return {"slice": name, **gap.to_dict(), **{key: errors[key] for key in kept}}
