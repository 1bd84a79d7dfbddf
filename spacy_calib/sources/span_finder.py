"""The source of spaCy's span finder: a span's score is that of its start times that of its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.pipeline.span_finder import SpanFinder
from spacy.tokens import Doc

from ..annotations import Annotation, get_annotation
from ..annotations.span_events import EVENTS
from ..annotations.spans import FOUND, FOUND_PREFIX
from ..errors import calib_error
from ..pairs.build import SparseScores, stack
from ..types import OUTSIDE, Floats, Ints, Marginals, Spans, stack_spans
from .base import OutputSource, has_weights, missing_input, overwriting_pipe, to_numpy
from .span_scores import check_lowest, with_candidates, write_in_group


class SpanFinderSource(OutputSource):
    """Scores of spans without labels; a token has the score of the best span that covers it.

    The model is run again. A span's score is that of its first token as a start times that of its last one as an end.

    component (str): Name of the component. lowest (float): Minimum score of candidates: spans that the component
    rejected. RAISES C001: lowest is not in (0, 1).
    """

    reads = ("span_finder",)
    events = tuple(EVENTS)
    singleton_labels = (OUTSIDE,)
    keeps_span_scores = True
    component_classes = (SpanFinder,)

    def __init__(self, component: str = "span_finder", lowest: float = 0.1):
        super().__init__(component)
        self.lowest = check_lowest(lowest)

    def annotation(self, pipe: Any) -> Annotation:
        return get_annotation(f"{FOUND_PREFIX}{pipe.cfg['spans_key']}")

    def labels(self, pipe: Any) -> tuple[str, ...]:
        return (OUTSIDE, FOUND)

    def span_labels(self, pipe: Any) -> tuple[str, ...]:
        return ("",)

    def is_trained(self, pipe: Any) -> bool:
        return has_weights(pipe)

    def obstacle(self, nlp: Language, name: str, pipe: Any) -> str:
        return overwriting_pipe(nlp, name, pipe)

    def missing(self, pipe: Any, docs: Sequence[Doc]) -> list[str]:
        key = pipe.cfg["spans_key"]
        unset = f"doc.spans has no key '{key}'; run the span finder on the Doc first"
        return [
            "" if not len(doc) else why if key in doc.spans else unset
            for doc, why in zip(docs, missing_input(pipe, docs), strict=True)
        ]

    def read(self, pipe: Any, docs: Sequence[Doc]) -> SparseScores:
        """Return the scores of tokens and spans. RAISES C024: NaN or infinite scores."""
        scores = to_numpy(pipe.model.predict(list(docs))).astype(np.float64)
        bounds = np.cumsum([0, *map(len, docs)])
        by_doc = [
            self._read_doc(pipe, doc, scores[start:end]) for doc, start, end in zip(docs, bounds[:-1], bounds[1:], strict=True)
        ]
        return SparseScores(
            stack([m for m, _ in by_doc]), stack_spans([spans for _, spans in by_doc], [len(doc) for doc in docs])
        )

    def _read_doc(self, pipe: Any, doc: Doc, scores: Floats) -> tuple[Marginals, Spans]:
        if not np.isfinite(scores).all():
            raise calib_error("C024", component=self.component, text=doc.text[:40])
        spans = self.annotation(pipe).spans_on(doc)
        table = np.array([(span.start, span.end, 0) for span in spans], dtype=np.intp).reshape(-1, 3)
        candidates = _spans_from(scores, self.lowest, pipe.cfg["min_length"] or 1, pipe.cfg["max_length"] or len(doc))
        span_scores, candidate_scores = (scores[rows[:, 0], 0] * scores[rows[:, 1] - 1, 1] for rows in (table, candidates))
        return with_candidates(table, np.clip(span_scores, 0.0, 1.0), candidates, candidate_scores, len(doc), 1)

    def raw_span_scores(self, spans: Spans) -> Floats:
        return spans.scores

    def write_span_scores(self, pipe: Any, doc: Doc, attr: str, scores: Mapping[tuple[int, int, str], float]) -> None:
        write_in_group(doc, pipe.cfg["spans_key"], attr, scores)


def _spans_from(scores: Floats, lowest: float, shortest: int, longest: int) -> Ints:
    """Return (start, end, 0) of the spans that reach the lowest score. scores (Floats): Start and end score of tokens, (n, 2)."""
    starts, ends = (np.flatnonzero(scores[:, side] >= lowest) for side in (0, 1))
    # Only ends within reach of a start: all pairs of a long text would not fit in memory.
    nearest = np.searchsorted(ends, starts + shortest - 1)
    counts = np.maximum(np.searchsorted(ends, starts + longest - 1, side="right") - nearest, 0)
    first = np.repeat(starts, counts)
    last = ends[np.arange(counts.sum()) + np.repeat(nearest - (np.cumsum(counts) - counts), counts)]
    keep = scores[first, 0] * scores[last, 1] >= lowest
    return np.column_stack([first[keep], last[keep] + 1, np.zeros(int(keep.sum()), dtype=np.intp)])
