"""The pipe `calib`: reads marginals, maps them, writes them on the Docs. `predict` touches no Doc, `set_annotations` writes."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from spacy import util
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab

from ..about import __version__
from ..calibration.auto import Selector
from ..calibration.cutoffs import Cutoffs
from ..calibration.grouped import GroupedRecalibrator
from ..calibration.grouping.alone import group_beside, informed
from ..calibration.recalibrators.base import Recalibrator
from ..calibration.scaling import Scaling
from ..calibration.sets import ConformalSets
from ..calibration.spans import SpanRecalibrator, fit_spans
from ..calibration.sufficiency import judge_held_out
from ..calibration.tag_offsets import TagOffsets
from ..calibration.token_fit import Chosen, TokenData, fit_tokens
from ..calibration.tokens import TokenCalibration, check_normalize, lowest_score
from ..doc.annotations import Annotation, columns_of, label_hashes
from ..doc.attributes import doc_view, register
from ..doc.blocks import delete_blocks, write_block
from ..doc.events import check_event
from ..doc.likeliest import fill_bare, write_labels
from ..doc.names import check_attr, check_pipe_name
from ..doc.texts import TextWatch
from ..doc.write import CalibratedBatch, CalibratedSpans, CarriedLabels, build_blocks
from ..errors import WARNINGS, calib_error
from ..expect.record import FitRecord, SpanFit, record_fit
from ..expect.seen import SeenTexts
from ..pairs.judged import JudgedPairs
from ..pairs.marginals import Scores, check_threshold
from ..sources.base import Source
from ..sources.find import Fitted, Found, check_loaded, find_component, look_for_fault, look_up
from ..sources.fingerprint import WeightWatch, fingerprint
from ..sources.home import Home
from ..sources.mapped import map_of, with_map
from ..types import Groups, Ints, Marginals, Spans
from . import saved
from .fit_data import FitData, collect_fit_data, span_pairs
from .fit_info import FitInfo, SpanFitInfo
from .fit_table import summarize_fit, summarize_span_fit
from .performance import held_out_performance, set_performance
from .state import PipeState
from .summary import html_table, note_meta, one_line

_FILE = "calibration.msgpack"


@dataclass(frozen=True)
class Reading:
    """What predict found: the Docs that could be read, by their place in the batch, and their scores; batch is None where none could.

    given (dict): Number of a Doc among them -> the labels that it gets, since it has none (sources with `sets_labels`).
    """

    places: list[int]
    batch: CalibratedBatch | None
    given: dict[int, list[str]] = field(default_factory=dict)


class Calibrator(Pipe):
    """Writes a calibrated probability for every token and tag above the threshold.

    source (Source): Where marginals come from. grouping (Callable): (labels, tag counts) -> Groups.
    scaling (Scaling | None): Prototype of what weighs the tags of a token anew before the threshold.
    recalibrator (Recalibrator): Prototype, copied for every group. pooling (TagOffsets | None): Prototype of the tags' own corrections.
    selection (Selector | None): Chooses scaling, grouping, recalibrator and pooling at the fit, in place of the four.
    normalize (bool | str): See `TokenCalibration`. intervals (bool): Whether tokens get a Venn-Abers interval.
    sets (ConformalSets | None): Prototype of the sets of tags. event (str): When a span (entity) counts as right: exact, type or overlap;
        see `entities.events`.
    calibration (TokenCalibration): What was fitted for tokens; before the fit it passes raw probabilities through.
    judged_by (Groups | None): Groups of the setting `grouping`, where the maps may have others because a selection chose those.
    span_maps (tuple | None): (map of the spans on the Doc, map of candidates); None before the fit and for sources without spans.
    weights (str): Fingerprint of the source's component at the fit; "" where none was taken.
    cutoffs (Cutoffs | None): Score cut-offs of the spans, set by `spacy calib threshold`.
    fit_info (FitInfo): What it was fitted on, with which steps, and the errors.
    record (FitRecord | None): What `spacy calib expect` compares new documents with; None for pipes that were fitted without.
    seen (SeenTexts | None): Digests of the fit documents, to tell when they are judged again; likewise.
    RAISES C001: a setting out of range. C025: another pipe or package uses the attribute prefix. C112, C113: a prefix or a name that spaCy
        needs for itself.
    """

    def __init__(
        self,
        nlp: Language,
        name: str = "calib",
        *,
        source: Source,
        grouping: Callable[[Sequence[str], Mapping[str, int]], Groups],
        recalibrator: Recalibrator,
        scaling: Scaling | None = None,
        pooling: TagOffsets | None = None,
        selection: Selector | None = None,
        intervals: bool = False,
        sets: ConformalSets | None = None,
        attr: str = "calib",
        threshold: float = 0.01,
        normalize: bool | str = False,
        event: str = "exact",
        scorer: Callable[..., dict[str, Any]] | None = None,
    ):
        self._home = Home(self, nlp)
        self.name = name
        self.attr = check_attr(attr)
        self.threshold = check_threshold(threshold)
        self.event = check_event(event)
        self.source = source
        self.grouping = grouping
        self.scaling = scaling
        self.recalibrator = recalibrator
        self.pooling = pooling
        self.selection = selection
        self.intervals = intervals
        self.sets = sets
        self.scorer = scorer
        self.calibration = TokenCalibration(normalize=check_normalize(normalize))
        self.judged_by: Groups | None = None
        self.span_maps: tuple[SpanRecalibrator, SpanRecalibrator] | None = None
        self.cutoffs: Cutoffs | None = None
        self.fitted_labels: tuple[str, ...] = ()
        self.fitted_kind = ""
        self._sourced = False
        self.weights = ""
        self._weight_watch = WeightWatch()
        self.fit_info = FitInfo()
        self.record: FitRecord | None = None
        self.seen: SeenTexts | None = None
        self._warned: set[str] = set()
        self._check_attr_is_free(nlp)
        register(attr)

    def _check_attr_is_free(self, nlp: Language) -> None:
        for other, pipe in nlp.components:
            if isinstance(pipe, Calibrator) and pipe.attr == self.attr and other != self.name:
                raise calib_error("C025", attr=self.attr, owner=f"the pipe '{other}'")

    # Looking up what is read

    @property
    def maps(self) -> GroupedRecalibrator | None:
        """The fitted maps of the tokens' scores; None before the fit."""
        return self.calibration.maps

    @property
    def groups(self) -> Groups | None:
        """The groups of tags by which the scores are judged; None before the fit."""
        return self.judged_by or (None if self.maps is None else self.maps.groups)

    @property
    def normalize(self) -> bool | str:
        """How a token's scores are rescaled, see `TokenCalibration`."""
        return self.calibration.normalize

    @normalize.setter
    def normalize(self, normalize: bool | str) -> None:
        self.calibration.normalize = check_normalize(normalize)

    @property
    def fitted(self) -> bool:
        return self.maps is not None

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that the pipe was fitted on; empty before."""
        return self.fitted_labels

    @property
    def name(self) -> str:
        """Set by the pipeline that takes the pipe, and by each that takes it later.

        RAISES C113: a pipeline cannot be saved with a pipe of this name.
        """
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = check_pipe_name(name)
        nlp = self._home.named_by_caller()
        if nlp is not None:
            note_meta(nlp, name, self)

    def __repr__(self) -> str:
        return one_line(self)

    def _repr_html_(self) -> str:
        return html_table(self)

    def _look_up(self, vocab: Vocab | None = None) -> Found:
        return look_up(self._home, self.source, Fitted(self.fitted_kind, self.fitted_labels), vocab, self._sourced)

    def source_pipe(self) -> Any:
        """The component that the source reads, or None where the pipeline has it no more (or the source needs none).

        RAISES C020: its labels were removed or reordered since the fit. C022: it has no head that the source can read.
        """
        return self._look_up().component

    def check_source(self) -> None:
        """RAISES C120: the pipe comes from another pipeline and cannot read this one. C020, C022: see `source_pipe`."""
        found = self._look_up()
        if found.why and found.nlp is not None and self.source.component in found.nlp.component_names:
            raise calib_error("C120", name=self.name, component=self.source.component, why=found.why)

    def _warn(self, code: str, **values: object) -> None:
        """Say it once."""
        key = f"{code}{values}"
        if key not in self._warned:
            self._warned.add(key)
            warnings.warn(WARNINGS[code].format(name=self.name, **values), stacklevel=3)

    # Prediction

    def __call__(self, doc: Doc) -> Doc:
        error_handler = self.get_error_handler()
        try:
            self.set_annotations([doc], self.predict([doc]))
        except Exception as error:
            error_handler(self.name, self, [doc], error)
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Annotate a stream of Docs, batch by batch."""
        error_handler = self.get_error_handler()
        for batch in util.minibatch(stream, size=batch_size):
            docs = list(batch)
            try:
                self.set_annotations(docs, self.predict(docs))
                yield from docs
            except Exception as error:
                error_handler(self.name, self, docs, error)

    def predict(self, docs: Sequence[Doc]) -> Reading:
        """Read and calibrate, without changing the Docs.

        RAISES C020, C022: see `source_pipe`. C024, C040, C041: what the source found is no probability.
        """
        if not self.fitted:
            self._warn("CW01")
        if not docs:
            return Reading([], None)
        found = self._look_up(docs[0].vocab)
        if found.why or found.nlp is None:
            self._warn("CW02", why=found.why)
            return Reading([], None)
        pipe = found.component
        annotation = self.source.annotation(pipe)
        places, hashes = self._readable(found.nlp, pipe, annotation, docs)
        if not places:
            return Reading([], None)
        scores = self.source.read(pipe, [docs[i] for i in places])
        self._warn_of_changes(found.nlp, pipe)
        calibrated = self.calibration.calibrate(scores, self.threshold)
        labels = self.source.labels(pipe)
        given: dict[int, list[str]] = {}
        if self.source.sets_labels:
            hashes, given = fill_bare(calibrated.marginals, hashes, labels)
        return Reading(
            places,
            CalibratedBatch(
                calibrated,
                self._carried_below_threshold(scores, calibrated.marginals, np.concatenate(hashes), labels),
                annotation.name,
                labels,
                np.concatenate(hashes),
                None if scores.spans is None else self._calibrate_spans(scores.spans, self.source.span_labels(pipe)),
            ),
            given,
        )

    def _warn_of_changes(self, nlp: Language, pipe: Any) -> None:
        """Of new labels, which bring new weights, or else of other weights for the same labels."""
        added = len(self.source.labels(pipe)) - len(self.fitted_labels)
        if self.source.component and self.fitted_labels and added > 0:
            self._warn("CW03", n=added, component=self.source.component)
        elif self.weights and self._weight_watch.changed(self.weights, nlp, pipe):
            self._warn("CW04", component=self.source.component)

    def weights_changed(self) -> bool | None:
        """Whether the component has other weights than at the fit: the maps belong to the scores that it gave with those.

        RETURNS: None where that is not known: fitted by an older version, labels added since, or no component.
        """
        found = self._look_up()
        if not self.weights or found.nlp is None or found.component is None:
            return None
        if len(self.source.labels(found.component)) > len(self.fitted_labels):
            return None
        return fingerprint(found.nlp, found.component) != self.weights

    def _readable(self, nlp: Language, pipe: Any, annotation: Annotation, docs: Sequence[Doc]) -> tuple[list[int], list[Any]]:
        """The Docs with input and annotation, by their place, and the label hashes of each; warns once about the others."""
        places, hashes = [], []
        blocker = self.source.obstacle(nlp, self._home.name_in(nlp), pipe)
        reasons = [blocker] * len(docs) if blocker else self.source.missing(pipe, docs)
        for i, (doc, why) in enumerate(zip(docs, reasons, strict=True)):
            if len(doc) <= annotation.first:
                continue
            carried = annotation.hashes(doc)
            if not why and not carried.any() and not self.source.sets_labels:
                why = f"no token carries a {annotation.gold.name} annotation; put the pipe after the component that sets it, and enable that"
            if why:
                self._warn("CW02", why=why)
                continue
            places.append(i)
            hashes.append(carried)
        return places, hashes

    def _carried_columns(self, marginals: Marginals, hashes: Any, labels: tuple[str, ...]) -> Ints:
        if marginals.names is None:
            return columns_of(hashes, label_hashes(labels))
        columns = np.full(len(hashes), -1, dtype=np.intp)
        own = label_hashes(marginals.names) == hashes[marginals.rows]
        columns[marginals.rows[own]] = marginals.tags[own]
        return columns

    def _carried_below_threshold(
        self, scores: Scores, marginals: Marginals, hashes: Any, labels: tuple[str, ...]
    ) -> CarriedLabels:
        """Tokens whose label the model knows but did not give the threshold's score (set by somebody else, or kept from before)."""
        carried = self._carried_columns(marginals, hashes, labels)
        held = np.zeros(marginals.n_tokens, dtype=bool)
        held[marginals.rows[carried[marginals.rows] == marginals.tags]] = True
        rows = np.flatnonzero(~held & (carried >= 0))
        raw = scores.at(rows, carried[rows])
        rows, raw = rows[~np.isnan(raw)], raw[~np.isnan(raw)]
        columns = carried[rows]
        calibrated = self.calibration.calibrate_entries(scores, self.threshold, rows, columns, raw)
        return CarriedLabels(rows, [labels[column] for column in columns.tolist()], raw, calibrated)

    def _calibrate_spans(self, spans: Spans, labels: tuple[str, ...]) -> CalibratedSpans:
        raw = np.where(spans.chosen, self.source.raw_span_scores(spans), spans.own)
        calibrated = raw.copy()
        accept = np.full(len(spans), -1, dtype=np.int8)
        if self.span_maps is not None:
            for own, fitted in zip((spans.chosen, ~spans.chosen), self.span_maps, strict=True):
                index = np.flatnonzero(own)
                calibrated[index] = fitted.predict(spans.take(index), raw[index])
            if self.cutoffs is not None:
                accept[:] = self.cutoffs.accepts(calibrated, spans.labels, labels, self.span_maps[0].groups)
        return CalibratedSpans(spans, labels, raw, calibrated, accept, self.event)

    def set_annotations(self, docs: Sequence[Doc], reading: Reading) -> None:
        """Write a block on each Doc that was read, in place of an older one; remove the older one from the others."""
        for doc in docs:
            delete_blocks(doc.user_data, self.attr)
            if self.source.keeps_span_scores:
                for group in doc.spans.values():
                    group.attrs.pop(f"{self.attr}_scores", None)
        if reading.batch is not None:
            read = [docs[i] for i in reading.places]
            for number, labels in reading.given.items():
                write_labels(read[number], reading.batch.layer, labels)
            for doc, block in zip(read, build_blocks(read, reading.batch), strict=True):
                write_block(doc.user_data, self.attr, block)
                if self.source.keeps_span_scores:
                    self._write_span_scores(doc)

    def _write_span_scores(self, doc: Doc) -> None:
        view = doc_view(doc, self.attr)
        if view is not None:
            scores = {(span.start, span.end, span.label): span.score for span in view.ents}
            self.source.write_span_scores(self._look_up(doc.vocab).component, doc, self.attr, scores)

    # Fitting

    def fit(
        self,
        examples: Iterable[Example],
        tag_counts: Mapping[str, int] | None = None,
        *,
        span_counts: Mapping[str, int] | None = None,
        min_pairs: int = 1,
        counted_on: str = "the fit data",
        n_bins: int = 10,
        max_unknown: float = 1.0,
    ) -> Calibrator:
        """Learn the maps from held-out gold.

        examples (Iterable[Example]): `predicted` holds what the source reads (run the pipeline up to the source), `reference` the gold.
        tag_counts (Mapping | None): Gold tag frequencies of the training data, for grouping; None counts them in the examples.
        span_counts (Mapping | None): The same for the labels of spans (entities). min_pairs (int): Fewer pairs in all are refused. counted_on (str): Where tag_counts come from, for `info`.
        n_bins (int): Adaptive bins of the errors in the fit table. max_unknown (float): A greater share of gold labels that the component
            does not know is refused.
        RAISES C021 to C024, C028, C033 to C035, C072: the component. C030 to C032, C071, C164: the gold. C003, C005 to C007: too few pairs.
        """
        first, examples = _with_first(examples)
        nlp, pipe = self.pipe_to_fit(None if first is None else first.predicted.vocab)
        annotation = self.source.annotation(pipe)
        watch = TextWatch(annotation)
        data = collect_fit_data(self.source, pipe, watch.over(examples), self._lowest(annotation), self.event)
        data.check(annotation.gold.name, self.source.component or "the source", self.threshold, min_pairs, max_unknown)
        labels = self.source.labels(pipe)
        counts = dict(data.counts if tag_counts is None else tag_counts)
        tokens = data.tokens(len(labels), self.threshold)
        chosen = self._choose(tokens, annotation, labels, counts)
        learned = chosen.pairs_of(tokens)
        names = self._frequency_labels(labels)
        groups = self._groups(informed(chosen.grouping, learned, names), labels, counts)
        own = groups
        if self.selection is not None:
            own = self._groups(informed(self.grouping, learned, names), labels, counts)
        fitted = fit_tokens(
            tokens,
            chosen,
            groups,
            normalize=self.normalize,
            intervals=self.intervals,
            sets=self.sets,
            promise_groups=own,
        )
        calibration, held_out = fitted.calibration, fitted.held_out
        self.calibration = calibration
        self.judged_by = own
        self.span_maps, span_info = self._fit_spans(pipe, data, span_counts, n_bins)
        self.cutoffs = None
        judged = JudgedPairs(tokens.kept_pairs, held_out, tokens.kept_documents, data.unit)
        found = self._span_fit(data)
        bare, calibrated = calibration.calibrate_pairs(data.unjudged, self.threshold)
        unjudged = JudgedPairs(data.unjudged.take(bare), calibrated, data.unjudged_documents[bare])
        self.record = record_fit(judged, data.n_docs, labels, found, unjudged)
        if nlp is not None and self.record is not None:  # else nothing was held out
            figures = held_out_performance(self.attr, judged, fitted.maps.groups, found, n_bins)
            set_performance(nlp, self.attr, figures)
        self.seen = SeenTexts.of(watch.units().digests)
        self.fitted_labels = labels
        self.weights = "" if nlp is None else fingerprint(nlp, pipe)
        self.fitted_kind = self.source.kind(pipe)
        self.fit_info = FitInfo(
            component=self.source.component,
            layer=self.source.annotation(pipe).name,
            threshold=self.threshold,
            docs=data.n_docs,
            unit=data.unit,
            tokens=data.pairs.n_units,
            unknown_gold=data.n_unknown,
            unknown=data.unknown.words() if data.n_unknown else None,
            label_map=map_of(self.source),
            pairs=len(judged.pairs),
            counted_on=counted_on if tag_counts is not None else "the fit data",
            scaling=None if chosen.scaling is None else chosen.scaling.describe(),
            method=chosen.prototype.registered,
            pooling=None if fitted.maps.pooling is None else fitted.maps.pooling.describe(),
            intervals=self.intervals,
            sets=None if calibration.sets is None else calibration.sets.describe(labels),
            selection=chosen.table or None,
            table=summarize_fit(judged.pairs, learned.scores, fitted.maps, own, n_bins),
            held_out=judge_held_out(judged.pairs, held_out, judged.documents),
            spans=span_info,
            versions={
                "spacy-calib": __version__,
                "spacy": spacy.__version__,
                "numpy": np.__version__,
                "python": platform.python_version(),
            },
        )
        return self

    def _lowest(self, annotation: Annotation) -> float:
        """Scores below it take no part in a fit. RAISES C072: a setting that is about the one right tag of a token."""
        if annotation.overlapping:
            for setting, used in (("scaling", self.scaling), ("sets", self.sets), ("normalize", self.normalize)):
                if used:
                    raise calib_error("C072", setting=setting, layer=annotation.gold.name)
            return self.threshold
        if self.selection is not None:
            return min(self.threshold, self.selection.lowest)
        return lowest_score(self.threshold, self.scaling)

    def _choose(self, tokens: TokenData, annotation: Annotation, labels: tuple[str, ...], counts: Mapping[str, int]) -> Chosen:
        """The steps of the settings, or what the selection chose."""
        if self.selection is not None:
            return self.selection(tokens, lambda grouping: self._groups(grouping, labels, counts), not annotation.overlapping)
        scaling = None if self.scaling is None else self.scaling.clone()
        scaled = tokens.pairs.scores if scaling is None else scaling.cross_fit(tokens.pairs, tokens.documents, tokens.n_tags)
        return Chosen(self.grouping, self.recalibrator, self.pooling, scaling, scaled)

    def _groups(self, grouping: Callable[..., Groups], labels: tuple[str, ...], counts: Mapping[str, int]) -> Groups:
        return group_beside(grouping, labels, counts, self.source.alone, self.source.frequency_label)

    def _frequency_labels(self, labels: tuple[str, ...]) -> list[str]:
        return [self.source.frequency_label(label) for label in labels]

    def _fit_spans(
        self, pipe: Any, data: FitData, counts: Mapping[str, int] | None, n_bins: int
    ) -> tuple[tuple[SpanRecalibrator, SpanRecalibrator] | None, SpanFitInfo | None]:
        """(the maps of spans and candidates, what `info` shows of them); None for a source without spans."""
        if data.spans is None:
            return None, None
        labels = self.source.span_labels(pipe)
        raw = self.source.raw_span_scores(data.spans)
        grouping = informed(self.grouping, span_pairs(data.spans, raw, data.span_hits)[0], labels)
        groups = group_beside(grouping, labels, data.span_counts if counts is None else counts)
        maps = fit_spans(groups, data.spans, data.span_hits)
        info = SpanFitInfo(
            event=self.event,
            labels=list(labels),
            spans=maps[0].n_spans_,
            right=maps[0].n_hits_,
            candidates=maps[1].n_spans_,
            fallback=maps[0].fallback_,
            table=summarize_span_fit(data.spans, raw, data.span_hits, maps[0], n_bins),
        )
        return maps, info

    def _span_fit(self, data: FitData) -> SpanFit | None:
        if data.spans is None:
            return None
        assert self.span_maps is not None
        raw, groups = self.source.raw_span_scores(data.spans), self.span_maps[0].groups
        return SpanFit(data.spans, raw, data.span_hits, data.span_documents, data.gold_spans, groups)

    def pipe_to_fit(self, vocab: Vocab | None = None) -> tuple[Language | None, Any]:
        """The pipeline and the component that a fit would read.

        vocab (Vocab | None): Of the Docs. RAISES C021: the component is missing. C022, C023, C035: it cannot be calibrated. C028: it stands
            behind this pipe. C034: what it reads is not what the component gave.
        """
        component = self.source.component
        if not component:
            return None, None
        nlp = self._home.language(vocab, lambda nlp: nlp)
        pipe = None if nlp is None else find_component(nlp, self.source, self.fitted_kind, self.fitted_labels)
        if nlp is None or pipe is None:
            raise calib_error("C021", component=component, available=", ".join(nlp.component_names if nlp else ()) or "none")
        order, name = nlp.component_names, self._home.name_in(nlp)
        if name in order and component in order and order.index(name) < order.index(component):
            raise calib_error("C028", name=name, component=component)
        if not self.source.is_trained(pipe):
            raise calib_error("C023", component=component)
        if not self.source.has_finite_weights(pipe):
            raise calib_error("C035", component=component)
        obstacle = self.source.obstacle(nlp, name, pipe)
        if obstacle:
            raise calib_error("C034", component=component, why=obstacle)
        return nlp, pipe

    def initialize(self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None) -> None:
        """Nothing to do: the pipe is fitted after training, not by it."""

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """SMCE, GMCE and the other figures of DESIGN section 6, raw and calibrated; {} without a scorer."""
        if self.scorer is None:
            return {}
        span_groups = None if self.span_maps is None else self.span_maps[0].groups
        return self.scorer(
            examples,
            attr=self.attr,
            labels=self.source_labels(),
            groups=self.groups,
            span_labels=self.source_span_labels(),
            span_groups=span_groups,
        )

    def source_span_labels(self) -> tuple[str, ...]:
        """The labels of the spans that the source has now; those fitted where its component is missing; () for a source without."""
        pipe = self.source_pipe()
        if pipe is None and self.source.component:
            spans = self.fit_info.spans
            return () if spans is None else tuple(spans.labels)
        return self.source.span_labels(pipe)

    def source_labels(self) -> tuple[str, ...]:
        """The labels that the source has now; those fitted where its component is missing."""
        pipe = self.source_pipe()
        missing = pipe is None and self.source.component
        return self.fitted_labels if missing else self.source.labels(pipe)

    # Saving

    def _state(self) -> PipeState:
        return PipeState(
            self.calibration, self.fitted_labels, self.fitted_kind, self.span_maps, self.cutoffs, self.record, self.seen,
            self.fit_info, look_for_fault(self._home, self.source, Fitted(self.fitted_kind, self.fitted_labels), self._sourced),
            self.weights,
            self.judged_by,
            with_map(self.source, None).kept_labels(),
        )  # fmt: skip

    def _load_state(self, data: bytes, path: str) -> Calibrator:
        """Take over a saved state, all of it or (where it is refused) nothing."""
        held = saved.read(data, name=self.name, path=path, normalize=self.normalize)
        source = with_map(self.source, held.fit_info.label_map)
        added = 0
        if not held.fault and held.calibration.maps is not None:
            added = check_loaded(self._home, source, Fitted(held.kind, held.labels))
        if with_map(source, None).restore_labels(held.kept_labels or held.labels):
            self._home.restore_setting("source", "labels", list(with_map(source, None).kept_labels()))
        self.source = source
        self.calibration, self.span_maps, self.cutoffs = held.calibration, held.span_maps, held.cutoffs
        self.fitted_labels, self.fitted_kind = held.labels, held.kind
        self.record, self.seen, self.fit_info, self.judged_by = held.record, held.seen, held.fit_info, held.judged_by
        self._sourced, self.weights = bool(held.fault), held.weights
        if added:
            self._warn("CW03", n=added, component=source.component)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The fitted state as bytes."""
        return saved.dump(self._state().to_dict())

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> Calibrator:
        """Take over the state that `to_bytes` gave.

        RAISES C010 to C012: the bytes. C020: the labels of the component are not those that the state was fitted on.
        """
        return self._load_state(bytes_data, "the bytes given")

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the fitted state into a folder."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _FILE).write_bytes(saved.dump(self._state().to_dict()))

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> Calibrator:
        """Take over the state that `to_disk` wrote.

        RAISES C010 to C012: the file. C020: the labels of the component are not those that the state was fitted on.
        """
        file = Path(path) / _FILE
        try:
            data = file.read_bytes()
        except OSError as error:
            raise calib_error("C010", name=self.name, path=str(file), why=error.strerror or error) from None
        return self._load_state(data, str(file))


def _with_first(examples: Iterable[Example]) -> tuple[Example | None, Iterable[Example]]:
    """(the first example, all of them)."""
    rest = iter(examples)
    first = next(rest, None)
    return first, rest if first is None else chain([first], rest)


__all__ = ["Calibrator", "Reading"]
