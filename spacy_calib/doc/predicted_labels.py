"""Reads the predicted label of each unit of many Docs, with its scores, from whole blocks.

A Doc that was cut, joined or loaded, or whose words have changed, is read unit by unit through its attributes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from spacy.attrs import IS_SPACE
from spacy.tokens import Doc

from ..annotations import get_annotation, is_blank, label_hashes
from ..pairs.documents import TOKEN
from ..types import Floats, Ints
from .attributes import unit_values
from .store import BlockData, matching_block
from .view import doc_view


class LabelPredictions(NamedTuple):
    """Scores of n units (tokens or documents) that have a scored label and are no white space, and of m spans.

    documents (Ints): Index of each unit's Doc, ascending. columns (Ints): Its label, as a column of the source's labels, or -1.
    raw, calibrated (Floats): Its scores, shape (n,). span_raw, span_calibrated (Floats): Scores of the spans, shape (m,).
    """

    documents: Ints
    columns: Ints
    raw: Floats
    calibrated: Floats
    span_raw: Floats
    span_calibrated: Floats


class PredictedLabelReader:
    """Reads the Docs of one pipe (`attr`) with a source of these labels, and keeps nothing that identifies a word."""

    def __init__(self, attr: str, labels: Sequence[str]):
        self.attr = attr
        self._columns: Mapping[str, int] = {label: i for i, label in enumerate(labels)}
        # Only the source's labels: lemmas, which are not among them, would fill the memory.
        self._hashes = dict(zip(labels, label_hashes(labels).astype(np.uint32).tolist(), strict=True))

    def read(self, doc: Doc) -> LabelPredictions:
        """Return the units and spans of a Doc, which gets index 0."""
        block = matching_block(doc, self.attr)
        if block is None or "carried" not in block:
            return self._read_units(doc)
        annotation = block.annotation
        # A bare `Vocab()` lacks this flag; `Language` adds it.
        has_flag = annotation.unit == TOKEN and IS_SPACE in cast(Any, doc.vocab).lex_attr_getters
        return self._read_block(block, doc.to_array([IS_SPACE]) if has_flag else is_blank(annotation, doc))

    def _read_block(self, data: BlockData, is_blank_unit: Any) -> LabelPredictions:
        """Return rows, label columns and scores of the predicted labels of one Doc, from the arrays of its block."""
        rows = np.repeat(np.arange(len(data["carried"])), np.diff(data["indptr"].astype(np.intp)))
        predicted_hashes, tags = data["carried"][rows], data["tag"]
        entries = np.flatnonzero((self._hashes_of(data["tags"])[tags] == predicted_hashes) & (predicted_hashes != 0))
        if (rows[entries][1:] == rows[entries][:-1]).any():
            # Several labels of the source may give one label (edit trees and their lemma): keep the most probable.
            entries = entries[np.lexsort((data["raw"][entries], rows[entries]))]
            entries = entries[np.append(rows[entries][1:] != rows[entries][:-1], True)]
        columns = data["column"] if "column" in data else self._columns_of(data["tags"])[tags]
        values = [rows[entries], columns[entries].astype(np.intp), data["raw"][entries], data["calibrated"][entries]]
        is_word = np.flatnonzero(np.asarray(is_blank_unit)[values[0]] == 0)
        spans = data.get("spans")
        span_scores = [spans[name][spans["chosen"]] if spans else np.zeros(0) for name in ("raw", "calibrated")]
        return LabelPredictions(
            np.zeros(len(is_word), dtype=np.intp), *(column[is_word] for column in values[1:]), *span_scores
        )

    def _columns_of(self, tags: Sequence[str]) -> Ints:
        return np.array([self._columns.get(name, -1) for name in tags], dtype=np.intp)

    def _hashes_of(self, tags: Sequence[str]) -> Any:
        """Return the low 32 bits of the labels' hashes, as in blocks."""
        hashes = [self._hashes.get(name) for name in tags]
        if None in hashes:
            hashes = label_hashes(tags).astype(np.uint32).tolist()
        return np.array(hashes, dtype=np.uint32)

    def _read_units(self, doc: Doc) -> LabelPredictions:
        """Read the units of a Doc one by one, if it has no block that fits it as a whole."""
        view = doc_view(doc, self.attr)
        if view is None:
            return _NO_LABELS
        annotation, values_found = get_annotation(view.layer), []
        for i in np.flatnonzero(view.scored & ~is_blank(annotation, doc)).tolist():
            values = unit_values(doc, i, self.attr, annotation.unit)
            if values is not None:
                values_found.append((self._columns.get(annotation.label_at(doc, i), -1), values.raw, values.calibrated))
        columns, raw, calibrated = (
            (np.array(column) for column in zip(*values_found, strict=True)) if values_found else _NO_LABELS[1:4]
        )
        spans = np.array([(span.raw, span.score) for span in view.ents]).reshape(-1, 2)
        return LabelPredictions(
            np.zeros(len(raw), dtype=np.intp), columns.astype(np.intp), raw, calibrated, spans[:, 0], spans[:, 1]
        )


_NO_LABELS = LabelPredictions(*(np.zeros(0, dtype=np.intp),) * 2, *(np.zeros(0),) * 4)


def join_labels(parts: Sequence[LabelPredictions]) -> LabelPredictions:
    """Concatenate the predictions of several Docs, which are numbered from 0."""
    numbered_parts = [part._replace(documents=np.full(len(part.raw), number)) for number, part in enumerate(parts)]
    return LabelPredictions(*(np.concatenate(column) for column in zip(_NO_LABELS, *numbered_parts, strict=True)))
