"""Events: when a predicted span counts as right, and yes-or-no questions about units (spans) of a Doc (Kuleshov and Liang 2015)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span
from spacy.training import Example

from ..errors import calib_error
from ..expect.forecasts import Evidence
from ..types import Ints
from .annotations import ARC_EVENTS, Annotation, get_annotation, is_space, rejected_in

_Key = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class GoldSpans:
    """The spans of a gold Doc.

    keys (frozenset): (start, end, hash of the label) of each. known (NDArray[bool]): Tokens whose annotation is there,
        shape (n_tokens,): a predicted span that touches any other token takes no part. rejected (frozenset | None): Spans that
        people rejected, where the gold is of their answers alone.
    """

    keys: frozenset[_Key]
    known: NDArray[np.bool_]
    rejected: frozenset[_Key] | None = None

    @classmethod
    def of(cls, doc: Doc, annotation: Annotation, event: str = "exact") -> GoldSpans:
        rejected = rejected_in(annotation, doc)
        return cls(
            frozenset(
                (first_token(doc, span.start, span.end, event), span.end, span.label) for span in annotation.spans_on(doc)
            ),
            annotation.known_tokens(doc),
            None if rejected is None else frozenset((first_token(doc, *key[:2], event), *key[1:]) for key in rejected),
        )

    def says(self, key: _Key, right: bool, event: str, labels: Iterable[int]) -> int:
        """1 or 0, and -1 where nothing is known. Of answers: what was accepted is right. What was rejected is wrong, but for events that ask
        for less than the same tokens; and so is an entity beside an accepted one that it overlaps.

        key: Of a span in gold tokens. right (bool): By the gold spans. labels (Iterable[int]): Of the span, and its gold name.
        """
        start, end, _ = key
        known, exact = self.known[start:end], event in ("exact", "article")
        if self.rejected is None:
            return int(right) if known.all() else -1
        wrong = (known.any() or any((start, end, label) in self.rejected for label in labels)) if exact else known.all()
        return 1 if right else 0 if wrong else -1

    def covered(self, label: int) -> set[int]:
        """The tokens in gold spans of this label."""
        return {token for start, end, own in self.keys if own == label for token in range(start, end)}


def _exact(gold: GoldSpans, start: int, end: int, label: int) -> bool:
    return (start, end, label) in gold.keys


def _type(gold: GoldSpans, start: int, end: int, label: int) -> bool:
    return gold.covered(label).issuperset(range(start, end))


def _overlap(gold: GoldSpans, start: int, end: int, label: int) -> bool:
    return not gold.covered(label).isdisjoint(range(start, end))


_ARTICLES = frozenset({"a", "an", "the"})


def first_token(doc: Doc, start: int, end: int, event: str) -> int:
    """The first token of a span that an event compares: a leading article takes no part in the event `article`."""
    return start + (event == "article" and end - start > 1 and doc[start].lower_ in _ARTICLES)


# exact: a gold span has the same tokens and label. article: the same, without a leading article of either. type: every token of the span is in a gold span of its label.
# overlap: at least one token is.
EVENTS: dict[str, Callable[[GoldSpans, int, int, int], bool]] = {
    "exact": _exact, "article": _exact, "type": _type, "overlap": _overlap,
}  # fmt: skip


def check_event(event: str) -> str:
    """The name of an event, as it is. RAISES C001: no event has this name."""
    if event not in EVENTS:
        raise calib_error("C001", name="event", wanted=f"one of {', '.join(EVENTS)}", given=repr(event))
    return event


def _squeezed(span: Span) -> str:
    """The text of a span as spaCy's scorer compares it between tokenisations."""
    return "".join(span.text.lower().split())


def span_hits(example: Example, annotation: Annotation, spans: Sequence[_Key], event: str) -> NDArray[np.intp]:
    """Whether each predicted span is right: 1 or 0, and -1 where its gold is missing.

    As in spaCy's scorer, a span is compared by the gold tokens that its first and last token align with, unless the
    annotation has a rule of its own. spans: (start, end, label hash), in tokens of the predicted Doc.
    """
    own = annotation.judge_spans
    if own is not None:
        return own(example, spans)
    judge = EVENTS[check_event(event)]
    gold = GoldSpans.of(example.reference, annotation, event)
    hits = []
    for start, end, label in spans:
        start = first_token(example.predicted, start, end, event)
        aligned = example.alignment.x2y[start:end]
        if not len(aligned):
            hits.append(-1)
            continue
        first, last, wanted = int(aligned[0]), int(aligned[-1]) + 1, annotation.gold_span_label(label)
        right = judge(gold, first, last, wanted)
        if right and event in ("exact", "article"):
            right = _squeezed(example.predicted[start:end]) == _squeezed(example.reference[first:last])
        hits.append(gold.says((first, last, wanted), right, event, (label, wanted)))
    return np.array(hits, dtype=np.intp)


YES, NO, UNKNOWN = 1, 0, -1
# Short names of events in `calib fit` -> registered names.
UNIT_EVENTS = {"sentence": "spacy-calib.Sentence.v1", "tree": "spacy-calib.Tree.v1"}


class Event(ABC):
    """A question about some spans of a Doc.

    registered (str): Name in the registry `calib_events`. called (tuple[str, str]): What a unit is called, and several.
    what (str): When the answer is yes. features (tuple[str, ...] | None): Names of what `evidence` gives; None: scores
        of the units' tokens. of_labels (bool): Whether that too is of the labels that the units' tokens carry. needs_no_fit (bool): Whether a
        forecaster has to be surely better than the event's own estimate. rivals (tuple[str, str]): What a forecaster is compared with, raw and calibrated.
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
        """Told by its pipe: the prefix of the scores, and what gives the component that these are of, None where it is missing."""

    @abstractmethod
    def units(self, doc: Doc) -> Sequence[Span]:
        """The spans of a predicted Doc that the question is asked about."""

    def evidence(self, doc: Doc, units: Sequence[Span]) -> Evidence:
        """What the event itself knows of its units, if it has `features`."""
        raise NotImplementedError

    @abstractmethod
    def judge(self, example: Example, units: Sequence[Span], right: Ints) -> Ints:
        """The answer for each unit: 1, 0, or -1 where the gold does not say.

        right (Ints): Whether the label of each token of the predicted Doc is right, 1, 0 or -1; -1 for white space too.
        """


class LabelsRight(Event):
    """Whether a unit has at most so many wrong labels. max_errors (int): RAISES C001: not a whole number from 0 up."""

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
        found = []
        for unit in units:
            own = right[unit.start : unit.end][words[unit.start : unit.end]]
            known = len(own) > 0 and (own != UNKNOWN).all()
            found.append(int((own == NO).sum() <= self.max_errors) if known else UNKNOWN)
        return np.array(found, dtype=np.intp)


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
        known = annotation.is_known(example, rows, hashes)
        return np.where(known, annotation.is_gold(example, rows, hashes), UNKNOWN).astype(np.intp)


@dataclass(frozen=True)
class OwnEvent(Event):
    """A question of one's own, to return from a function registered in `calib_events`.

    of (Callable): Doc -> spans. ask (Callable): (Example, span of its predicted Doc) -> True, False, or None where the
        gold does not say. said (str): When the answer is yes. called (tuple[str, str]): A unit's name, and for several.
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


def check_is_event(made: Any) -> Event:
    """The event, as it is. RAISES C380: it is no event."""
    if not isinstance(made, Event):
        raise calib_error("C380", given=type(made).__name__)
    return made
