"""The pipe `calib`: reads marginals, maps them, writes them on the Docs. `predict` touches no Doc, `set_annotations` writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ..context.tokens import FurtherScores
from ..context.words import Words
from ..doc.annotations import columns_of, get_annotation
from ..doc.blocks import add_block, delete_blocks
from ..doc.likeliest import Likeliest
from ..doc.view import doc_view
from ..doc.words import words_of
from ..doc.write import CalibratedBatch, build_blocks, delete_doubtful, write_doubtful
from ..errors import calib_error
from ..pairs.build import hints_of
from ..pairs.documents import DOCUMENT, several
from ..sources.base import labels_unless_it_fails
from ..sources.find import check_loaded
from ..sources.mapped import MappedScores, with_map
from ..sources.precision import half_precision_components
from .adapting import adapt_calibrator
from .calibrating import CalibratingPipe
from .fitting import fit_calibrator
from .gathering import FitArguments, functions_in
from .lookup import Reading, accepted_labels, calibrated_spans, flags_of, readable
from .saved import load_part
from .state import PipeState


class Calibrator(CalibratingPipe):
    """Writes a calibrated probability for every token and tag above the threshold. settings: See PipeSettings."""

    # Prediction

    def predict(self, docs: Sequence[Doc]) -> Reading:
        """Read and calibrate, without changing the Docs.

        RAISES C020, C022: see `SourceLookup.component`. C024, C040, C041: what the source found is no probability.
        """
        if self.learned.tokens.maps is None:
            self.warn("CW01")
        if not docs:
            return Reading()
        found = self.lookup.find(docs[0].vocab)
        if found.why:
            self.warn("CW02", why=found.why)
            return Reading()
        source, component, learned = self.source, found.component, self.learned
        annotation = source.annotation(component)
        open_docs = readable(self.lookup, component, annotation, docs)
        for why in open_docs.reasons:
            self.warn("CW02", why=why)
        if not open_docs.places:
            return Reading()
        read = [docs[i] for i in open_docs.places]
        scores = source.read(component, read)
        labels = source.labels(component)
        changes = self.lookup.changes(component, labels)
        if changes:
            self.warn(changes[0], **changes[1])
        words = None
        if learned.tokens.context is not None:
            hints = hints_of(scores)
            if annotation.unit == DOCUMENT:
                words = Words.of_documents(scores.n_tokens, hints)
            else:
                functions = functions_in(self.lookup.nlp, learned.tokens.context)
                words = words_of(read, functions, annotation.first, hints)
        hashes, likeliest = open_docs.hashes, None
        if source.sets_labels:
            own = (scores.inner if isinstance(scores, MappedScores) else scores).above(self.threshold)
            likeliest = Likeliest.of(own, with_map(source, None).labels(component), hashes)
            hashes = likeliest.filled(hashes, annotation)
        carried = np.concatenate(hashes)
        columns = columns_of(carried, labels)
        calibrated = learned.tokens.calibrate(scores, self.threshold, words, columns)
        spans = None
        if scores.spans is not None:
            of_spans, event = source.span_labels(component), self.fit_info.span_event or self.event
            layer = annotation.name if annotation.span_event else ""  # the labels of its tokens make a sentence right
            spans = calibrated_spans(learned.spans, source, scores.spans, of_spans, event, layer, calibrated.view)
        flags, cutoffs = None, learned.tokens.recall_cutoffs
        if cutoffs is not None:
            flags = flags_of(cutoffs, scores, calibrated, labels, annotation, self.threshold)
        batch = CalibratedBatch(
            calibrated,
            annotation.name,
            labels,
            carried,
            spans,
            flags,
            token_scores=not annotation.of_entities or self.token_scores,
        )
        if learned.tokens.label_cutoffs is not None and self.groups is not None:
            batch = replace(batch, accept=accepted_labels(learned.tokens.label_cutoffs, batch, self.groups))
        return Reading(open_docs.places, batch, likeliest)

    def set_annotations(self, docs: Sequence[Doc], reading: Reading) -> None:
        """Write a block on each Doc that was read, in place of an older one; remove the older one from the others."""
        for doc in docs:
            delete_blocks(doc.user_data, self.attr)
            if doc.spans:
                delete_doubtful(doc, self.attr)
            if self.source.keeps_span_scores:
                for group in doc.spans.values():
                    group.attrs.pop(f"{self.attr}_scores", None)
        if reading.batch is not None:
            read = [docs[i] for i in reading.places]
            if reading.likeliest is not None:
                reading.likeliest.write(read, reading.batch.layer)
            for doc, block in zip(read, build_blocks(read, reading.batch), strict=True):
                add_block(doc.user_data, self.attr, block)
                if self.source.keeps_span_scores:
                    _write_span_scores(self, doc)
            if reading.batch.flags is not None:
                write_doubtful(read, self.attr, reading.batch.layer, reading.batch.flags)

    # Fitting

    def fit(self, examples: Iterable[Example], tag_counts: Mapping[str, int] | None = None, **options: Any) -> Calibrator:
        """Learn the maps from held-out gold.

        examples (Iterable[Example]): `predicted` holds what the source reads (run the pipeline up to the source),
            `reference` the gold; see `doc.reading.from_files` for several files.
        tag_counts (Mapping | None), options: See FitArguments.
        RAISES C021 to C024, C028, C033 to C035, C072: the component. C030 to C032, C071, C164: the gold. C003, C005, C006: too few pairs.
        WARNS CW24: the component, or one that it listens to, computes at half precision.
        """
        arguments = FitArguments(tag_counts, **options)
        with labels_unless_it_fails(with_map(self.source, None)):
            self.learned, self.held_out = fit_calibrator(self, examples, arguments)
        if components := half_precision_components(self.lookup.nlp, self.source.component):
            self.warn("CW24", components=" and ".join(map(repr, components)))
        return self

    def adapt(self, examples: Iterable[Example], **options: Any) -> Calibrator:
        """Learn from a few labelled documents of a new kind of text what makes the scores true there; the fitted maps stay.

        examples (Iterable[Example]): As for `fit`. options: See FitArguments.
        RAISES C216: the pipe is not fitted. C021 to C024, C028, C033 to C035: the component. C030 to C032, C164: the gold. C003: no pairs.
        """
        self.learned, self.held_out = adapt_calibrator(self, examples, FitArguments(**options))
        return self

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """SMCE, GMCE and the figures of the registered metrics, raw and calibrated; {} without a scorer."""
        if self.scorer is None:
            return {}
        return self.scorer(
            examples,
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

    def _made(self, state: Any) -> PipeState:
        return PipeState.read(state, self.normalize, partial(load_part, name=self.name))

    def _take(self, made: PipeState) -> None:
        source = with_map(self.source, made.info.label_map)
        inner = with_map(source, None)
        learned = made.tokens.context
        if isinstance(learned, FurtherScores) and learned.names_ != tuple(inner.beside):
            raise calib_error("C742", name=self.name, wanted=", ".join(learned.names_), given=", ".join(inner.beside) or "none")
        added = 0
        with labels_unless_it_fails(inner):
            restored = inner.restore_labels(made.kept_labels or made.labels)
            if made.tokens.maps is not None:
                added = check_loaded(self.lookup.nlp, source, made.component, self.name)
        if restored:
            self.lookup.restore_setting("labels", list(inner.kept_labels()))
        self.source, self.learned = source, made
        if added:
            self.warn("CW03", n=added, component=source.component)


def _write_span_scores(pipe: Calibrator, doc: Doc) -> None:
    """For sources that keep the scores of spans beside them."""
    view = doc_view(doc, pipe.attr)
    if view is not None:
        scores = {(span.start, span.end, span.label): span.score for span in view.ents}
        pipe.source.write_span_scores(pipe.lookup.find(doc.vocab).component, doc, pipe.attr, scores)


__all__ = ["Calibrator"]


def fitted_pipes(nlp: Language) -> list[Calibrator]:
    """RAISES C027: there is none."""
    pipes = [pipe for _, pipe in nlp.components if isinstance(pipe, Calibrator) and pipe.fitted]
    if not pipes:
        raise calib_error("C027", available=", ".join(nlp.component_names) or "no components")
    return pipes


def pipes_named(nlp: Language, attr: str | None) -> list[Calibrator]:
    """The fitted pipes with this prefix; all of them where none is named.

    RAISES C027: there is no fitted pipe. C068: none with this prefix.
    """
    fitted = fitted_pipes(nlp)
    pipes = [pipe for pipe in fitted if attr is None or pipe.attr == attr]
    if not pipes:
        raise calib_error("C068", attr=attr, available=", ".join(pipe.attr for pipe in fitted))
    return pipes


def units_of(pipe: Calibrator) -> tuple[str, ...]:
    """What there are rows of for a calib pipe; the first is the one that is meant where nothing is said."""
    annotation = get_annotation(pipe.fit_info.layer)
    if annotation.unit == DOCUMENT:
        return ("document",)
    of_tokens = ("token", "sentence", "document")
    finds_entities = annotation.spans_are_units or (bool(pipe.lookup.span_labels()) and annotation.span_words[0] != "sentence")
    return ("entity", *of_tokens) if finds_entities else of_tokens


def check_unit(nlp: Language, pipes: Sequence[Calibrator], unit: str) -> None:
    """RAISES C446: none of the pipes scores such units. C447: sentences are asked for, and nothing finds them."""
    known = [units_of(pipe) for pipe in pipes]
    has_sentences = bool(sentence_finders(nlp))
    if not any(unit in units for units in known):
        wanted = list(dict.fromkeys(one for units in known for one in units if one != "sentence" or has_sentences))
        said = [f"{several(units[0])} ({pipe.attr})" for pipe, units in zip(pipes, known, strict=True)]
        raise calib_error("C446", unit=unit, known=", ".join(said), wanted=" or ".join(wanted))
    if unit == "sentence" and not has_sentences:
        raise calib_error("C447")


def sentence_finders(nlp: Language) -> list[str]:
    """The pipes that find sentences."""
    return [name for name in nlp.pipe_names if {"doc.sents", "token.is_sent_start"} & set(nlp.get_pipe_meta(name).assigns)]
