"""An adaptation, step by step: read a few labelled documents of a new kind, learn what they change, and take over the rest of the fit."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from spacy.training import Example

from ..calibration.adaptation.adaptation import OF_SPANS, OF_TOKENS, GoldEntries
from ..calibration.adaptation.fitting import AdaptationFit
from ..calibration.sets import ConformalSets
from ..calibration.span_fit import SpanData, SpanFit
from ..calibration.spans import SpanCalibration
from ..calibration.steps import Predictions, walk
from ..calibration.sufficiency import tokens_for_sets
from ..calibration.tokens import Normalization, TokenCalibration
from ..errors import calib_error
from ..expect.record import record_fit
from ..pairs.build import JudgedPairs, interleave
from ..types import Groups
from .calibrating import CalibratingPipe
from .fitting import figures
from .gathering import FitArguments, FitInputs, gather
from .scorer import drop_performance, set_performance
from .state import PipeState


def adapt_calibrator(
    pipe: CalibratingPipe, examples: Iterable[Example], arguments: FitArguments
) -> tuple[PipeState, JudgedPairs | None]:
    """Learn from labelled documents of a new kind, see `Calibrator.adapt`. The pipe is not changed; its figures go into the pipeline's meta.

    RETURNS (tuple): What the pipe learned; the pairs with held-out scores, None of a single document.
    RAISES C216: the pipe is not fitted. C021 to C024, C028, C033 to C035: the component. C030 to C032, C164: the gold. C003: no pairs.
    """
    learned, groups = pipe.learned, pipe.groups
    if not pipe.fitted or groups is None:
        raise calib_error("C216", name=pipe.name)
    inputs = gather(pipe, examples, arguments)
    tokens, fit, judged, unlabelled, view = adapt_tokens(inputs, learned.tokens, groups)
    spans, span_fit = (None, None) if inputs.spans is None else adapt_spans(inputs.spans, learned.spans, view)
    tokens.sets = sets = fit_sets(inputs, learned.tokens.sets, judged, groups)
    share = None if learned.seen is None else learned.seen.share_of(inputs.texts)
    adaptation = {
        "docs": inputs.n_docs,
        "unit": inputs.unit,
        "seen": None if share is None else share.to_dict(),
        "sets_dropped": learned.tokens.sets is not None and sets is None,
        "cutoffs_dropped": any((learned.spans.cutoffs, learned.tokens.recall_cutoffs, learned.tokens.label_cutoffs)),
        "tokens": fit.describe(inputs.labels),
        "spans": None if span_fit is None else span_fit.describe(inputs.source.span_labels),
    }
    info = replace(
        learned.info,
        adaptations=[*learned.info.adaptations, adaptation],
        sets=None if sets is None else sets.describe(inputs.labels),
    )
    state = replace(
        learned,
        tokens=tokens,
        spans=learned.spans if spans is None else spans.calibration,
        record=None if judged is None else record_fit(judged, inputs.n_docs, inputs.labels, spans, unlabelled),
        seen=inputs.seen if learned.seen is None else learned.seen.plus(inputs.texts),
        info=info,
    )
    warn_of_adaptation(pipe, adaptation)
    if inputs.source.component is not None and state.record is not None and judged is not None:
        set_performance(pipe.lookup.nlp, pipe.attr, figures(inputs, judged, groups, spans, learned.spans.groups))
    elif inputs.source.component is not None:
        drop_performance(pipe.lookup.nlp, pipe.attr)
    return state, judged


def warn_of_adaptation(pipe: CalibratingPipe, adaptation: dict[str, Any]) -> None:
    """Warn if an adaptation cannot be trusted. adaptation (dict): What `info` shows of it."""
    if adaptation["docs"] < 2:
        pipe.warn("CW13")
    if adaptation["seen"] is not None and adaptation["seen"]["many"]:
        pipe.warn("CW14", share=round(100 * adaptation["seen"]["share"]))
    if pipe.lookup.weights_changed():
        pipe.warn("CW04", component=pipe.source.component)


def adapt_tokens(
    inputs: FitInputs, before: TokenCalibration, groups: Groups
) -> tuple[TokenCalibration, AdaptationFit, JudgedPairs | None, JudgedPairs, Any]:
    """Fit the next step of tokens. groups (Groups): Of the tags.

    RETURNS (tuple): The calibration with the new step, without sets; the fit of the step; the pairs with gold, with scores by an adaptation
        that did not see their document, None where there is one document only; the pairs without gold; the view of the context.
    """
    data, threshold = inputs.data, inputs.settings.threshold
    every, order = interleave(data.pairs, data.unlabelled)
    steps = [step for step in before.steps if not isinstance(step, Normalization)]
    predictions = walk(steps, Predictions.of_pairs(every, threshold, data.words))
    kept = np.flatnonzero(every.scores >= threshold)
    pairs, documents = every.take(kept), np.concatenate([data.documents, data.unlabelled_documents])[order][kept]
    has_gold = order[kept] < len(data.pairs)
    labelled, bare = np.flatnonzero(has_gold), np.flatnonzero(~has_gold)
    entries = GoldEntries(predictions.scores, pairs.hits, predictions.leads, pairs.tags, documents)
    fit = AdaptationFit.of(entries.take(labelled), groups, OF_TOKENS)
    calibration = copy(before)
    calibration.adaptations = (*before.adaptations, fit.adaptation)
    calibration.sets = calibration.recall_cutoffs = calibration.label_cutoffs = None
    last_steps = calibration.behind(fit.adaptation)
    adjusted = walk((fit.adaptation, *last_steps), predictions.take(bare)).scores
    judged, held_out = None, fit.held_out
    if held_out is not None:
        scores = walk(last_steps, predictions.take(labelled).having(scores=held_out)).scores
        judged = JudgedPairs(pairs.take(labelled), scores, documents[labelled], inputs.unit)
    return calibration, fit, judged, JudgedPairs(pairs.take(bare), adjusted, documents[bare]), predictions.view


def adapt_spans(data: SpanData, before: SpanCalibration, view: Any = None) -> tuple[SpanFit, AdaptationFit] | tuple[None, None]:
    """Fit the next step of spans; None where the pipe has no maps of spans. view (Any): Their tokens, as the pipe's context sees them."""
    if before.groups is None:
        return None, None
    calibration = copy(before)
    calibration.cutoffs = None
    known = np.concatenate([data.known, np.flatnonzero((data.hits >= 0) & ~data.spans.chosen)])
    spans = data.spans.take(known)
    scores, _ = calibration.calibrate(spans, np.where(spans.chosen, data.raw[known], spans.own), (), view)
    entries = GoldEntries(scores, data.hits[known] == 1, spans.chosen, spans.labels, data.documents[known])
    fit = AdaptationFit.of(entries, before.groups, OF_SPANS)
    calibration.adaptations = (*before.adaptations, fit.adaptation)
    held_out = scores if fit.held_out is None else fit.held_out  # those on the Docs come first
    return SpanFit(calibration, data, held_out[: len(data.known)]), fit


def fit_sets(
    inputs: FitInputs, before: ConformalSets | None, judged: JudgedPairs | None, groups: Groups
) -> ConformalSets | None:
    """Sets of tags like those of the fit, from adapted scores; None where the fit made none, or the labelled documents are too few.

    Tokens are enough where a fit would make sets of them (`tokens_for_sets`). Documents are where so many single tokens would be enough for
    some promise: one token of each of them is exchangeable with one of a new document, tokens of the same document are not.
    """
    if before is None or judged is None:
        return None
    gold = inputs.data.gold
    n_fewest, n_worth = tokens_for_sets(before.alpha)
    if inputs.n_docs < n_fewest or np.count_nonzero(gold != -2) < n_worth:
        return None
    return before.clone().fit(judged.pairs.rows, judged.pairs.tags, judged.calibrated, gold, groups)
