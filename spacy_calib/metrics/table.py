"""The calibration table: errors of raw and calibrated scores, of all pairs and by group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..pairs.documents import DOCUMENT
from ..types import Floats, Groups, Ints, Pairs
from .by_document import Interval, error_interval, mean_gmce_interval, paired_difference
from .calibration_errors import calibration_error, calibration_error_interval, ece, group_slices, mean_of
from .metric import Metric, figure_of, losses, select_listed
from .noise_floors import NoiseFloor, mean_gmce_floor, noise_floor
from .proper import PROPER, accuracy


@dataclass(frozen=True)
class ErrorRow:
    """Calibration errors of one set of pairs, a row of the calibration table; errors are None without pairs.

    group (str): "all" (SMCE), the name of a group (GMCE), or "mean" (unweighted mean GMCE). tags, pairs (int): Number of tags
        and pairs. raw, calibrated (float): Error of raw, calibrated scores. low, high (float): 95 % interval of `calibrated`,
        where another measurement with the same bins would fall, by sampling bins (Nguyen & O'Connor 2015, Algorithm 2).
    debiased (float): The calibrated error less the noise in the bins.
    true_low, true_high (float): 95 % interval of the calibrated error with endless data, by bootstrap over documents; the
        measured error may lie above it. They and `debiased` are None if documents are not known, or there is only one.
    floor, floor95 (float): Error that perfectly calibrated scores would show: mean and 95 % quantile.
    """

    group: str
    tags: int
    pairs: int
    raw: float | None
    calibrated: float | None
    low: float | None = None
    high: float | None = None
    debiased: float | None = None
    true_low: float | None = None
    true_high: float | None = None
    floor: float | None = None
    floor95: float | None = None


@dataclass(frozen=True)
class TableSettings:
    """Settings of a table. n_bins (int): Adaptive bins. seed (int): Of random numbers. documents: Of each pair, or None."""

    n_bins: int
    seed: int
    documents: Ints | None

    def row(self, group: str, tags: int, pairs: Pairs, calibrated_scores: Floats, index: Any) -> ErrorRow:
        """Return the row of the pairs at `index` (indices, or a slice). group, tags: Its name, and number of tags in it."""
        raw, new, hits = pairs.scores[index], calibrated_scores[index], pairs.hits[index]
        low, high = calibration_error_interval(new, hits, self.n_bins, seed=self.seed) or (None, None)
        floor = noise_floor(new, self.n_bins, seed=self.seed)
        documents = None if self.documents is None else self.documents[index]
        interval = None if documents is None else error_interval(new, hits, documents, self.n_bins, seed=self.seed)
        error, new_error = (calibration_error(scores, hits, self.n_bins) for scores in (raw, new))
        return ErrorRow(group, tags, len(raw), error, new_error, low, high, **_true_error(interval, floor))

    def mean_row(self, rows: list[ErrorRow], pairs: Pairs, calibrated_scores: Floats, groups: Groups) -> ErrorRow:
        """Return the last row of a table: GMCE averaged over groups, with interval and noise floor. rows: One per group."""
        mean = {key: mean_of([getattr(row, key) for row in rows]) for key in ("raw", "calibrated", "floor")}
        floor = mean_gmce_floor(pairs, groups, calibrated_scores, self.n_bins, seed=self.seed)
        interval = None
        if self.documents is not None:
            interval = mean_gmce_interval(pairs, groups, self.documents, calibrated_scores, self.n_bins, seed=self.seed)
        tags, n = sum(row.tags for row in rows), sum(row.pairs for row in rows)
        return ErrorRow("mean", tags, n, **{**_true_error(interval, floor), **mean})


def _true_error(interval: Interval | None, floor: NoiseFloor | None) -> dict[str, Any]:
    """Return five fields of an ErrorRow: debiased, true_low, true_high (of the interval), floor, floor95; None if unknown."""
    keys = {"debiased": "corrected", "true_low": "low", "true_high": "high"}
    fields = {name: getattr(interval, key, None) for name, key in keys.items()}
    return {**fields, "floor": getattr(floor, "mean", None), "floor95": getattr(floor, "q95", None)}


def calibration_table(
    pairs: Pairs,
    calibrated_scores: Floats,
    groups: Groups,
    n_bins: int = 10,
    seed: int = 0,
    documents: Ints | None = None,
    unit: str = DOCUMENT,
    metrics: Mapping[str, Metric] = PROPER,
) -> dict[str, Any]:
    """Return all figures that `spacy calib evaluate` shows, as plain data.

    pairs (Pairs), calibrated_scores (Floats): n pairs, and their scores after calibration. groups (Groups): Of the tags.
    documents (Ints | None): Of each pair, for intervals. unit (str): What counts as a document. metrics: Short name -> metric.
    RETURNS (dict): "tokens", "pairs", "accuracy"; "by": unit and number of the documents, None if they are not known;
        "errors": rows for all pairs, for each group and for the mean of the groups: the fields of an ErrorRow, as dicts;
        "scores": name -> {"raw", "calibrated"} for ece and each metric; "change": loss -> {"value", "low", "high"}.
    RAISES C190: a metric has the name of a figure that is not a metric.
    """
    settings = TableSettings(n_bins, seed, documents)
    rows = [settings.row("all", len(groups.of_tag), pairs, calibrated_scores, slice(None))]
    rows += [
        settings.row(name, size, pairs, calibrated_scores, index)
        for name, size, index in zip(groups.names, groups.sizes, group_slices(pairs, groups), strict=True)
    ]
    rows.append(settings.mean_row(rows[1:], pairs, calibrated_scores, groups))
    scores_by_kind = {"raw": pairs.scores, "calibrated": calibrated_scores}
    return {
        "tokens": pairs.n_units, "pairs": len(pairs.scores), "accuracy": accuracy(pairs),
        "by": None if documents is None else {"unit": unit, "n": len(np.unique(documents))},
        "errors": [asdict(row) for row in rows],
        "scores": {
            "ece": {key: ece(pairs, values, n_bins) for key, values in scores_by_kind.items()},
            **{
                short: {key: figure_of(metric, values, pairs.hits) for key, values in scores_by_kind.items()}
                for short, metric in select_listed(metrics).items()
            },
        },
        "change": changes(pairs, calibrated_scores, documents, seed, metrics),
    }  # fmt: skip


def changes(
    pairs: Pairs, calibrated_scores: Floats, documents: Ints | None, seed: int = 0, metrics: Mapping[str, Metric] = PROPER
) -> dict[str, dict[str, float | None]]:
    """Return how calibration changes each mean loss (log loss, Brier score): calibrated - raw; below 0 is better.

    RETURNS (dict): Short name -> {"value", "low", "high"}: change and its 95 % interval by document; None each if not known.
    """
    # A single document gives a value without an interval.
    document_of_pair = np.zeros(len(pairs)) if documents is None else documents
    intervals = {}
    for name, loss in losses(metrics).items():
        new, old = loss(calibrated_scores, pairs.hits), loss(pairs.scores, pairs.hits)
        interval = paired_difference(new, old, document_of_pair, seed=seed)
        intervals[name] = {key: getattr(interval, key, None) for key in ("estimate", "low", "high")}
    return {name: {"value": row.pop("estimate"), **row} for name, row in intervals.items()}
