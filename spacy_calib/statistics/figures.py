"""Figures from tables alone: what `calib evaluate` shows, from the counts of judged pairs; and how true the raw scores of a fit are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..calibration.grouped import Countable
from ..calibration.grouping.alone import group_beside
from ..calibration.grouping.tag_frequency import tag_frequency_groups
from ..metrics.calibration_error import gmce, mean_of, smce
from ..metrics.noise_floor import noise_floor
from ..metrics.proper import PROPER, brier, log_loss
from ..metrics.table import calibration_table
from ..pairs.documents import DOCUMENT, block_of
from ..types import OUTSIDE, Groups, Pairs
from .collected import FitStatistics
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

    n_bins, seed, metrics: See there. unit (str | None): What a document is; None where documents are not known. RAISES C190: see there.
    """
    rows, hits, weights = counts.by_hit()
    raw, calibrated, likeliest = (key[rows].astype(np.float64) for key in counts.keys)
    pairs = Pairs(np.zeros(len(rows), dtype=np.intp), counts.tags[rows].astype(np.intp), raw, hits, counts.units)
    what = unit or DOCUMENT
    return calibration_table(
        pairs,
        calibrated,
        groups,
        n_bins,
        seed,
        None if unit is None else counts.blocks[rows].astype(np.intp),
        what if counts.documents.single else block_of(what),
        metrics,
        weights,
        np.flatnonzero(likeliest),
    )


def frequency_groups(statistics: FitStatistics) -> Groups:
    """The groups that a pipe makes by default: the labels of the statistics by gold frequency; of entities and spans "O" is one of its own."""
    alone = (OUTSIDE,) if statistics.identity.span_labels else ()
    return group_beside(tag_frequency_groups, statistics.identity.labels, statistics.totals.counts, alone)


def raw_figures(counts: Countable, groups: Groups, n_bins: int = 10, seed: int = 0) -> dict[str, Any]:
    """How true the scores of a fit are before calibration, from the cells of its pairs, which stand for them by their mean scores.

    n_bins, seed: Adaptive bins, and of the simulation of the floor. RETURNS (dict): "pairs", "groups" (their number), "smce", "mean_gmce",
        "floor" (of SMCE, mean), "brier", "nll"; None without pairs.
    """
    scores, hits, weights, tags = counts.tagged()
    pairs = Pairs(np.zeros(len(scores), dtype=np.intp), tags, scores, hits, 0)
    floor = noise_floor(scores, n_bins, seed=seed, weights=weights)
    return {
        "pairs": int(weights.sum()),
        "groups": len(groups),
        "smce": smce(pairs, None, n_bins, weights=weights),
        "mean_gmce": mean_of(gmce(pairs, groups, None, n_bins, weights=weights)),
        "floor": floor.mean if floor else None,
        "brier": brier(scores, hits, weights),
        "nll": log_loss(scores, hits, weights),
    }
