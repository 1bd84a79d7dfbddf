"""When a predicted span counts as right: the *events* that the score of an entity is the probability of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc, Span
from spacy.training import Example

from ..errors import calib_error
from .annotations import Annotation

_Key = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class GoldSpans:
    """The spans of a gold Doc.

    keys (frozenset): (start, end, hash of the label) of each. known (NDArray[bool]): Tokens whose annotation is there,
        shape (n_tokens,): a predicted span that touches any other token takes no part.
    """

    keys: frozenset[_Key]
    known: NDArray[np.bool_]

    @classmethod
    def of(cls, doc: Doc, annotation: Annotation) -> GoldSpans:
        return cls(
            frozenset((span.start, span.end, span.label) for span in annotation.spans_on(doc)), annotation.known_tokens(doc)
        )

    def covered(self, label: int) -> set[int]:
        """The tokens in gold spans of this label."""
        return {token for start, end, own in self.keys if own == label for token in range(start, end)}


def _exact(gold: GoldSpans, start: int, end: int, label: int) -> bool:
    return (start, end, label) in gold.keys


def _type(gold: GoldSpans, start: int, end: int, label: int) -> bool:
    return gold.covered(label).issuperset(range(start, end))


def _overlap(gold: GoldSpans, start: int, end: int, label: int) -> bool:
    return not gold.covered(label).isdisjoint(range(start, end))


# exact: a gold span has the same tokens and label. type: every token of the span is in a gold span of its label.
# overlap: at least one token is.
EVENTS: dict[str, Callable[[GoldSpans, int, int, int], bool]] = {"exact": _exact, "type": _type, "overlap": _overlap}


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
    gold = GoldSpans.of(example.reference, annotation)
    hits = []
    for start, end, label in spans:
        aligned = example.alignment.x2y[start:end]
        if not len(aligned) or not gold.known[aligned[0] : aligned[-1] + 1].all():
            hits.append(-1)
        else:
            first, last = int(aligned[0]), int(aligned[-1]) + 1
            right = judge(gold, first, last, annotation.gold_span_label(label))
            if right and event == "exact":
                right = _squeezed(example.predicted[start:end]) == _squeezed(example.reference[first:last])
            hits.append(int(right))
    return np.array(hits, dtype=np.intp)
