"""Pairs and calibrated scores -> the rows of a calibration table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..pairs.documents import DOCUMENT
from ..types import Floats, Groups, Ints, Pairs
from .by_document import error_interval, mean_gmce_interval, paired_difference
from .calibration_errors import calibration_error, calibration_error_interval, ece, group_slices, mean_of
from .metric import figure_of, listed, losses
from .noise_floors import mean_gmce_floor, noise_floor
from .proper import PROPER, accuracy


@dataclass(frozen=True)
class ErrorRow:
    """Calibration error of one set of pairs; None where it holds no pairs.

    group (str): "all" (SMCE), the name of a group (GMCE), or "mean" (unweighted mean GMCE).
    tags (int): Tags in it. pairs (int): Pairs in it.
    raw, calibrated (float): The error. low, high (float): 95 % interval of the calibrated one by sampling its bins
        (Nguyen & O'Connor 2015, Algorithm 2): where a measurement with the same bins would fall.
    debiased (float): The calibrated error less the noise in the bins; the measured error may lie above the next two.
    true_low, true_high (float): 95 % interval of the error that endless data would show, by bootstrap over documents.
        These three are None where documents are not known, or there is one.
    floor, floor95 (float): Error that exactly true scores would show: mean and 95 % quantile.
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
class Judging:
    """How a table is made. n_bins (int): Adaptive bins. seed (int): Of all random numbers. documents: Of each pair."""

    n_bins: int
    seed: int
    documents: Ints | None

    def row(self, group: str, tags: int, pairs: Pairs, calibrated: Floats, where: Any) -> ErrorRow:
        """The row of the pairs at `where`."""
        raw, new, hits = pairs.scores[where], calibrated[where], pairs.hits[where]
        low, high = calibration_error_interval(new, hits, self.n_bins, seed=self.seed) or (None, None)
        floor = noise_floor(new, self.n_bins, seed=self.seed)
        true = None
        if self.documents is not None:
            true = error_interval(new, hits, self.documents[where], self.n_bins, seed=self.seed)
        return ErrorRow(
            group,
            tags,
            len(raw),
            calibration_error(raw, hits, self.n_bins),
            calibration_error(new, hits, self.n_bins),
            low,
            high,
            true.corrected if true else None,
            true.low if true else None,
            true.high if true else None,
            floor.mean if floor else None,
            floor.q95 if floor else None,
        )

    def mean_row(self, rows: list[ErrorRow], pairs: Pairs, calibrated: Floats, groups: Groups) -> ErrorRow:
        """The unweighted mean of the groups' rows."""
        mean = {key: mean_of([getattr(row, key) for row in rows]) for key in ("raw", "calibrated", "floor")}
        floor = mean_gmce_floor(pairs, groups, calibrated, self.n_bins, seed=self.seed)
        true = None
        if self.documents is not None:
            true = mean_gmce_interval(pairs, groups, self.documents, calibrated, self.n_bins, seed=self.seed)
        return ErrorRow(
            "mean",
            sum(row.tags for row in rows),
            sum(row.pairs for row in rows),
            **mean,
            debiased=true.corrected if true else None,
            true_low=true.low if true else None,
            true_high=true.high if true else None,
            floor95=floor.q95 if floor else None,
        )


def calibration_table(
    pairs: Pairs,
    calibrated: Floats,
    groups: Groups,
    n_bins: int = 10,
    seed: int = 0,
    documents: Ints | None = None,
    unit: str = DOCUMENT,
    metrics: Mapping[str, Any] = PROPER,
) -> dict[str, Any]:
    """Everything that `spacy calib evaluate` shows, as plain data.

    documents (Ints | None): Of each pair, for the intervals of the true error. unit (str): What a document is.
    metrics (Mapping): Short name -> metric.
    RETURNS (dict): "tokens", "pairs", "accuracy"; "by": what the intervals resample, None where that is not known;
        "errors": an ErrorRow for all, each group and the mean, as dicts;
        "scores": name -> {"raw", "calibrated"} for ece and each metric; "change": of `changes`.
    RAISES C190: a metric has the name of a figure that is not a metric.
    """
    judging = Judging(n_bins, seed, documents)
    rows = [judging.row("all", len(groups.of_tag), pairs, calibrated, slice(None))]
    rows += [
        judging.row(name, size, pairs, calibrated, where)
        for name, size, where in zip(groups.names, groups.sizes, group_slices(pairs, groups), strict=True)
    ]
    rows.append(judging.mean_row(rows[1:], pairs, calibrated, groups))
    rows_of_both = {"raw": pairs.scores, "calibrated": calibrated}
    return {
        "tokens": pairs.n_units,
        "pairs": len(pairs.scores),
        "accuracy": accuracy(pairs),
        "by": None if documents is None else {"unit": unit, "n": len(np.unique(documents))},
        "errors": [asdict(row) for row in rows],
        "scores": {
            "ece": {key: ece(pairs, values, n_bins) for key, values in rows_of_both.items()},
            **{
                short: {key: figure_of(metric, values, pairs.hits) for key, values in rows_of_both.items()}
                for short, metric in listed(metrics).items()
            },
        },
        "change": changes(pairs, calibrated, documents, seed, metrics),
    }


def changes(
    pairs: Pairs,
    calibrated: Floats,
    documents: Ints | None,
    seed: int = 0,
    metrics: Mapping[str, Any] = PROPER,
) -> dict[str, dict[str, float | None]]:
    """What calibration changed of each mean loss (log loss, Brier score): calibrated less raw; below 0 is better.

    RETURNS (dict): Name -> "value" with "low" and "high" of its 95 % interval by document, None where not known.
    """
    intervals = {}
    for name, loss in losses(metrics).items():
        new, old = loss(calibrated, pairs.hits), loss(pairs.scores, pairs.hits)
        document_of_pair = (
            np.zeros(len(pairs)) if documents is None else documents
        )  # one document gives a value without an interval
        interval = paired_difference(new, old, document_of_pair, seed=seed)
        intervals[name] = {key: getattr(interval, key, None) for key in ("estimate", "low", "high")}
    return {name: {"value": row.pop("estimate"), **row} for name, row in intervals.items()}
