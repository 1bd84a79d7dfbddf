"""When a predicted span is right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc, Span
from spacy.training import Example

from ..errors import calib_error
from . import Annotation, rejected_in
from .base import judged_labels

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
        rejected_spans, labels = rejected_in(annotation, doc), judged_labels(doc, annotation.name)
        spans = [(span.start, span.end, span.label) for span in annotation.spans_on(doc)] if labels is None else labels.spans
        return cls(
            frozenset((first_token(doc, start, end, event), end, label) for start, end, label in spans),
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
    gold, labels = GoldSpans.of(example.reference, annotation, event), judged_labels(example.reference, annotation.name)
    hits = []
    for start, end, label in spans:
        start = first_token(example.predicted, start, end, event)
        gold_tokens = example.alignment.x2y[start:end]
        if not len(gold_tokens) or (labels is not None and label in labels.unused):
            hits.append(-1)
            continue
        gold_label = annotation.gold_span_label(label) if labels is None else labels.firsts.get(label, label)
        first, last = int(gold_tokens[0]), int(gold_tokens[-1]) + 1
        right = judge(gold, first, last, gold_label)
        if right and event in ("exact", "article"):
            right = _squeeze(example.predicted[start:end]) == _squeeze(example.reference[first:last])
        hits.append(gold.says((first, last, gold_label), right, event, (label, gold_label)))
    return np.array(hits, dtype=np.intp)
