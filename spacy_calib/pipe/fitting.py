"""A fit, step by step: gather examples, choose the steps, learn the maps, and describe what was learned."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import spacy
from spacy.training import Example

from ..about import __version__
from ..calibration.choice import Plan, grouping_of, make_plan
from ..calibration.conventions import Convention, find_conventions
from ..calibration.grouping.named import group_beside
from ..calibration.recalibrators import Identity
from ..calibration.shrinkage import fit_line
from ..calibration.span_fit import SpanData, SpanFit, fit_spans
from ..calibration.spans import SpanCalibration
from ..calibration.sufficiency import judge_held_out
from ..calibration.token_fit import Chosen, LearnContext, TokenFit, fit_tokens
from ..context.fit import TokenContextFit, fit_further_scores, fit_span_context, fit_token_context
from ..context.tokens import TagsOfSpans
from ..expect.record import FitRecord, FoundSpans, record_fit
from ..pairs.build import JudgedPairs
from ..pairs.documents import DOCUMENT
from ..pairs.progress import UNREPORTED, Progress
from ..sources.find import Fitted
from ..sources.fingerprint import fingerprint
from ..sources.mapped import map_of, with_map
from ..types import Groups
from .calibrating import CalibratingPipe
from .fit_info import FitInfo, SpanFitInfo, summarize_fit, summarize_span_fit
from .gathering import HERE, FitArguments, Gathered, gather, may_differ, of_one_tag
from .scorer import calib_scores, score_prefixes, set_performance
from .state import PipeState
from .upstream import learn_labels, settle


@dataclass(frozen=True, eq=False)
class Learned:
    """The fitted maps. spans (SpanFit | None): None for a source of token labels alone. judged (JudgedPairs): The pairs of the fit data,
    each with the score of maps that did not see its document. conventions (list[Convention]): Where the gold seems to name things otherwise.
    """

    tokens: TokenFit
    spans: SpanFit | None
    judged: JudgedPairs
    conventions: list[Convention]


def fit_calibrator(
    pipe: CalibratingPipe, examples: Iterable[Example], arguments: FitArguments
) -> tuple[PipeState, JudgedPairs]:
    """(what a pipe learns from examples, see `Calibrator.fit`; the pairs with scores of maps that did not see their document). The pipe is not
    changed; its figures go into the pipeline's meta.
    """
    examples = learn_labels(pipe, examples)
    settling, fitting = arguments.progress.parts(with_map(pipe.source, None).unsettled, 1)
    gathered = gather(pipe, settle(pipe, examples, settling), replace(arguments, progress=fitting))
    choosing, learning = gathered.arguments.progress.stages({"Choosing the method": 10, "Fitting the maps": 1})
    plan = choose(gathered, choosing)
    learning.at(0.0)
    learned = learn(gathered, plan)
    state = PipeState(
        tokens=learned.tokens.calibration,
        spans=SpanCalibration() if learned.spans is None else learned.spans.calibration,
        component=Fitted(pipe.source.kind(gathered.component), gathered.labels),
        judged_by=plan.judged_by,
        record=record(gathered, learned),
        seen=gathered.seen,
        info=describe(gathered, plan, learned),
        weights=fingerprint(pipe.lookup.nlp, gathered.component),
    )
    if gathered.component is not None and state.record is not None:  # else nothing was held out
        groups = None if learned.spans is None else learned.spans.chosen.groups
        shown = figures(gathered, learned.judged, plan.judged_by, learned.spans, groups)
        set_performance(pipe.lookup.nlp, pipe.attr, shown)
    learning.at(1.0)
    return state, learned.judged


def choose(gathered: Gathered, progress: Progress = UNREPORTED) -> Plan:
    """The steps of the settings, or what the selection chose, and the groups of the tags."""
    settings = gathered.settings
    learn_context: LearnContext | None = None
    if gathered.data.of_spans_alone:  # tokens stay as they are
        one_group = grouping_of(1)
        chosen = Chosen(one_group, Identity(), None, None, gathered.tokens.pairs.scores)
        return Plan(chosen, gathered.groups(one_group), gathered.groups(one_group))
    if settings.source.beside and gathered.annotation.unit == DOCUMENT and gathered.data.complete:
        groups = gathered.groups(settings.grouping)
        raw = gathered.tokens.kept_pairs, gathered.tokens.others.take(gathered.tokens.kept_others)
        learn_context = partial(fit_further_scores, settings.source.beside, groups, raw)
    elif gathered.context is not None and gathered.data.complete:
        learn_context = partial(
            fit_token_context, gathered.context, n_tags=len(gathered.labels), overlapping=gathered.annotation.overlapping
        )
    # A rejected tag leaves open which of the others is right: neither scaling nor context, which compare them, can learn from that.
    scalable = of_one_tag(settings, gathered.annotation) and gathered.data.complete
    return make_plan(settings, gathered.tokens, gathered.groups, scalable, learn_context, progress)


def learn(gathered: Gathered, plan: Plan) -> Learned:
    """Fit the maps. RAISES C003, C006: too few pairs."""
    settings, data, tokens = gathered.settings, gathered.data, gathered.tokens
    conventions, found = conventions_in(gathered), plan.chosen.context
    if plan.chosen.moves and isinstance(found, TokenContextFit) and found.context.shrink:
        found.context.line_ = fit_line(tokens.kept_pairs, conventions)
    fitted = fit_tokens(
        tokens,
        plan.chosen,
        plan.groups,
        normalize=settings.normalize,
        sets=settings.sets,
        promise_groups=plan.judged_by,
    )
    spans = None if data.spans is None else _learn_spans(gathered, data.spans, fitted)
    return Learned(
        fitted, spans, JudgedPairs(tokens.kept_pairs, fitted.held_out, tokens.kept_documents, data.unit), conventions
    )


def conventions_in(gathered: Gathered) -> list[Convention]:
    """Where labels and gold look like two conventions; only of tokens that have one right tag."""
    if not may_differ(gathered.settings, gathered.annotation):
        return []
    tokens = gathered.tokens
    return find_conventions(tokens.kept_pairs, tokens.gold, gathered.data.files[tokens.kept_documents])


def _learn_spans(gathered: Gathered, found: SpanData, tokens: TokenFit) -> SpanFit:
    """tokens (TokenFit): Of the same Docs; entities look at their tokens through its context, whether that moves those or not. Where it does not, they look at
    what the other steps make of the tokens, as they will in new texts, and not at the scores that the context was learned on.
    """
    settings, given, around = gathered.settings, gathered.arguments.span_counts, tokens.chosen.context
    if isinstance(around, TokenContextFit) and not tokens.chosen.moves:
        around = around.behind(tokens.before_maps(), gathered.tokens.words.words)
    labels = settings.source.span_labels(gathered.component)
    counts = gathered.data.span_counts if given is None else given
    groups = group_beside(settings.grouping, labels, counts)
    table = map_of(settings.source) or {}
    tags = TagsOfSpans.of(gathered.labels, gathered.annotation.prefixed, [table.get(label, label) for label in labels])
    learn_context = partial(fit_span_context, around, tags) if isinstance(around, TokenContextFit) else None
    fitted = fit_spans(found, groups, learn_context)
    if isinstance(around, TokenContextFit) and fitted.calibration.context is not None and tokens.calibration.context is None:
        tokens.calibration.context = around.left_out()
    return fitted


def record(gathered: Gathered, learned: Learned) -> FitRecord | None:
    """What the pipe remembers of the fit documents."""
    data = gathered.data
    kept, calibrated = learned.tokens.others
    unjudged = JudgedPairs(data.unjudged.take(kept), calibrated, data.unjudged_documents[kept])
    return record_fit(learned.judged, data.n_docs, gathered.labels, learned.spans, unjudged, data.gold, data.files)


def figures(
    gathered: Gathered, judged: JudgedPairs, groups: Groups, spans: FoundSpans | None, span_groups: Groups | None
) -> dict[str, Any]:
    """The figures of `spacy evaluate` for the fit data, each pair judged by maps that did not see its document."""
    settings, n_bins = gathered.settings, gathered.arguments.n_bins
    token_prefix, span_prefix = score_prefixes(settings.attr, gathered.annotation.of_entities, settings.token_scores)
    made = calib_scores(judged, groups, token_prefix, n_bins) if token_prefix else {}
    if spans is not None:
        documents = spans.data.documents[spans.data.known]
        of_spans = JudgedPairs(spans.data.pairs, spans.held_out, documents, gathered.data.unit)
        made |= calib_scores(of_spans, span_groups, span_prefix, n_bins)
    return made


def describe(gathered: Gathered, plan: Plan, learned: Learned) -> FitInfo:
    """What the pipe says of its fit."""
    data, settings, arguments = gathered.data, gathered.settings, gathered.arguments
    maps, tokens, judged = learned.tokens.maps, learned.tokens.calibration, learned.judged
    return FitInfo(
        component=settings.source.component,
        layer=gathered.annotation.name,
        threshold=settings.threshold,
        docs=data.n_docs,
        unit=data.unit,
        tokens=data.pairs.n_units,
        unknown_gold=data.n_unknown,
        unknown=data.unknown.words() if data.n_unknown else None,
        label_map=map_of(settings.source),
        pairs=maps.pooled_fit_.pairs,
        counted_on=arguments.counted_on if arguments.tag_counts is not None else HERE,
        scaling=None if tokens.scaling is None else tokens.scaling.describe(),
        method=plan.chosen.prototype.registered,
        pooling=None if maps.offsets is None else maps.offsets.describe(),
        context=_describe_context(plan.chosen),
        sets=None if tokens.sets is None else tokens.sets.describe(gathered.labels),
        selection=plan.chosen.table or None,
        table=summarize_fit(judged.pairs, learned.tokens.pairs.scores, maps, plan.judged_by, arguments.n_bins),
        held_out=judge_held_out(judged.pairs, judged.calibrated, judged.documents) if len(judged.pairs) else None,
        spans=None if learned.spans is None else _describe_spans(gathered, learned.spans),
        versions={
            "spacy-calib": __version__,
            "spacy": spacy.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        conventions=[convention.to_dict(gathered.labels) for convention in learned.conventions],
    )


def _describe_context(chosen: Chosen) -> dict[str, Any] | None:
    """What was learned of the surroundings, and whether it moves the scores of tokens; None where that was not asked for."""
    found = chosen.context
    return None if found is None else {**found.about, "kept": chosen.moves, "why": found.why}


def _describe_spans(gathered: Gathered, spans: SpanFit) -> SpanFitInfo:
    pairs, documents = spans.data.pairs, spans.data.documents[spans.data.known]
    return SpanFitInfo(
        event=gathered.annotation.span_event or gathered.settings.event,
        labels=list(gathered.settings.source.span_labels(gathered.component)),
        spans=spans.chosen.n_spans_,
        right=spans.chosen.n_hits_,
        candidates=spans.candidates.n_spans_,
        fallback=spans.chosen.fallback_,
        table=summarize_span_fit(spans, gathered.arguments.n_bins),
        context=None if spans.context is None else spans.context.about,
        held_out=judge_held_out(pairs, spans.held_out, documents) if len(np.unique(documents)) > 1 else None,
    )
