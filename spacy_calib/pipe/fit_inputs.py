"""The inputs of a fit: its arguments, and the data read from examples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import chain
from secrets import token_hex
from typing import Any

import numpy as np
from spacy.training import Example

from ..annotations import Annotation
from ..calibration.choice import lowest_taken
from ..calibration.grouping.tag_frequency import group_with_singletons
from ..calibration.span_fit import SpanData
from ..calibration.token_fit import FitData
from ..context.tokens import FurtherScores, TokenContext
from ..context.words import Words
from ..errors import calib_error
from ..gold.checks import GoldWatch, check_fit_inputs
from ..gold.example_reader import ExampleReader
from ..gold.reading import TextWatch
from ..pairs.build import JudgedPairs
from ..pairs.documents import TOKEN
from ..pairs.label_map import UnknownGold
from ..pairs.progress import UNREPORTED, Progress
from ..pairs.seen_texts import FitTextDigests, TextUnits
from ..sources.bound import BoundSource
from ..types import Floats, Grouping, Groups, Ints
from .calibrating import CalibratingPipe
from .doc_words import functions_in, words_of
from .settings import PipeSettings

HERE = "the fit data"


@dataclass(frozen=True)
class FitArguments:
    """Arguments of `Calibrator.fit`, except the examples.

    tag_counts (Mapping | None): Gold tag frequencies of the training data, for grouping; None counts the examples.
    span_counts (Mapping | None): The same for span labels (entity types). min_pairs (int): Minimum number of pairs.
    counted_on (str): Source of tag_counts, for `info`. n_bins (int): Adaptive bins of the errors in the fit table.
    max_unknown (float): Maximum share of gold labels that the component does not know.
    progress (Progress): Reports the progress of the fit, once the examples are read.
    """

    tag_counts: Mapping[str, int] | None = None
    _: KW_ONLY
    span_counts: Mapping[str, int] | None = None
    min_pairs: int = 1
    counted_on: str = HERE
    n_bins: int = 10
    max_unknown: float = 1.0
    progress: Progress = UNREPORTED


@dataclass(frozen=True, eq=False, kw_only=True)
class FitInputs:
    """Data that a fit learns from; `CalibrationPlan` and `TokenCalibration` follow from it.

    settings (PipeSettings), arguments (FitArguments): Settings of the pipe, arguments of this fit.
    source (BoundSource): Source of the probabilities. data (FitData): Pairs of tokens, or of labelled documents.
    spans (SpanData | None): Spans; None for a source of token labels alone.
    counts (Mapping): Frequency of each label, for grouping. span_counts (Mapping): Gold frequency of each span label.
    n_docs (int), unit (str): Number of documents with scores, and their kind.
    doc_documents, files (Ints): Document of each Doc, and gold file of each document.
    n_gold (int): Tokens with gold. unknown (UnknownGold): Gold labels that the component does not know.
    texts (TextUnits): Digests of the examples. seen_texts (FitTextDigests): The same in saved form.
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
        """Whether spans have gold and no token has: annotators answered questions about spans."""
        return not self.n_gold and self.spans is not None and bool((self.spans.hits >= 0).any())

    def groups(self, grouping: Grouping) -> Groups:
        """Apply a grouping to the labels."""
        source = self.settings.source
        return group_with_singletons(grouping, self.source.labels, self.counts, source.singleton_labels, source.frequency_label)

    def span_groups(self) -> Groups:
        """Apply the grouping of the settings to the span labels."""
        counts = self.arguments.span_counts
        return group_with_singletons(
            self.settings.grouping, self.source.span_labels, self.span_counts if counts is None else counts
        )

    def judged_pairs(self, scores: Floats) -> JudgedPairs:
        """Return the pairs that reach the threshold, with these calibrated scores."""
        return JudgedPairs(self.data.kept_pairs, scores, self.data.kept_documents, self.unit)

    def check(self, why_missing: str, n_labels: int) -> None:
        """Check that there is enough gold. If only spans have gold, tokens need none.

        why_missing (str): Why a document could not be read, or "". n_labels (int): Number of gold labels.
        RAISES C032: nothing could be read. C030: no gold. C031: all gold labels unknown. C164: too great a share of them.
            C003, C005: too few pairs. C697: no gold label of spans is one of the component.
        """
        name, span_labels, unknown = self.source.name, self.source.span_labels, self.unknown
        if not self.n_docs:
            raise calib_error("C032", component=name, why=why_missing or "there are no tokens")
        if not self.n_gold and span_labels and unknown.n and unknown.share == 1:
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
        if unknown.share > self.arguments.max_unknown and not self.source.annotation.spans_are_units:
            raise calib_error("C164", component=name, **unknown.message_fields())
        n_pairs, threshold = len(self.data.kept_indices), self.settings.threshold
        if not n_pairs:
            raise calib_error("C003", what="calibrator", threshold=threshold)
        if n_pairs < self.arguments.min_pairs:
            raise calib_error("C005", n_pairs=n_pairs, threshold=threshold, n_bins=self.arguments.min_pairs)


def read_fit_inputs(
    pipe: CalibratingPipe, examples: Iterable[Example], arguments: FitArguments, *, in_runs: bool = False
) -> FitInputs:
    """Read the examples. in_runs (bool): Cut a few long documents into runs of sentences, each a document of its own.

    RAISES C021 to C024, C028, C033 to C035, C072, C264: the component. C030 to C032, C071, C164: the gold. C003, C005: too few
        pairs. C800 to C804: gold without information.
    """
    iterator = iter(examples)
    first = next(iterator, None)
    examples = iterator if first is None else chain([first], iterator)
    component = pipe.lookup.component_to_fit(None if first is None else first.predicted.vocab)
    source = BoundSource.from_component(pipe.source, component)
    annotation = source.annotation
    watch, gold_watch = TextWatch(annotation), GoldWatch(annotation)
    lowest = _lowest_score(pipe, annotation)
    has_context = (pipe.context or pipe.tokens.context) if annotation.unit == TOKEN else pipe.source.further_score_names
    words_of_docs = read_words(pipe, annotation) if has_context else None
    reader = ExampleReader(source, lowest, pipe.event, words_of_docs, in_runs).read_all(watch.watch(gold_watch.watch(examples)))
    texts, tag_counts = watch.units(), arguments.tag_counts
    if annotation.any_label and set(reader.source.labels).isdisjoint(tag_counts or ()):
        tag_counts = None  # counts of another label scheme are ignored here
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
    if (few_errors := check_fit_inputs(gold_watch, inputs)) is not None:
        pipe.warn("CW65", **few_errors)
    return inputs


def read_words(pipe: CalibratingPipe, annotation: Annotation) -> Any:
    """Return a function of Docs that reads the words for a context; None if units are documents without further scores."""
    if annotation.unit != TOKEN:
        return (lambda docs: Words.of_documents(len(docs))) if pipe.source.further_score_names else None
    context = pipe.context or pipe.tokens.context
    functions = () if context is None else functions_in(pipe.lookup.nlp, context)
    return partial(words_of, functions=functions, first=annotation.first)


def _lowest_score(settings: PipeSettings, annotation: Annotation) -> float:
    """Check settings, and return the lowest score that takes part in the fit.

    RAISES C264: the context cannot be applied to these units. C741, C838: the setting `context` is of another kind. C072: a
        setting requires one right tag per token. C287: a setting requires the scores of all tags of a token.
    """
    name = settings.source.component or "the source"
    if isinstance(settings.context, FurtherScores):
        raise calib_error("C741")
    if settings.context is not None and not isinstance(settings.context, TokenContext):
        raise calib_error("C838", given=getattr(settings.context, "registered", type(settings.context).__name__))
    if annotation.unit != TOKEN and settings.context is not None and settings.context.when == "always":
        raise calib_error("C264", setting="context", component=name)
    if of_one_tag(settings, annotation):
        return lowest_taken(settings)
    for setting in ("scaling", "normalize"):
        if getattr(settings, setting) and annotation.overlapping:
            raise calib_error("C072", setting=setting, layer=annotation.gold.name, unit=annotation.unit)
        if getattr(settings, setting):
            raise calib_error("C287", setting=setting, where=name)
    return settings.threshold


def of_one_tag(settings: PipeSettings, annotation: Annotation) -> bool:
    """Return whether a token has one right tag, and scores of all possible tags."""
    return settings.source.distributions and not annotation.overlapping


def may_differ(settings: PipeSettings, annotation: Annotation) -> bool:
    """Return whether to look for labels that component and gold use differently: each token has one right tag."""
    return of_one_tag(settings, annotation) and annotation.unit == TOKEN and not annotation.spans_are_units
