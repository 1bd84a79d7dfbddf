"""Events: yes-or-no questions about spans of a Doc, such as whether all labels are right (Kuleshov and Liang 2015)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span
from spacy.training import Example

from ...annotations import ARC_EVENTS, Annotation, get_annotation, is_space
from ...annotations.span_events import check_event, span_hits
from ...pairs.documents import TOKEN
from ...types import Ints
from .messages import calib_error

if TYPE_CHECKING:
    from spacy.language import Language

    from ...pipe.component import Calibrator
    from .component import EventPipe
    from .forecasts import UnitEvidence


YES, NO, UNKNOWN = 1, 0, -1


def _labels_tokens(annotation: Annotation) -> bool:
    """Return whether an annotation gives each token one label."""
    return annotation.unit == TOKEN and not annotation.overlapping and not annotation.span_event


class Event(ABC):
    """A yes-or-no question about some spans (units) of a Doc.

    registered (str): Name in the registry `calib_events`. short (str): Value of `calib fit --unit`, or "". about (str):
    Labels that the question is about, for messages. unit_words (tuple[str, str]): Name of a unit, and plural. condition
    (str): When the answer is yes. features (tuple[str, ...] | None): Names of the columns of `evidence`; None takes the
    features of the units' token scores. of_labels (bool): Whether `evidence` reads predicted labels. needs_no_fit (bool):
    Whether the event has an estimate of its own, which only a significantly better forecaster replaces. rivals (tuple[str,
    str]): Names of the baselines, raw and calibrated.
    """

    registered: ClassVar[str] = ""
    short: ClassVar[str] = ""
    about: ClassVar[str] = ""
    unit_words: tuple[str, str] = ("span", "spans")
    features: ClassVar[tuple[str, ...] | None] = None
    of_labels: ClassVar[bool] = False
    needs_no_fit: ClassVar[bool] = False
    rivals: ClassVar[tuple[str, str]] = ("product of raw scores", "product of calibrated scores")

    @property
    @abstractmethod
    def condition(self) -> str: ...

    def bind(self, attr: str, component: Callable[[], Any]) -> None:  # noqa: B027
        """Receive the prefix of the calib pipe, and a function that returns the component with the labels, or None."""

    def asks_about(self, annotation: Annotation) -> bool:
        """Return whether an annotation has the labels that the question is about."""
        return True

    def check(self, calib: Calibrator) -> None:
        """Check that the question is about labels that a calib pipe calibrates. RAISES C383."""
        annotation = calib.source.annotation(calib.lookup.component())
        if self.asks_about(annotation):
            return
        labels = "labels of tokens" if _labels_tokens(annotation) else "labels of spans or documents"
        if annotation.arcs:
            score = f"Span._.{calib.attr}_score"
            labels = f"arcs, and {annotation.span_words[1]} have a score already ({score}; --unit tree for another)"
        raise calib_error("C383", unit=self.short, about=self.about, component=calib.source.component, what=labels)

    def fit(self, nlp: Language, calib: Calibrator, examples: Sequence[Example]) -> EventPipe:
        """Add an event pipe with this question to a pipeline, and fit it on the scores of a calib pipe.

        examples (Sequence[Example]): Annotated by the pipeline. RAISES C384: no Doc has a unit. C382: no gold.
        """
        from .component import HeldOutScores

        config = {"attr": calib.attr, "event": {"@calib_events": self.registered}}
        pipe: EventPipe = nlp.add_pipe("calib_event", name=f"{calib.attr}_event", config=config, last=True)  # type: ignore[assignment]
        if not any(len(pipe.event.units(example.predicted)) for example in examples):
            raise calib_error("C384", unit=self.short)
        return pipe.fit(examples, HeldOutScores(calib))

    @abstractmethod
    def units(self, doc: Doc) -> Sequence[Span]:
        """Return the spans of a predicted Doc that the question is about."""

    def evidence(self, doc: Doc, units: Sequence[Span]) -> UnitEvidence:
        """Return features and estimates of units, for an event with `features`."""
        raise NotImplementedError

    @abstractmethod
    def judge(self, example: Example, units: Sequence[Span], right: Ints) -> Ints:
        """Return the gold answer for each unit: YES, NO or UNKNOWN. right (Ints): Whether each token's label is right, likewise."""


class LabelsRight(Event):
    """Whether a unit has at most `max_errors` wrong labels. RAISES C001: max_errors is no whole number from 0 up."""

    def __init__(self, max_errors: int = 0):
        if isinstance(max_errors, bool) or not isinstance(max_errors, int) or max_errors < 0:
            raise calib_error("C001", name="max_errors", wanted="a whole number of at least 0", given=repr(max_errors))
        self.max_errors = max_errors

    @property
    def condition(self) -> str:
        if not self.max_errors:
            return "all labels right"
        return f"at most {self.max_errors} label{'s' if self.max_errors > 1 else ''} wrong"

    def judge(self, example: Example, units: Sequence[Span], right: Ints) -> Ints:
        """Return (units,): YES if at most `max_errors` words have a wrong label, UNKNOWN if a word has no gold."""
        words = ~is_space(example.predicted)
        answers = []
        for unit in units:
            word_labels = right[unit.start : unit.end][words[unit.start : unit.end]]
            has_gold = len(word_labels) > 0 and (word_labels != UNKNOWN).all()
            answers.append(int((word_labels == NO).sum() <= self.max_errors) if has_gold else UNKNOWN)
        return np.array(answers, dtype=np.intp)


class SentenceEvent(LabelsRight):
    """Whether a sentence (`doc.sents`) has at most `max_errors` wrong labels."""

    registered, short = "spacy-calib.Sentence.v1", "sentence"
    unit_words, about = ("sentence", "sentences"), "the labels of tokens"

    def asks_about(self, annotation: Annotation) -> bool:
        return _labels_tokens(annotation)

    def units(self, doc: Doc) -> Sequence[Span]:
        return list(doc.sents) if doc.has_annotation("SENT_START") else ()


class SpansEvent(LabelsRight):
    """Whether a span of the group `doc.spans[key]` has at most `max_errors` wrong labels."""

    registered = "spacy-calib.Spans.v1"

    def __init__(self, key: str, max_errors: int = 0):
        super().__init__(max_errors)
        self.key = key

    def units(self, doc: Doc) -> Sequence[Span]:
        return list(doc.spans[self.key]) if self.key in doc.spans else ()


class EntityEvent(Event):
    """Whether an entity of `doc.ents` is right. event (str): When it is: exact, type or overlap. RAISES C001: another."""

    registered = "spacy-calib.Entity.v1"
    unit_words = ("entity", "entities")

    def __init__(self, event: str = "exact"):
        self.event = check_event(event)

    @property
    def condition(self) -> str:
        return self.event

    def units(self, doc: Doc) -> Sequence[Span]:
        return doc.ents

    def judge(self, example: Example, units: Sequence[Span], right: Ints) -> Ints:
        keys = [(unit.start, unit.end, get_string_id(unit.label_)) for unit in units]
        return span_hits(example, get_annotation("ner"), keys, self.event)


class ArcEvent(Event):
    """Whether the arc to a token is right. event (str): "head", or "arc" for head and label. RAISES C001: another."""

    registered = "spacy-calib.Arc.v1"
    unit_words = ("arc", "arcs")

    def __init__(self, event: str = "head"):
        if event not in ARC_EVENTS:
            raise calib_error("C001", name="event", wanted=f"one of {', '.join(ARC_EVENTS)}", given=repr(event))
        self.event = event

    @property
    def condition(self) -> str:
        return f"{'head' if self.event == 'head' else 'head and label'} right"

    def units(self, doc: Doc) -> Sequence[Span]:
        return [doc[i : i + 1] for i in range(len(doc))] if doc.has_annotation("DEP") else ()

    def judge(self, example: Example, units: Sequence[Span], right: Ints) -> Ints:
        annotation = get_annotation(self.event)
        rows = np.array([unit.start for unit in units], dtype=np.intp)
        hashes = annotation.hashes(example.predicted)[rows]
        has_gold = annotation.is_known(example, rows, hashes)
        return np.where(has_gold, annotation.is_gold(example, rows, hashes), UNKNOWN).astype(np.intp)


@dataclass(frozen=True)
class OwnEvent(Event):
    """A question defined by two functions, to be returned by a function that is registered in `calib_events`.

    find_units (Callable): Doc -> spans. answer (Callable): (Example, span of its predicted Doc) -> True, False, or None without
    gold. condition (str): When the answer is yes. unit_words (tuple[str, str]): Name of a unit, and plural.
    """

    find_units: Callable[[Doc], Sequence[Span]]
    answer: Callable[[Example, Span], bool | None]
    condition: str = "yes"
    unit_words: tuple[str, str] = ("span", "spans")

    def units(self, doc: Doc) -> Sequence[Span]:
        return list(self.find_units(doc))

    def judge(self, example: Example, units: Sequence[Span], right: Ints) -> Ints:
        answers = [self.answer(example, unit) for unit in units]
        return np.array([UNKNOWN if answer is None else int(answer) for answer in answers], dtype=np.intp)


def check_is_event(event: Any) -> Event:
    """Return the event unchanged. RAISES C380: it is no Event."""
    if not isinstance(event, Event):
        raise calib_error("C380", given=type(event).__name__)
    return event
