"""Events, the definitions of when a predicted span is right, and the comparison of predicted with gold spans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc, Span
from spacy.training import Example

from ..errors import calib_error
from . import Annotation, rejected_in
from .annotation import get_label_comparison

_SpanKey = tuple[int, int, int]  # (start, end, label hash)
_ARTICLES = frozenset({"a", "an", "the"})


@dataclass(frozen=True, eq=False)
class GoldSpans:
    """The spans of a gold Doc that predicted spans are compared with.

    keys (frozenset): (start, end, label hash) of each span. is_annotated (NDArray[bool]): Whether the gold decides which spans
    cover each token. rejected_keys (frozenset | None): Spans that annotators rejected; None if the gold has no yes/no answers.
    """

    keys: frozenset[_SpanKey]
    is_annotated: NDArray[np.bool_]
    rejected_keys: frozenset[_SpanKey] | None = None

    @classmethod
    def from_doc(cls, doc: Doc, annotation: Annotation, event: str = "exact") -> GoldSpans:
        """Read the accepted and rejected spans of a gold Doc. event (str): "article" cuts leading articles from them."""

        def keys_of(spans: Iterable[_SpanKey]) -> frozenset[_SpanKey]:
            return frozenset((skip_article(doc, start, end, event), end, label) for start, end, label in spans)

        rejected_spans, comparison = rejected_in(annotation, doc), get_label_comparison(doc, annotation.name)
        accepted_spans = [(span.start, span.end, span.label) for span in annotation.spans_on(doc)]
        # Gold of another label scheme has a comparison, with its spans under the component's labels.
        keys = keys_of(accepted_spans if comparison is None else comparison.spans)
        return cls(keys, annotation.known_tokens(doc), None if rejected_spans is None else keys_of(rejected_spans))

    def hit(self, start: int, end: int, labels: Iterable[int], is_match: bool, event: str) -> int:
        """Return 1 if a predicted span is right, 0 if it is wrong, -1 if the gold does not decide.

        Without yes/no answers the gold decides if all tokens of the span are annotated. With yes/no answers only the tokens of
        accepted spans are annotated. start, end: Gold tokens of the span. labels: Hash of its label, and of the gold label for
        it; a rejected span may have either. is_match: Whether gold spans match the span by the event. event: As in `span_hits`.
        """
        is_annotated = self.is_annotated[start:end]
        if self.rejected_keys is None:
            return int(is_match) if is_annotated.all() else -1
        if is_match:
            return 1
        if event in ("exact", "article"):
            # One annotated token is enough: a span that overlaps an accepted one, but is not equal to it, is wrong.
            is_wrong = is_annotated.any() or any((start, end, label) in self.rejected_keys for label in labels)
        else:
            # "type" and "overlap" look for tokens in gold spans of the label. A token that is not annotated may be in one.
            is_wrong = is_annotated.all()
        return 0 if is_wrong else -1

    def covered_tokens(self, label: int) -> set[int]:
        """Return the indices of the gold tokens in gold spans with this label (a hash)."""
        return {token for start, end, span_label in self.keys if span_label == label for token in range(start, end)}


def skip_article(doc: Doc, start: int, end: int, event: str) -> int:
    """Return the first token of doc[start:end] to compare: `start`; for `event` "article" the one after a leading article."""
    skips_first = event == "article" and end - start > 1 and doc[start].lower_ in _ARTICLES
    return start + int(skips_first)


# exact: a gold span has the same tokens and label. article: the same, without leading articles. type: all tokens of the span
# are in gold spans of its label. overlap: at least one token is.
EVENTS: dict[str, Callable[[GoldSpans, int, int, int], bool]] = {
    "exact": lambda gold, start, end, label: (start, end, label) in gold.keys,
    "article": lambda gold, start, end, label: (start, end, label) in gold.keys,
    "type": lambda gold, start, end, label: gold.covered_tokens(label).issuperset(range(start, end)),
    "overlap": lambda gold, start, end, label: not gold.covered_tokens(label).isdisjoint(range(start, end)),
}


def check_event(event: str) -> str:
    """Return `event`, which defines when a span is right, unchanged. RAISES C001: it is not in EVENTS."""
    if event not in EVENTS:
        raise calib_error("C001", name="event", wanted=f"one of {', '.join(EVENTS)}", given=repr(event))
    return event


def _squeeze(span: Span) -> str:
    """Return the text of a span in lower case without white space, as spaCy's scorer compares it between tokenizations."""
    return "".join(span.text.lower().split())


def span_hits(example: Example, annotation: Annotation, spans: Sequence[_SpanKey], event: str) -> NDArray[np.intp]:
    """Return for each predicted span 1 if it is right, 0 if it is wrong, -1 if the gold does not decide.

    A method `evaluate_spans` of the annotation decides, if there is one. Else a span is compared by the gold tokens that its
    first and last token align with, as in spaCy's scorer. spans: (start, end, label hash), in predicted tokens. event: When a
    span is right: "exact" (a gold span is equal), "article" (equal but for a leading article), "type" (all its tokens are in
    gold spans of its label) or "overlap" (at least one is).
    """
    if annotation.evaluate_spans is not None:
        return annotation.evaluate_spans(example, spans)
    is_match = EVENTS[check_event(event)]
    gold = GoldSpans.from_doc(example.reference, annotation, event)
    comparison = get_label_comparison(example.reference, annotation.name)
    scheme = None if comparison is None else comparison.scheme  # of gold with other labels
    hits = []
    for start, end, label in spans:
        start = skip_article(example.predicted, start, end, event)
        gold_tokens = example.alignment.x2y[start:end]
        if not len(gold_tokens) or (scheme is not None and label in scheme.unused_hashes):
            hits.append(-1)  # not aligned, or a label that the gold never uses
            continue
        # Gold spans with the same meaning have this label: by the label map, or in another scheme the first that means it.
        gold_label = annotation.gold_span_label(label) if scheme is None else scheme.first_hashes.get(label, label)
        first, last = int(gold_tokens[0]), int(gold_tokens[-1]) + 1
        is_right = is_match(gold, first, last, gold_label)
        # If the Docs have other tokens, aligned spans may differ in text.
        if is_right and event in ("exact", "article"):
            is_right = _squeeze(example.predicted[start:end]) == _squeeze(example.reference[first:last])
        hits.append(gold.hit(first, last, (label, gold_label), is_right, event))
    return np.array(hits, dtype=np.intp)
