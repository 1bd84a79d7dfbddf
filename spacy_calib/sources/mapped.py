"""A source that renames the labels of another source: labels that map to one label are merged, their probabilities added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from spacy.tokens import Doc

from ..annotations import MappedAnnotation
from ..errors import calib_error
from ..pairs.label_map import LabelMap, merge_labels, shorten_list
from ..pairs.scores import Scores
from ..types import OPEN, OUTSIDE, Floats, Ints, Marginals, Spans
from .source import Source

# Smaller probabilities are not added: a thousand of them cannot change a sum by .001.
_SMALLEST = 1e-6
_NOT_MAPPED = (*OPEN, "sent")  # annotations whose labels are not names of a scheme


def biluo_prefixes(n_tokens: int) -> list[str]:
    """Return the BILUO prefix of each token of an entity of n tokens: "U-" for one, else "B-", "I-" and "L-"."""
    return ["U-"] if n_tokens == 1 else ["B-", *["I-"] * (n_tokens - 2), "L-"]


class MappedScores:
    """The scores of another source, with columns (labels) merged.

    inner (Scores): The scores before. column (Ints): The new column of each old one, -1 for one that is left out.
    highest (bool): Whether merged entries get their maximum, not their sum: for labels that do not exclude one another.
    spans (Spans | None): The spans of the source whose labels have a gold label. n_tokens and further_scores (features of
    tokens for a context) are those of `inner`, since they do not depend on labels.
    """

    def __init__(self, inner: Scores, column: Ints, highest: bool, spans: Spans | None):
        self.inner, self._column, self._highest = inner, column, highest
        self.n_tokens, self.spans = inner.n_tokens, spans
        self.further_scores = inner.further_scores

    def marginals_above(self, threshold: float) -> Marginals:
        """Return the probabilities of the merged labels that reach the threshold."""
        marginals = self.inner.marginals_above(min(threshold, _SMALLEST))  # small ones may add up
        columns = self._column[marginals.tags]
        index = np.flatnonzero(columns >= 0)
        n_columns = int(self._column.max(initial=-1)) + 1
        # A cell is a (token, new column) pair as one number: row * n_columns + column. cell_index: The cell of each entry.
        cells, cell_index = np.unique(marginals.rows[index] * n_columns + columns[index], return_inverse=True)
        scores = np.zeros(len(cells))
        merge = np.maximum if self._highest else np.add
        merge.at(scores, cell_index, marginals.scores[index])
        scores = np.minimum(scores, 1.0)
        reaching = np.flatnonzero(scores >= threshold)
        rows, tags = np.divmod(cells[reaching], max(1, n_columns))
        return Marginals(rows, tags, scores[reaching], self.n_tokens)

    def scores_at(self, rows: Ints, columns: Ints) -> Floats:
        """Return n probabilities, each of a token (row) and a merged label (column), shape (n,); NaN if there is no score."""
        scores = np.full(len(rows), np.nan)  # NaN: no score so far; a label without a score (NaN) adds nothing
        for new_column in np.unique(columns).tolist():
            index = np.flatnonzero(columns == new_column)
            for old_column in np.flatnonzero(self._column == new_column).tolist():
                old_scores = self.inner.scores_at(rows[index], np.full(len(index), old_column))
                merged = np.fmax(scores[index], old_scores) if self._highest else scores[index] + np.nan_to_num(old_scores)
                scores[index] = np.where(np.isnan(scores[index]), old_scores, merged)
        return np.minimum(scores, 1.0)


@Source.register
class MappedSource:
    """A source that reads another source, and replaces its labels by gold labels; all else is as in the other source.

    Spans (entities) keep their labels, but are compared with the gold by their gold labels.

    inner (Source): The other source. table (LabelMap): Its label -> gold label; "" for none, which means O for entities.
    RAISES C163 (when it is read): the labels are lemmas, identities or sentence starts.
    """

    def __init__(self, inner: Source, table: LabelMap):
        self.inner = inner
        self.table = dict(table)

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # a copy is being made, which has no attributes yet
            raise AttributeError(name)
        return getattr(self.inner, name)

    def annotation(self, pipe: Any) -> MappedAnnotation:
        annotation = self.inner.annotation(pipe)
        if annotation.name in _NOT_MAPPED:
            raise calib_error("C163", layer=annotation.name)
        return MappedAnnotation(annotation, self.table)

    def labels(self, pipe: Any) -> tuple[str, ...]:
        return self._merge_labels(pipe)[0]

    def _merge_labels(self, pipe: Any) -> tuple[tuple[str, ...], Ints]:
        """Return (the distinct gold labels; the index among them of each label of the inner source, -1 for none)."""
        annotation = self.annotation(pipe)
        return merge_labels([annotation.counterpart(label) for label in self.inner.labels(pipe)])

    def read(self, pipe: Any, docs: Sequence[Doc]) -> MappedScores:
        """Return the inner source's scores, merged by gold label, and its spans whose label has a gold label."""
        scores = self.inner.read(pipe, docs)
        annotation, names = self.annotation(pipe), self.inner.span_labels(pipe)
        labels, columns = self._merge_labels(pipe)
        spans = None if scores.spans is None else _with_counterpart(scores.spans, names, self.table)
        mapped_scores = MappedScores(scores, columns, annotation.kind.overlapping, spans)
        # `token_scores` become those of the span's gold label; if spans may overlap, tokens have no scores of span labels.
        if spans is not None and len(spans) and not annotation.kind.overlapping:
            mapped_scores.spans = replace(spans, token_scores=_token_scores(mapped_scores, spans, labels, names, annotation))
        return mapped_scores


def _with_counterpart(spans: Spans, names: Sequence[str], table: LabelMap) -> Spans:
    """Return the spans whose label has a gold label: `table` does not map it to "" or "O". names (Sequence): Span labels."""
    has_counterpart = np.array([table.get(label, label) not in ("", OUTSIDE) for label in names], dtype=bool)
    keep = np.flatnonzero(has_counterpart[spans.labels])
    return spans if len(keep) == len(spans) else spans.take(keep)


def _token_scores(
    scores: MappedScores, spans: Spans, labels: Sequence[str], names: Sequence[str], annotation: MappedAnnotation
) -> Floats:
    """Return for each token of each span the probability of the span's gold label. labels: Gold labels. names: Span labels."""
    column = {label: i for i, label in enumerate(labels)}
    rows: list[int] = []
    columns: list[int] = []
    for start, end, label in zip(spans.starts.tolist(), spans.ends.tolist(), spans.labels.tolist(), strict=True):
        prefixes = biluo_prefixes(end - start) if annotation.kind.has_prefixes else [""] * (end - start)
        rows += range(start, end)
        columns += [column[annotation.counterpart(prefix + names[label])] for prefix in prefixes]
    return scores.scores_at(np.array(rows, dtype=np.intp), np.array(columns, dtype=np.intp))


def with_map(source: Source, table: LabelMap | None) -> Source:
    """Return a source with this label map, which replaces one that it has. table: None or {} for no map."""
    inner = source.inner if isinstance(source, MappedSource) else source
    return cast(Source, MappedSource(inner, table)) if table else inner


def map_of(source: Source) -> dict[str, str] | None:
    """Return the label map of a source (label -> gold label), or None if it has none."""
    return dict(source.table) if isinstance(source, MappedSource) else None


def check_map_labels(source: Source, pipe: Any, table: LabelMap) -> None:
    """Check that a component (pipe) has all labels in `table`. RAISES C165: it lacks one. C163: its labels cannot be mapped."""
    with_map(source, table).annotation(pipe)
    labels = list(dict.fromkeys((*source.span_labels(pipe), *source.labels(pipe))))
    for label in table if labels else ():  # nothing to check if the fit has yet to learn the labels
        if label not in labels:
            raise calib_error("C165", label=label, component=source.component, known=shorten_list(labels))
