"""Span categorizers: the scores that `spancat` and `spancat_singlelabel` leave with their spans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from spacy.pipeline.spancat import SpanCategorizer
from spacy.tokens import Doc

from ..doc.annotations import Annotation, SpanAnnotation, span_scores
from ..doc.events import EVENTS
from ..pairs.build import SparseScores, stack
from ..types import Floats, Marginals, Spans, stack_spans
from .base import OutputSource
from .span_scores import ScoredSpans, write_in_group


class SpancatSource(OutputSource):
    """Scores of spans, and of tokens by the best span that covers them.

    The marginal of a label at a token is the highest score of a span with the label that covers it, that of "O" the rest to 1 of the
    highest of all. Spans below the component's own threshold are not on the Doc, and not seen.

    component (str): Name of the component.
    """

    reads = ("spancat", "spancat_singlelabel")
    events = tuple(EVENTS)
    alone = ("O",)
    keeps_span_scores = True

    def __init__(self, component: str = "spancat"):
        self.component = component

    def supports(self, pipe: Any) -> bool:
        return isinstance(pipe, SpanCategorizer)

    def claims(self, pipe: Any) -> bool:
        return self.supports(pipe)

    def kind(self, pipe: Any) -> str:
        return SpanCategorizer.__name__

    def annotation(self, pipe: Any) -> Annotation:
        return SpanAnnotation(pipe.key)

    def labels(self, pipe: Any) -> tuple[str, ...]:
        return ("O", *pipe.labels)

    def missing(self, pipe: Any, docs: Sequence[Doc]) -> list[str]:
        return [_why_missing(doc, pipe.key) if len(doc) else "" for doc in docs]

    def read(self, pipe: Any, docs: Sequence[Doc]) -> SparseScores:
        column = {label: i for i, label in enumerate(pipe.labels)}
        read = [_read(doc, pipe.key, column) for doc in docs]
        return SparseScores(stack([m for m, _ in read]), stack_spans([spans for _, spans in read], [len(doc) for doc in docs]))

    def span_labels(self, pipe: Any) -> tuple[str, ...]:
        return tuple(pipe.labels)

    def raw_span_scores(self, spans: Spans) -> Floats:
        return spans.own

    def write_span_scores(self, pipe: Any, doc: Doc, attr: str, scores: Mapping[tuple[int, int, str], float]) -> None:
        """See `write_in_group`: beside `attrs["scores"]`."""
        write_in_group(doc, pipe.key, attr, scores)


def _why_missing(doc: Doc, key: str) -> str:
    if key not in doc.spans:
        return f"doc.spans has no key '{key}'; run the span categorizer on the Doc first"
    group = doc.spans[key]
    if len(group) and span_scores(group) is None:
        return f"doc.spans['{key}'] has no scores for its spans, or was changed since they were made"
    return ""


def _read(doc: Doc, key: str, column: dict[str, int]) -> tuple[Marginals, Spans]:
    """The marginals and spans of one Doc; spans with labels that the component does not know are left out."""
    group = doc.spans[key]
    raw = span_scores(group) if len(group) else None
    given = [(span.start, span.end, column.get(span.label_, -1)) for span in group]
    table = np.array(given, dtype=np.intp).reshape(-1, 3)
    own = np.clip(np.zeros(0) if raw is None else raw, 0.0, 1.0)
    known = table[:, 2] >= 0
    starts, ends, labels = table[known].T
    return ScoredSpans(starts, ends, labels, own[known], np.ones(len(starts), dtype=bool)).read(
        len(doc), len(column), outside=True
    )
