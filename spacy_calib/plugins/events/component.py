"""The pipe `calib_event`: the probability that a question about units of a Doc is answered yes, from a calib pipe's scores."""

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
from .event_state import EventInfo, EventState, GatheredUnits, learn
from .event_table import Forecasts
from .forecasters.base import Forecaster
from .forecasts import UNIT_FEATURES, Evidence, candidates
from .messages import WARNINGS, calib_error
from .questions import UNKNOWN, Event, check_is_event


@dataclass(frozen=True, eq=False)
class AskedUnits:
    """The units of a Doc with what is known of each. layer (str): The annotation whose scores were read, "" for none."""

    spans: list[Span]
    units: Evidence
    layer: str = ""


class EventPipe(AnnotatingPipe):
    """Writes `Span._.<attr>_right` for the units of an event.

    attr (str): Prefix of the calib pipe whose scores it reads. forecaster (Forecaster | None): Prototype; None lets
    cross-validation choose. RAISES C112: see `check_attr`. C380: the event is none. C385: another event pipe writes the same
    attribute.
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
        self.event.bind(attr, partial(_component, nlp, attr))
        self.prototype = forecaster
        self.learned = EventState()
        self.warn = WarnOnce(self, WARNINGS)
        register(attr)

    @property
    def fitted(self) -> bool:
        return self.learned.info is not None

    @property
    def info(self) -> EventInfo | None:
        """What it was fitted on; None before."""
        return self.learned.info

    # Prediction

    def predict(self, docs: Sequence[Doc]) -> list[CalibratedSpans]:
        """The forecasts of the units of each Doc."""
        if not self.fitted and any(map(len, docs)):  # a warning is given once: not to a text without words
            self.warn("CW01")
        return [self._forecast(self.ask(doc)) for doc in docs]

    @property
    def width(self) -> int:
        """How many features a unit has."""
        return len(UNIT_FEATURES if self.event.features is None else self.event.features)

    def ask(self, doc: Doc, held_out: HeldOutScores | None = None) -> AskedUnits:
        """Return the units of a Doc, without those with an unscored word. held_out (HeldOutScores | None): See `gather`."""
        scores = None
        if self.event.features is None:
            scores = self._scores(doc, held_out)
            if scores is None:
                return self._nothing
        spans = list(self.event.units(doc))
        if not spans:
            if len(doc):
                self.warn("CW23", why=f"it has no {self.event.called[1]}")
            return self._nothing
        if scores is None:
            view = doc_view(doc, self.attr) if self.event.of_labels else None
            try:
                return AskedUnits(spans, self.event.evidence(doc, spans), "" if view is None else view.layer)
            except CalibError as error:
                self.warn("CW23", why=str(error))
                return self._nothing
        return of_words(doc, spans, *scores)

    @property
    def _nothing(self) -> AskedUnits:
        return AskedUnits([], Evidence(np.zeros((0, self.width)), np.zeros(0), np.zeros(0)))

    def _scores(self, doc: Doc, held_out: HeldOutScores | None) -> tuple[str, Floats, Floats] | None:
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
        better = held_out.of_next(doc, raw)
        return view.layer, raw, np.where(np.isnan(better), calibrated_scores, better)

    def _forecast(self, units: AskedUnits) -> CalibratedSpans:
        labels = tuple(dict.fromkeys(span.label_ for span in units.spans))
        places = Spans(
            np.array([span.start for span in units.spans], dtype=np.intp),
            np.array([span.end for span in units.spans], dtype=np.intp),
            np.array([labels.index(span.label_) for span in units.spans], dtype=np.intp),
            np.zeros(sum(map(len, units.spans))),
            units.units.raw,
            np.ones(len(units.spans), dtype=bool),
        )
        no_gold = np.full(len(units.spans), -1, dtype=np.int8)
        forecasts = self.learned.forecast(units.units)
        return CalibratedSpans(places, labels, units.units.own, forecasts, no_gold, self.event.what, units.layer)

    def set_annotations(self, docs: Sequence[Doc], forecasts: list[CalibratedSpans]) -> None:
        """Write a block on each Doc, in place of an older one."""
        attr = self.attr + RIGHT
        for doc, spans in zip(docs, forecasts, strict=True):
            delete_blocks(doc.user_data, attr)
            if len(spans.spans):
                add_block(doc.user_data, attr, span_block(doc, spans))

    # Fitting

    def gather(self, examples: Iterable[Example], held_out: HeldOutScores | None = None) -> tuple[GatheredUnits, str]:
        """Return (the units with scores and gold, the annotation of the labels, "" if the event reads no labels).

        examples: Their predicted Docs have been through the calib pipe and all that the event reads. held_out (HeldOutScores |
        None): Scores of maps that did not see the document, used in place of those on the Docs.
        """
        parts: list[Evidence] = []
        hits: list[Ints] = []
        documents: list[Ints] = []
        numbers, layer = DocumentNumbers(), ""
        for example in examples:
            view = doc_view(example.predicted, self.attr)
            units = self.ask(example.predicted, held_out)
            number = numbers.number(document_of(example))
            if not units.spans:
                continue
            right = np.full(len(example.predicted), UNKNOWN)
            if view is not None:
                layer, right = view.layer, rights_of(example, view.layer)
            answers = self.event.judge(example, units.spans, right)
            keep = answers != UNKNOWN
            parts.append(units.units.take(keep))
            hits.append(answers[keep] == 1)
            documents.append(np.full(int(keep.sum()), number))
        yes = np.concatenate([np.zeros(0, dtype=bool), *hits])
        return GatheredUnits(
            Evidence.joined(parts, self.width), yes, np.concatenate([np.zeros(0, dtype=np.intp), *documents]), numbers.unit
        ), layer

    def fit(self, examples: Iterable[Example], held_out: HeldOutScores | None = None) -> EventPipe:
        """Learn from held-out gold; the arguments are those of `gather`. RAISES C382: see `learn`."""
        gathered_units, layer = self.gather(examples, held_out)
        prototypes = candidates() if self.prototype is None else (self.prototype,)
        self.learned = learn(self.event.what, self.event.called, layer, gathered_units, prototypes, self.event.needs_no_fit)
        return self

    # What the core asks of a pipe that reads scores, see `pipe.score_readers`

    def reads_scores_of(self, attr: str) -> bool:
        return attr == self.attr

    def event_units(self, doc: Doc) -> Sequence[Span]:
        return self.event.units(doc)

    def event_info(self) -> dict[str, Any] | None:
        return None if self.info is None else self.info.state()

    def event_table(self, examples: Iterable[Example], n_bins: int = 10, seed: int = 0) -> dict[str, Any]:
        """RETURNS (dict): See `Forecasts.table`."""
        gathered = self.gather(examples)[0]
        units, event = gathered.units, self.event
        about = {"name": self.name, "event": event.what, "called": list(event.called), "rivals": list(event.rivals)}
        raw, product, forecast = (np.clip(part, 0.0, 1.0) for part in (units.raw, units.own, self.learned.forecast(units)))
        return Forecasts(about, raw, product, forecast, gathered.hits, gathered.documents).table(n_bins, seed)

    def event_means(self, examples: Iterable[Example], calib: Calibrator) -> dict[str, Any]:
        """Compare with gold what an adapted calib pipe makes of the forecasts, which stay as they were fitted.

        RETURNS (dict): "called", "event", "units", and of them the mean "expected" to be right and "right" (None without units),
            from scores of adaptations that did not see the document, where there are several.
        """
        gathered = self.gather(examples, HeldOutScores(calib))[0]
        values = {"expected": self.learned.forecast(gathered.units), "right": gathered.hits}
        means = {name: float(array.mean()) if len(array) else None for name, array in values.items()}
        return {"called": list(self.event.called), "event": self.event.what, "units": len(gathered.hits), **means}

    # Saving

    def _state(self) -> dict[str, Any]:
        return self.learned.state()

    def _read_state(self, state: Any) -> EventState:
        return EventState.read(state, partial(load_part, name=self.name), self.width)

    def _set_state(self, state: EventState) -> None:
        self.learned = state


def of_words(doc: Doc, spans: Sequence[Span], layer: str, raw: Floats, calibrated: Floats) -> AskedUnits:
    """Return the units whose words all have a score. raw, calibrated (Floats): Of each token, NaN for none."""
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
    return AskedUnits(scored_spans, Evidence.of_tokens(units), layer)


def rights_of(example: Example, layer: str) -> Ints:
    """Return for each token of the predicted Doc whether its label is right: 1, 0, or -1 without gold."""
    annotation = get_annotation(layer)
    rows, hashes = np.arange(len(example.predicted)), annotation.hashes(example.predicted)
    is_labelled = (hashes != 0) & annotation.is_known(example, rows, hashes)
    return np.where(is_labelled, annotation.is_gold(example, rows, hashes), UNKNOWN).astype(np.intp)


def _component(nlp: Language, attr: str) -> Any:
    """Return the component that the calib pipe with this prefix reads, or None."""
    pipes = (pipe for _, pipe in nlp.components if isinstance(pipe, Calibrator) and pipe.attr == attr)
    return next((pipe.lookup.component() for pipe in pipes), None)


# Two runs of a component over one Doc differ by no more.
_SAME = 1e-5


class HeldOutScores:
    """Cross-validated scores of the fit Docs, in order: an event pipe fitted on the pipe's own would trust scores too much."""

    def __init__(self, calib: Calibrator):
        """calib (Calibrator): Fitted in this process."""
        self._predictions, self._labels = calib.held_out, calib.labels
        self._annotation = get_annotation(calib.fit_info.layer)
        pairs = None if self._predictions is None else self._predictions.pairs
        self._codes = np.zeros(0, dtype=np.intp) if pairs is None else pairs.rows * len(self._labels) + pairs.tags
        self._order = np.argsort(self._codes, kind="stable")
        self._offset = 0

    def of_next(self, doc: Doc, raw: Floats) -> Floats:
        """Return the held-out score of each token's label in the next Doc, or NaN. raw (Floats): On the Doc, to match tokens."""
        result = np.full(len(doc), np.nan)
        offset, self._offset = self._offset, self._offset + len(doc)
        columns = columns_of(self._annotation.hashes(doc), self._labels)
        tokens = np.flatnonzero(columns >= 0)
        if self._predictions is None or not len(tokens) or not len(self._codes):
            return result
        codes = (offset + tokens) * len(self._labels) + columns[tokens]
        place = self._order[np.minimum(np.searchsorted(self._codes, codes, sorter=self._order), len(self._codes) - 1)]
        is_same = (self._codes[place] == codes) & (np.abs(self._predictions.pairs.scores[place] - raw[tokens]) < _SAME)
        result[tokens[is_same]] = self._predictions.calibrated[place[is_same]]
        return result
