"""The spans, flags and cut-offs of a batch of Docs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..annotations import Annotation, label_hashes
from ..calibration.cutoffs import Cutoffs, EntityScores, EntityTypes, RecallCutoffs
from ..calibration.spans import SpanCalibration
from ..calibration.tokens import Calibrated, silent_tokens
from ..doc.write import CalibratedBatch, CalibratedSpans, Flags
from ..pairs.build import Scores
from ..sources.bound import BoundSource
from ..types import Floats, Groups, Ints, Spans


def calibrated_spans(
    calibration: SpanCalibration, source: BoundSource, spans: Spans, event: str, layer: str, view: Any
) -> CalibratedSpans:
    """The spans that a source found, with the probability that each is right.

    event (str): When it is right. layer (str): See CalibratedSpans. view (Any): See Calibrated.
    """
    raw = np.where(spans.chosen, source.source.raw_span_scores(spans), spans.own)
    calibrated = calibration.calibrate(spans, raw, source.span_labels, view)
    return CalibratedSpans(spans, source.span_labels, raw, *calibrated, event, layer)


def flag_tokens(
    cutoffs: RecallCutoffs,
    scores: Scores,
    calibrated: Calibrated,
    labels: Sequence[str],
    annotation: Annotation,
    threshold: float,
) -> Flags:
    """Flag tokens that a source read.

    scores (Scores): Of the source. calibrated (Calibrated): Its entries above the threshold. labels (Sequence[str]): Of the columns.
    """
    types, marginals = EntityTypes.of(labels, annotation.has_prefixes), calibrated.marginals
    n = marginals.n_tokens
    entries = EntityScores(marginals.rows, types.of_label[marginals.tags], calibrated.scores, n, threshold)
    by_key = cutoffs.flags(entries, types)
    flagged = np.any([np.zeros(n, dtype=bool), *by_key.values()], axis=0)
    flagged[silent_tokens(scores, marginals.rows)] = False
    rows = np.flatnonzero(flagged)
    likelihood = _likelihoods(scores, entries, types, rows)
    if cutoffs.per == "label":  # as one of those whose own cut-off says so
        likelihood[~np.array([by_key.get(name, np.zeros(n, dtype=bool))[rows] for name in types.names])] = -1.0
    kinds = likelihood.argmax(axis=0)
    certainty = entries.inside[rows] if cutoffs.per == "all" else likelihood[kinds, np.arange(len(rows))]
    column = flagged.astype(np.int8)
    column[silent_tokens(scores, marginals.rows)] = -1
    return Flags(column, rows, types.names, kinds, certainty)


def _likelihoods(scores: Scores, entries: EntityScores, types: EntityTypes, rows: Ints) -> Floats:
    """P(type) of each type at some tokens, shape (n_types, len(rows)): calibrated where the type has an entry, else the raw one, which is below the
    threshold.
    """
    likelihoods = np.zeros((len(types.names), len(rows)))
    for column, kind in enumerate(types.of_label.tolist()):
        if kind >= 0:
            likelihoods[kind] += scores.at(rows, np.full(len(rows), column))
    for kind in range(len(types.names)):
        likelihoods[kind] = np.where(entries.has(kind)[rows], entries.of_type(kind)[rows], likelihoods[kind])
    return likelihoods


def accepted_labels(cutoffs: Cutoffs, batch: CalibratedBatch, groups: Groups) -> NDArray[np.int8]:
    """Whether the label that each unit carries reaches its cut-off: 1 or 0, -1 where it has no score. groups (Groups): Of the labels."""
    calibrated, below = batch.calibrated, batch.calibrated.below
    marginals = calibrated.marginals
    scores, columns = np.full(marginals.n_tokens, np.nan), np.zeros(marginals.n_tokens, dtype=np.intp)
    hashes = label_hashes(batch.labels)[marginals.tags] if marginals.names is None else label_hashes(marginals.names)
    is_carried = hashes == batch.carried[marginals.rows]
    rows = marginals.rows[is_carried]
    scores[rows], columns[rows] = calibrated.scores[is_carried], marginals.tags[is_carried]
    if below is not None:
        scores[below.marginals.rows], columns[below.marginals.rows] = below.scores, below.marginals.tags
    accepted = cutoffs.accepts(scores, columns, batch.labels, groups)  # False where there is no score
    return np.where(np.isnan(scores), -1, accepted).astype(np.int8)
