"""An adaptation, step by step: read a few labelled documents of a new kind, learn what they change, and take over the rest of the fit."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from spacy.training import Example

from ..calibration.adaptation.adaptation import OF_PRETRAINED, OF_PRETRAINED_SPANS, OF_SPANS, OF_TOKENS, GoldEntries, Prior
from ..calibration.adaptation.fitting import AdaptationFit
from ..calibration.sets import ConformalSets
from ..calibration.span_fit import SpanData
from ..calibration.spans import SpanCalibration
from ..calibration.steps import Predictions, walk
from ..calibration.sufficiency import tokens_for_sets
from ..calibration.tokens import Normalization, TokenCalibration
from ..errors import calib_error
from ..expect.record import record_fit
from ..pairs.build import JudgedPairs, interleave
from ..types import Floats, Groups, Ints, Pairs
from .calibrating import CalibratingPipe
from .fitting import figures
from .gathering import FitArguments, Gathered, gather
from .scorer import drop_performance, set_performance
from .state import PipeState


@dataclass(frozen=True, eq=False)
class AdaptedTokens:
    """The tokens of the labelled documents.

    pairs (Pairs), documents (Ints): Those with gold, that reach the threshold. before (Predictions): The same after all old steps but normalization.
    unjudged (JudgedPairs): Those without gold. fit (AdaptationFit): Of those with gold. calibration (TokenCalibration): With the new step, and without sets.
    """

    pairs: Pairs
    documents: Ints
    before: Predictions
    unjudged: JudgedPairs
    fit: AdaptationFit
    calibration: TokenCalibration

    @cached_property
    def held_out(self) -> Floats | None:
        """The score of each pair by an adaptation that did not see its document; None where there is one document only."""
        scores = self.fit.held_out
        behind = self.calibration.behind(self.fit.adaptation)
        return None if scores is None else walk(behind, self.before.having(scores=scores)).scores

    def judged(self, unit: str) -> JudgedPairs | None:
        """The pairs with these scores. unit (str): What a document is."""
        return None if self.held_out is None else JudgedPairs(self.pairs, self.held_out, self.documents, unit)


@dataclass(frozen=True, eq=False)
class AdaptedSpans:
    """The spans of the labelled documents. data (SpanData), fit (AdaptationFit): Of those whose gold is known, the ones on the Docs first.
    calibration (SpanCalibration): With the new step, and without cut-offs.
    """

    data: SpanData
    fit: AdaptationFit
    calibration: SpanCalibration

    @cached_property
    def held_out(self) -> Floats:
        """The score of each span of `data.known`; by an adaptation that did not see its document where there are several."""
        scores = self.fit.held_out
        return (self.fit.entries.scores if scores is None else scores)[: len(self.data.known)]


def adapt_calibrator(
    pipe: CalibratingPipe, examples: Iterable[Example], arguments: FitArguments
) -> tuple[PipeState, JudgedPairs | None]:
    """What a fitted pipe learns from labelled documents of a new kind, see `Calibrator.adapt`; and their pairs with held-out scores, None of a single document. The pipe is not
    changed; its figures go into the pipeline's meta.

    RAISES C216: the pipe is not fitted. C021 to C024, C028, C033 to C035: the component. C030 to C032, C164: the gold. C003: no pairs.
    """
    learned = pipe.learned
    if not pipe.fitted or pipe.groups is None:
        raise calib_error("C216", name=pipe.name)
    gathered = gather(pipe, examples, arguments)
    of_tokens, of_spans = (OF_TOKENS, OF_SPANS) if pipe.fit_info.pretrained is None else (OF_PRETRAINED, OF_PRETRAINED_SPANS)
    tokens = adapt_tokens(gathered, learned.tokens, pipe.groups, of_tokens)
    spans = None
    if gathered.data.spans is not None:
        spans = adapt_spans(gathered.data.spans, learned.spans, tokens.before.view, of_spans)
    tokens.calibration.sets = sets = fit_sets(gathered, learned.tokens.sets, tokens, pipe.groups)
    before, texts = learned.seen, gathered.texts
    share = None if before is None or texts is None else before.share_of(texts)
    made = {
        "docs": gathered.data.n_docs,
        "unit": gathered.data.unit,
        "seen": None if share is None else share.to_dict(),
        "sets_dropped": learned.tokens.sets is not None and sets is None,
        "cutoffs_dropped": any((learned.spans.cutoffs, learned.tokens.recall_cutoffs, learned.tokens.label_cutoffs)),
        "tokens": tokens.fit.describe(gathered.labels),
        "spans": None if spans is None else spans.fit.describe(pipe.source.span_labels(gathered.component)),
    }
    info = replace(
        learned.info,
        adaptations=[*learned.info.adaptations, made],
        sets=None if sets is None else sets.describe(gathered.labels),
    )
    judged = tokens.judged(gathered.data.unit)
    state = replace(
        learned,
        tokens=tokens.calibration,
        spans=learned.spans if spans is None else spans.calibration,
        record=None if judged is None else record_fit(judged, gathered.data.n_docs, gathered.labels, spans, tokens.unjudged),
        seen=gathered.seen if before is None or texts is None else before.plus(texts),
        info=info,
    )
    say(pipe, made)
    if gathered.component is not None and state.record is not None and judged is not None:
        set_performance(pipe.lookup.nlp, pipe.attr, figures(gathered, judged, pipe.groups, spans, learned.spans.groups))
    elif gathered.component is not None:
        drop_performance(pipe.lookup.nlp, pipe.attr)
    return state, judged


def say(pipe: CalibratingPipe, made: dict[str, Any]) -> None:
    """Warn where an adaptation cannot be trusted. made (dict): What it says of itself."""
    if made["docs"] < 2:
        pipe.warn("CW13")
    if made["seen"] is not None and made["seen"]["many"]:
        pipe.warn("CW14", share=round(100 * made["seen"]["share"]))
    if pipe.lookup.weights_changed():
        pipe.warn("CW04", component=pipe.source.component)


def adapt_tokens(gathered: Gathered, before: TokenCalibration, groups: Groups, prior: Prior = OF_TOKENS) -> AdaptedTokens:
    """groups (Groups): Of the tags. prior (Prior): What is believed before the documents are read."""
    data, threshold = gathered.data, gathered.settings.threshold
    every, order = interleave(data.pairs, data.unjudged)
    steps = [step for step in before.steps if not isinstance(step, Normalization)]
    found = walk(steps, Predictions.of_pairs(every, threshold, data.words))
    kept = np.flatnonzero(every.scores >= threshold)
    pairs, documents = every.take(kept), np.concatenate([data.documents, data.unjudged_documents])[order][kept]
    with_gold = order[kept] < len(data.pairs)
    own, bare = np.flatnonzero(with_gold), np.flatnonzero(~with_gold)
    entries = GoldEntries(found.scores, pairs.hits, found.leads, pairs.tags, documents)
    fit = AdaptationFit.of(entries.take(own), groups, prior)
    made = copy(before)
    made.adaptations = (*before.adaptations, fit.adaptation)
    made.sets = made.recall_cutoffs = made.label_cutoffs = None
    moved = walk((fit.adaptation, *made.behind(fit.adaptation)), found.take(bare)).scores
    unjudged = JudgedPairs(pairs.take(bare), moved, documents[bare])
    return AdaptedTokens(pairs.take(own), documents[own], found.take(own), unjudged, fit, made)


def adapt_spans(data: SpanData, before: SpanCalibration, view: Any = None, prior: Prior = OF_SPANS) -> AdaptedSpans | None:
    """None where the pipe has no maps of spans. view (Any): The tokens that they stand in, as the pipe's context sees them."""
    if before.groups is None:
        return None
    made = copy(before)
    made.cutoffs = None
    known = np.concatenate([data.known, np.flatnonzero((data.hits >= 0) & ~data.spans.chosen)])
    spans = data.spans.take(known)
    scores, _ = made.calibrate(spans, np.where(spans.chosen, data.raw[known], spans.own), (), view)
    entries = GoldEntries(scores, data.hits[known] == 1, spans.chosen, spans.labels, data.documents[known])
    fit = AdaptationFit.of(entries, before.groups, prior)
    made.adaptations = (*before.adaptations, fit.adaptation)
    return AdaptedSpans(data, fit, made)


def fit_sets(gathered: Gathered, before: ConformalSets | None, tokens: AdaptedTokens, groups: Groups) -> ConformalSets | None:
    """Sets of tags like those of the fit, from adapted scores; None where the fit made none, or the labelled documents are too few.

    Tokens are enough where a fit would make sets of them (`tokens_for_sets`). Documents are where so many single tokens would be enough for
    some promise: one token of each of them is exchangeable with one of a new document, tokens of the same document are not.
    """
    if before is None or tokens.held_out is None:
        return None
    gold = gathered.data.gold
    least, worth = tokens_for_sets(before.alpha)
    if gathered.data.n_docs < least or np.count_nonzero(gold != -2) < worth:
        return None
    return before.clone().fit(tokens.pairs.rows, tokens.pairs.tags, tokens.held_out, gold, groups)
