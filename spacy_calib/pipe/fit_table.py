"""What a fit learned -> the rows of the table that `fit` and `info` print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..calibration.grouped import Countable, GroupedRecalibrator, GroupFit
from ..calibration.span_fit import SpanFit
from ..metrics.calibration_error import calibration_error, group_slices
from ..types import Floats, Groups, Pairs
from .fit_info import FitRow


def summarize_fit(
    pairs: Pairs, scaled: Floats, maps: GroupedRecalibrator, groups: Groups, n_bins: int = 10, counted: Countable | None = None
) -> list[FitRow]:
    """A row for all pairs and one per group: what it was fitted on and its error on that same data, raw and calibrated.

    scaled (Floats): What the maps were fitted on: the pairs' own scores, or those of a scaling.
    groups (Groups): Of the rows; where they are not those of the maps, a row tells how many groups have a map.
    counted (Countable | None): What the maps were fitted on, where `pairs` are a sample of it.
    """
    calibrated = maps.predict(scaled, pairs.tags)
    fits = maps.fits_
    if groups.names != maps.groups.names or not np.array_equal(groups.of_tag, maps.groups.of_tag):
        whose = "one for all tags" if len(maps.groups) == 1 else f"of one of {len(maps.groups)} groups"
        fits = [GroupFit(*sizes, whose) for sizes in _sizes(pairs, groups, counted)]
    return _summary(pairs, calibrated, groups, [maps.pooled_fit_, *fits], n_bins)


def _sizes(pairs: Pairs, groups: Groups, counted: Countable | None) -> list[tuple[int, int]]:
    """Pairs and hits of each group: those that were counted, else those of the pairs."""
    if counted is None:
        return [(len(hits), int(hits.sum())) for hits in (pairs.hits[part] for part in group_slices(pairs, groups))]
    return [(int(own.weights.sum()), int(own.weights[own.hits].sum())) for own in counted.weighted(groups)[1]]


def _summary(pairs: Pairs, calibrated: Floats, groups: Groups, fits: Sequence[GroupFit], n_bins: int) -> list[FitRow]:
    """fits: Of all pairs, then of each group."""
    slices: list[Any] = [slice(None), *group_slices(pairs, groups)]
    tags = [np.arange(len(groups.of_tag)), *(groups.tags_in(index) for index in range(len(groups)))]
    total = int(groups.counts.sum())
    return [
        FitRow(
            group=name,
            tags=len(columns),
            share=float(groups.counts[columns].sum() / total) if total else None,
            pairs=fit.pairs,
            hits=fit.hits,
            raw=calibration_error(pairs.scores[inside], pairs.hits[inside], n_bins),
            calibrated=calibration_error(calibrated[inside], pairs.hits[inside], n_bins),
            fallback=fit.fallback,
        )
        for name, columns, inside, fit in zip(("all", *groups.names), tags, slices, fits, strict=True)
    ]


def summarize_span_fit(fitted: SpanFit, n_bins: int = 10) -> list[FitRow]:
    """The rows of `summarize_fit` for the chosen spans."""
    data, chosen = fitted.data, fitted.chosen
    calibrated = chosen.predict(data.spans.take(data.known), data.pairs.scores)
    why = f"raw scores: {chosen.fallback_}" if chosen.fallback_ else ""
    parts: list[Any] = [slice(None), *group_slices(data.pairs, chosen.groups)]
    fits = [GroupFit(len(hits), int(hits.sum()), why) for hits in (data.pairs.hits[part] for part in parts)]
    return _summary(data.pairs, calibrated, chosen.groups, fits, n_bins)
