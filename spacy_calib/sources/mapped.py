"""A source in the words of another label scheme: labels with one counterpart are one label, and their probabilities add up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from spacy.tokens import Doc

from ..annotations import MappedAnnotation
from ..errors import calib_error
from ..pairs.build import Scores, get_further_scores
from ..pairs.label_map import LabelMap, merge_labels, shorten_list
from ..types import OPEN, OUTSIDE, Floats, Ints, Marginals, Spans
from .base import Source

# Entries below it are not added: a thousand of them cannot move a sum by .001.
_SMALLEST = 1e-6
# Their labels are no names of a scheme.
_NOT_MAPPED = (*OPEN, "sent")


def biluo_prefixes(n_tokens: int) -> list[str]:
    """The prefixes of the tokens of an entity."""
    return ["U-"] if n_tokens == 1 else ["B-", *["I-"] * (n_tokens - 2), "L-"]


class MappedScores:
    """The scores of another source with columns merged.

    inner (Scores): The other ones. column (Ints): The new column of each old one, -1 for one that is left out. highest (bool): Whether the
        highest of merged entries counts, not their sum: scores of spans that do not exclude one another. spans (Spans | None): See Scores.
    """

    def __init__(self, inner: Scores, column: Ints, highest: bool, spans: Spans | None):
        self.inner, self._column, self._highest = inner, column, highest
        self.n_tokens, self.spans = inner.n_tokens, spans
        self.further_scores = get_further_scores(inner)

    def marginals_above(self, threshold: float) -> Marginals:
        marginals = self.inner.marginals_above(min(threshold, _SMALLEST))
        columns = self._column[marginals.tags]
        index = np.flatnonzero(columns >= 0)
        width = int(self._column.max(initial=-1)) + 1
        cells, place = np.unique(marginals.rows[index] * width + columns[index], return_inverse=True)
        merged = np.zeros(len(cells))
        (np.maximum if self._highest else np.add).at(merged, place, marginals.scores[index])
        merged = np.minimum(merged, 1.0)
        enough = np.flatnonzero(merged >= threshold)
        rows, tags = np.divmod(cells[enough], max(1, width))
        return Marginals(rows, tags, merged[enough], self.n_tokens)

    def scores_at(self, rows: Ints, columns: Ints) -> Floats:
        merged = np.full(len(rows), np.nan)
        for new in np.unique(columns).tolist():
            place = np.flatnonzero(columns == new)
            for old in np.flatnonzero(self._column == new).tolist():
                scores = self.inner.scores_at(rows[place], np.full(len(place), old))
                with_known = np.fmax(merged[place], scores) if self._highest else merged[place] + np.nan_to_num(scores)
                merged[place] = np.where(np.isnan(merged[place]), scores, with_known)
        return np.minimum(merged, 1.0)


@Source.register
class MappedSource:
    """What another source reads, by the labels of another scheme. Spans (entities) keep their labels: their counterpart is judged. All that
    does not stand here is as the other source has it.

    inner (Source): The other source. table (LabelMap): Its label -> the gold's, "" for one without counterpart, which for entities is O.
    RAISES C163: its labels are lemmas or sentence starts (when it is read).
    """

    def __init__(self, inner: Source, table: LabelMap):
        self.inner = inner
        self.table = dict(table)

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # of a copy that is being made
            raise AttributeError(name)
        return getattr(self.inner, name)

    def annotation(self, pipe: Any) -> MappedAnnotation:
        annotation = self.inner.annotation(pipe)
        if annotation.name in _NOT_MAPPED:
            raise calib_error("C163", layer=annotation.name)
        return MappedAnnotation(annotation, self.table)

    def labels(self, pipe: Any) -> tuple[str, ...]:
        return self._merged(pipe)[0]

    def _merged(self, pipe: Any) -> tuple[tuple[str, ...], Ints]:
        labels, annotation = self.inner.labels(pipe), self.annotation(pipe)
        return merge_labels(labels, [annotation.counterpart(label) for label in labels])

    def read(self, pipe: Any, docs: Sequence[Doc]) -> MappedScores:
        scores = self.inner.read(pipe, docs)
        annotation, names = self.annotation(pipe), self.inner.span_labels(pipe)
        labels, columns = self._merged(pipe)
        spans = None if scores.spans is None else _with_counterpart(scores.spans, names, self.table)
        mapped = MappedScores(scores, columns, annotation.overlapping, spans)
        if spans is not None and len(spans) and not annotation.overlapping:
            mapped.spans = replace(spans, token_scores=_token_scores(mapped, spans, labels, names, annotation))
        return mapped


def _with_counterpart(spans: Spans, names: Sequence[str], table: LabelMap) -> Spans:
    """Those whose label (names: of the columns) has a counterpart: of the others nothing is known."""
    has_one = np.array([table.get(label, label) not in ("", OUTSIDE) for label in names], dtype=bool)
    keep = np.flatnonzero(has_one[spans.labels])
    return spans if len(keep) == len(spans) else spans.take(keep)


def _token_scores(
    mapped: MappedScores, spans: Spans, labels: Sequence[str], names: Sequence[str], annotation: MappedAnnotation
) -> Floats:
    """The merged marginal of each span's label at each of its tokens.

    labels: Merged labels of the tokens. names: Labels of the spans.
    """
    column = {label: i for i, label in enumerate(labels)}
    rows: list[int] = []
    columns: list[int] = []
    for start, end, label in zip(spans.starts.tolist(), spans.ends.tolist(), spans.labels.tolist(), strict=True):
        prefixes = biluo_prefixes(end - start) if annotation.prefixed else [""] * (end - start)
        rows += range(start, end)
        columns += [column[annotation.counterpart(prefix + names[label])] for prefix in prefixes]
    return mapped.scores_at(np.array(rows, dtype=np.intp), np.array(columns, dtype=np.intp))


def with_map(source: Source, table: LabelMap | None) -> Source:
    """The source by the labels of this map, in place of another map; by its own labels without one."""
    inner = source.inner if isinstance(source, MappedSource) else source
    return cast(Source, MappedSource(inner, table)) if table else inner


def map_of(source: Source) -> dict[str, str] | None:
    """The map of a source that has one."""
    return dict(source.table) if isinstance(source, MappedSource) else None


def check_labels(source: Source, pipe: Any, table: LabelMap) -> None:
    """RAISES C165: the map names a label that the component does not have. C163: its labels cannot be mapped."""
    with_map(source, table).annotation(pipe)
    known = list(dict.fromkeys((*source.span_labels(pipe), *source.labels(pipe))))
    for label in table if known else ():  # else they are learned
        if label not in known:
            raise calib_error("C165", label=label, component=source.component, known=shorten_list(known))
