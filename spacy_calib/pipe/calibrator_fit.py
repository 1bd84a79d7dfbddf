"""Fits a calib pipe: reads examples, chooses the steps, fits the recalibrators, and summarizes the fit."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import spacy
from spacy.training import Example

from ..about import __version__
from ..calibration.choice import ONE_GROUP, make_plan
from ..calibration.conventions import Convention, find_conventions, fit_line
from ..calibration.grouped import GroupedRecalibrator
from ..calibration.recalibrators import Identity
from ..calibration.span_fit import SpanData, SpanFit, fit_spans
from ..calibration.spans import SpanCalibration
from ..calibration.sufficiency import evaluate_held_out
from ..calibration.token_fit import (
    CalibrationPlan,
    LearnContext,
    before_maps,
    fit_tokens,
    score_held_out,
    score_unlabelled,
)
from ..calibration.tokens import TokenCalibration
from ..context.fit import fit_further_scores, fit_span_context, fit_token_context, without_token_model
from ..context.tokens import LabelMatch, TokenContext
from ..metrics.calibration_errors import calibration_error, group_slices
from ..pairs.build import JudgedPairs
from ..pairs.documents import DOCUMENT, TOKEN
from ..pairs.progress import UNREPORTED, Progress
from ..sources.find import ComponentIdentity
from ..sources.fingerprint import fingerprint
from ..sources.left_scores import LeftScoresSource
from ..sources.mapped import map_of, with_map
from ..types import Floats, Groups, Pairs
from .calibrating import CalibratingPipe
from .fit_info import FitInfo, FitRow, SpanFitInfo
from .fit_inputs import HERE, FitArguments, FitInputs, may_differ, of_one_tag, read_fit_inputs
from .record.fit_record import record_fit
from .scorer import calib_scores, score_prefixes, set_performance
from .state import PipeState


def fit_calibrator(
    pipe: CalibratingPipe, examples: Iterable[Example], arguments: FitArguments
) -> tuple[PipeState, JudgedPairs, SpanFit | None]:
    """Fit a calib pipe to examples. The pipe is not changed; the pipeline's meta gets the errors of the fit.

    RETURNS (tuple): The new state; token pairs with out-of-fold scores; spans with these, None for a source without spans.
    RAISES As `Calibrator.fit`.
    """
    settling, fitting = arguments.progress.parts(with_map(pipe.source, None).has_auto_settings, 1)
    inputs = read_fit_inputs(pipe, settle_source(pipe, examples, settling), replace(arguments, progress=fitting), in_runs=True)
    choosing, learning = inputs.arguments.progress.parts(10, 1, stages=["Choosing the method", "Fitting the maps"])
    plan = choose(inputs, choosing)
    learning.update(0.0)
    conventions = conventions_in(inputs)
    if plan.uses_context and isinstance(context := plan.context and plan.context.context, TokenContext) and context.shrink:
        context.line_ = fit_line(inputs.data.kept_pairs, conventions)
    tokens = fit_tokens(inputs.data, plan, pipe.normalize)
    judged_pairs = inputs.judged_pairs(score_held_out(inputs.data, plan, tokens))
    spans = None if inputs.spans is None else _fit_spans(inputs, inputs.spans, plan, tokens)
    index = inputs.data.kept_unlabelled
    unlabelled_pairs = JudgedPairs(
        inputs.data.unlabelled_pairs.take(index),
        score_unlabelled(inputs.data, plan, tokens),
        inputs.data.unlabelled_documents[index],
    )
    record = record_fit(
        judged_pairs, inputs.n_docs, inputs.source.labels, spans, unlabelled_pairs, inputs.data.gold, inputs.files
    )
    state = PipeState(
        tokens=tokens,
        spans=SpanCalibration() if spans is None else spans.calibration,
        component=ComponentIdentity(pipe.source.kind(inputs.source.component), inputs.source.labels),
        judged_by=plan.evaluation_groups,
        record=None if record is None else record.to_bytes(),
        seen_state=inputs.seen_texts.state(),
        info=_describe(inputs, plan, tokens, spans, judged_pairs, conventions),
        weights=fingerprint(pipe.lookup.nlp, inputs.source.component),
    )
    if inputs.source.component is not None and record is not None:  # else there are no out-of-fold scores
        scores = figures(inputs, judged_pairs, plan.evaluation_groups, spans, None if spans is None else state.spans.groups)
        set_performance(pipe.lookup.nlp, pipe.attr, scores)
    learning.update(1.0)
    return state, judged_pairs, spans


def settle_source(pipe: CalibratingPipe, examples: Iterable[Example], progress: Progress) -> Iterable[Example]:
    """Let the source learn its labels and choose automatic settings; return the examples. RAISES C281 to C286: the labels."""
    source = with_map(pipe.source, None)
    if not isinstance(source, LeftScoresSource) and not source.has_auto_settings:
        return examples
    examples = list(examples)
    component = pipe.lookup.component_to_fit(examples[0].predicted.vocab if examples else None)
    if isinstance(source, LeftScoresSource):
        unknown = source.learn_labels(component, [example.predicted for example in examples])
        if unknown:
            pipe.warn("CW19", labels=", ".join(unknown))
    if not source.has_auto_settings:
        return examples
    choosing, reading = progress.parts(1, 1, stages=["Choosing settings", "Reading scores"])
    for setting, value in source.resolve_auto_settings(component, examples, choosing.track).items():
        pipe.lookup.restore_setting(setting, value)  # so that it is saved in the config
    return reading.track(examples)


def choose(inputs: FitInputs, progress: Progress = UNREPORTED) -> CalibrationPlan:
    """Return the steps of the settings, or those that the selection chose, and the groups of the tags."""
    settings, data = inputs.settings, inputs.data
    learn_context: LearnContext | None = None
    if inputs.of_spans_alone:  # tokens stay as they are
        groups = inputs.groups(ONE_GROUP)
        return CalibrationPlan(groups, groups, Identity(), data.pairs.scores)
    if settings.source.further_score_names and inputs.source.annotation.unit == DOCUMENT and data.is_complete:
        raw = data.kept_pairs, data.unlabelled_pairs.take(data.kept_unlabelled)
        learn_context = partial(fit_further_scores, settings.source.further_score_names, inputs.groups(settings.grouping), raw)
    elif settings.context is not None and inputs.source.annotation.unit == TOKEN and data.is_complete:
        learn_context = partial(
            fit_token_context,
            settings.context,
            n_tags=data.n_tags,
            overlapping=inputs.source.annotation.overlapping,
            salt=inputs.seen_texts.salt,
        )
    # Scaling and context compare the tags of a token: a rejected tag, which leaves the right one open, teaches them nothing.
    scalable = of_one_tag(settings, inputs.source.annotation) and data.is_complete
    return make_plan(settings, data, inputs.groups, scalable, learn_context, progress)


def conventions_in(inputs: FitInputs) -> list[Convention]:
    """Find labels that component and gold seem to use differently; [] unless each token has one right tag."""
    if not may_differ(inputs.settings, inputs.source.annotation):
        return []
    return find_conventions(inputs.data.kept_pairs, inputs.data.gold, inputs.files[inputs.data.kept_documents])


def _fit_spans(inputs: FitInputs, data: SpanData, plan: CalibrationPlan, tokens: TokenCalibration) -> SpanFit:
    """Fit the steps of spans, which see their tokens through the context.

    If the context does not adjust token scores, it gets them here as in new texts, with only the other steps applied.
    """
    labels, table, context = inputs.source.span_labels, map_of(inputs.settings.source) or {}, plan.context
    if context is None or context.view is None:
        return fit_spans(data, inputs.span_groups())
    without = without_token_model(context.context)
    if not plan.uses_context:
        predictions = before_maps(inputs.data, plan, tokens).replace_unchecked(words=inputs.data.words)
        context = replace(context, view=without.apply(predictions).view)
    tags = LabelMatch.from_labels(
        inputs.source.labels, inputs.source.annotation.has_prefixes, [table.get(label, label) for label in labels]
    )
    fit = fit_spans(data, inputs.span_groups(), partial(fit_span_context, context, tags))
    if fit.calibration.context is not None and tokens.context is None:
        tokens.context = without
    return fit


def figures(
    inputs: FitInputs, judged_pairs: JudgedPairs, groups: Groups, spans: SpanFit | None, span_groups: Groups | None
) -> dict[str, Any]:
    """Return the figures of `spacy evaluate` for the fit data, by out-of-fold scores."""
    settings, n_bins = inputs.settings, inputs.arguments.n_bins
    token_prefix, span_prefix = score_prefixes(settings.attr, inputs.source.annotation.of_entities, settings.token_scores)
    scores = calib_scores(judged_pairs, groups, token_prefix, n_bins) if token_prefix else {}
    if spans is not None:
        scores |= calib_scores(spans.data.pairs_with(spans.held_out, inputs.unit), span_groups, span_prefix, n_bins)
    return scores


def _describe(
    inputs: FitInputs,
    plan: CalibrationPlan,
    tokens: TokenCalibration,
    spans: SpanFit | None,
    judged_pairs: JudgedPairs,
    conventions: Sequence[Convention],
) -> FitInfo:
    """Summarize the fit for `calib info`."""
    settings, arguments, maps, context = inputs.settings, inputs.arguments, tokens.maps, plan.context
    assert maps is not None
    return FitInfo(
        component=settings.source.component,
        layer=inputs.source.annotation.name,
        threshold=settings.threshold,
        docs=inputs.n_docs,
        unit=inputs.unit,
        tokens=inputs.data.pairs.n_units,
        unknown_gold=inputs.unknown.n,
        unknown=inputs.unknown.message_fields() if inputs.unknown.n else None,
        label_map=map_of(settings.source),
        pairs=maps.pooled_fit_.pairs,
        counted_on=arguments.counted_on if arguments.tag_counts is not None else HERE,
        scaling=None if tokens.scaling is None else tokens.scaling.describe(),
        method=plan.prototype.registered,
        pooling=None if maps.offsets is None else maps.offsets.describe(),
        context=None if context is None else {**context.about, "kept": plan.uses_context, "why": context.why},
        selection=plan.table or None,
        table=summarize_fit(
            judged_pairs.pairs, plan.pairs_of(inputs.data).scores, maps, plan.evaluation_groups, arguments.n_bins
        ),
        held_out=evaluate_held_out(judged_pairs) if len(judged_pairs.pairs) else None,
        spans=None if spans is None else _describe_spans(inputs, spans),
        versions={
            "spacy-calib": __version__,
            "spacy": spacy.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        conventions=[convention.to_dict(inputs.source.labels) for convention in conventions],
    )


def _describe_spans(inputs: FitInputs, spans: SpanFit) -> SpanFitInfo:
    """Summarize the fit of spans for `calib info`."""
    judged_pairs, chosen_map, candidate_map = (
        spans.data.pairs_with(spans.held_out),
        spans.calibration.chosen,
        spans.calibration.candidates,
    )
    assert chosen_map is not None
    assert candidate_map is not None
    return SpanFitInfo(
        event=inputs.source.annotation.span_event or inputs.settings.event,
        labels=list(inputs.source.span_labels),
        spans=chosen_map.n_spans_,
        right=chosen_map.n_hits_,
        candidates=candidate_map.n_spans_,
        fallback=chosen_map.fallback_,
        table=_fit_rows(
            spans.data.pairs,
            chosen_map.predict(spans.data.known_spans, spans.data.pairs.scores),
            chosen_map.groups,
            [f"raw scores: {chosen_map.fallback_}" if chosen_map.fallback_ else ""] * (1 + len(chosen_map.groups)),
            inputs.arguments.n_bins,
        ),
        context=spans.context,
        held_out=evaluate_held_out(judged_pairs) if len(np.unique(judged_pairs.documents)) > 1 else None,
    )


def summarize_fit(
    pairs: Pairs, scores_before: Floats, maps: GroupedRecalibrator, groups: Groups, n_bins: int = 10
) -> list[FitRow]:
    """Return a row for all pairs and one per group: data of the fit, and calibration error in-sample, raw and calibrated.

    scores_before (Floats): Inputs of the recalibrators: raw scores, or those of a scaling.
    groups (Groups): Groups of the rows; if they are not those of the recalibrators, a row names these.
    """
    fallbacks = [fit.fallback for fit in maps.fits_]
    if groups.names != maps.groups.names or not np.array_equal(groups.of_tag, maps.groups.of_tag):
        fallback = "one for all tags" if len(maps.groups) == 1 else f"of one of {len(maps.groups)} groups"
        fallbacks = [fallback] * len(groups)
    scores_after = maps.predict(scores_before, pairs.tags)
    return _fit_rows(pairs, scores_after, groups, [maps.pooled_fit_.fallback, *fallbacks], n_bins)


def _fit_rows(pairs: Pairs, scores_after: Floats, groups: Groups, fallbacks: Sequence[str], n_bins: int) -> list[FitRow]:
    """Return the rows of the fit table. fallbacks (Sequence[str]): Of all pairs, then of each group."""
    slices = [np.arange(len(pairs)), *group_slices(pairs, groups)]
    is_tag_of = [np.ones(len(groups.of_tag), dtype=bool), *(groups.of_tag == number for number in range(len(groups)))]
    total = int(groups.counts.sum())
    return [
        FitRow(
            group=name,
            tags=int(np.count_nonzero(is_tag)),
            share=float(groups.counts[is_tag].sum() / total) if total else None,
            pairs=len(index),
            hits=int(np.count_nonzero(pairs.hits[index])),
            raw=calibration_error(pairs.scores[index], pairs.hits[index], n_bins),
            calibrated=calibration_error(scores_after[index], pairs.hits[index], n_bins),
            fallback=fallback,
        )
        for name, is_tag, index, fallback in zip(("all", *groups.names), is_tag_of, slices, fallbacks, strict=True)
    ]
