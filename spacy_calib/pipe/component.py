"""The pipe `calib`: reads marginals, calibrates them, writes them on the Docs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ..annotations import columns_of, get_annotation
from ..calibration.tokens import PredictedLabels
from ..context.tokens import FurtherScores
from ..context.words import Words
from ..doc.blocks import add_block, delete_blocks
from ..doc.view import doc_view
from ..doc.write import CalibratedBatch, build_blocks, delete_doubtful, write_doubtful
from ..errors import calib_error
from ..pairs.build import Scores, get_further_scores
from ..pairs.documents import DOCUMENT, pluralize
from ..sources.base import restore_on_failure
from ..sources.find import count_new_labels
from ..sources.mapped import MappedScores, with_map
from .batch import accepted_labels, calibrated_spans, flag_tokens
from .calibrating import CalibratingPipe
from .doc_words import functions_in, words_of
from .lookup import ReadableDocs, Reading
from .saved import load_part
from .state import PipeState


class Calibrator(CalibratingPipe):
    """Adds a calibrated probability to every token and tag above the threshold. settings: Settings of PipeSettings."""

    # Prediction

    def predict(self, docs: Sequence[Doc]) -> Reading:
        """Read and calibrate the scores, without changing the Docs.

        RAISES C020, C022: the component has other labels, or cannot be read. C024, C040, C041: no probabilities.
        """
        readable = self._find_readable(docs)
        if readable is None or not readable.docs:
            return Reading()
        scores = readable.source.source.read(readable.source.component, readable.docs)
        self._check_component(readable)
        if self.source.sets_labels:
            self._find_labels(readable, scores)
        return Reading(readable.indices, self._calibrate(readable, scores), readable.top_labels)

    def _find_readable(self, docs: Sequence[Doc]) -> ReadableDocs | None:
        """Return the Docs that the source can read; None if its component is missing."""
        if not any(map(len, docs)):  # warnings are given once: not for texts without anything to score
            return None
        if self.learned.tokens.maps is None:
            self.warn("CW01")
        source, why = self.lookup.bind(docs[0].vocab)
        if source is None:
            self.warn("CW02", why=why)
            return None
        readable = self.lookup.readable_docs(source, docs)
        for why in readable.reasons:
            self.warn("CW02", why=why)
        return readable

    def _check_component(self, readable: ReadableDocs) -> None:
        """Update the labels if the component learned some while it was read, and warn of new labels or weights."""
        source = readable.source
        if source.source.labels(source.component) != source.labels:
            readable.source = source.with_current_labels()
        change = self.lookup.changes(source.component, readable.source.labels)
        if change:
            self.warn(change[0], **change[1])

    def _find_labels(self, readable: ReadableDocs, scores: Scores) -> None:
        """Give the top labels to Docs without labels."""
        from ..doc.top_labels import TopLabels  # few sources need it

        marginals = (scores.inner if isinstance(scores, MappedScores) else scores).marginals_above(self.threshold)
        readable.top_labels = TopLabels.from_marginals(marginals, readable.source.own_labels, readable.hashes)
        readable.hashes = readable.top_labels.fill(readable.hashes, readable.source.annotation)

    def _calibrate(self, readable: ReadableDocs, scores: Scores) -> CalibratedBatch:
        """Calibrate the scores of the Docs."""
        source, state = readable.source, self.learned
        hashes = readable.hashes[0] if len(readable.hashes) == 1 else np.concatenate(readable.hashes)
        predicted = PredictedLabels(hashes, source.label_hashes, partial(columns_of, hashes, source.labels))
        calibrated = state.tokens.calibrate(scores, self.threshold, self._words_of(readable, scores), predicted)
        batch = CalibratedBatch(calibrated, source.annotation, source.labels, hashes)
        batch.token_scores = self.token_scores or not source.annotation.of_entities
        if scores.spans is not None:
            # A sentence is right if the labels of its tokens are.
            layer = source.annotation.name if source.annotation.span_event else ""
            event = self.fit_info.span_event or self.event
            batch.spans = calibrated_spans(state.spans, source, scores.spans, event, layer, calibrated.view)
        if (cutoffs := state.tokens.recall_cutoffs) is not None:
            batch.flags = flag_tokens(cutoffs, scores, calibrated, source.labels, source.annotation, self.threshold)
        if state.tokens.label_cutoffs is not None and self.groups is not None:
            batch.accept = accepted_labels(state.tokens.label_cutoffs, batch, self.groups)
        return batch

    def _words_of(self, readable: ReadableDocs, scores: Scores) -> Words | None:
        """Return the words for the context; None without context."""
        context, annotation = self.learned.tokens.context, readable.source.annotation
        if context is None:
            return None
        if annotation.unit == DOCUMENT:
            return Words.of_documents(scores.n_tokens, get_further_scores(scores))
        return words_of(readable.docs, functions_in(self.lookup.nlp, context), annotation.first, get_further_scores(scores))

    def set_annotations(self, docs: Sequence[Doc], reading: Reading) -> None:
        """Write the scores of each Doc that was read into its user data; remove older scores of this pipe from all Docs."""
        for doc in docs:
            delete_blocks(doc.user_data, self.attr)
            if doc.spans:
                self._remove_from_spans(doc)
        if reading.batch is None:
            return
        readable = [docs[index] for index in reading.indices]
        if reading.top_labels is not None:
            reading.top_labels.write(readable, reading.batch.annotation.name)
        for doc, block in zip(readable, build_blocks(readable, reading.batch), strict=True):
            add_block(doc.user_data, self.attr, block)
            if self.source.keeps_span_scores:
                self._write_span_scores(doc)
        if reading.batch.flags is not None:
            write_doubtful(readable, self.attr, reading.batch.annotation, reading.batch.flags)

    def _remove_from_spans(self, doc: Doc) -> None:
        delete_doubtful(doc, self.attr)
        if self.source.keeps_span_scores:
            for group in doc.spans.values():
                group.attrs.pop(f"{self.attr}_scores", None)

    def _write_span_scores(self, doc: Doc) -> None:
        """Write calibrated scores to spans, for components that keep scores with their spans."""
        view = doc_view(doc, self.attr)
        if view is not None:
            scores = {(span.start, span.end, span.label): span.score for span in view.ents}
            self.source.write_span_scores(self.lookup.component(), doc, self.attr, scores)

    # Fitting

    def fit(self, examples: Iterable[Example], tag_counts: Mapping[str, int] | None = None, **options: Any) -> Calibrator:
        """Fit the recalibrators to held-out gold. RETURNS: The pipe.

        examples (Iterable[Example]): `predicted` holds the input of the source (run the pipeline up to its component),
            `reference` the gold; `gold.reading.from_files` joins several files.
        tag_counts (Mapping | None): Tag -> frequency in the training data, for the groups; None counts the examples.
        options: Other fields of FitArguments, such as n_bins (10).
        RAISES C021 to C024, C028, C033 to C035, C072: the component. C030 to C032, C071, C164: gold. C003, C005, C006: pairs.
        WARNS CW24: the component, or one that it listens to, computes at half precision.
        """
        from ..sources.precision import half_precision_components  # only a fit needs it
        from .calibrator_fit import fit_calibrator
        from .fit_inputs import FitArguments

        arguments = FitArguments(tag_counts, **options)
        with restore_on_failure(with_map(self.source, None)):
            self.learned, self.held_out, self.held_out_spans = fit_calibrator(self, examples, arguments)
        if components := half_precision_components(self.lookup.nlp, self.source.component):
            self.warn("CW24", components=" and ".join(map(repr, components)))
        return self

    def adapt(self, examples: Iterable[Example], **options: Any) -> Calibrator:
        """Adapt the scores to a few labelled documents of another domain; the fitted recalibrators stay. RETURNS: The pipe.

        examples (Iterable[Example]): As for `fit`. options: Fields of FitArguments, such as n_bins (10).
        RAISES C216: the pipe is not fitted. C021 to C024, C028, C033 to C035: the component. C030 to C032, C003, C164: gold.
        """
        from .calibrator_adaptation import adapt_calibrator  # only an adaptation needs it
        from .fit_inputs import FitArguments

        self.learned, self.held_out, self.held_out_spans = adapt_calibrator(self, examples, FitArguments(**options))
        return self

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """Return SMCE, GMCE and the registered metrics, raw and calibrated, for `nlp.evaluate`; {} without a scorer."""
        if self.scorer is None:
            return {}
        from .label_names import with_matched_copies

        return self.scorer(
            with_matched_copies(self, list(examples)),
            attr=self.attr,
            of_entities=self.of_entities,
            token_scores=self.token_scores,
            labels=self.lookup.labels(),
            groups=self.groups,
            span_labels=self.lookup.span_labels(),
            span_groups=self.spans.groups,
        )

    # Saving

    def _state(self) -> dict[str, Any]:
        return replace(self.learned, kept_labels=with_map(self.source, None).kept_labels()).state()

    def _read_state(self, state: Any) -> PipeState:
        return PipeState.read(state, self.normalize, partial(load_part, name=self.name))

    def _set_state(self, state: PipeState) -> None:
        """Take over saved state; a failure leaves the component as it was. RAISES C742: the source reads other further scores."""
        source = with_map(self.source, state.info.label_map)
        inner = with_map(source, None)
        context = state.tokens.context
        if isinstance(context, FurtherScores) and context.names_ != tuple(inner.further_score_names):
            names = ", ".join(inner.further_score_names) or "none"
            raise calib_error("C742", name=self.name, wanted=", ".join(context.names_), given=names)
        n_added = 0
        with restore_on_failure(inner):
            has_other_labels = inner.restore_labels(state.kept_labels or state.component.labels)
            if state.tokens.maps is not None:
                n_added = count_new_labels(self.lookup.nlp, source, state.component, self.name)
        if has_other_labels:
            self.lookup.restore_setting("labels", list(inner.kept_labels()))
        self.source, self.learned = source, state
        if n_added:
            self.warn("CW03", n=n_added, component=source.component)


__all__ = ["Calibrator"]


def fitted_pipes(nlp: Language) -> list[Calibrator]:
    """Return the fitted calib pipes of a pipeline. RAISES C027: there is none."""
    pipes = [pipe for _, pipe in nlp.components if isinstance(pipe, Calibrator) and pipe.fitted]
    if not pipes:
        raise calib_error("C027", available=", ".join(nlp.component_names) or "no components")
    return pipes


def pipes_named(nlp: Language, attr: str | None) -> list[Calibrator]:
    """Return the fitted pipes with this prefix, or all if None. RAISES C027: no fitted pipe. C068: none with this prefix."""
    available_pipes = fitted_pipes(nlp)
    pipes = [pipe for pipe in available_pipes if attr is None or pipe.attr == attr]
    if not pipes:
        raise calib_error("C068", attr=attr, available=", ".join(pipe.attr for pipe in available_pipes))
    return pipes


def units_of(pipe: Calibrator) -> tuple[str, ...]:
    """Return the units that a calib pipe scores, the default first."""
    annotation = get_annotation(pipe.fit_info.layer)
    if annotation.unit == DOCUMENT:
        return ("document",)
    units = ("token", "sentence", "document")
    finds_entities = annotation.spans_are_units or (bool(pipe.lookup.span_labels()) and annotation.span_words[0] != "sentence")
    return ("entity", *units) if finds_entities else units


def check_unit(nlp: Language, pipes: Sequence[Calibrator], unit: str) -> None:
    """Check that a pipe scores units of this kind. RAISES C446: none does. C447: no pipe sets sentence boundaries."""
    units = [units_of(pipe) for pipe in pipes]
    has_sentences = bool(sentence_finders(nlp))
    if not any(unit in names for names in units):
        available = list(dict.fromkeys(name for names in units for name in names if name != "sentence" or has_sentences))
        available_units = [f"{pluralize(names[0])} ({pipe.attr})" for pipe, names in zip(pipes, units, strict=True)]
        raise calib_error("C446", unit=unit, known=", ".join(available_units), wanted=" or ".join(available))
    if unit == "sentence" and not has_sentences:
        raise calib_error("C447")


def sentence_finders(nlp: Language) -> list[str]:
    """Return the names of the pipes that set sentence boundaries."""
    return [name for name in nlp.pipe_names if {"doc.sents", "token.is_sent_start"} & set(nlp.get_pipe_meta(name).assigns)]
