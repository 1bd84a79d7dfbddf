"""The pipe `calib_event`: P(yes) of a question about units of a Doc (is this whole sentence right?), from the scores that a calib pipe wrote."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from ..doc.annotations import columns_of, get_annotation, is_space
from ..doc.attributes import check_pipe_name, register, token_values
from ..doc.blocks import add_block, delete_blocks
from ..doc.events import UNKNOWN, Event, check_is_event
from ..doc.reading import document_of
from ..doc.view import doc_view
from ..doc.write import CalibratedSpans, span_block
from ..errors import CalibError, calib_error
from ..expect.forecasters.base import Forecaster
from ..expect.forecasts import UNIT_FEATURES, Evidence, candidates
from ..pairs.documents import DocumentNumbers
from ..types import Floats, Ints, Spans
from .annotating import AnnotatingPipe, WarnOnce
from .component import Calibrator
from .event_state import EventInfo, EventState, GatheredUnits, learn
from .saved import load_part

# Blocks of an event pipe stand under the prefix of the calib pipe with this behind it.
SUFFIX = "_right"


@dataclass(frozen=True, eq=False)
class Asked:
    """The units of a Doc that can be asked about. spans (list[Span]): In the Doc. units (Evidence): What is known of each. layer (str): Which annotation's
    scores that is made of, "" for none.
    """

    spans: list[Span]
    units: Evidence
    layer: str = ""


class EventPipe(AnnotatingPipe):
    """Writes `Span._.<attr>_right` for the units of an event.

    attr (str): Prefix of the calib pipe whose scores it reads. event (Event): The question. forecaster (Forecaster | None): Prototype of what
    learns the answer; None lets held-out documents choose. learned (EventState): What the fit learned.
    RAISES C112: see `check_attr`. C380: the event is none. C385: another event pipe of the pipeline writes the same attribute.
    """

    attr: str

    def __init__(self, nlp: Language, name: str, attr: str, event: Event, forecaster: Forecaster | None = None):
        for other, pipe in nlp.components:
            if isinstance(pipe, EventPipe) and pipe.attr == attr and other != name:
                raise calib_error("C385", attr=attr, owner=other)
        self.name = check_pipe_name(name)
        self.attr = attr
        self.event = check_is_event(event)
        self.event.bind(attr, partial(_component, nlp, attr))
        self.prototype = forecaster
        self.learned = EventState()
        self.warn = WarnOnce(self)
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
        if not self.fitted and docs:
            self.warn("CW01")
        return [self._forecast(self.ask(doc)) for doc in docs]

    @property
    def width(self) -> int:
        """How many features a unit has."""
        return len(UNIT_FEATURES if self.event.features is None else self.event.features)

    def ask(self, doc: Doc, held_out: HeldOutScores | None = None) -> Asked:
        """The units of a Doc. One with a word that has no score is left out, unless the event knows what else to look at.

        held_out (HeldOutScores | None): See `gather`.
        """
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
                return Asked(spans, self.event.evidence(doc, spans), "" if view is None else view.layer)
            except CalibError as error:
                self.warn("CW23", why=str(error))
                return self._nothing
        return of_words(doc, spans, *scores)

    @property
    def _nothing(self) -> Asked:
        return Asked([], Evidence(np.zeros((0, self.width)), np.zeros(0), np.zeros(0)))

    def _scores(self, doc: Doc, held_out: HeldOutScores | None) -> tuple[str, Floats, Floats] | None:
        """(which annotation, raw, calibrated score of each token's label), NaN where there is none; None where the Doc has none at all."""
        view = doc_view(doc, self.attr)
        if view is None:
            if len(doc):
                self.warn("CW23", why=f"no token has scores with the prefix '{self.attr}'")
            return None
        values = [token_values(token, self.attr) for token in doc]
        raw, calibrated = (
            np.array([np.nan if one is None else getattr(one, kind) for one in values]) for kind in ("raw", "calibrated")
        )
        if held_out is None:
            return view.layer, raw, calibrated
        better = held_out.of_next(doc, raw)
        return view.layer, raw, np.where(np.isnan(better), calibrated, better)

    def _forecast(self, asked: Asked) -> CalibratedSpans:
        labels = tuple(dict.fromkeys(span.label_ for span in asked.spans))
        places = Spans(
            np.array([span.start for span in asked.spans], dtype=np.intp),
            np.array([span.end for span in asked.spans], dtype=np.intp),
            np.array([labels.index(span.label_) for span in asked.spans], dtype=np.intp),
            np.zeros(sum(map(len, asked.spans))),
            asked.units.raw,
            np.ones(len(asked.spans), dtype=bool),
        )
        unjudged = np.full(len(asked.spans), -1, dtype=np.int8)
        forecasts = self.learned.forecast(asked.units)
        return CalibratedSpans(places, labels, asked.units.own, forecasts, unjudged, self.event.what, asked.layer)

    def set_annotations(self, docs: Sequence[Doc], found: list[CalibratedSpans]) -> None:
        """Write a block on each Doc, in place of an older one."""
        attr = self.attr + SUFFIX
        for doc, spans in zip(docs, found, strict=True):
            delete_blocks(doc.user_data, attr)
            if len(spans.spans):
                add_block(doc.user_data, attr, span_block(doc, spans))

    # Fitting

    def gather(self, examples: Iterable[Example], held_out: HeldOutScores | None = None) -> tuple[GatheredUnits, str]:
        """(the units with scores and gold, which annotation the labels are of, "" where the event looks at no labels).

        examples: Their predicted Docs have been through the calib pipe and all that the event asks for.
        held_out (HeldOutScores | None): Scores of maps that did not see the document, in place of those on the Docs.
        """
        parts: list[Evidence] = []
        hits: list[Ints] = []
        documents: list[Ints] = []
        numbers, layer = DocumentNumbers(), ""
        for example in examples:
            view = doc_view(example.predicted, self.attr)
            asked = self.ask(example.predicted, held_out)
            number = numbers.number(document_of(example))
            if not asked.spans:
                continue
            right = np.full(len(example.predicted), UNKNOWN)
            if view is not None:
                layer, right = view.layer, rights_of(example, view.layer)
            answers = self.event.judge(example, asked.spans, right)
            keep = answers != UNKNOWN
            parts.append(asked.units.take(keep))
            hits.append(answers[keep] == 1)
            documents.append(np.full(int(keep.sum()), number))
        yes = np.concatenate([np.zeros(0, dtype=bool), *hits])
        return GatheredUnits(
            Evidence.joined(parts, self.width), yes, np.concatenate([np.zeros(0, dtype=np.intp), *documents]), numbers.unit
        ), layer

    def fit(self, examples: Iterable[Example], held_out: HeldOutScores | None = None) -> EventPipe:
        """Learn from held-out gold. examples, held_out: As in `gather`. RETURNS (EventPipe): Itself. RAISES C382: see `learn`."""
        found, layer = self.gather(examples, held_out)
        prototypes = candidates() if self.prototype is None else (self.prototype,)
        self.learned = learn(self.event.what, self.event.called, layer, found, prototypes, self.event.needs_no_fit)
        return self

    # Saving

    def _state(self) -> dict[str, Any]:
        return self.learned.state()

    def _made(self, state: Any) -> EventState:
        return EventState.read(state, partial(load_part, name=self.name), self.width)

    def _take(self, made: EventState) -> None:
        self.learned = made


def of_words(doc: Doc, spans: Sequence[Span], layer: str, raw: Floats, calibrated: Floats) -> Asked:
    """Units with the scores of their words; those with a word that has none are left out. raw, calibrated (Floats): Of each token, NaN for none."""
    words = ~is_space(doc)
    kept, scores, products = [], [], []
    for span in spans:
        inside = span.start + np.flatnonzero(words[span.start : span.end])
        if len(inside) and not np.isnan(calibrated[inside]).any():
            kept.append(span)
            products.append(float(raw[inside].prod()))
            scores.append(calibrated[inside])
    lengths = np.array([len(one) for one in scores], dtype=np.intp)
    ends = np.cumsum(lengths, dtype=np.intp)
    joined, n = np.concatenate([np.zeros(0), *scores]), len(kept)
    units = Spans(
        ends - lengths, ends, np.zeros(n, dtype=np.intp), joined, np.array(products, dtype=np.float64), np.ones(n, bool)
    )
    return Asked(kept, Evidence.of_tokens(units), layer)


def rights_of(example: Example, layer: str) -> Ints:
    """Whether the label of each token of the predicted Doc is right: 1, 0, or -1 where the gold does not say.

    layer (str): Which annotation.
    """
    annotation = get_annotation(layer)
    rows, hashes = np.arange(len(example.predicted)), annotation.hashes(example.predicted)
    known = (hashes != 0) & annotation.is_known(example, rows, hashes)
    return np.where(known, annotation.is_gold(example, rows, hashes), UNKNOWN).astype(np.intp)


def _component(nlp: Language, attr: str) -> Any:
    """What the calib pipe with this prefix reads; None without one."""
    pipes = (pipe for _, pipe in nlp.components if isinstance(pipe, Calibrator) and pipe.attr == attr)
    return next((pipe.lookup.component() for pipe in pipes), None)


def event_pipes(nlp: Language, attr: str | None = None) -> list[EventPipe]:
    """The fitted event pipes that read scores with this prefix; None takes all."""
    found = [pipe for _, pipe in nlp.components if isinstance(pipe, EventPipe) and pipe.fitted]
    return [pipe for pipe in found if attr is None or pipe.attr == attr]


# Two runs of a component over one Doc differ by no more.
_SAME = 1e-5


class HeldOutScores:
    """Hands out the scores of the Docs that a calib pipe was just fitted on, one Doc after the other in the order of the fit.

    A pipe gives its own fit documents scores that are too good: what learns from those would trust them too much on others.
    """

    def __init__(self, calib: Calibrator):
        """calib (Calibrator): Fitted in this process."""
        self._judged, self._labels = calib.held_out, calib.labels
        self._annotation = get_annotation(calib.fit_info.layer)
        pairs = None if self._judged is None else self._judged.pairs
        self._codes = np.zeros(0, dtype=np.intp) if pairs is None else pairs.rows * len(self._labels) + pairs.tags
        self._order = np.argsort(self._codes, kind="stable")
        self._offset = 0

    def of_next(self, doc: Doc, raw: Floats) -> Floats:
        """The held-out score of each token's label, NaN where there is none. raw (Floats): What the Doc holds of it before calibration, by which it is told
        that both are of one token.
        """
        found = np.full(len(doc), np.nan)
        offset, self._offset = self._offset, self._offset + len(doc)
        columns = columns_of(self._annotation.hashes(doc), self._labels)
        tokens = np.flatnonzero(columns >= 0)
        if self._judged is None or not len(tokens) or not len(self._codes):
            return found
        wanted = (offset + tokens) * len(self._labels) + columns[tokens]
        place = self._order[np.minimum(np.searchsorted(self._codes, wanted, sorter=self._order), len(self._codes) - 1)]
        own = (self._codes[place] == wanted) & (np.abs(self._judged.pairs.scores[place] - raw[tokens]) < _SAME)
        found[tokens[own]] = self._judged.calibrated[place[own]]
        return found
