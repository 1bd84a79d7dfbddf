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

from ..calibration.spans import SpanCalibration
from ..calibration.tokens import TokenCalibration, check_normalize
from ..doc.annotations import columns_of, label_hashes
from ..doc.attributes import doc_view, register
from ..doc.blocks import add_block, delete_blocks
from ..doc.doubtful import delete_doubtful, write_doubtful
from ..doc.gold import GoldSources, named_examples
from ..doc.likeliest import Likeliest
from ..doc.names import check_pipe_name
from ..doc.words import words_of
from ..doc.write import CalibratedBatch, build_blocks
from ..errors import calib_error
from ..pairs.build import hints_of
from ..pairs.judged import JudgedPairs
from ..sources.base import labels_unless_it_fails
from ..sources.find import check_loaded
from ..sources.mapped import MappedScores, with_map
from ..statistics.collected import FitStatistics
from ..types import ANYWHERE, Groups
from . import saved
from .adapting import adapt_calibrator
from .annotating import AnnotatingPipe, WarnOnce
from .fit_info import FitInfo
from .fitting import fit_calibrator, fit_gathered
from .gathering import FitArguments, gather_statistics
from .lookup import SourceLookup
from .reading import Reading, accepted_labels, calibrated_spans, flags_of, readable
from .settings import PipeSettings
from .state import PipeState
from .summary import html_table, note_meta, one_line


class Calibrator(AnnotatingPipe, PipeSettings):
    """Writes a calibrated probability for every token and tag above the threshold.

    settings: See PipeSettings; each is an attribute of the pipe.
    learned (PipeState): What the fit learned; before it, nothing. held_out (JudgedPairs | None): The pairs of a fit or an adaptation in this process, with scores
    of maps that did not see their document; it is not saved. lookup (SourceLookup): Finds what the source reads.
    gold_source (str | None): Name of the source of gold by which Docs go whose `Doc._.calib_source` is None; it is not saved.
    RAISES C001, C112: see PipeSettings. C025: another pipe or package uses the attribute prefix. C113: a name that spaCy needs for itself.
    """

    def __init__(self, nlp: Language, name: str = "calib", **settings: Any):
        self.learned = PipeState()
        self.held_out: JudgedPairs | None = None
        self.gold_source: str | None = None
        self.lookup = SourceLookup(self, nlp)
        self.warn = WarnOnce(self)
        self.name = name
        PipeSettings.__init__(self, **settings)
        self._check_prefix(nlp)
        register(self.attr)

    @property
    def name(self) -> str:
        """Set by the pipeline that takes the pipe, and by each that takes it later.

        RAISES C113: a pipeline cannot be saved with a pipe of this name.
        """
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = check_pipe_name(name)
        note_meta(self.lookup.nlp, name, self)

    def attach(self, nlp: Language) -> Calibrator:
        """Read this pipeline from now on, which took the pipe from another one by `add_pipe(source=...)`; itself.

        RAISES C120: the pipe does not stand there, or its component is missing or has other weights than at the fit.
            C020, C022: its labels are others, or it cannot be calibrated. C025: another pipe there has its prefix.
        """
        self._check_prefix(nlp)
        self.lookup.attach(nlp)
        note_meta(nlp, self.lookup.name, self)
        return self

    def _check_prefix(self, nlp: Language) -> None:
        """RAISES C025: another pipe of this pipeline uses the attribute prefix."""
        for other, pipe in nlp.components:
            if isinstance(pipe, Calibrator) and pipe.attr == self.attr and pipe is not self and other != self.name:
                raise calib_error("C025", attr=self.attr, owner=f"the pipe '{other}'")

    def __repr__(self) -> str:
        return one_line(self)

    def _repr_html_(self) -> str:
        return html_table(self)

    # What was learned

    @property
    def fitted(self) -> bool:
        return self.learned.tokens.maps is not None

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that the pipe was fitted on; empty before."""
        return self.learned.labels

    @property
    def tokens(self) -> TokenCalibration:
        """The steps between a source's probability and `Token._.calib_score`; before the fit it passes raw probabilities through."""
        return self.learned.tokens

    @property
    def spans(self) -> SpanCalibration:
        """The same for `Span._.calib_score`."""
        return self.learned.spans

    @property
    def groups(self) -> Groups | None:
        """The groups of tags by which the scores are judged; None before the fit."""
        return self.learned.judged_by or (None if self.tokens.maps is None else self.tokens.maps.groups)

    @property
    def fit_info(self) -> FitInfo:
        """What it was fitted on, with which steps, and the errors; empty before the fit."""
        return self.learned.info

    @property
    def normalize(self) -> bool | str:
        """How a token's scores are rescaled, see `TokenCalibration`."""
        return self.tokens.normalize

    @normalize.setter
    def normalize(self, normalize: bool | str) -> None:
        self.tokens.normalize = check_normalize(normalize)

    # Prediction

    def predict(self, docs: Sequence[Doc]) -> Reading:
        """Read and calibrate, without changing the Docs.

        RAISES C020, C022: see `SourceLookup.component`. C024, C040, C041: what the source found is no probability. C548, C549: a Doc, or `gold_source`,
            names a source of gold that the fit does not know.
        """
        if not self.fitted:
            self.warn("CW01")
        elif self.map_for == ANYWHERE and self.tokens.portable is None:
            self.warn("CW65")
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
        gold_sources = GoldSources(self.name, self.fit_info.source_names).of(read, self.gold_source)
        if learned.tokens.context is not None:
            words = words_of(read, learned.tokens.context.functions, annotation.first)
            words = replace(words, hints=hints_of(scores), sources=gold_sources)
        hashes, likeliest = open_docs.hashes, None
        if source.sets_labels:
            own = (scores.inner if isinstance(scores, MappedScores) else scores).above(self.threshold)
            likeliest = Likeliest.of(own, with_map(source, None).labels(component), hashes)
            hashes = likeliest.filled(hashes, annotation)
        carried = np.concatenate(hashes)
        columns = columns_of(carried, label_hashes(labels))
        calibrated = learned.tokens.calibrate(scores, self.threshold, words, self.map_for, columns)
        spans = None
        if scores.spans is not None:
            of_spans, event = source.span_labels(component), self.fit_info.span_event or self.event
            layer = annotation.name if annotation.span_event else ""  # the labels of its tokens make a sentence right
            spans = calibrated_spans(learned.spans, source, scores.spans, of_spans, event, layer, calibrated.view)
        flags = flags_of(learned.tokens.recall_cutoffs, scores, calibrated, labels, annotation, self.threshold)
        batch = CalibratedBatch(calibrated, annotation.name, labels, carried, spans, flags)
        if learned.tokens.label_cutoffs is not None and self.groups is not None:
            batch = replace(batch, accept=accepted_labels(learned.tokens.label_cutoffs, batch, self.groups))
        return Reading(open_docs.places, batch, likeliest)

    def set_annotations(self, docs: Sequence[Doc], reading: Reading) -> None:
        """Write a block on each Doc that was read, in place of an older one; remove the older one from the others."""
        for doc in docs:
            delete_blocks(doc.user_data, self.attr)
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

    def fit(
        self,
        examples: Iterable[Example] | Mapping[str, Iterable[Example]] | FitStatistics,
        tag_counts: Mapping[str, int] | None = None,
        **options: Any,
    ) -> Calibrator:
        """Learn the maps from held-out gold.

        examples (Iterable[Example] | Mapping | FitStatistics): `predicted` holds what the source reads (run the pipeline up to the source), `reference`
            the gold; of gold from several sources, the name of each -> its examples (or `Doc._.calib_source` of each predicted Doc says it); or
            statistics of any number of shards, see `collecting.collect_statistics`.
        tag_counts (Mapping | None), options: See FitArguments.
        RAISES C021 to C024, C028, C033 to C035, C072: the component. C030 to C032, C071, C164: the gold. C003, C005 to C007: too few pairs.
        C425, C428, C432: statistics of something else, or of some shards only. C547: a single source has a name.
        """
        arguments = FitArguments(tag_counts, **options)
        with labels_unless_it_fails(with_map(self.source, None)):
            if isinstance(examples, FitStatistics):
                self.learned, self.held_out = fit_gathered(self, gather_statistics(self, examples, arguments))
            else:
                given = named_examples(examples) if isinstance(examples, Mapping) else examples
                self.learned, self.held_out = fit_calibrator(self, given, arguments)
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
            labels=self.lookup.labels(),
            groups=self.groups,
            span_labels=self.lookup.span_labels(),
            span_groups=self.spans.groups,
        )

    # Saving

    def _dump(self) -> bytes:
        kept = with_map(self.source, None).kept_labels()
        return saved.dump(replace(self.learned, kept_labels=kept).state())

    def _take(self, data: bytes, path: str) -> None:
        load = partial(saved.load_part, name=self.name)
        held = saved.read(data, lambda held: PipeState.read(held, self.normalize, load), name=self.name, path=path)
        source = with_map(self.source, held.info.label_map)
        inner = with_map(source, None)
        added = 0
        with labels_unless_it_fails(inner):
            restored = inner.restore_labels(held.kept_labels or held.labels)
            if held.tokens.maps is not None:
                added = check_loaded(self.lookup.nlp, source, held.component, self.name)
        if restored:
            self.lookup.restore_setting("source", "labels", list(inner.kept_labels()))
        self.source, self.learned = source, held
        if added:
            self.warn("CW03", n=added, component=source.component)


def _write_span_scores(pipe: Calibrator, doc: Doc) -> None:
    """For sources that keep the scores of spans beside them."""
    view = doc_view(doc, pipe.attr)
    if view is not None:
        scores = {(span.start, span.end, span.label): span.score for span in view.ents}
        pipe.source.write_span_scores(pipe.lookup.find(doc.vocab).component, doc, pipe.attr, scores)


__all__ = ["Calibrator"]
