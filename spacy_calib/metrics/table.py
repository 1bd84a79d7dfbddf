"""The calibration table: errors of raw and calibrated scores, of all pairs and by group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..pairs.documents import DOCUMENT
from ..types import Floats, Groups, Ints, Pairs
from .by_document import error_interval, paired_difference
from .calibration_errors import calibration_error, ece, group_slices, mean_of
from .metric import Metric, check_short_names, figure_of, losses
from .noise_floors import noise_floor
from .proper import PROPER, accuracy


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

    pairs (Pairs), calibrated_scores (Floats): n pairs, and their scores after calibration. groups (Groups): Groups of tags.
    n_bins (int): Number of adaptive bins. seed (int): Seed of the random numbers of intervals and noise floors.
    documents: Document of each pair; None gives no intervals. unit: What counts as a document. metrics: Short name -> metric.
    RETURNS (dict): "tokens", "pairs", "accuracy"; "by": unit and number of the documents, None if they are not known;
        "errors": by `error_row` the l2 calibration error of all pairs ("all"), of each group, and the groups' average ("mean");
        "scores": name -> {"raw", "calibrated"} for ece and each metric; "change": loss -> {"value", "low", "high"}.
    RAISES C190: a metric has the name of a figure that is not a metric.
    """
    # (name, number of tags, indices of the pairs) of all pairs, and of those of each group.
    group_parts = zip(groups.names, groups.sizes, group_slices(pairs, groups), strict=True)
    parts = [("all", len(groups.of_tag), slice(None)), *group_parts]
    rows = [error_row(name, n_tags, pairs, calibrated_scores, index, n_bins, seed, documents) for name, n_tags, index in parts]
    rows.append(_mean_row(rows[1:], pairs, calibrated_scores, groups, n_bins, seed, documents))
    scores_by_kind = {"raw": pairs.scores, "calibrated": calibrated_scores}
    figures = {"ece": {kind: ece(pairs, scores, n_bins) for kind, scores in scores_by_kind.items()}}
    for short, metric in check_short_names(metrics).items():
        figures[short] = {kind: figure_of(metric, scores, pairs.hits) for kind, scores in scores_by_kind.items()}
    return {
        "tokens": pairs.n_units,
        "pairs": len(pairs.scores),
        "accuracy": accuracy(pairs),
        "by": None if documents is None else {"unit": unit, "n": len(np.unique(documents))},
        "errors": rows,
        "scores": figures,
        "change": _loss_changes(pairs, calibrated_scores, documents, seed, metrics),
    }


def error_row(
    group: str, tags: int, pairs: Pairs, calibrated_scores: Floats, index: Any, n_bins: int, seed: int, documents: Ints | None
) -> dict[str, Any]:
    """Return a row of the calibration table: the calibration errors of some pairs, which are None without pairs.

    group (str), tags (int): Name of this set of pairs, and number of tags in it. index (Any): Selects these pairs, as indices
        or a slice. Other arguments: as for `calibration_table`.
    RETURNS (dict): "group", "tags"; "pairs": their number; "raw", "calibrated": error of the raw and the calibrated scores;
        "debiased": the calibrated error less the noise in the bins; "true_low", "true_high": 95 % interval of the calibrated
        error with endless data, by bootstrap over documents; the measured error may lie above it. These three are None if
        documents are not known, or there is only one. "floor", "floor95": mean and 95 % quantile of the error that perfectly
        calibrated scores would show.
    """
    raw, calibrated, hits = pairs.scores[index], calibrated_scores[index], pairs.hits[index]
    return {
        "group": group,
        "tags": tags,
        "pairs": len(raw),
        "raw": calibration_error(raw, hits, n_bins),
        "calibrated": calibration_error(calibrated, hits, n_bins),
        **_noise_figures(calibrated, hits, None if documents is None else documents[index], n_bins, seed),
    }


def _mean_row(
    rows: list[dict[str, Any]], pairs: Pairs, calibrated_scores: Floats, groups: Groups, n_bins: int, seed: int, documents: Any
) -> dict[str, Any]:
    """Return the row "mean" of a `calibration_table` of these arguments: means over its groups. rows: Row of each group."""
    totals = {key: sum(row[key] for row in rows) for key in ("tags", "pairs")}
    noise = _noise_figures(calibrated_scores, pairs.hits, documents, n_bins, seed, groups.find(pairs.tags))
    raw, calibrated, floor = (mean_of([row[key] for row in rows]) for key in ("raw", "calibrated", "floor"))
    return {"group": "mean", **totals, "raw": raw, "calibrated": calibrated, **noise, "floor": floor}  # in place of noise's


def _noise_figures(
    scores: Floats, hits: NDArray[np.bool_], documents: Ints | None, n_bins: int, seed: int, groups: Ints | None = None
) -> dict[str, Any]:
    """Return the fields of `error_row` on noise: "debiased", "true_low", "true_high", "floor" and "floor95".

    groups (Ints | None): Group of each score; the figures are then of the mean of the groups' errors. None: of all scores.
    """
    interval = None if documents is None else error_interval(scores, hits, documents, n_bins, seed=seed, groups=groups)
    floor = noise_floor(scores, n_bins, seed=seed, groups=groups)
    keys = {"debiased": "corrected", "true_low": "low", "true_high": "high"}
    fields = {name: getattr(interval, key, None) for name, key in keys.items()}  # an interval that is None has no attributes
    return {**fields, "floor": getattr(floor, "mean", None), "floor95": getattr(floor, "q95", None)}


def _loss_changes(
    pairs: Pairs, calibrated_scores: Floats, documents: Ints | None, seed: int, metrics: Mapping[str, Metric]
) -> dict[str, dict[str, float | None]]:
    """Return how calibration changes each mean loss (such as log loss) in `metrics`: calibrated - raw; below 0 is better.

    RETURNS (dict): Short name -> {"value", "low", "high"}: change and its 95 % interval by document; None if not known.
    """
    # A single document gives a value without an interval.
    document_of_pair = np.zeros(len(pairs)) if documents is None else documents
    changes = {}
    for name, loss in losses(metrics).items():
        new, old = loss(calibrated_scores, pairs.hits), loss(pairs.scores, pairs.hits)
        interval = paired_difference(new, old, document_of_pair, seed=seed)
        fields = {"value": "estimate", "low": "low", "high": "high"}
        changes[name] = {key: getattr(interval, field, None) for key, field in fields.items()}
    return changes
