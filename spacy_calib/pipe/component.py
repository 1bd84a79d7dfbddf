"""The pipeline component `calib`, which reads the scores of another component, calibrates them and writes them on Docs."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from spacy import util
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc
from spacy.training import Example

from ..annotations import SPANS_PREFIX, Annotation, columns_of, get_annotation, label_hashes, plain_name
from ..calibration.cutoffs import Cutoffs, EntityScores, EntityTypes, RecallCutoffs
from ..calibration.spans import SpanCalibration
from ..calibration.tokens import CalibratedEntries, PredictedLabels, TokenCalibration, check_normalize, find_silent
from ..context.tokens import FurtherScores
from ..doc.attributes import check_pipe_name, register, register_score_name
from ..doc.store import add_block, delete_blocks
from ..doc.write import (
    Batch,
    Flags,
    SpanScores,
    add_group_scores,
    build_blocks,
    delete_groups,
    write_doubtful,
    write_scored_spans,
)
from ..errors import WARNINGS, calib_error
from ..pairs.documents import count_in_words
from ..pairs.pairing import JudgedPairs
from ..pairs.progress import UNREPORTED, Progress
from ..pairs.scores import Scores
from ..sources.find import count_new_labels, find_component
from ..sources.mapped import MappedScores, with_map
from ..sources.source import restore_on_failure
from ..types import Floats, Groups, Ints
from .factory import PipeSettings
from .lookup import ReadableDocs, SourceLookup, has_foreign_entities, read_words
from .saved import dump, load_part, read
from .state import HERE, FitInfo, PipeState

if TYPE_CHECKING:
    from ..calibration.span_fit import SpanFit

_FILE = "calibration.msgpack"
_Pipe = TypeVar("_Pipe", bound="Calibrator")


def flag_tokens(
    cutoffs: RecallCutoffs,
    scores: Scores,
    calibrated: CalibratedEntries,
    labels: Sequence[str],
    annotation: Annotation,
    threshold: float,
) -> Flags:
    """Flag for review the tokens that reach a recall cut-off, and find the most probable entity type of each flagged one.

    cutoffs (RecallCutoffs): If its `per` is "all", P(inside an entity) flags tokens; if it is "label", P(type) of each type.
    scores (Scores): Raw scores of all labels. calibrated (CalibratedEntries): Calibrated scores of labels above the threshold.
    labels (Sequence[str]), annotation (Annotation): Label of each column of the scores, and the layer that the labels are of.
    threshold (float): Minimum raw score.
    """
    types, marginals = EntityTypes.from_labels(labels, annotation.kind.has_prefixes), calibrated.marginals
    entries = EntityScores(marginals.rows, types.of_label[marginals.tags], calibrated.scores, marginals.n_tokens, threshold)
    flags_by_key = cutoffs.flags(entries, types)  # "all" or name of a type -> whether each token reaches its cut-off
    none_flagged = np.zeros(marginals.n_tokens, dtype=bool)
    is_flagged = np.any([none_flagged, *flags_by_key.values()], axis=0)
    silent_rows = find_silent(scores, marginals.rows)  # tokens without scores
    is_flagged[silent_rows] = False
    rows = np.flatnonzero(is_flagged)
    probabilities = _type_probabilities(scores, entries, types, rows)
    if cutoffs.per == "label":  # only types whose own cut-off is reached can be the top type
        is_reached = np.array([flags_by_key.get(name, none_flagged)[rows] for name in types.names])
        probabilities[~is_reached] = -1.0
    top_types = probabilities.argmax(axis=0)
    flag_scores = entries.inside_probability[rows] if cutoffs.per == "all" else probabilities[top_types, np.arange(len(rows))]
    values = is_flagged.astype(np.int8)
    values[silent_rows] = -1  # unknown
    return Flags(values, rows, types.names, top_types, flag_scores)


def _type_probabilities(scores: Scores, entries: EntityScores, types: EntityTypes, rows: Ints) -> Floats:
    """Return P(type) of tokens `rows`, (n_types, len(rows)): of calibrated `entries`, or raw if the type has no entry there."""
    probabilities = np.zeros((len(types.names), len(rows)))
    for column, type_index in enumerate(types.of_label.tolist()):
        if type_index >= 0:  # a type has up to four labels (B-, I-, L- and U-), O has no type
            probabilities[type_index] += scores.scores_at(rows, np.full(len(rows), column))
    for i in range(len(types.names)):  # calibrated probabilities replace raw ones where the type has an entry
        probabilities[i] = np.where(entries.has_type(i)[rows], entries.type_probability(i)[rows], probabilities[i])
    return probabilities


def accepted_labels(cutoffs: Cutoffs, batch: Batch, groups: Groups) -> NDArray[np.int8]:
    """Return whether each predicted label in `batch` reaches its cut-off: 1 or 0, -1 without a score. groups: Of the labels."""
    calibrated, entries_below = batch.calibrated, batch.calibrated.below_threshold
    marginals = calibrated.marginals
    # Score of each unit's predicted label, and column of that label.
    scores, columns = np.full(marginals.n_tokens, np.nan), np.zeros(marginals.n_tokens, dtype=np.intp)
    # The label of an entry is that of its column. Not for lemmas, whose columns are edit trees: each entry names its label.
    hashes = label_hashes(batch.labels)[marginals.tags] if marginals.names is None else label_hashes(marginals.names)
    is_predicted = hashes == batch.label_hashes[marginals.rows]  # whether an entry is of the label on the Doc
    rows = marginals.rows[is_predicted]
    scores[rows], columns[rows] = calibrated.scores[is_predicted], marginals.tags[is_predicted]
    if entries_below is not None:  # predicted labels with a score below the threshold
        rows = entries_below.marginals.rows
        scores[rows], columns[rows] = entries_below.scores, entries_below.marginals.tags
    is_accepted = cutoffs.accepts(scores, columns, batch.labels, groups)  # False where there is no score
    return np.where(np.isnan(scores), -1, is_accepted).astype(np.int8)


class WarnOnce:
    """Gives the warnings of a calib pipe, each code with equal values only once. warned_keys (set): Code and values of each."""

    def __init__(self, pipe: Any):
        self.pipe = pipe
        self.warned_keys: set[str] = set()

    def __call__(self, code: str, **values: object) -> None:
        """Give the warning with this code, unless it was given with the same values. values: What its text reports."""
        key = f"{code}{values}"
        if key not in self.warned_keys:
            self.warned_keys.add(key)
            warnings.warn(WARNINGS[code].format(name=self.pipe.name, **values), stacklevel=_level_of_user())

    def silence(self, code: str) -> None:
        """Suppress the warning with this code, which has no values, as if it had been given."""
        self.warned_keys.add(f"{code}{{}}")  # the key of `__call__` for no values


def _level_of_user() -> int:
    """Return the `stacklevel` of the first line outside of this package and spaCy, for a warning by the calling function."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("spacy", "spacy_calib"):
        level, frame = level + 1, frame.f_back
    return level


class Calibrator(Pipe, PipeSettings):
    """The spaCy pipe `calib`: writes on Docs the calibrated probability of each tag of a token that is above the threshold.

    nlp (Language), name (str): The pipeline, and the name of the pipe in it. settings: Fields of PipeSettings, kept as
    attributes. learned (PipeState): Result of the fit; empty before. lookup (SourceLookup): Finds the source's component.
    held_out (JudgedPairs | None), held_out_spans (SpanFit | None): (token, tag) pairs, and spans, with out-of-fold scores,
    after a fit or adaptation in this process; not saved.
    RAISES C001, C112: an invalid setting. C025: another pipe or package uses the prefix. C113: a name that spaCy needs itself.
    """

    def __init__(self, nlp: Language, name: str = "calib", **settings: Any):
        self.learned = PipeState()
        self.held_out: JudgedPairs | None = None
        self.held_out_spans: SpanFit | None = None
        self.lookup, self.warn = SourceLookup(self, nlp), WarnOnce(self)
        self.name = name
        PipeSettings.__init__(self, **settings)  # checks the settings, and makes each an attribute
        self._check_prefix(nlp)
        register(self.attr)
        if self.score_name is not None:
            register_score_name(self.score_name, self.attr)

    @property
    def name(self) -> str:
        """Name of the pipe, set by `Language.add_pipe`. RAISES C113 (when set): a saved pipeline cannot use this name."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = check_pipe_name(name)

    def attach(self: _Pipe, nlp: Language) -> _Pipe:
        """Make the pipe read components of `nlp`, after `nlp.add_pipe(name, source=other_nlp)` took it from another pipeline.

        RETURNS: The pipe. RAISES C120: it is not in this pipeline, or its component is missing or has other weights than at the
        fit. C020, C022: the component has other labels, or cannot be calibrated. C025: another pipe there has the same prefix.

            >>> import spacy
            >>> nlp, other_nlp = spacy.blank("en"), spacy.blank("en")
            >>> source = {"@calib_sources": "spacy-calib.DocTensor.v1", "labels": ["A", "B"]}
            >>> calib = nlp.add_pipe("calib", config={"source": source})
            >>> other_nlp.add_pipe("calib", source=nlp).attach(other_nlp)
            <Calibrator 'calib' of scores on the Doc, not fitted>
        """
        self._check_prefix(nlp)
        self.lookup = self.lookup.in_pipeline(nlp)
        return self

    def _check_prefix(self, nlp: Language) -> None:
        """Check that no pipe of another name in this pipeline uses the prefix. RAISES C025: one does."""
        for other_name, pipe in nlp.components:
            if isinstance(pipe, Calibrator) and pipe.attr == self.attr and pipe is not self and other_name != self.name:
                raise calib_error("C025", attr=self.attr, owner=f"the pipe '{other_name}'")

    def __repr__(self) -> str:
        source, info = self.source.component or "scores on the Doc", self.fit_info
        if not self.fitted:
            return f"<Calibrator '{self.name}' of {source}, not fitted>"
        fit_text = f"fitted on {info.tokens:,} {info.kind.unit}s"
        fit_text += "" if info.kind.of_documents else f" of {info.docs:,} documents"
        extents = [count_in_words(adaptation["unit"], adaptation["docs"]) for adaptation in info.adaptations]
        fit_text += "".join(f", adapted to {extent}" for extent in extents)
        return f"<Calibrator '{self.name}' of {source} ({plain_name(info.layer)}), {fit_text}>"

    @property
    def fitted(self) -> bool:
        return self.learned.tokens.maps is not None

    @property
    def annotation(self) -> Annotation:
        """The layer of labels that the pipe calibrates: as at the fit, and before a fit as the component sets it now."""
        return get_annotation(self.fit_info.layer) if self.fitted else self.source.annotation(self.lookup.component())

    @property
    def of_entities(self) -> bool:
        """Whether the pipe calibrates the entities of Docs; False before a fit if the component is missing."""
        if self.fitted:
            return self.fit_info.kind.of_entities
        component = self.lookup.component()
        is_missing = component is None and bool(self.source.component)
        return not is_missing and self.source.annotation(component).kind.of_entities

    @property
    def span_event(self) -> str:
        """When a span counts as right, such as "exact": as in the fit, else by its annotation, else by the setting `event`."""
        return self.fit_info.span_event or self.annotation.kind.span_event or self.event

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the fit; empty before."""
        return self.learned.component.labels

    @property
    def tokens(self) -> TokenCalibration:
        """The calibration steps of tokens; before the fit they return raw probabilities."""
        return self.learned.tokens

    @property
    def spans(self) -> SpanCalibration:
        """The calibration steps of spans; before the fit they return raw probabilities."""
        return self.learned.spans

    @property
    def groups(self) -> Groups | None:
        """Groups of tags by which scores are evaluated; None before the fit."""
        return self.learned.judged_by or (None if self.tokens.maps is None else self.tokens.maps.groups)

    @property
    def fit_info(self) -> FitInfo:
        """Data, steps and errors of the fit; empty before."""
        return self.learned.info

    @property
    def normalize(self) -> bool:
        """Whether a token's scores are rescaled so that they sum to 1."""
        return self.tokens.normalize

    @normalize.setter
    def normalize(self, normalize: bool) -> None:
        self.tokens.normalize = check_normalize(normalize)

    def __call__(self, doc: Doc) -> Doc:
        error_handler = self.get_error_handler()
        try:
            self.set_annotations([doc], self.predict([doc]))
        except Exception as error:
            error_handler(self.name, self, [doc], error)
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Write scores on a stream of Docs, in batches of `batch_size`; the error handler gets the batches that fail."""
        error_handler = self.get_error_handler()
        for batch in util.minibatch(stream, size=batch_size):
            docs = list(batch)
            try:
                self.set_annotations(docs, self.predict(docs))
                yield from docs
            except Exception as error:
                error_handler(self.name, self, docs, error)

    def predict(self, docs: Sequence[Doc]) -> Batch | None:
        """Read the component's scores of the Docs and calibrate them, without changing the Docs; None if no Doc can be read.

        RAISES C020, C022: the component has other labels, or cannot be read. C024, C040, C041: its scores are no probabilities.
        """
        readable = self._find_readable(docs)
        if readable is None or not readable.docs:
            return None
        scores = readable.source.source.read(readable.source.component, readable.docs)
        readable.source = readable.source.with_current_labels()  # a recognizer may have got labels while it was read
        change = self.lookup.changes(readable.source.component, readable.source.labels)
        if change:
            self.warn(change[0], **change[1])
        if has_foreign_entities(readable, scores.spans):
            self.warn("CW05", component=self.source.component)
        if self.source.sets_labels:
            self._find_labels(readable, scores)
        return self._calibrate(readable, scores)

    def _find_readable(self, docs: Sequence[Doc]) -> ReadableDocs | None:
        """Select the Docs that the source can read, and warn of the others; None without tokens or without the component."""
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

    def _find_labels(self, readable: ReadableDocs, scores: Scores) -> None:
        """Take top labels as the predictions on Docs without labels, and put them and their hashes into `readable`."""
        from ..doc.top_labels import TopLabels  # few sources need it

        unmapped_scores = scores.inner if isinstance(scores, MappedScores) else scores  # of the component's labels
        marginals = unmapped_scores.marginals_above(self.threshold)
        readable.top_labels = TopLabels.from_marginals(marginals, readable.source.own_labels, readable.hashes)
        readable.hashes = readable.top_labels.fill(readable.hashes, readable.source.annotation)

    def _calibrate(self, readable: ReadableDocs, scores: Scores) -> Batch:
        """Apply the learned steps and cut-offs to the scores of the readable Docs; return all that is to be written on them."""
        source, state = readable.source, self.learned
        hashes = readable.hashes[0] if len(readable.hashes) == 1 else np.concatenate(readable.hashes)
        predicted = PredictedLabels(hashes, source.label_hashes, partial(columns_of, hashes, source.labels))
        words, context = None, state.tokens.context
        if context is not None:
            words = read_words(self.lookup.nlp, context, source.annotation, readable.docs, scores.further_scores)
        calibrated = state.tokens.calibrate(scores, self.threshold, words, predicted)
        batch = Batch(readable.indices, calibrated, source.annotation, source.labels, hashes, readable.top_labels)
        batch.token_scores = self.token_scores or not source.annotation.kind.of_entities
        if (spans := scores.spans) is not None:
            raw = np.where(spans.on_doc, source.source.raw_span_scores(spans), spans.scores)
            span_scores, is_accepted = state.spans.calibrate(spans, raw, source.span_labels, calibrated.view)
            # Sentences and links, whose kind sets the event, are right if the labels of their tokens are; others have layer "".
            layer = source.annotation.name if source.annotation.kind.span_event else ""
            batch.spans = SpanScores(spans, source.span_labels, raw, span_scores, is_accepted, self.span_event, layer)
        if (cutoffs := state.tokens.recall_cutoffs) is not None:
            batch.flags = flag_tokens(cutoffs, scores, calibrated, source.labels, source.annotation, self.threshold)
        if state.tokens.label_cutoffs is not None and self.groups is not None:
            batch.accept = accepted_labels(state.tokens.label_cutoffs, batch, self.groups)
        return batch

    def set_annotations(self, docs: Sequence[Doc], batch: Batch | None) -> None:
        """Remove older scores of this pipe from all Docs, and write those of `batch`, from `predict`; None writes nothing."""
        for doc in docs:
            delete_blocks(doc.user_data, self.attr)
            if doc.spans:
                delete_groups(doc, self.attr, self.score_name)
        if batch is None:
            return
        scored_docs, layer = [docs[index] for index in batch.indices], batch.annotation.name
        if batch.top_labels is not None:
            batch.top_labels.write(scored_docs, layer)
        for doc, block in zip(scored_docs, build_blocks(scored_docs, batch), strict=True):
            add_block(doc.user_data, self.attr, block)
            if layer.startswith(SPANS_PREFIX):
                add_group_scores(doc, plain_name(layer).removeprefix(SPANS_PREFIX), self.attr)
            if self.score_name is not None and batch.spans is not None:
                write_scored_spans(doc, self.score_name, self.attr)
        if batch.flags is not None:
            write_doubtful(scored_docs, self.attr, batch.annotation, batch.flags)

    def fit(
        self,
        examples: Iterable[Example],
        tag_counts: Mapping[str, int] | None = None,
        *,
        span_counts: Mapping[str, int] | None = None,
        min_pairs: int = 1,
        counted_on: str = HERE,
        n_bins: int = 10,
        max_unknown: float = 1.0,
        progress: Progress = UNREPORTED,
    ) -> Calibrator:
        """Fit the recalibrators to held-out gold. RETURNS: The pipe.

        examples (Iterable[Example]): `predicted` holds the input of the source (run the pipeline up to its component),
            `reference` the gold; `gold.reading.from_files` joins several files.
        tag_counts (Mapping | None): Tag -> frequency in the training data, for the groups; None counts tags in the examples.
        span_counts (Mapping | None): Span label (entity type) -> frequency. counted_on (str): Where both were counted, as text.
        min_pairs (int): Minimum number of (token, tag) pairs. n_bins (int): Adaptive bins of the errors in the fit table.
        max_unknown (float): Maximum share of gold labels that the component does not know. progress (Progress): Shows progress.
        RAISES C021 to C024, C028, C033 to C035, C120: the component cannot be calibrated. C072, C264, C287: unsuitable setting.
            C030 to C032, C164: the gold is missing or of another kind. C003, C005, C006: too few pairs. C800 to C804: all
            predictions are right, or all wrong. WARNS CW24: the component, or one it listens to, computes at half precision.
        """
        from ..sources.heads import half_precision_components  # only a fit needs it
        from .fitting import FitArguments, fit_calibrator

        arguments = FitArguments(tag_counts, span_counts, min_pairs, counted_on, n_bins, max_unknown, progress)
        source = with_map(self.source, None)
        with restore_on_failure(source):
            self.learned, self.held_out, self.held_out_spans = fit_calibrator(self, examples, arguments)
        for setting in source.auto_settings:
            self.lookup.save_setting(setting, getattr(source, setting))
        if components := half_precision_components(self.lookup.nlp, self.source.component):
            self.warn("CW24", components=" and ".join(map(repr, components)))
        return self

    def adapt(self, examples: Iterable[Example], *, max_unknown: float = 1.0) -> Calibrator:
        """Adapt the scores to a few labelled documents of another domain; the fitted recalibrators stay. RETURNS: The pipe.

        examples (Iterable[Example]): Docs predicted by the pipeline up to the component, with gold. max_unknown: Highest share
            of gold labels that the component does not know. RAISES C216: the pipe is not fitted. C021 to C024, C028, C033 to
            C035: the component cannot be calibrated. C030 to C032, C164: the gold is missing or of another kind. C003: no score
            reaches the threshold.
        """
        from .adapting import learn_adaptation  # only an adaptation needs it
        from .fitting import FitArguments, read_fit_inputs

        if not self.fitted:
            raise calib_error("C216", name=self.name)
        inputs = read_fit_inputs(self, examples, FitArguments(max_unknown=max_unknown))
        self.learned, self.held_out, self.held_out_spans = learn_adaptation(self, inputs)
        return self

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """Return the figures of the pipe's scorer (SMCE, GMCE, ECE ...) for Docs with scores and gold; {} without a scorer."""
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

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Return the fitted state as bytes, for `from_bytes`. exclude: Has no effect; spaCy passes it."""
        return dump(self._state())

    def from_bytes(self: _Pipe, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> _Pipe:
        """Load the bytes of `to_bytes`; exclude: no effect. RAISES C010 to C012: unreadable. C020: source with other labels."""
        self._load(bytes_data, "the bytes given")
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the fitted state into a folder, which is created if it is missing. exclude: Has no effect; spaCy passes it."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _FILE).write_bytes(self.to_bytes())

    def from_disk(self: _Pipe, path: str | Path, *, exclude: Iterable[str] = ()) -> _Pipe:
        """Load the folder of `to_disk`; exclude: no effect. RAISES C010 to C012: unreadable. C020: source with other labels."""
        file = Path(path) / _FILE
        try:
            data = file.read_bytes()
        except OSError as error:
            raise calib_error("C010", name=self.name, path=str(file), why=error.strerror or error) from None
        self._load(data, str(file))
        return self

    def _load(self, data: bytes, path: str) -> None:
        self._set_state(read(data, self._read_state, name=self.name, path=path))

    def _state(self) -> dict[str, Any]:
        """Return the learned state as plain data, with labels that only the settings of the source (not of its map) contain."""
        return replace(self.learned, kept_labels=with_map(self.source, None).kept_labels()).state()

    def _read_state(self, state: Any) -> PipeState:
        return PipeState.read(state, self.normalize, partial(load_part, name=self.name))

    def _set_state(self, state: PipeState) -> None:
        """Set a saved state; on failure nothing changes. RAISES C742: other further scores in source. C020: other labels."""
        source = with_map(self.source, state.info.label_map)
        inner = with_map(source, None)  # the source that the label map wraps: it has the labels and settings
        context = state.tokens.context  # FurtherScores use other scores that the source has of each document
        if isinstance(context, FurtherScores) and context.names_ != tuple(inner.further_score_names):
            names = ", ".join(inner.further_score_names) or "none"
            raise calib_error("C742", name=self.name, wanted=", ".join(context.names_), given=names)
        n_added = 0
        with restore_on_failure(inner):
            has_other_labels = inner.restore_labels(state.kept_labels or state.component.labels)
            component = None if state.tokens.maps is None else find_component(self.lookup.nlp, source, state.component)
            if component is not None and source.is_trained(component):
                n_added = count_new_labels(source, component, state.component, self.name)
        if has_other_labels:
            self.lookup.save_setting("labels", list(inner.kept_labels()))
        self.source, self.learned, self.held_out, self.held_out_spans = source, state, None, None
        if n_added:
            self.warn("CW03", n=n_added, component=source.component)
