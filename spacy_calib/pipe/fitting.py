"""A fit, step by step: gather examples, choose the steps, learn the maps, and describe what was learned."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import spacy
from spacy.language import Language
from spacy.training import Example

from ..about import __version__
from ..calibration.grouping.alone import group_beside, informed
from ..calibration.plan import Plan, lowest_taken, make_plan
from ..calibration.span_fit import SpanData, SpanFit, fit_spans
from ..calibration.spans import SpanCalibration
from ..calibration.sufficiency import judge_held_out
from ..calibration.token_fit import TokenData, TokenFit, fit_tokens
from ..context.fit import FitWords, TokenContextFit, fit_span_context, fit_token_context
from ..doc.annotations import Annotation
from ..doc.texts import TextWatch
from ..doc.words import words_of
from ..errors import calib_error
from ..expect.record import FitRecord, FoundSpans, record_fit
from ..expect.seen import SeenTexts, TextUnits
from ..pairs.documents import TOKEN
from ..pairs.judged import JudgedPairs
from ..sources.find import Fitted
from ..sources.fingerprint import fingerprint
from ..sources.mapped import map_of
from ..types import Grouping, Groups
from .fit_data import FitData, collect_fit_data
from .fit_info import FitInfo, SpanFitInfo
from .fit_table import summarize_fit, summarize_span_fit
from .performance import set_performance
from .scorer import calib_scores
from .settings import PipeSettings
from .settling import learn_labels, settle
from .state import PipeState

if TYPE_CHECKING:
    from ..context.familiarity import WordCounts
    from ..context.tokens import TokenContext
    from .component import Calibrator

_HERE = "the fit data"


@dataclass(frozen=True)
class FitArguments:
    """The arguments of `Calibrator.fit`, but for the examples.

    tag_counts (Mapping | None): Gold tag frequencies of the training data, for grouping; None counts them in the examples.
    span_counts (Mapping | None): The same for the labels of spans (entities). min_pairs (int): Fewer pairs in all are refused.
    counted_on (str): Where tag_counts come from, for `info`. n_bins (int): Adaptive bins of the errors in the fit table.
    max_unknown (float): A greater share of gold labels that the component does not know is refused.
    word_counts (WordCounts | None): How often forms stand in the training data, for a context; None counts them in the examples.
    """

    tag_counts: Mapping[str, int] | None = None
    _: KW_ONLY
    span_counts: Mapping[str, int] | None = None
    min_pairs: int = 1
    counted_on: str = _HERE
    n_bins: int = 10
    max_unknown: float = 1.0
    word_counts: WordCounts | None = None


@dataclass(frozen=True, eq=False)
class Gathered:
    """What a fit learns from.

    settings (PipeSettings), arguments (FitArguments): Of the pipe, and of this fit.
    nlp (Language | None), component (Any): The pipeline, and what the source reads in it; None for a source that reads the Doc alone.
    annotation (Annotation), labels (tuple[str, ...]): What the source gives probabilities of.
    data (FitData), texts (TextUnits): What the examples gave, and their digests. tokens (TokenData): The tokens of data.
    counts (Mapping): Gold frequency of each label, for grouping.
    """

    settings: PipeSettings
    arguments: FitArguments
    nlp: Language | None
    component: Any
    annotation: Annotation
    labels: tuple[str, ...]
    data: FitData
    texts: TextUnits
    tokens: TokenData
    counts: Mapping[str, int]

    @property
    def context(self) -> TokenContext | None:
        """The prototype of the context; None without one, and for labels of documents, at which it does not look."""
        return self.settings.context if self.annotation.unit == TOKEN else None

    @property
    def seen(self) -> SeenTexts:
        return SeenTexts.of(self.texts.digests)

    def groups(self, grouping: Grouping) -> Groups:
        source = self.settings.source
        return group_beside(grouping, self.labels, self.counts, source.alone, source.frequency_label)


@dataclass(frozen=True, eq=False)
class Learned:
    """The fitted maps. spans (SpanFit | None): None for a source of token labels alone. judged (JudgedPairs): The pairs of the fit data,
    each with the score of maps that did not see its document.
    """

    tokens: TokenFit
    spans: SpanFit | None
    judged: JudgedPairs


def fit_calibrator(pipe: Calibrator, examples: Iterable[Example], arguments: FitArguments) -> tuple[PipeState, JudgedPairs]:
    """(what a pipe learns from examples, see `Calibrator.fit`; the pairs with scores of maps that did not see their document). The pipe is not
    changed; its figures go into the pipeline's meta.
    """
    gathered = gather(pipe, settle(pipe, learn_labels(pipe, examples)), arguments)
    plan = choose(gathered)
    learned = learn(gathered, plan)
    state = PipeState(
        tokens=learned.tokens.calibration,
        spans=SpanCalibration() if learned.spans is None else learned.spans.calibration,
        component=Fitted(pipe.source.kind(gathered.component), gathered.labels),
        judged_by=plan.judged_by,
        record=record(gathered, learned),
        seen=gathered.seen,
        info=describe(gathered, plan, learned),
        weights="" if gathered.nlp is None else fingerprint(gathered.nlp, gathered.component),
    )
    if gathered.nlp is not None and state.record is not None:  # else nothing was held out
        groups = None if learned.spans is None else learned.spans.chosen.groups
        shown = figures(gathered, learned.judged, learned.tokens.maps.groups, learned.spans, groups)
        set_performance(gathered.nlp, pipe.attr, shown)
    return state, learned.judged


def gather(pipe: Calibrator, examples: Iterable[Example], arguments: FitArguments) -> Gathered:
    """Read the examples.

    RAISES C021 to C024, C028, C033 to C035, C072, C264: the component. C030 to C032, C071, C164: the gold. C003, C005: too few pairs.
    """
    first, examples = _with_first(examples)
    nlp, component = pipe.lookup.to_fit(None if first is None else first.predicted.vocab)
    source = pipe.source
    annotation = source.annotation(component)
    watch = TextWatch(annotation)
    check_context(pipe, annotation)
    context = (pipe.context or pipe.tokens.context) if annotation.unit == TOKEN else None
    read_words = None if context is None else partial(words_of, functions=context.functions, first=annotation.first)
    data = collect_fit_data(source, component, watch.over(examples), _lowest(pipe, annotation), pipe.event, read_words)
    name = source.component or "the source"
    data.check(annotation.gold.name, name, pipe.threshold, arguments.min_pairs, arguments.max_unknown)
    labels = source.labels(component)
    return Gathered(
        settings=pipe,
        arguments=arguments,
        nlp=nlp,
        component=component,
        annotation=annotation,
        labels=labels,
        data=data,
        texts=watch.units(),
        tokens=data.tokens(len(labels), pipe.threshold, _fit_words(data, arguments), annotation.unit),
        counts=_counts(annotation, labels, data, arguments),
    )


def _counts(annotation: Annotation, labels: Sequence[str], data: FitData, arguments: FitArguments) -> dict[str, int]:
    """Those given, but for labels of another scheme, where that is no fault."""
    given = arguments.tag_counts
    foreign = annotation.any_label and set(labels).isdisjoint(given or ())
    return dict(data.counts if given is None or foreign else given)


def check_context(settings: PipeSettings, annotation: Annotation) -> None:
    """RAISES C264: a context is asked for that could not look at what is calibrated."""
    if annotation.unit != TOKEN and settings.context is not None and settings.context.when == "always":
        raise calib_error("C264", setting="context", component=settings.source.component or "the source")


def _fit_words(data: FitData, arguments: FitArguments) -> FitWords | None:
    if data.words is None:
        return None
    if arguments.word_counts is None:
        return FitWords(data.words, data.doc_documents, None, _HERE)
    return FitWords(data.words, data.doc_documents, arguments.word_counts, arguments.counted_on)


def _with_first(examples: Iterable[Example]) -> tuple[Example | None, Iterable[Example]]:
    """(the first example, all of them)."""
    rest = iter(examples)
    first = next(rest, None)
    return first, rest if first is None else chain([first], rest)


def _lowest(settings: PipeSettings, annotation: Annotation) -> float:
    """Scores below it take no part in a fit.

    RAISES C072: a setting that is about the one right tag of a token. C287: one that needs the scores of all its tags.
    """
    if not _of_one_tag(settings, annotation):
        for name in ("scaling", "sets", "normalize"):
            if getattr(settings, name) and annotation.overlapping:
                raise calib_error("C072", setting=name, layer=annotation.gold.name, unit=annotation.unit)
            if getattr(settings, name):
                raise calib_error("C287", setting=name, where=settings.source.component or "the source")
        return settings.threshold
    return lowest_taken(settings)


def _of_one_tag(settings: PipeSettings, annotation: Annotation) -> bool:
    """Whether a token has one right tag, and scores of all that it may be."""
    return settings.source.distributions and not annotation.overlapping


def choose(gathered: Gathered) -> Plan:
    """The steps of the settings, or what the selection chose, and the groups of the tags."""
    settings = gathered.settings
    names = [settings.source.frequency_label(label) for label in gathered.labels]
    return make_plan(settings, gathered.tokens, names, gathered.groups, _of_one_tag(settings, gathered.annotation))


def learn(gathered: Gathered, plan: Plan) -> Learned:
    """Fit the maps. RAISES C003, C006, C007: too few pairs."""
    settings, data, tokens = gathered.settings, gathered.data, gathered.tokens
    learn_context = None
    if gathered.context is not None:
        learn_context = partial(fit_token_context, gathered.context, overlapping=gathered.annotation.overlapping)
    fitted = fit_tokens(
        tokens,
        plan.chosen,
        plan.groups,
        normalize=settings.normalize,
        intervals=settings.intervals,
        sets=settings.sets,
        promise_groups=plan.judged_by,
        learn_context=learn_context,
    )
    spans = None if data.spans is None else _learn_spans(gathered, data.spans, fitted)
    return Learned(fitted, spans, JudgedPairs(tokens.kept_pairs, fitted.held_out, tokens.kept_documents, data.unit))


def _learn_spans(gathered: Gathered, found: SpanData, tokens: TokenFit) -> SpanFit:
    """tokens (TokenFit): Of the same Docs; entities look at their tokens through its context, whether that moves those or not."""
    settings, given, around = gathered.settings, gathered.arguments.span_counts, tokens.context
    labels = settings.source.span_labels(gathered.component)
    counts = gathered.data.span_counts if given is None else given
    groups = group_beside(informed(settings.grouping, found.pairs, labels), labels, counts)
    learn_context = partial(fit_span_context, around) if isinstance(around, TokenContextFit) else None
    fitted = fit_spans(found, groups, learn_context)
    if around is not None and fitted.calibration.context is not None:
        tokens.calibration.context = around.context
    return fitted


def record(gathered: Gathered, learned: Learned) -> FitRecord | None:
    """What the pipe remembers of the fit documents."""
    data = gathered.data
    kept, calibrated = learned.tokens.others
    unjudged = JudgedPairs(data.unjudged.take(kept), calibrated, data.unjudged_documents[kept])
    return record_fit(learned.judged, data.n_docs, gathered.labels, learned.spans, unjudged, data.gold)


def figures(
    gathered: Gathered, judged: JudgedPairs, groups: Groups, spans: FoundSpans | None, span_groups: Groups | None
) -> dict[str, Any]:
    """The figures of `spacy evaluate` for the fit data, each pair judged by maps that did not see its document."""
    attr, n_bins = gathered.settings.attr, gathered.arguments.n_bins
    made = calib_scores(judged, groups, attr, n_bins)
    if spans is not None:
        documents = spans.data.documents[spans.data.known]
        of_spans = JudgedPairs(spans.data.pairs, spans.held_out, documents, gathered.data.unit)
        made |= calib_scores(of_spans, span_groups, f"{attr}_ent", n_bins)
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
        pairs=len(judged),
        counted_on=arguments.counted_on if arguments.tag_counts is not None else _HERE,
        scaling=None if tokens.scaling is None else tokens.scaling.describe(),
        method=plan.chosen.prototype.registered,
        pooling=None if maps.offsets is None else maps.offsets.describe(),
        context=None if learned.tokens.context is None else learned.tokens.context.about,
        intervals=settings.intervals,
        sets=None if tokens.sets is None else tokens.sets.describe(gathered.labels),
        selection=plan.chosen.table or None,
        table=summarize_fit(judged.pairs, learned.tokens.pairs.scores, maps, plan.judged_by, arguments.n_bins),
        held_out=judge_held_out(judged.pairs, judged.calibrated, judged.documents),
        spans=None if learned.spans is None else _describe_spans(gathered, learned.spans),
        versions={
            "spacy-calib": __version__,
            "spacy": spacy.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    )


def _describe_spans(gathered: Gathered, spans: SpanFit) -> SpanFitInfo:
    return SpanFitInfo(
        event=gathered.annotation.span_event or gathered.settings.event,
        labels=list(gathered.settings.source.span_labels(gathered.component)),
        spans=spans.chosen.n_spans_,
        right=spans.chosen.n_hits_,
        candidates=spans.candidates.n_spans_,
        fallback=spans.chosen.fallback_,
        table=summarize_span_fit(spans, gathered.arguments.n_bins),
        context=None if spans.context is None else spans.context.about,
    )
