"""Figures from tables alone: what `calib evaluate` shows, from the counts of judged pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..metrics.proper import PROPER
from ..metrics.table import calibration_table
from ..pairs.documents import DOCUMENT
from ..types import Groups, Pairs
from .tables import JudgedCounts


def table_of_counts(
    counts: JudgedCounts,
    groups: Groups,
    n_bins: int = 10,
    seed: int = 0,
    unit: str | None = DOCUMENT,
    metrics: Mapping[str, Any] = PROPER,
) -> dict[str, Any]:
    """What `calibration_table` gives of the pairs that were counted; blocks of documents stand for documents.

    n_bins, seed, metrics: See there. unit (str | None): What a block is; None where documents are not known. RAISES C190: see there.
    """
    misses = counts.pairs - counts.hits
    rows = np.concatenate([np.flatnonzero(misses), np.flatnonzero(counts.hits)])
    n_misses = int(np.count_nonzero(misses))
    weights = np.concatenate([misses[rows[:n_misses]], counts.hits[rows[n_misses:]]]).astype(np.float64)
    raw, calibrated, likeliest = (key[rows].astype(np.float64) for key in counts.keys)
    pairs = Pairs(
        np.zeros(len(rows), dtype=np.intp),
        counts.tags[rows].astype(np.intp),
        raw,
        np.arange(len(rows)) >= n_misses,
        counts.units,
    )
    return calibration_table(
        pairs,
        calibrated,
        groups,
        n_bins,
        seed,
        None if unit is None else counts.blocks[rows].astype(np.intp),
        unit or DOCUMENT,
        metrics,
        weights,
        np.flatnonzero(likeliest),
    )
