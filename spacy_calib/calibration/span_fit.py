"""Fitting the maps of whole spans, on spans with gold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..metrics.proper import log_losses
from ..pairs.documents import cross_fit, folds_of
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
        others = {"raw score": self.raw, "hit": self.hits, "document": self.documents}
        check_lengths("Fitting spans", "span", len(self.spans), others)

    @cached_property
    def known(self) -> Ints:
        return np.flatnonzero(self.spans.chosen & (self.hits >= 0))

    @cached_property
    def pairs(self) -> Pairs:
        known = self.known
        return Pairs(np.arange(len(known)), self.spans.labels[known], self.raw[known], self.hits[known] == 1, len(known))


@dataclass(frozen=True, eq=False)
class SpanContextFit:
    """What was learned of spans' surroundings. context (SpanContext | None): None where scores stay as the map gives
    them. held_out (Floats): The score of each by a held-out context, or by the map. about (dict): What `info` shows.
    """

    context: SpanContext | None
    held_out: Floats
    about: dict[str, Any]


# (spans on the Docs with gold, held-out scores of the maps, hits, documents, groups of the labels).
LearnSpanContext = Callable[[Spans, Floats, NDArray[np.bool_], Ints, Groups], SpanContextFit]


@dataclass(frozen=True, eq=False)
class SpanFit:
    """A fitted calibration, with what it was fitted on.

    calibration (SpanCalibration): The fitted steps. chosen, candidates (SpanRecalibrator): Its maps. data (SpanData).
    learn_context (LearnSpanContext | None): Learns the context; None leaves it out.
    """

    calibration: SpanCalibration
    chosen: SpanRecalibrator
    candidates: SpanRecalibrator
    data: SpanData
    learn_context: LearnSpanContext | None = None

    @cached_property
    def held_out(self) -> Floats:
        """Score of each span of `data.known` by steps that did not see its document; raw with one document only."""
        return self.mapped if self.context is None else self.context.held_out

    @cached_property
    def context(self) -> SpanContextFit | None:
        """What was learned of the surroundings, if it was asked for."""
        if self.learn_context is None:
            return None
        known, groups = self.data.known, self.chosen.groups
        hits, documents = self.data.pairs.hits, self.data.documents[known]
        return self.learn_context(self.data.spans.take(known), self.mapped, hits, documents, groups)

    @cached_property
    def mapped(self) -> Floats:
        """Score of each span of `data.known` by a map that did not see its document; raw with one document only."""
        return held_out_scores(self.data, self.data.known, self.chosen.groups)


def held_out_scores(data: SpanData, index: Ints, groups: Groups) -> Floats:
    """Score of some spans by a map of such that did not see their document; raw with one document only."""
    spans, raw, hits, documents = data.spans.take(index), data.raw[index], data.hits[index] == 1, data.documents[index]
    if len(np.unique(documents)) < 2:
        return raw

    def score(outside: Ints, inside: Ints) -> Floats:
        learned = SpanRecalibrator(groups).fit(spans.take(outside), hits[outside])
        return learned.predict(spans.take(inside), raw[inside])

    return cross_fit(folds_of(documents, _FOLDS), score)


def without_useless(data: SpanData, groups: Groups) -> SpanData:
    """The same without the scores beside those of the spans, where held-out documents lose no less with them."""
    if not data.spans.beside.shape[1]:
        return data
    plain = replace(data, spans=data.spans.alone())
    losses = [log_losses(held_out_scores(one, data.known, groups), data.pairs.hits).sum() for one in (data, plain)]
    return data if losses[0] < losses[1] else plain


def fit_spans(data: SpanData, groups: Groups, learn_context: LearnSpanContext | None = None) -> SpanFit:
    """Fit the map of the chosen spans and that of the candidates, each on its own spans whose gold is known. Scores beside
    those of the spans take part where they help.

    groups (Groups): Of the span labels. learn_context (LearnSpanContext | None): As of SpanFit.
    """
    data = without_useless(data, groups)
    of_candidates = np.flatnonzero((data.hits >= 0) & ~data.spans.chosen)
    chosen, candidates = (
        SpanRecalibrator(groups).fit(data.spans.take(part), data.hits[part]) for part in (data.known, of_candidates)
    )
    fitted = SpanFit(SpanCalibration(chosen, candidates), chosen, candidates, data, learn_context)
    if fitted.context is not None:
        fitted.calibration.context = fitted.context.context
    return fitted
