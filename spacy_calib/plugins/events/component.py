"""The pipe `calib_event`: forecasts of the answer to a question about units of a Doc, from the scores of a calib pipe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from ...annotations import columns_of, get_annotation, is_space
from ...doc.attributes import RIGHT, check_pipe_name, register, token_values
from ...doc.blocks import add_block, delete_blocks
from ...doc.view import doc_view
from ...doc.write import CalibratedSpans, span_block
from ...errors import CalibError
from ...gold.reading import document_of
from ...pairs.documents import DocumentNumbers
from ...pipe.annotating import AnnotatingPipe, WarnOnce
from ...pipe.component import Calibrator
from ...pipe.saved import load_part
from ...types import Floats, Ints, Spans
from .event_state import EventInfo, EventState, LabelledUnits, fit_event
from .event_table import Forecasts
from .forecasters.base import Forecaster
from .forecasts import UNIT_FEATURES, UnitEvidence, default_forecasters
from .messages import WARNINGS, calib_error
from .questions import UNKNOWN, Event, check_is_event


@dataclass(frozen=True, eq=False)
class QuestionUnits:
    """The units of a Doc and their evidence. layer (str): The annotation whose scores were read, "" for none."""

    spans: list[Span]
    evidence: UnitEvidence
    layer: str = ""


class EventPipe(AnnotatingPipe):
    """Writes `Span._.<attr>_right` on the units of an event: P(the answer is yes).

    attr (str): Prefix of the calib pipe whose scores it reads. event (Event): The question. forecaster (Forecaster | None):
    Prototype; None lets cross-validation choose. RAISES C112: attr is no name. C380: event is no Event. C385: another event
    pipe writes the same attribute.
    """

    attr: str

    def __init__(self, nlp: Language, name: str, attr: str, event: Event, forecaster: Forecaster | None = None):
        for other_name, pipe in nlp.components:
            if isinstance(pipe, EventPipe) and pipe.attr == attr and other_name != name:
                raise calib_error("C385", attr=attr, owner=other_name)
        self.name = check_pipe_name(name)
        self.attr = attr
        self.event = check_is_event(event)
        self.rivals = self.event.rivals
        self.event.bind(attr, partial(_find_component, nlp, attr))
        self.prototype = forecaster
        self.fitted_state = EventState()
        self.warn = WarnOnce(self, WARNINGS)
        register(attr)

    @property
    def fitted(self) -> bool:
        return self.fitted_state.info is not None

    @property
    def info(self) -> EventInfo | None:
        """Report of the fit; None before."""
        return self.fitted_state.info

    # Prediction

    def predict(self, docs: Sequence[Doc]) -> list[CalibratedSpans]:
        """Return the forecasts for the units of each Doc."""
        if not self.fitted and any(map(len, docs)):  # do not spend the only warning on an empty Doc
            self.warn("CW01")
        return [self._forecast(self.find_units(doc)) for doc in docs]

    @property
    def width(self) -> int:
        """Number of features of a unit."""
        return len(UNIT_FEATURES if self.event.features is None else self.event.features)

    def find_units(self, doc: Doc, held_out: HeldOutScores | None = None) -> QuestionUnits:
        """Return the units of a Doc with their evidence; units with a word without a score are left out.

        held_out (HeldOutScores | None): Cross-validated scores, in place of those on the Doc.
        """
        scores = None
        if self.event.features is None:
            scores = self._read_token_scores(doc, held_out)
            if scores is None:
                return self._no_units
        spans = list(self.event.units(doc))
        if not spans:
            if len(doc):
                self.warn("CW23", why=f"it has no {self.event.unit_words[1]}")
            return self._no_units
        if scores is None:
            view = doc_view(doc, self.attr) if self.event.of_labels else None
            try:
                return QuestionUnits(spans, self.event.evidence(doc, spans), "" if view is None else view.layer)
            except CalibError as error:
                self.warn("CW23", why=str(error))
                return self._no_units
        return make_units(doc, spans, *scores)

    @property
    def _no_units(self) -> QuestionUnits:
        return QuestionUnits([], UnitEvidence(np.zeros((0, self.width)), np.zeros(0), np.zeros(0)))

    def _read_token_scores(self, doc: Doc, held_out: HeldOutScores | None) -> tuple[str, Floats, Floats] | None:
        """Return (annotation, raw and calibrated score of each token's label, NaN without one), or None if the Doc has none."""
        view = doc_view(doc, self.attr)
        if view is None:
            if len(doc):
                self.warn("CW23", why=f"no token has scores with the prefix '{self.attr}'")
            return None
        values = [token_values(token, self.attr) for token in doc]
        raw, calibrated_scores = (
            np.array([np.nan if value is None else getattr(value, kind) for value in values]) for kind in ("raw", "calibrated")
        )
        if held_out is None:
            return view.layer, raw, calibrated_scores
        cross_validated = held_out.take_next(doc, raw)
        return view.layer, raw, np.where(np.isnan(cross_validated), calibrated_scores, cross_validated)

    def _forecast(self, units: QuestionUnits) -> CalibratedSpans:
        """Return the units as scored spans: raw estimate and calibrated probability that each is right."""
        labels = tuple(dict.fromkeys(span.label_ for span in units.spans))
        spans = Spans(
            np.array([span.start for span in units.spans], dtype=np.intp),
            np.array([span.end for span in units.spans], dtype=np.intp),
            np.array([labels.index(span.label_) for span in units.spans], dtype=np.intp),
            np.zeros(sum(map(len, units.spans))),
            units.evidence.raw_estimates,
            np.ones(len(units.spans), dtype=bool),
        )
        no_gold = np.full(len(units.spans), -1, dtype=np.int8)
        forecasts = self.fitted_state.forecast(units.evidence)
        return CalibratedSpans(spans, labels, units.evidence.estimates, forecasts, no_gold, self.event.condition, units.layer)

    def set_annotations(self, docs: Sequence[Doc], forecasts: list[CalibratedSpans]) -> None:
        """Write the forecasts on each Doc, in place of older ones."""
        attr = self.attr + RIGHT
        for doc, spans in zip(docs, forecasts, strict=True):
            delete_blocks(doc.user_data, attr)
            if len(spans.spans):
                add_block(doc.user_data, attr, span_block(doc, spans))

    # Fitting

    def gather(self, examples: Iterable[Example], held_out: HeldOutScores | None = None) -> tuple[LabelledUnits, str]:
        """Return (the units with scores and gold, the annotation of the labels; "" if the event reads no labels).

        examples (Iterable[Example]): Their predicted Docs have been annotated by the calib pipe and all that the event reads.
        held_out (HeldOutScores | None): Cross-validated scores, in place of those on the Docs.
        """
        parts: list[UnitEvidence] = []
        hits: list[Ints] = []
        documents: list[Ints] = []
        numbers, layer = DocumentNumbers(), ""
        for example in examples:
            view = doc_view(example.predicted, self.attr)
            units = self.find_units(example.predicted, held_out)
            number = numbers.number(document_of(example))
            if not units.spans:
                continue
            right = np.full(len(example.predicted), UNKNOWN)
            if view is not None:
                layer, right = view.layer, judge_labels(example, view.layer)
            answers = self.event.judge(example, units.spans, right)
            keep = answers != UNKNOWN
            parts.append(units.evidence.take(keep))
            hits.append(answers[keep] == 1)
            documents.append(np.full(int(keep.sum()), number))
        evidence = UnitEvidence.concatenate(parts, self.width)
        all_hits = np.concatenate([np.zeros(0, dtype=bool), *hits])
        all_documents = np.concatenate([np.zeros(0, dtype=np.intp), *documents])
        return LabelledUnits(evidence, all_hits, all_documents, numbers.unit), layer

    def fit(self, examples: Iterable[Example], held_out: HeldOutScores | None = None) -> EventPipe:
        """Fit on held-out gold, with the arguments of `gather`. RAISES C382: no unit has both scores and gold."""
        units, layer = self.gather(examples, held_out)
        prototypes = default_forecasters() if self.prototype is None else (self.prototype,)
        event = self.event
        self.fitted_state = fit_event(event.condition, event.unit_words, layer, units, prototypes, event.needs_no_fit)
        return self

    # The protocol `ScoreReader` of `pipe.score_readers`

    def reads_scores_of(self, attr: str) -> bool:
        return attr == self.attr

    def event_units(self, doc: Doc) -> Sequence[Span]:
        return self.event.units(doc)

    def event_info(self) -> dict[str, Any] | None:
        return None if self.info is None else self.info.state()

    def event_table(self, examples: Iterable[Example], n_bins: int = 10, seed: int = 0) -> dict[str, Any]:
        """Evaluate raw product, product and forecast on annotated Examples with gold; return the dict of `Forecasts.table`."""
        units, event = self.gather(examples)[0], self.event
        evidence = units.evidence
        about = {"name": self.name, "event": event.condition, "called": list(event.unit_words), "rivals": list(event.rivals)}
        estimates = (evidence.raw_estimates, evidence.estimates, self.fitted_state.forecast(evidence))
        raw, product, forecast = (np.clip(part, 0.0, 1.0) for part in estimates)
        return Forecasts(about, raw, product, forecast, units.hits, units.documents).table(n_bins, seed)

    def event_means(self, examples: Iterable[Example], calib: Calibrator) -> dict[str, Any]:
        """Compare the mean forecast with gold after an adaptation of the calib pipe; the event pipe itself is not adapted.

        Scores are cross-validated if there are several documents. RETURNS (dict): "called", "event", "units", and the means
            "expected" (forecast) and "right" (share of yes), None without units.
        """
        units, event = self.gather(examples, HeldOutScores(calib))[0], self.event
        values = {"expected": self.fitted_state.forecast(units.evidence), "right": units.hits}
        means = {name: float(array.mean()) if len(array) else None for name, array in values.items()}
        return {"called": list(event.unit_words), "event": event.condition, "units": len(units.hits), **means}

    # Saving

    def _state(self) -> dict[str, Any]:
        return self.fitted_state.state()

    def _read_state(self, state: Any) -> EventState:
        return EventState.read(state, partial(load_part, name=self.name), self.width)

    def _set_state(self, state: EventState) -> None:
        self.fitted_state = state


def make_units(doc: Doc, spans: Sequence[Span], layer: str, raw: Floats, calibrated: Floats) -> QuestionUnits:
    """Return the spans whose words all have a score. raw, calibrated (Floats): Score of each token, or NaN, (n_tokens,)."""
    words = ~is_space(doc)
    scored_spans, scores, products = [], [], []
    for span in spans:
        indices = span.start + np.flatnonzero(words[span.start : span.end])
        if len(indices) and not np.isnan(calibrated[indices]).any():
            scored_spans.append(span)
            products.append(float(raw[indices].prod()))
            scores.append(calibrated[indices])
    lengths = np.array([len(span_scores) for span_scores in scores], dtype=np.intp)
    ends = np.cumsum(lengths, dtype=np.intp)
    joined_scores, n = np.concatenate([np.zeros(0), *scores]), len(scored_spans)
    units = Spans(
        ends - lengths, ends, np.zeros(n, dtype=np.intp), joined_scores, np.array(products, dtype=np.float64), np.ones(n, bool)
    )
    return QuestionUnits(scored_spans, UnitEvidence.from_tokens(units), layer)


def judge_labels(example: Example, layer: str) -> Ints:
    """Return whether the label of each token of the predicted Doc is right: YES, NO or UNKNOWN, shape (n_tokens,)."""
    annotation = get_annotation(layer)
    rows, hashes = np.arange(len(example.predicted)), annotation.hashes(example.predicted)
    is_labelled = (hashes != 0) & annotation.is_known(example, rows, hashes)
    return np.where(is_labelled, annotation.is_gold(example, rows, hashes), UNKNOWN).astype(np.intp)


def _find_component(nlp: Language, attr: str) -> Any:
    """Return the component that the calib pipe with this prefix reads, or None."""
    pipes = (pipe for _, pipe in nlp.components if isinstance(pipe, Calibrator) and pipe.attr == attr)
    return next((pipe.lookup.component() for pipe in pipes), None)


# Scores of two runs of a component over one Doc differ by less.
_SAME = 1e-5


class HeldOutScores:
    """Cross-validated scores of the Docs of a calib pipe's fit, in order.

    An event pipe fitted on the scores that the calib pipe writes on these Docs would be overconfident.
    """

    def __init__(self, calib: Calibrator):
        """calib (Calibrator): Fitted in this process."""
        self._predictions, self._labels = calib.held_out, calib.labels
        self._annotation = get_annotation(calib.fit_info.layer)
        pairs = None if self._predictions is None else self._predictions.pairs
        self._codes = np.zeros(0, dtype=np.intp) if pairs is None else pairs.rows * len(self._labels) + pairs.tags
        self._order = np.argsort(self._codes, kind="stable")
        self._offset = 0

    def take_next(self, doc: Doc, raw: Floats) -> Floats:
        """Return the cross-validated score of each token's label in the next Doc, or NaN. raw (Floats): Its raw scores."""
        result = np.full(len(doc), np.nan)
        offset, self._offset = self._offset, self._offset + len(doc)
        columns = columns_of(self._annotation.hashes(doc), self._labels)
        tokens = np.flatnonzero(columns >= 0)
        if self._predictions is None or not len(tokens) or not len(self._codes):
            return result
        codes = (offset + tokens) * len(self._labels) + columns[tokens]
        entries = self._order[np.minimum(np.searchsorted(self._codes, codes, sorter=self._order), len(self._codes) - 1)]
        is_same = (self._codes[entries] == codes) & (np.abs(self._predictions.pairs.scores[entries] - raw[tokens]) < _SAME)
        result[tokens[is_same]] = self._predictions.calibrated[entries[is_same]]
        return result
