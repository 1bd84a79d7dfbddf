"""The table that `fit` prints: cross-validated errors of raw scores, of Kranzlein et al.'s method and of the fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...calibration.choice import score_by_group
from ...calibration.grouping.tag_frequency import regroup_by_frequency
from ...calibration.recalibrators import IsotonicRegression
from ...metrics.calibration_errors import calibration_error, group_slices, mean_of
from ...metrics.proper import brier, log_loss
from ...pairs.documents import folds_of
from ...types import Floats, Groups, Pairs
from ..shared.screen import TableColumn, msg, number, show_rows, whole
from .fit_output import is_span_fit

if TYPE_CHECKING:
    from ...pipe.component import Calibrator

_FOLDS = 5
_COLUMNS = {"raw": "Raw", "tfg_isotonic": "TFG-5 isotonic", "calibrated": "Calibrated"}  # key of a row -> title


def held_out_rows(calib: Calibrator) -> list[dict[str, Any]]:
    """Return a row for each metric of a fit from out-of-fold scores: SMCE and GMCE (calibration errors), log loss, Brier.

    calib (Calibrator): Must have been fitted in this process. "tfg_isotonic" is the method of Kranzlein et al. (2021): isotonic
    maps in five groups by frequency. All three scores have errors by the groups of the pipe.
    RETURNS (list): Dicts with "score" (name of the metric), "pairs" (number), and "raw", "tfg_isotonic", "calibrated" (values);
        [] if there are fewer than two documents.
    """
    info, spans = calib.fit_info, calib.held_out_spans
    evaluated, groups, labels = calib.held_out, calib.groups, calib.labels
    if spans is not None and info.spans is not None and is_span_fit(info):
        evaluated = spans.data.pairs_with(spans.held_out)
        groups, labels = calib.spans.groups, tuple(info.spans.labels)
    if evaluated is None or groups is None or len(np.unique(evaluated.documents)) < 2:
        return []
    pairs = evaluated.pairs
    five_groups = regroup_by_frequency(groups, labels, 5)
    tfg_isotonic = score_by_group(IsotonicRegression(), five_groups, pairs, folds_of(evaluated.documents, _FOLDS))
    scores = {"raw": pairs.scores, "tfg_isotonic": tfg_isotonic, "calibrated": evaluated.calibrated}
    return list(_rows(pairs, scores, groups, getattr(calib.scorer, "n_bins", 10)))


def _rows(pairs: Pairs, scores: Mapping[str, Floats], groups: Groups, n_bins: int) -> list[dict[str, Any]]:
    """Return the rows of `held_out_rows`. scores: Column -> score of each pair. n_bins: Bins of calibration errors."""
    error = partial(calibration_error, n_bins=n_bins)

    def row(title: str, selected: Any, metric: Callable[[Floats, Any], float | None]) -> dict[str, Any]:
        """Make a row of a metric over the selected pairs (a slice or indices)."""
        hits = pairs.hits[selected]
        figures = {column: metric(column_scores[selected], hits) for column, column_scores in scores.items()}
        return {"score": title, "pairs": len(hits), **figures}

    all_pairs = slice(None)
    group_pairs = group_slices(pairs, groups)
    group_rows = [row(f"GMCE {name}", selected, error) for name, selected in zip(groups.names, group_pairs, strict=True)]
    means = {column: mean_of([group_row[column] for group_row in group_rows]) for column in scores}
    return [
        row("SMCE", all_pairs, error),
        *group_rows,
        {"score": "GMCE, mean", "pairs": len(pairs), **means},
        row("Log loss", all_pairs, log_loss),
        row("Brier", all_pairs, brier),
    ]


def show_held_out(calib: Calibrator, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the rows of `held_out_rows` for a fitted pipe, if there are any, and name the groups that share a map."""
    if not rows:
        return
    info = calib.fit_info
    units = info.kind.span_words[1] if is_span_fit(info) else info.kind.label_words[1]
    msg.divider(f"Errors of {units} by cross-validation: each document by a fit on others")
    figures = (TableColumn(title, key, number) for key, title in _COLUMNS.items())
    show_rows(rows, (TableColumn("Score", "score", align="l"), TableColumn("Pairs", "pairs", whole), *figures))
    msg.text(
        "Lower is better. SMCE: calibration error of all pairs. GMCE: of each group, the most frequent labels first. "
        "TFG-5 isotonic: the method of Kranzlein et al. (2021), --groups 5 --method isotonic. Calibrated: this fit."
    )
    table = info.spans.table if info.spans and is_span_fit(info) else info.table
    for row in table[1:]:  # the first row is for all groups together
        if row.fallback.startswith("pooled"):
            msg.info(f"Group {row.group}: {row.fallback}")
