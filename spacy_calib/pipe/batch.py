"""Spans, flags and accepted labels of a batch of Docs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..annotations import Annotation, label_hashes
from ..calibration.cutoffs import Cutoffs, EntityScores, EntityTypes, RecallCutoffs
from ..calibration.spans import SpanCalibration
from ..calibration.tokens import CalibratedEntries, find_silent
from ..doc.write import CalibratedBatch, CalibratedSpans, Flags
from ..pairs.build import Scores
from ..sources.bound import BoundSource
from ..types import Floats, Groups, Ints, Spans


def calibrated_spans(
    calibration: SpanCalibration, source: BoundSource, spans: Spans, event: str, layer: str, view: Any
) -> CalibratedSpans:
    """Calibrate the spans of a source.

    event (str): When a span counts as right. layer (str): Annotation of the tokens if spans are sentences, else "". view (Any):
    The `Calibrated.view` of their tokens, for the context.
    """
    raw = np.where(spans.on_doc, source.source.raw_span_scores(spans), spans.scores)
    calibrated = calibration.calibrate(spans, raw, source.span_labels, view)
    return CalibratedSpans(spans, source.span_labels, raw, *calibrated, event, layer)


def flag_tokens(
    cutoffs: RecallCutoffs,
    scores: Scores,
    calibrated: CalibratedEntries,
    labels: Sequence[str],
    annotation: Annotation,
    threshold: float,
) -> Flags:
    """Flag the tokens that reach a recall cut-off. calibrated (Calibrated): Entries above the threshold."""
    types, marginals = EntityTypes.from_labels(labels, annotation.has_prefixes), calibrated.marginals
    n = marginals.n_tokens
    entries = EntityScores(marginals.rows, types.of_label[marginals.tags], calibrated.scores, n, threshold)
    by_key = cutoffs.flags(entries, types)
    is_flagged = np.any([np.zeros(n, dtype=bool), *by_key.values()], axis=0)
    is_flagged[find_silent(scores, marginals.rows)] = False
    rows = np.flatnonzero(is_flagged)
    likelihood = _likelihoods(scores, entries, types, rows)
    if cutoffs.per == "label":  # only types whose own cut-off is reached
        likelihood[~np.array([by_key.get(name, np.zeros(n, dtype=bool))[rows] for name in types.names])] = -1.0
    kinds = likelihood.argmax(axis=0)
    certainty = entries.inside_probability[rows] if cutoffs.per == "all" else likelihood[kinds, np.arange(len(rows))]
    values = is_flagged.astype(np.int8)
    values[find_silent(scores, marginals.rows)] = -1
    return Flags(values, rows, types.names, kinds, certainty)


def _likelihoods(scores: Scores, entries: EntityScores, types: EntityTypes, rows: Ints) -> Floats:
    """Return P(type) at some tokens, shape (n_types, len(rows)): raw if below the threshold, else calibrated."""
    likelihoods = np.zeros((len(types.names), len(rows)))
    for column, kind in enumerate(types.of_label.tolist()):
        if kind >= 0:
            likelihoods[kind] += scores.scores_at(rows, np.full(len(rows), column))
    for kind in range(len(types.names)):
        likelihoods[kind] = np.where(entries.has_type(kind)[rows], entries.type_probability(kind)[rows], likelihoods[kind])
    return likelihoods


def accepted_labels(cutoffs: Cutoffs, batch: CalibratedBatch, groups: Groups) -> NDArray[np.int8]:
    """Return whether each predicted label reaches its cut-off: 1 or 0, -1 without a score. groups (Groups): Of the labels."""
    calibrated, entries_below = batch.calibrated, batch.calibrated.below_threshold
    marginals = calibrated.marginals
    scores, columns = np.full(marginals.n_tokens, np.nan), np.zeros(marginals.n_tokens, dtype=np.intp)
    hashes = label_hashes(batch.labels)[marginals.tags] if marginals.names is None else label_hashes(marginals.names)
    is_predicted = hashes == batch.label_hashes[marginals.rows]
    rows = marginals.rows[is_predicted]
    scores[rows], columns[rows] = calibrated.scores[is_predicted], marginals.tags[is_predicted]
    if entries_below is not None:
        rows = entries_below.marginals.rows
        scores[rows], columns[rows] = entries_below.scores, entries_below.marginals.tags
    is_accepted = cutoffs.accepts(scores, columns, batch.labels, groups)  # False where there is no score
    return np.where(np.isnan(scores), -1, is_accepted).astype(np.int8)
