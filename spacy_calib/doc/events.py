"""Events: when a predicted span is right, and yes-or-no questions about units (spans) of a Doc (Kuleshov and Liang 2015)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span
from spacy.training import Example

from ..errors import calib_error
from ..types import Ints
from .annotations import ARC_EVENTS, Annotation, get_annotation, is_space, rejected_in

if TYPE_CHECKING:
    from ..expect.forecasts import Evidence

_Key = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class GoldSpans:
    """The spans of a gold Doc.

    keys (frozenset): (start, end, hash of the label). known (NDArray[bool]): Tokens that are annotated: a predicted span with
    another token takes no part. rejected (frozenset | None): Spans that people rejected, if the gold is only their answers.
    """

    keys: frozenset[_Key]
    known: NDArray[np.bool_]
    rejected: frozenset[_Key] | None = None

    @classmethod
    def of(cls, doc: Doc, annotation: Annotation, event: str = "exact") -> GoldSpans:
        rejected_spans = rejected_in(annotation, doc)
        return cls(
            frozenset(
                (first_token(doc, span.start, span.end, event), span.end, span.label) for span in annotation.spans_on(doc)
            ),
            annotation.known_tokens(doc),
            None
            if rejected_spans is None
            else frozenset((first_token(doc, *key[:2], event), *key[1:]) for key in rejected_spans),
        )

    def says(self, key: _Key, right: bool, event: str, labels: Iterable[int]) -> int:
        """Return whether a span is right: 1, 0, or -1 if unknown. An accepted answer is right; a rejected one, or one that
        overlaps an accepted one, is wrong, for the event "exact" alone.

        key: In gold tokens. right (bool): By the gold spans. labels (Iterable[int]): Of the span, and its gold name.
        """
        start, end, _ = key
        is_known, exact = self.known[start:end], event in ("exact", "article")
        if self.rejected is None:
            return int(right) if is_known.all() else -1
        wrong = (is_known.any() or any((start, end, label) in self.rejected for label in labels)) if exact else is_known.all()
        return 1 if right else 0 if wrong else -1

    def covered(self, label: int) -> set[int]:
        """Return the tokens in gold spans of this label."""
        return {token for start, end, span_label in self.keys if span_label == label for token in range(start, end)}


_ARTICLES = frozenset({"a", "an", "the"})


def first_token(doc: Doc, start: int, end: int, event: str) -> int:
    """The first token of a span that an event compares: a leading article takes no part in the event `article`."""
    return start + (event == "article" and end - start > 1 and doc[start].lower_ in _ARTICLES)


# exact: a gold span has the same tokens and label. article: the same, without a leading article of either. type: every token of the span is in a gold span of its label.
# overlap: at least one token is.
EVENTS: dict[str, Callable[[GoldSpans, int, int, int], bool]] = {
    "exact": lambda gold, start, end, label: (start, end, label) in gold.keys,
    "article": lambda gold, start, end, label: (start, end, label) in gold.keys,
    "type": lambda gold, start, end, label: gold.covered(label).issuperset(range(start, end)),
    "overlap": lambda gold, start, end, label: not gold.covered(label).isdisjoint(range(start, end)),
}


def check_event(event: str) -> str:
    """Return the name of an event. RAISES C001: there is no such event."""
    if event not in EVENTS:
        raise calib_error("C001", name="event", wanted=f"one of {', '.join(EVENTS)}", given=repr(event))
    return event


def _squeeze(span: Span) -> str:
    """Return the text of a span as spaCy's scorer compares it between tokenizations."""
    return "".join(span.text.lower().split())


def span_hits(example: Example, annotation: Annotation, spans: Sequence[_Key], event: str) -> NDArray[np.intp]:
    """Return whether each predicted span is right: 1, 0, or -1 without gold.

    As in spaCy's scorer, the gold tokens of its first and last token are compared, unless the annotation has its own rule.
    spans: (start, end, label hash), in tokens of the predicted Doc.
    """
    judge_spans = annotation.judge_spans
    if judge_spans is not None:
        return judge_spans(example, spans)
    judge = EVENTS[check_event(event)]
    gold = GoldSpans.of(example.reference, annotation, event)
    hits = []
    for start, end, label in spans:
        start = first_token(example.predicted, start, end, event)
        gold_tokens = example.alignment.x2y[start:end]
        if not len(gold_tokens):
            hits.append(-1)
            continue
        first, last, gold_label = int(gold_tokens[0]), int(gold_tokens[-1]) + 1, annotation.gold_span_label(label)
        right = judge(gold, first, last, gold_label)
        if right and event in ("exact", "article"):
            right = _squeeze(example.predicted[start:end]) == _squeeze(example.reference[first:last])
        hits.append(gold.says((first, last, gold_label), right, event, (label, gold_label)))
    return np.array(hits, dtype=np.intp)


YES, NO, UNKNOWN = 1, 0, -1
# Short names of events in `calib fit` -> registered names.
UNIT_EVENTS = {"sentence": "spacy-calib.Sentence.v1", "tree": "spacy-calib.Tree.v1"}


class Event(ABC):
    """A question about some spans of a Doc.

    registered (str): Name in the registry `calib_events`. called (tuple[str, str]): Name of a unit, and plural. what (str):
    When the answer is yes. features (tuple[str, ...] | None): Names of what `evidence` returns; None: scores of the units'
    tokens. of_labels (bool): Whether `evidence` reads the predicted labels. needs_no_fit (bool): Whether a forecaster must be
    surely better than the event's own estimate. rivals (tuple[str, str]): Baselines, raw and calibrated.
    """

    registered: ClassVar[str] = ""
    called: tuple[str, str] = ("span", "spans")
    features: ClassVar[tuple[str, ...] | None] = None
    of_labels: ClassVar[bool] = False
    needs_no_fit: ClassVar[bool] = False
    rivals: ClassVar[tuple[str, str]] = ("product of raw scores", "product of calibrated scores")

    @property
    @abstractmethod
    def what(self) -> str: ...

    def bind(self, attr: str, component: Callable[[], Any]) -> None:  # noqa: B027
        """Receive the prefix of the scores, and a function that returns the component that they are of, or None."""

    @abstractmethod
    def units(self, doc: Doc) -> Sequence[Span]:
        """Return the spans of a predicted Doc that the question is asked about."""

    def evidence(self, doc: Doc, units: Sequence[Span]) -> Evidence:
        """Return the features of its units, for events with `features`."""
        raise NotImplementedError

    @abstractmethod
    def judge(self, example: Example, units: Sequence[Span], right: Ints) -> Ints:
        """Return the answer for each unit: 1, 0, or -1 without gold. right (Ints): The same for the label of each token."""


class LabelsRight(Event):
    """Whether a unit has at most so many wrong labels. RAISES C001: max_errors is not a whole number from 0 up."""

    def __init__(self, max_errors: int = 0):
        if isinstance(max_errors, bool) or not isinstance(max_errors, int) or max_errors < 0:
            raise calib_error("C001", name="max_errors", wanted="a whole number of at least 0", given=repr(max_errors))
        self.max_errors = max_errors

    @property
    def what(self) -> str:
        if not self.max_errors:
            return "all labels right"
        return f"at most {self.max_errors} label{'s' if self.max_errors > 1 else ''} wrong"

    def judge(self, example: Example, units: Sequence[Span], right: Ints) -> Ints:
        words = ~is_space(example.predicted)
        answers = []
        for unit in units:
            word_rights = right[unit.start : unit.end][words[unit.start : unit.end]]
            has_gold = len(word_rights) > 0 and (word_rights != UNKNOWN).all()
            answers.append(int((word_rights == NO).sum() <= self.max_errors) if has_gold else UNKNOWN)
        return np.array(answers, dtype=np.intp)


class SentenceEvent(LabelsRight):
    """Whether a sentence (`doc.sents`) has at most so many wrong labels."""

    registered = "spacy-calib.Sentence.v1"
    called = ("sentence", "sentences")

    def units(self, doc: Doc) -> Sequence[Span]:
        return list(doc.sents) if doc.has_annotation("SENT_START") else ()


class SpansEvent(LabelsRight):
    """Whether a span of a group in `doc.spans` has at most so many wrong labels. key (str): The group's."""

    registered = "spacy-calib.Spans.v1"

    def __init__(self, key: str, max_errors: int = 0):
        super().__init__(max_errors)
        self.key = key

    def units(self, doc: Doc) -> Sequence[Span]:
        return list(doc.spans[self.key]) if self.key in doc.spans else ()


class EntityEvent(Event):
    """Whether an entity of `doc.ents` is right. event (str): exact, type or overlap; RAISES C001: another."""

    registered = "spacy-calib.Entity.v1"
    called = ("entity", "entities")

    def __init__(self, event: str = "exact"):
        self.event = check_event(event)

    @property
    def what(self) -> str:
        return self.event

    def units(self, doc: Doc) -> Sequence[Span]:
        return doc.ents

    def judge(self, example: Example, units: Sequence[Span], right: Ints) -> Ints:
        keys = [(unit.start, unit.end, get_string_id(unit.label_)) for unit in units]
        return span_hits(example, get_annotation("ner"), keys, self.event)


class ArcEvent(Event):
    """Whether the arc to a token is right. event (str): "head", or "arc" for head and label. RAISES C001: another."""

    registered = "spacy-calib.Arc.v1"
    called = ("arc", "arcs")

    def __init__(self, event: str = "head"):
        if event not in ARC_EVENTS:
            raise calib_error("C001", name="event", wanted=f"one of {', '.join(ARC_EVENTS)}", given=repr(event))
        self.event = event

    @property
    def what(self) -> str:
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
    """A question of one's own, to return from a function registered in `calib_events`.

    of (Callable): Doc -> spans. ask (Callable): (Example, span of its predicted Doc) -> True, False, or None without gold. said
    (str): When the answer is yes. called (tuple[str, str]): Name of a unit, and plural.
    """

    of: Callable[[Doc], Sequence[Span]]
    ask: Callable[[Example, Span], bool | None]
    said: str = "yes"
    called: tuple[str, str] = ("span", "spans")

    @property
    def what(self) -> str:
        return self.said

    def units(self, doc: Doc) -> Sequence[Span]:
        return list(self.of(doc))

    def judge(self, example: Example, units: Sequence[Span], right: Ints) -> Ints:
        answers = [self.ask(example, unit) for unit in units]
        return np.array([UNKNOWN if answer is None else int(answer) for answer in answers], dtype=np.intp)


def check_is_event(event: Any) -> Event:
    """Return the event. RAISES C380: it is no event."""
    if not isinstance(event, Event):
        raise calib_error("C380", given=type(event).__name__)
    return event
