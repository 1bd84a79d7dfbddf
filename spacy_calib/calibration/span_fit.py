"""Fitting the maps of whole spans, on spans with gold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..metrics.proper import log_losses
from ..pairs.build import JudgedPairs
from ..pairs.documents import DOCUMENT, cross_fit, folds_of
from ..types import Floats, Groups, Ints, Pairs, Spans, check_lengths
from .spans import SpanCalibration, SpanContext, SpanRecalibrator

_FOLDS = 5


@dataclass(frozen=True, eq=False)
class SpanData:
    """What a span calibration is fitted on: n spans that a source found.

    spans (Spans), raw (Floats), hits (Ints): With raw scores; right (1), wrong (0), or gold not known (-1).
    documents (Ints): Of each, ascending. gold (Ints): Gold spans of each document, shape (n_docs,).
    known (Ints): Indices of chosen spans with known gold. pairs (Pairs): These, with labels as tags.
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
    def known(self) -> Ints:
        return np.flatnonzero(self.spans.on_doc & (self.hits >= 0))

    @property
    def known_documents(self) -> Ints:
        """The document of each known span."""
        return self.documents[self.known]

    @property
    def known_spans(self) -> Spans:
        return self.spans.take(self.known)

    @cached_property
    def pairs(self) -> Pairs:
        index = self.known
        return Pairs(np.arange(len(index)), self.spans.labels[index], self.raw[index], self.hits[index] == 1, len(index))

    def judged(self, scores: Floats, unit: str = DOCUMENT) -> JudgedPairs:
        """The known spans with these calibrated scores. unit (str): What a document is."""
        return JudgedPairs(self.pairs, scores, self.known_documents, unit)


# (spans on the Docs with gold, held-out scores of the maps, hits, documents, groups of the labels) -> (the context, None where
# scores stay as the map gives them; the score of each span by a held-out context, or by the map; what `info` shows).
LearnSpanContext = Callable[[Spans, Floats, NDArray[np.bool_], Ints, Groups], tuple[SpanContext | None, Floats, dict[str, Any]]]


@dataclass(frozen=True, eq=False)
class SpanFit:
    """Fitted steps of spans, with the spans that they were fitted on.

    calibration (SpanCalibration): The steps. data (SpanData): The spans.
    held_out (Floats): Score of each span of `data.known` by steps that did not see its document.
    context (dict | None): What `info` shows of the context; None without.
    """

    calibration: SpanCalibration
    data: SpanData
    held_out: Floats
    context: dict[str, Any] | None = None


def held_out_scores(data: SpanData, groups: Groups) -> Floats:
    """Score of each known span by a map that did not see its document; raw with one document only."""
    spans, pairs = data.known_spans, data.pairs
    if len(np.unique(data.known_documents)) < 2:
        return pairs.scores

    def score(train: Ints, test: Ints) -> Floats:
        fold_map = SpanRecalibrator(groups).fit(spans.take(train), pairs.hits[train])
        return fold_map.predict(spans.take(test), pairs.scores[test])

    return cross_fit(folds_of(data.known_documents, _FOLDS), score)


def without_useless(data: SpanData, groups: Groups) -> SpanData:
    """The same without the scores beside those of the spans, where held-out documents lose no less with them."""
    if not data.spans.further_scores.shape[1]:
        return data
    plain = replace(data, spans=data.spans.without_further_scores())
    losses = [log_losses(held_out_scores(candidate, groups), data.pairs.hits).sum() for candidate in (data, plain)]
    return data if losses[0] < losses[1] else plain


def fit_spans(data: SpanData, groups: Groups, learn_context: LearnSpanContext | None = None) -> SpanFit:
    """Fit the map of the chosen spans and that of the candidates, each on its own spans whose gold is known.

    Scores beside those of the spans take part where they help.

    groups (Groups): Of the span labels. learn_context (LearnSpanContext | None): Learns the context; None leaves it out.
    """
    data = without_useless(data, groups)
    of_candidates = np.flatnonzero((data.hits >= 0) & ~data.spans.on_doc)
    chosen_map, candidate_map = (
        SpanRecalibrator(groups).fit(data.spans.take(part), data.hits[part]) for part in (data.known, of_candidates)
    )
    calibration, held_out, about = SpanCalibration(chosen_map, candidate_map), held_out_scores(data, groups), None
    if learn_context is not None:
        inputs = data.known_spans, held_out, data.pairs.hits, data.known_documents, groups
        calibration.context, held_out, about = learn_context(*inputs)
    return SpanFit(calibration, data, held_out, about)
