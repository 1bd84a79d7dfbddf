"""Fits a calib pipe: reads gold examples, chooses the calibration steps, fits them, and summarizes the fit."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import numpy as np
import spacy
from spacy.tokens import Doc
from spacy.training import Example

from ..about import __version__
from ..annotations import Annotation
from ..calibration.choice import lowest_taken, make_plan
from ..calibration.conventions import Convention, find_conventions, fit_platt_on_agreeing_tokens
from ..calibration.grouped import GroupedRecalibrator
from ..calibration.grouping.fixed import shared_group
from ..calibration.grouping.tag_frequency import group_with_singletons
from ..calibration.recalibrators import Identity
from ..calibration.span_fit import SpanData, SpanFit, fit_spans
from ..calibration.spans import SpanCalibration
from ..calibration.sufficiency import evaluate_held_out
from ..calibration.token_fit import (
    CalibrationPlan,
    FitData,
    LearnContext,
    before_maps,
    fit_tokens,
    score_held_out,
    score_unlabelled,
)
from ..calibration.tokens import TokenCalibration
from ..context.fit import fit_further_scores, fit_span_context, fit_token_context, without_token_model
from ..context.tokens import FurtherScores, LabelMatch, TokenContext
from ..context.words import Words
from ..errors import calib_error
from ..gold.checks import GoldWatch, check_outcomes
from ..gold.example_reader import ExampleReader
from ..gold.reading import TextWatch
from ..metrics.calibration_errors import calibration_error, group_slices
from ..pairs.label_map import UnknownGold
from ..pairs.pairing import JudgedPairs
from ..pairs.progress import UNREPORTED, Progress
from ..pairs.seen_texts import FitTextDigests, TextUnits
from ..sources.find import BoundSource, ComponentIdentity, fingerprint
from ..sources.left_scores import LeftScoresSource
from ..sources.mapped import check_map_labels, map_of, with_map
from ..sources.transitions import NO_SECOND_PASS
from ..types import Grouping, Groups, Ints
from .factory import PipeSettings
from .lookup import read_words
from .record.fit_record import record_fit
from .scorer import calib_scores, drop_performance, score_prefixes, set_performance
from .state import HERE, FitInfo, FitRow, PipeState, SpanFitInfo

if TYPE_CHECKING:
    from .component import Calibrator


@dataclass(frozen=True)
class FitArguments:
    """The arguments of `Calibrator.fit` except the examples.

    tag_counts, span_counts (Mapping | None): Tag, or span label -> frequency, for groups; None counts those in the examples.
    counted_on (str): Where these were counted, as text. min_pairs (int): Minimum number of (token, tag) pairs. n_bins (int):
    Bins of the calibration errors. max_unknown (float): Maximum share of gold labels that the component does not know.
    progress (Progress): Shows the progress of the fit.
    """

    tag_counts: Mapping[str, int] | None = None
    span_counts: Mapping[str, int] | None = None
    min_pairs: int = 1
    counted_on: str = HERE
    n_bins: int = 10
    max_unknown: float = 1.0
    progress: Progress = UNREPORTED


@dataclass(frozen=True, eq=False, kw_only=True)
class FitInputs:
    """All that a fit or an adaptation reads from its examples, with the settings and arguments.

    settings (PipeSettings), arguments (FitArguments): Settings of the pipe, arguments of this fit.
    source (BoundSource): Source of the probabilities. data (FitData): Pairs of tokens, or of labelled documents.
    spans (SpanData | None): Spans with gold; None for a source of token labels alone.
    counts (Mapping): Frequency of each label, for grouping. span_counts (Mapping): Gold frequency of each span label.
    n_docs (int), unit (str): Number of documents with scores, and their kind.
    doc_documents, files (Ints): Document of each Doc, and gold file of each document.
    n_gold (int): Tokens with gold. unknown (UnknownGold): Gold labels that the component does not know.
    texts (TextUnits): Digests of the gold texts. seen_texts (FitTextDigests): These digests, salted, as a pipe saves them.
    """

    settings: PipeSettings
    arguments: FitArguments
    source: BoundSource
    data: FitData
    spans: SpanData | None
    counts: Mapping[str, int]
    span_counts: Mapping[str, int]
    n_docs: int
    unit: str
    doc_documents: Ints
    files: Ints
    n_gold: int
    unknown: UnknownGold
    texts: TextUnits
    seen_texts: FitTextDigests

    @property
    def of_spans_alone(self) -> bool:
        """Whether only spans have gold, no token: annotators answered questions about single spans."""
        return not self.n_gold and self.spans is not None and bool((self.spans.hits >= 0).any())

    def groups(self, grouping: Grouping) -> Groups:
        """Divide the labels of tokens (or documents) into groups. grouping (Grouping): (labels, frequencies) -> Groups."""
        source = self.settings.source
        return group_with_singletons(grouping, self.source.labels, self.counts, source.singleton_labels, source.frequency_label)

    def span_groups(self) -> Groups:
        """Divide the span labels by the setting `grouping` and `arguments.span_counts` (None: the counts in the examples)."""
        counts = self.span_counts if self.arguments.span_counts is None else self.arguments.span_counts
        return group_with_singletons(self.settings.grouping, self.source.span_labels, counts)

    def check(self, why_missing: str, n_labels: int) -> None:
        """Check that there is enough gold whose labels the component knows. If only spans have gold, tokens need none.

        why_missing (str): Why a document could not be read, or "". n_labels (int): Number of distinct gold labels.
        RAISES C032: nothing could be read. C030: no gold. C031: all gold labels unknown. C164: too great a share of them.
            C003, C005: too few pairs. C697: no gold label of spans is one of the component.
        """
        name, unknown = self.source.name, self.unknown
        if not self.n_docs:
            raise calib_error("C032", component=name, why=why_missing or "there are no tokens")
        # No token has gold, so that all gold is on spans; C697 if all of its labels are unknown.
        if not self.n_gold and self.source.span_labels and unknown.n and unknown.share == 1:
            raise calib_error("C697", component=name, **unknown.message_fields())
        if self.of_spans_alone:
            if unknown.share > self.arguments.max_unknown:
                raise calib_error("C164", component=name, **unknown.message_fields())
            return
        if not self.n_gold:
            raise calib_error("C030", layer=self.source.annotation.gold.name, component=name)
        if unknown.n == self.n_gold:
            raise calib_error("C031", n_tags=n_labels, component=name, **unknown.message_fields())
        # A high share of unknown identities is no sign of another label scheme.
        if unknown.share > self.arguments.max_unknown and not self.source.annotation.kind.of_links:
            raise calib_error("C164", component=name, **unknown.message_fields())
        n_pairs, threshold = len(self.data.kept_indices), self.settings.threshold
        if not n_pairs:
            raise calib_error("C003", what="calibrator", threshold=threshold)
        if n_pairs < self.arguments.min_pairs:
            raise calib_error("C005", n_pairs=n_pairs, threshold=threshold, minimum=self.arguments.min_pairs)

    def check_outcomes(self, watch: GoldWatch) -> dict[str, Any] | None:
        """Check that by the gold some predictions are right and some wrong. watch (GoldWatch): Has counted the gold.

        RETURNS (dict | None): Fields of the warning CW65 if hardly any prediction is wrong, else None.
        RAISES C800 to C804: all gold labels are the same, or all predictions are right or all wrong.
        """
        source, data, spans = self.source, self.data, self.spans
        watch.check(source.name)
        # Names by gold column: those of labels, then "(none)" for no category; -1, an unknown label, is the last one, "".
        names = [*source.labels, *source.annotation.kind.no_label_names, ""]
        columns = np.unique(data.gold[data.gold != -2])  # -2: no gold
        gold_labels = [names[column] for column in columns.tolist()]
        # Whether all predicted spans are right, and no gold span is missed: then the gold may be a copy of the predictions.
        agrees = spans is not None and bool(spans.pairs.hits.all()) and len(spans.pairs) == int(spans.gold.sum())
        span_pairs = None if self.n_gold or spans is None else spans.pairs  # checked if only spans have gold
        return check_outcomes(source.annotation, source.name, data.pairs, gold_labels, span_pairs, agrees=agrees)


def read_fit_inputs(
    pipe: Calibrator, examples: Iterable[Example], arguments: FitArguments, *, in_runs: bool = False
) -> FitInputs:
    """Read the component's scores of the predicted Docs, pair them with the gold, and check that a fit can learn from them.

    examples (Iterable[Example]): `predicted` is what the component scores, `reference` the gold; Docs are not kept.
    arguments (FitArguments): Of the fit. in_runs (bool): Whether a few long documents are cut into runs of sentences,
        each of which then counts as a document.
    RAISES C021 to C024, C028, C033 to C035, C072, C264: the component cannot be calibrated. C030 to C032, C164: the gold is
        missing, or its labels unknown. C003, C005: too few pairs. C800 to C804: all predictions are right, or all wrong.
    """
    iterator = iter(examples)
    first = next(iterator, None)  # its vocab shows whether the Docs are of this pipeline
    examples = iterator if first is None else chain([first], iterator)
    component = pipe.lookup.component_to_fit(None if first is None else first.predicted.vocab)
    source = BoundSource.from_component(pipe.source, component)
    annotation = source.annotation
    _check_steps(pipe, annotation)
    # Only a scaling, which needs units with one right tag, reads scores below the threshold.
    lowest = lowest_taken(pipe) if of_one_tag(pipe, annotation) else pipe.threshold
    reader = ExampleReader(source, lowest, pipe.event, _words_reader(pipe, annotation), in_runs)
    text_watch, gold_watch = TextWatch(annotation), GoldWatch(annotation)
    reader.read_all(text_watch.watch(gold_watch.watch(examples)))  # both take notes of the examples that pass
    texts, tag_counts = text_watch.units(), arguments.tag_counts
    # If only heads are compared (any_label), gold may use another label scheme, whose counts are of no use here.
    if annotation.kind.any_label and set(reader.source.labels).isdisjoint(tag_counts or ()):
        tag_counts = None
    data, spans = reader.data(pipe.threshold)
    inputs = FitInputs(
        settings=pipe,
        arguments=arguments,
        source=reader.source,
        data=data,
        spans=spans,
        counts=dict(reader.counts if tag_counts is None else tag_counts),
        span_counts=reader.span_counts,
        n_docs=len(reader.files),
        unit=reader.unit,
        doc_documents=np.array(reader.documents, dtype=np.intp),
        files=np.array(reader.files, dtype=np.intp),
        n_gold=reader.n_gold,
        unknown=reader.unknown_gold(),
        texts=texts,
        seen_texts=FitTextDigests(salt=token_hex(16)).with_texts(texts),
    )
    inputs.check(reader.why_missing, len(reader.counts))
    if (warning_fields := inputs.check_outcomes(gold_watch)) is not None:
        pipe.warn("CW65", **warning_fields)
    return inputs


def _words_reader(pipe: Calibrator, annotation: Annotation) -> Callable[[Sequence[Doc]], Words] | None:
    """Return a function that reads from Docs the features that their context uses; None without a context."""
    if annotation.kind.of_documents:  # their context uses no words, but further scores of the source, if it has any
        return partial(read_words, pipe.lookup.nlp, None, annotation) if pipe.source.further_score_names else None
    context = pipe.context or pipe.tokens.context  # of the settings, for a fit; else the fitted one, for an adaptation
    return None if context is None else partial(read_words, pipe.lookup.nlp, context, annotation)


def _check_steps(settings: PipeSettings, annotation: Annotation) -> None:
    """Check that the steps that the settings name can be applied to labels of this annotation.

    RAISES C264: the context cannot be applied to documents. C741, C838: the setting `context` is no context. C072: a setting
        requires one right tag per token. C287: a setting requires the scores of all tags of a token.
    """
    context, name = settings.context, settings.source.component or "the source"
    if isinstance(context, FurtherScores):
        raise calib_error("C741")
    if context is not None and not isinstance(context, TokenContext):
        raise calib_error("C838", given=getattr(context, "registered", type(context).__name__))
    if annotation.kind.of_documents and context is not None and context.when == "always":
        raise calib_error("C264", setting="context", component=name)
    for setting in ("scaling", "normalize"):  # both compare the scores of all tags of a token
        if not getattr(settings, setting) or of_one_tag(settings, annotation):
            continue
        if annotation.kind.overlapping:
            raise calib_error("C072", setting=setting, layer=annotation.gold.name, unit=annotation.kind.unit)
        raise calib_error("C287", setting=setting, where=name)


def of_one_tag(settings: PipeSettings, annotation: Annotation) -> bool:
    """Return whether a token (or document) of this layer has exactly one right tag, and the source scores all possible tags."""
    return settings.source.distributions and not annotation.kind.overlapping


def may_differ(settings: PipeSettings, annotation: Annotation) -> bool:
    """Return whether to look for labels that component and gold use differently: only if each token has one right tag."""
    return of_one_tag(settings, annotation) and not annotation.kind.of_documents and not annotation.kind.of_links


def without_presets(calib: Calibrator, examples: Iterable[Example]) -> Iterator[Example]:
    """Yield the examples unchanged. RAISES C034: a predicted Doc has entities that calib's component would take for its own."""
    component = calib.lookup.component_to_fit()
    for example in examples:
        if calib.source.holds_preset(component, example.predicted):
            why = "a component before it sets entities, and a second pass cannot tell them from its own"
            raise calib_error("C034", component=calib.source.component, why=f"{why}; {NO_SECOND_PASS}")
        yield example


def map_labels(calib: Calibrator, table: dict[str, str] | None) -> None:
    """Give an unfitted pipe a label map. table (dict | None): Component's label -> gold label; None or {} removes the map.

    RAISES C163: the annotation cannot be mapped. C165: the component does not know a label.
    """
    if table:
        check_map_labels(calib.source, calib.lookup.component(), table)
    calib.source = with_map(calib.source, table)


def fit_calibrator(
    pipe: Calibrator, examples: Iterable[Example], arguments: FitArguments
) -> tuple[PipeState, JudgedPairs, SpanFit | None]:
    """Fit a calib pipe to examples. Its learned state is not changed; the pipeline's meta gets the errors of the fit.

    arguments (FitArguments): The other arguments of `Calibrator.fit`.
    RETURNS (tuple): The new state; the token pairs with out-of-fold scores; the fitted span steps with out-of-fold scores of
        the spans, None for a source without spans. RAISES CalibError: the codes of `Calibrator.fit`.
    """
    # A progress bar for each part of the fit, by its share of the time; none for settings if there is nothing to choose.
    settings_bar, fit_bar = arguments.progress.parts(with_map(pipe.source, None).has_auto_settings, 1)
    examples = settle_source(pipe, examples, settings_bar)
    inputs = read_fit_inputs(pipe, examples, replace(arguments, progress=fit_bar), in_runs=True)
    choice_bar, maps_bar = fit_bar.parts(10, 1, stages=["Choosing the method", "Fitting the maps"])
    data, plan = inputs.data, plan_tokens(inputs, choice_bar)
    maps_bar.update(0.0)
    conventions = conventions_in(inputs)  # labels that component and gold use differently
    context = plan.context.context if plan.uses_context and plan.context is not None else None
    if isinstance(context, TokenContext) and context.shrink:
        context.line_ = fit_platt_on_agreeing_tokens(data.kept_pairs, conventions)  # scores shrink towards this line
    tokens = fit_tokens(data, plan, pipe.normalize)
    judged_pairs = JudgedPairs(data.kept_pairs, score_held_out(data, plan, tokens), data.kept_documents, inputs.unit)
    spans = None if inputs.spans is None else _fit_spans(inputs, inputs.spans, plan, tokens)
    index, scores = data.kept_unlabelled, score_unlabelled(data, plan, tokens)  # of pairs without gold, as on new texts
    unlabelled_pairs = JudgedPairs(data.unlabelled_pairs.take(index), scores, data.unlabelled_documents[index])
    record = record_fit(judged_pairs, inputs.n_docs, inputs.source.labels, spans, unlabelled_pairs, inputs.files)
    state = PipeState(
        tokens=tokens,
        spans=SpanCalibration() if spans is None else spans.calibration,
        component=ComponentIdentity(pipe.source.type_name(inputs.source.component), inputs.source.labels),
        judged_by=plan.evaluation_groups,
        record=None if record is None else record.to_bytes(),
        seen_state=inputs.seen_texts.state(),
        info=_describe(inputs, plan, tokens, spans, judged_pairs, conventions),
        weights=fingerprint(pipe.lookup.nlp, inputs.source.component),
    )
    pairs_with_errors = None if record is None else judged_pairs  # a single document has no out-of-fold scores
    save_errors(pipe, inputs, pairs_with_errors, plan.evaluation_groups, spans, state.spans.groups)
    maps_bar.update(1.0)
    return state, judged_pairs, spans


def settle_source(pipe: Calibrator, examples: Iterable[Example], progress: Progress) -> Iterable[Example]:
    """Let a pipe's source learn labels and choose automatic settings from the examples. RETURNS: The examples, for the fit.

    RAISES C281 to C285: labels cannot be learned from the scores on the Docs.
    """
    source = with_map(pipe.source, None)  # the source that a label map wraps has the settings
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
    choice_bar, reading_bar = progress.parts(1, 1, stages=["Choosing settings", "Reading scores"])
    source.resolve_auto_settings(component, examples, choice_bar.track)
    return reading_bar.track(examples)


def plan_tokens(inputs: FitInputs, progress: Progress = UNREPORTED) -> CalibrationPlan:
    """Plan the calibration of tokens: its groups and its steps, as in the settings or chosen by the setting `selection`."""
    settings, data, annotation, context = inputs.settings, inputs.data, inputs.source.annotation, inputs.settings.context
    if inputs.of_spans_alone:  # tokens keep their raw scores
        groups = inputs.groups(shared_group)
        return CalibrationPlan(groups, groups, Identity(), data.pairs.scores)
    learn_context: LearnContext | None = None
    if (names := settings.source.further_score_names) and annotation.kind.of_documents and data.is_complete:
        raw_pairs = data.kept_pairs, data.unlabelled_pairs.take(data.kept_unlabelled)
        learn_context = partial(fit_further_scores, names, inputs.groups(settings.grouping), raw_pairs)
    elif context is not None and not annotation.kind.of_documents and data.is_complete:
        overlapping, salt = annotation.kind.overlapping, inputs.seen_texts.salt
        learn_context = partial(fit_token_context, context, n_tags=data.n_tags, overlapping=overlapping, salt=salt)
    # Scaling and context compare the tags of a token: a rejected tag, which leaves the right one open, teaches them nothing.
    scalable = of_one_tag(settings, annotation) and data.is_complete
    return make_plan(settings, data, inputs.groups, scalable, learn_context, progress)


def conventions_in(inputs: FitInputs) -> list[Convention]:
    """Find labels that component and gold of the inputs seem to use differently; [] unless each token has one right tag."""
    if not may_differ(inputs.settings, inputs.source.annotation):
        return []
    return find_conventions(inputs.data.kept_pairs, inputs.data.gold, inputs.files[inputs.data.kept_documents])


def _fit_spans(inputs: FitInputs, data: SpanData, plan: CalibrationPlan, tokens: TokenCalibration) -> SpanFit:
    """Fit the calibration steps of spans. Their context reads the view: features of tokens that the token context computes.

    If the plan's context is not used for tokens, the view is computed here from the inputs of the maps, as on new texts.
    inputs (FitInputs), data (SpanData): All data, and the spans. plan (CalibrationPlan): How tokens are calibrated.
    tokens (TokenCalibration): Steps of tokens. If only spans use a context, they get one that leaves token scores unchanged.
    """
    context_fit = plan.context
    if context_fit is None or context_fit.view is None:
        return fit_spans(data, inputs.span_groups())
    view_context = without_token_model(context_fit.context)  # computes the view, and adjusts no token score
    if not plan.uses_context:
        predictions = before_maps(inputs.data, plan, tokens).replace_unchecked(words=inputs.data.words)
        context_fit = replace(context_fit, view=view_context.apply(predictions).view)
    label_map = map_of(inputs.settings.source) or {}
    span_names = [label_map.get(label, label) for label in inputs.source.span_labels]
    tags_of_spans = LabelMatch.from_labels(inputs.source.labels, inputs.source.annotation.kind.has_prefixes, span_names)
    fit = fit_spans(data, inputs.span_groups(), partial(fit_span_context, context_fit, tags_of_spans))
    if fit.calibration.context is not None and tokens.context is None:
        tokens.context = view_context
    return fit


def save_errors(
    pipe: Calibrator,
    inputs: FitInputs,
    judged_pairs: JudgedPairs | None,
    groups: Groups,
    spans: SpanFit | None,
    span_groups: Groups | None,
) -> None:
    """Replace the figures of a pipe (errors, losses) in the "performance" of the meta by those of out-of-fold scores.

    They have the names of `spacy evaluate`. A source that reads no component gets no errors there.
    judged_pairs (JudgedPairs | None): Token pairs with out-of-fold scores; None only removes the former errors, which no
        longer hold. spans (SpanFit | None): Spans with out-of-fold scores.
    groups, span_groups (Groups): Groups of tags and of span labels, each of which gets an error. inputs: Of the fit.
    """
    nlp, n_bins = pipe.lookup.nlp, inputs.arguments.n_bins
    if inputs.source.component is None:
        return
    if judged_pairs is None:
        drop_performance(nlp, pipe.attr)
        return
    token_prefix, span_prefix = score_prefixes(pipe.attr, inputs.source.annotation.kind.of_entities, pipe.token_scores)
    scores = calib_scores(judged_pairs, groups, token_prefix, n_bins) if token_prefix else {}
    if spans is not None:
        scores |= calib_scores(spans.data.pairs_with(spans.held_out, inputs.unit), span_groups, span_prefix, n_bins)
    set_performance(nlp, pipe.attr, scores)


def _describe(
    inputs: FitInputs,
    plan: CalibrationPlan,
    tokens: TokenCalibration,
    spans: SpanFit | None,
    judged_pairs: JudgedPairs,
    conventions: Sequence[Convention],
) -> FitInfo:
    """Summarize a fit for `calib info`: data, plan, fitted steps, and errors of out-of-fold scores (in judged_pairs, spans)."""
    settings, arguments, maps, context = inputs.settings, inputs.arguments, tokens.maps, plan.context
    versions = {"spacy-calib": __version__, "spacy": spacy.__version__, "numpy": np.__version__}
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
        tag_offsets=None if maps.offsets_ is None else maps.offsets_.describe(),
        context=None if context is None else {**context.about, "kept": plan.uses_context, "why": context.why},
        selection=plan.table or None,
        table=summarize_fit(judged_pairs, maps, plan.evaluation_groups, arguments.n_bins),
        held_out=evaluate_held_out(judged_pairs) if len(judged_pairs.pairs) else None,
        spans=None if spans is None else _describe_spans(inputs, spans),
        versions={**versions, "python": platform.python_version()},
        conventions=[convention.to_dict(inputs.source.labels) for convention in conventions],
    )


def _describe_spans(inputs: FitInputs, spans: SpanFit) -> SpanFitInfo:
    """Summarize the fitted steps of spans, with the inputs of the fit, for `calib info`."""
    judged_pairs = spans.data.pairs_with(spans.held_out)
    chosen_map, candidate_map = spans.calibration.chosen, spans.calibration.candidates  # of spans on the Docs, and of others
    assert chosen_map is not None
    assert candidate_map is not None
    why_raw = f"raw scores: {chosen_map.fallback_}" if chosen_map.fallback_ else ""
    fallbacks = [why_raw] * (1 + len(chosen_map.groups))
    return SpanFitInfo(
        event=inputs.source.annotation.kind.span_event or inputs.settings.event,
        labels=list(inputs.source.span_labels),
        spans=chosen_map.n_spans_,
        right=chosen_map.n_hits_,
        candidates=candidate_map.n_spans_,
        fallback=chosen_map.fallback_,
        table=_fit_rows(judged_pairs, chosen_map.groups, fallbacks, inputs.arguments.n_bins),
        context=spans.context,
        held_out=evaluate_held_out(judged_pairs) if len(np.unique(judged_pairs.documents)) > 1 else None,
    )


def summarize_fit(judged: JudgedPairs, maps: GroupedRecalibrator, groups: Groups, n_bins: int = 10) -> list[FitRow]:
    """Return the fit table, a row for all pairs and one per group: numbers of pairs and hits, raw and cross-validated error.

    judged (JudgedPairs): Pairs with out-of-fold scores. maps (GroupedRecalibrator): Fitted recalibrators. n_bins (int): Bins of
        the errors. groups (Groups): Groups of the rows; if the maps have others, `fallback` of each group's row tells it.
    """
    fallbacks = [fit.fallback for fit in maps.fits_]
    if groups.names != maps.groups.names or not np.array_equal(groups.of_tag, maps.groups.of_tag):
        # In the column "Map" of the printed table, the row of a group gets "one for all tags", for instance, not "own".
        fallback = "one for all tags" if len(maps.groups) == 1 else f"of one of {len(maps.groups)} groups"
        fallbacks = [fallback] * len(groups)
    return _fit_rows(judged, groups, [maps.pooled_fit_.fallback, *fallbacks], n_bins)


def _fit_rows(judged: JudgedPairs, groups: Groups, fallbacks: Sequence[str], n_bins: int) -> list[FitRow]:
    """Return the fit table: first a row for all pairs. judged: Out-of-fold scores. fallbacks: Other map of each row, or ""."""
    pairs, n_gold = judged.pairs, int(groups.counts.sum())
    names = ("all", *groups.names)
    indices = [np.arange(len(pairs)), *group_slices(pairs, groups)]  # the pairs of each row
    tag_masks = [np.ones(len(groups.of_tag), dtype=bool), *(groups.of_tag == number for number in range(len(groups)))]
    return [
        FitRow(
            group=name,
            tags=int(np.count_nonzero(has_tag)),
            share=float(groups.counts[has_tag].sum() / n_gold) if n_gold else None,
            pairs=len(index),
            hits=int(np.count_nonzero(pairs.hits[index])),
            raw=calibration_error(pairs.scores[index], pairs.hits[index], n_bins),
            calibrated=calibration_error(judged.calibrated[index], pairs.hits[index], n_bins),
            fallback=fallback,
        )
        for name, has_tag, index, fallback in zip(names, tag_masks, indices, fallbacks, strict=True)
    ]
