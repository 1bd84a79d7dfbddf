"""Sources of span scores: from attributes of a span group or an extension, and from spaCy's span categorizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from spacy.pipeline.spancat import SpanCategorizer
from spacy.tokens import Doc, Span

from ..annotations import SPANS_PREFIX, Annotation, SpanAnnotation, get_annotation, span_scores
from ..annotations.span_events import EVENTS
from ..errors import calib_error
from ..pairs.scores import SparseScores, stack
from ..types import OUTSIDE, Floats, Ints, Marginals, Spans, stack_spans
from .left_scores import EXTENSION, LeftScoresSource, as_score, check_extension, split_score_names
from .source import OutputSource, overwriting_pipe, reasons_not_to_run, to_numpy

_NO_SPANS = (np.zeros((0, 3), dtype=np.intp), np.zeros(0))  # (start, end, column) of each span, and scores


class SpanScoresSource(LeftScoresSource):
    """Source of a score of each span, and perhaps of further scores, which the calibration of spans uses as features.

    A token's score for a label is the maximum over the spans with the label that cover it. A span without a score (None) or
    with an unknown label is left out. Other labels of a token have no score.
    component (str): Name of the component, or "". labels (list[str] | None): None for labels of the component or the fit data.
    spans_key (str): Key of `doc.spans`, in predicted and gold Docs; "" for `doc.ents`.
    score (str | list | None): "_.NAME" for the extension `span._.NAME`, another name for `doc.spans[spans_key].attrs[NAME]`.
        None means "scores" for `doc.spans`, and "_.score" for `doc.ents`. For `doc.ents` a name without "_." is the key of a
        span group that `spans_from` made; its spans that are not entities are candidates. Names of further scores in [0, 1]
        follow after commas or in a list; the first score replaces missing ones.
    outside (bool): Whether "O" has a score: 1 minus the maximum of the others.
    RAISES C001: a score that is not a name, or labels that are not distinct. C111: a label that no config can contain.
    """

    events = tuple(EVENTS)
    singleton_labels = (OUTSIDE,)

    def __init__(
        self,
        component: str = "",
        spans_key: str = "",
        score: object = None,
        labels: list[str] | None = None,
        outside: bool = False,
    ):
        super().__init__(component, labels)
        self.spans_key = spans_key
        default_score = "scores" if spans_key else f"{EXTENSION}score"
        self.score, *further_names = split_score_names(default_score if score is None else score)
        self.further_score_names = tuple(further_names)
        # The group that contains the spans with a score; `score` is the name of its attribute.
        self._group = spans_key
        if not spans_key and not self._is_extension:  # `score` is the key of a group that `spans_from` made
            self._group, self.score = self.score, "scores"
        self.outside = outside

    @property
    def distributions(self) -> bool:  # type: ignore[override]
        return self.outside  # with "O" each label has a score: 0 if none of its spans covers the token

    def annotation(self, pipe: Any = None) -> Annotation:
        return get_annotation(f"{SPANS_PREFIX}{self.spans_key}" if self.spans_key else "ner")

    def score_labels(self, pipe: Any) -> tuple[str, ...]:
        return tuple(label for label in super().score_labels(pipe) if label != OUTSIDE)

    def labels(self, pipe: Any) -> tuple[str, ...]:
        span_labels = self.score_labels(pipe)
        return (*self.singleton_labels, *span_labels) if span_labels else ()

    def span_labels(self, pipe: Any) -> tuple[str, ...]:
        return self.score_labels(pipe)

    @property
    def where(self) -> str:
        return f"span.{self.score}" if self._is_extension else f"doc.spans['{self._group}'].attrs['{self.score}']"

    @property
    def _span_annotation(self) -> Annotation:
        """The annotation that contains the spans with a score."""
        return get_annotation(f"{SPANS_PREFIX}{self._group}" if self._group else "ner")

    def reasons_not_to_read(self, docs: Sequence[Doc]) -> list[str]:
        for name in (self.score, *self.further_score_names):
            if name.startswith(EXTENSION):
                check_extension(Span, name.removeprefix(EXTENSION))
        return [self._why_missing(doc) for doc in docs]

    def _why_missing(self, doc: Doc) -> str:
        """Return in words what a Doc lacks so that its spans and scores can be read, "" for nothing."""
        if not self.spans_key and not doc.has_annotation("ENT_IOB"):
            return "doc.ents was not set; run the component that sets it first"
        if not self._group:
            return ""
        if self._group not in doc.spans:
            return f"doc.spans has no key '{self._group}'; run the component that sets it first"
        group = doc.spans[self._group]
        if len(group) and not self._span_annotation.spans_on(doc):
            return f"tokens were merged or split since doc.spans['{self._group}'] was set"
        has_scores = not len(group) or self._is_extension or self.score in group.attrs
        return "" if has_scores else f"there is nothing at {self.where}"

    def scored_spans(self, doc: Doc) -> list[tuple[Span, float, list[float]]]:
        """Return (span, score, further scores) of the spans with a score. RAISES C281 to C283: unreadable scores."""
        spans = list(self._span_annotation.spans_on(doc))
        columns = [self._values(doc, spans, name) for name in (self.score, *self.further_score_names)]
        result = []
        for span, *values in zip(spans, *columns, strict=True):
            score, *extra = (as_score(value, self.where, f"the span {span.text[:40]!r}") for value in values)
            if not np.isnan(score):
                result.append((span, score, [score if np.isnan(value) else value for value in extra]))
        return result

    def _values(self, doc: Doc, spans: Sequence[Span], name: str) -> Sequence[Any]:
        """Return the value of each span under a name; None for missing further scores. RAISES C283: not a value per span."""
        if name.startswith(EXTENSION):
            return [span._.get(name.removeprefix(EXTENSION)) for span in spans]
        attrs = doc.spans[self._group].attrs if self._group in doc.spans else {}  # a Doc without words may have none
        if name != self.score and name not in attrs:
            return [None] * len(spans)
        values = attrs.get(name, ())
        if not isinstance(values, (list, tuple)) and hasattr(values, "tolist"):
            values = to_numpy(values).reshape(-1).tolist()
        values = values if isinstance(values, (list, tuple)) else [values]
        if len(values) != len(spans):
            raise calib_error("C283", where=self.where, given=len(values), wanted=len(spans), text=doc.text[:40])
        return values

    def scored_labels(self, pipe: Any, docs: Sequence[Doc]) -> set[str]:
        return {span.label_ for doc in docs for span, *_ in self.scored_spans(doc)}

    def read(self, pipe: Any, docs: Sequence[Doc]) -> SparseScores:
        """Return the scores of tokens and spans. RAISES C281 to C283: unreadable scores."""
        column = {label: i for i, label in enumerate(self.score_labels(pipe))}
        by_doc = [self._read_doc(doc, column) for doc in docs]
        spans = stack_spans([spans for _, spans in by_doc], [len(doc) for doc in docs])
        return SparseScores(stack([marginals for marginals, _ in by_doc]), spans, 0.0 if self.outside else np.nan)

    def _read_doc(self, doc: Doc, column: Mapping[str, int]) -> tuple[Marginals, Spans]:
        """Return the scores of a Doc's tokens, and its spans with their scores. column: Label -> its number."""
        on_doc = {(span.start, span.end, span.label) for span in self.annotation().spans_on(doc)}
        scored = [(span, score, extra) for span, score, extra in self.scored_spans(doc) if span.label_ in column]
        bounds = [(span.start, span.end, column[span.label_]) for span, _, _ in scored]
        table = np.array(bounds, dtype=np.intp).reshape(-1, 3)
        span_scores = np.array([score for _, score, _ in scored], dtype=np.float64)
        # Spans that are not on the Doc are candidates.
        is_chosen = np.array([(span.start, span.end, span.label) in on_doc for span, _, _ in scored], dtype=bool)
        marginals, spans = read_spans(table, span_scores, is_chosen, len(doc), len(column), self.outside)
        further_scores = np.array([extra for _, _, extra in scored], dtype=np.float64)
        return marginals, replace(spans, further_scores=further_scores.reshape(len(scored), len(self.further_score_names)))

    def raw_span_scores(self, spans: Spans) -> Floats:
        return spans.scores


def read_spans(
    table: Ints, span_scores: Floats, is_chosen: NDArray[np.bool_], n_tokens: int, n_labels: int, outside: bool
) -> tuple[Marginals, Spans]:
    """Return (scores of tokens, spans). A token's score for a label is the highest score of this label's spans that cover it.

    table (Ints): Start, end and index of the label of each span, shape (n, 3). span_scores (Floats): Score of each, (n,).
    is_chosen (NDArray[bool]): Whether each is on the Doc. n_tokens, n_labels (int): Size of the Doc, and number of labels.
    outside (bool): Whether "O" (column 0) has 1 minus the highest score; else tokens outside of all spans have no score.
    """
    best = np.full((n_tokens, 1 + n_labels), 0.0 if outside else np.nan)  # columns: "O", then the labels
    for (start, end, label), score in zip(table.tolist(), span_scores.tolist(), strict=True):
        np.fmax(best[start:end, 1 + label], score, out=best[start:end, 1 + label])
    if outside:
        best[:, 0] = 1.0 - best[:, 1:].max(axis=1, initial=0.0)
    rows, columns = np.nonzero(best) if outside else np.nonzero(~np.isnan(best))
    marginals = Marginals(rows, columns, best[rows, columns], n_tokens)
    starts, ends, labels = table.T
    lengths = ends - starts
    firsts = np.cumsum(lengths) - lengths  # index of each span's first token among the tokens of all spans
    tokens = np.repeat(starts - firsts, lengths) + np.arange(lengths.sum())
    token_scores = best[tokens, 1 + np.repeat(labels, lengths)]
    return marginals, Spans(starts, ends, labels, token_scores, span_scores, is_chosen)


class SpancatSource(OutputSource):
    """Source of a span categorizer's scores of spans, and of scores of tokens that follow from them.

    A token's score for a label is the maximum over the label's spans that cover it; "O" has 1 minus the maximum of all these.
    component (str): Name of the component. lowest (float | None): Minimum score of candidates, spans below the component's
    threshold, for which the model is run again; None reads only the spans on the Doc. RAISES C001: lowest is not in (0, 1).
    """

    reads = ("spancat", "spancat_singlelabel")
    events = tuple(EVENTS)
    singleton_labels = ("O",)
    component_classes = (SpanCategorizer,)

    def __init__(self, component: str = "spancat", lowest: float | None = None):
        super().__init__(component)
        if lowest is not None and (isinstance(lowest, bool) or not isinstance(lowest, (int, float)) or not 0 < lowest < 1):
            raise calib_error("C001", name="lowest", wanted="a number between 0 and 1", given=repr(lowest))
        self.lowest = None if lowest is None else float(lowest)

    def obstacle(self, nlp: Language, name: str, pipe: Any) -> str:
        return "" if self.lowest is None else overwriting_pipe(nlp, name, pipe)

    def annotation(self, pipe: Any) -> Annotation:
        return SpanAnnotation(pipe.key)

    def labels(self, pipe: Any) -> tuple[str, ...]:
        return ("O", *pipe.labels)

    def missing(self, pipe: Any, docs: Sequence[Doc]) -> list[str]:
        input_faults = [""] * len(docs) if self.lowest is None else reasons_not_to_run(pipe, docs)
        return [_why_missing(doc, pipe.key) or why if len(doc) else "" for doc, why in zip(docs, input_faults, strict=True)]

    def read(self, pipe: Any, docs: Sequence[Doc]) -> SparseScores:
        """Return the scores of tokens (columns: "O", then the labels) and of spans."""
        column = {label: i for i, label in enumerate(pipe.labels)}
        candidates = [_NO_SPANS] * len(docs) if self.lowest is None else _find_candidates(pipe, docs, self.lowest)
        by_doc = [_read_group(doc, pipe.key, column, *arrays) for doc, arrays in zip(docs, candidates, strict=True)]
        spans = stack_spans([spans for _, spans in by_doc], [len(doc) for doc in docs])
        return SparseScores(stack([marginals for marginals, _ in by_doc]), spans)

    def span_labels(self, pipe: Any) -> tuple[str, ...]:
        return tuple(pipe.labels)

    def raw_span_scores(self, spans: Spans) -> Floats:
        return spans.scores


def _why_missing(doc: Doc, key: str) -> str:
    """Return in words why the scores of the span group `key` cannot be read from a Doc, "" if they can."""
    if key not in doc.spans:
        return f"doc.spans has no key '{key}'; run the span categorizer on the Doc first"
    group = doc.spans[key]
    if len(group) and span_scores(group) is None:
        return f"doc.spans['{key}'] has no scores for its spans, or was changed since they were made"
    return ""


def _find_candidates(pipe: Any, docs: Sequence[Doc], lowest: float) -> list[tuple[Ints, Floats]]:
    """Run the span categorizer. Return for each Doc (start, end and column of spans that score at least `lowest`, scores)."""
    indices, scores = pipe.predict(list(docs))
    if not len(indices.dataXd):  # no text is long enough for a suggestion: arrays have other shapes
        return [_NO_SPANS] * len(docs)
    # Bounds of all suggested spans, (n, 2), how many are of each Doc, and their scores, (n, n_labels).
    bounds, n_suggested = to_numpy(indices.dataXd).astype(np.intp)[:, :2], to_numpy(indices.lengths)
    label_scores = to_numpy(scores).astype(np.float64)[:, : len(pipe.labels)]  # without the negative label
    candidates = []
    for end, n in zip(np.cumsum(n_suggested).tolist(), n_suggested.tolist(), strict=True):
        rows, columns = np.nonzero(label_scores[end - n : end] >= lowest)
        rows += end - n
        candidates.append((np.column_stack([bounds[rows], columns]), label_scores[rows, columns]))
    return candidates


def _read_group(doc: Doc, key: str, column: dict[str, int], candidates: Ints, scores: Floats) -> tuple[Marginals, Spans]:
    """Return token scores and spans of a Doc: spans of `doc.spans[key]` with known labels, then candidates not among them.

    candidates, scores: Start, end and column of each candidate, and its score, as `_find_candidates` returns them.
    """
    group: Any = doc.spans.get(key, ())
    group_scores = span_scores(group) if len(group) else None
    rows = [(span.start, span.end, column.get(span.label_, -1)) for span in group]  # -1: an unknown label
    group_spans = np.array(rows, dtype=np.intp).reshape(-1, 3)
    has_label = group_spans[:, 2] >= 0
    spans_on_doc = group_spans[has_label]
    scores_on_doc = np.zeros(0) if group_scores is None else group_scores[has_label]
    on_doc = set(map(tuple, spans_on_doc.tolist()))
    is_new = np.array([tuple(row) not in on_doc for row in candidates.tolist()], dtype=bool)
    all_spans = np.concatenate([spans_on_doc, candidates[is_new]])
    all_scores = np.clip(np.concatenate([scores_on_doc, scores[is_new]]), 0.0, 1.0)
    is_on_doc = np.arange(len(all_spans)) < len(spans_on_doc)
    return read_spans(all_spans, all_scores, is_on_doc, len(doc), len(column), outside=True)
