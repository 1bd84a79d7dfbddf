"""Fits the maps that calibrate the scores of whole spans, on spans with gold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..metrics.proper import log_losses
from ..pairs.documents import DOCUMENT, cross_fit, folds_of
from ..pairs.pairing import JudgedPairs
from ..types import Floats, Groups, Ints, Pairs, Spans, check_lengths
from .spans import SpanCalibration, SpanContextStep, SpanRecalibrator

_FOLDS = 5


@dataclass(frozen=True, eq=False)
class SpanData:
    """The n spans of a component (on the Docs, and other candidates) that a span calibration is fitted on.

    spans (Spans), raw (Floats): The spans, and their raw scores. hits (Ints): 1 right, 0 wrong, -1 gold not known.
    documents (Ints): Document of each span, ascending. gold (Ints): Number of gold spans of each document, shape (n_docs,).
    RAISES C002: lengths differ.
    """

    spans: Spans
    raw: Floats
    hits: Ints
    documents: Ints
    gold: Ints

    def __post_init__(self) -> None:
        arrays = {"raw score": self.raw, "hit": self.hits, "document": self.documents}
        check_lengths("Fitting spans", "span", len(self.spans), arrays)

    @cached_property
    def known_indices(self) -> Ints:
        """Indices of the known spans: those on the Doc whose gold is known."""
        return np.flatnonzero(self.spans.on_doc & (self.hits >= 0))

    @property
    def known_documents(self) -> Ints:
        return self.documents[self.known_indices]

    @property
    def known_spans(self) -> Spans:
        return self.spans.take(self.known_indices)

    @cached_property
    def pairs(self) -> Pairs:
        """The known spans as pairs with their raw scores: a row for each span, its label as the tag."""
        index = self.known_indices
        return Pairs(np.arange(len(index)), self.spans.labels[index], self.raw[index], self.hits[index] == 1, len(index))

    def pairs_with(self, scores: Floats, unit: str = DOCUMENT) -> JudgedPairs:
        """Return the known spans as pairs, with calibrated scores. unit (str): What counts as a document, as "sentence"."""
        return JudgedPairs(self.pairs, scores, self.known_documents, unit)


# (known spans, their out-of-fold scores by the map, hits, documents, groups of the labels) -> (fitted context, or None; the
# out-of-fold score of each span with the context, or by the map; facts for `info`).
LearnSpanContext = Callable[
    [Spans, Floats, NDArray[np.bool_], Ints, Groups], tuple[SpanContextStep | None, Floats, dict[str, Any]]
]


@dataclass(frozen=True, eq=False)
class SpanFit:
    """The fitted steps that calibrate spans, with the spans that they were fitted on.

    calibration (SpanCalibration): The steps. data (SpanData): The spans.
    held_out (Floats): Out-of-fold calibrated score of each known span (a span on the Doc whose gold is known).
    context (dict | None): Facts about the context, for `info`; None without one.
    """

    calibration: SpanCalibration
    data: SpanData
    held_out: Floats
    context: dict[str, Any] | None = None


def held_out_scores(data: SpanData, groups: Groups) -> Floats:
    """Score each known span (on a Doc, with gold) by a map fitted to other folds. With one document return the raw scores."""
    spans, pairs = data.known_spans, data.pairs
    if len(np.unique(data.known_documents)) < 2:
        return pairs.scores

    def score(train: Ints, test: Ints) -> Floats:
        fold_map = SpanRecalibrator(groups).fit(spans.take(train), pairs.hits[train])
        return fold_map.predict(spans.take(test), pairs.scores[test])

    return cross_fit(folds_of(data.known_documents, _FOLDS), score)


def drop_useless_scores(data: SpanData, groups: Groups) -> SpanData:
    """Return the data without the `further_scores` of spans, unless these lower the held-out log loss. groups: Of labels."""
    if not data.spans.further_scores.shape[1]:
        return data
    plain = replace(data, spans=data.spans.without_further_scores())
    loss, plain_loss = (log_losses(held_out_scores(option, groups), data.pairs.hits).sum() for option in (data, plain))
    return data if loss < plain_loss else plain


def fit_spans(data: SpanData, groups: Groups, learn_context: LearnSpanContext | None = None) -> SpanFit:
    """Fit one map to the spans on the Docs, one to the other candidates of the source, then a context to the spans on the Docs.

    Spans without known gold take no part. Further scores of spans are used if they lower the cross-validated log loss.
    groups (Groups): Groups of the span labels. learn_context (LearnSpanContext | None): Fits the context; None fits none.
    RETURNS (SpanFit): The fitted steps, with the data that they were fitted on.
    """
    data = drop_useless_scores(data, groups)
    candidate_indices = np.flatnonzero((data.hits >= 0) & ~data.spans.on_doc)
    chosen_map = SpanRecalibrator(groups).fit(data.known_spans, data.hits[data.known_indices])
    candidate_map = SpanRecalibrator(groups).fit(data.spans.take(candidate_indices), data.hits[candidate_indices])
    calibration, about = SpanCalibration(chosen_map, candidate_map), None
    held_out = held_out_scores(data, groups)
    if learn_context is not None:
        inputs = data.known_spans, held_out, data.pairs.hits, data.known_documents, groups
        calibration.context, held_out, about = learn_context(*inputs)
    return SpanFit(calibration, data, held_out, about)
