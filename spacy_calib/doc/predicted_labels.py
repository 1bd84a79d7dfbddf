"""Reads the label of each unit of many Docs, with its scores, from blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from spacy.attrs import IS_SPACE
from spacy.tokens import Doc

from ..annotations import Hashes, is_blank, label_hashes
from ..pairs.documents import TOKEN
from ..types import Floats, Ints
from .store import Block, rows_of
from .view import scored_spans


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
        # Only the source's labels: lemmas, which are not among them, would fill the memory.
        self._columns: Mapping[str, int] = {label: i for i, label in enumerate(labels)}
        self._hashes = dict(zip(labels, label_hashes(labels).tolist(), strict=True))

    def read(self, doc: Doc) -> LabelPredictions:
        """Return the units and spans of a Doc, which gets index 0."""
        matches = rows_of(doc, self.attr)
        units = [self._read_units(doc, *match) for match in matches]
        layers = dict.fromkeys(block.annotation.name for block, *_ in matches if "spans" in block)
        spans = [(span.raw, span.score) for layer in layers for span in scored_spans(doc, self.attr, layer)[0]]
        columns, raw, calibrated = map(np.concatenate, zip(_NO_LABELS[1:4], *units, strict=True))
        return LabelPredictions(np.zeros(len(raw), dtype=np.intp), columns, raw, calibrated, *np.array(spans).reshape(-1, 2).T)

    def _read_units(self, doc: Doc, block: Block, units: Ints, rows: Ints) -> tuple[Ints, Floats, Floats]:
        """Return columns and scores of the labels that the units with these rows have now, without white space."""
        annotation, bounds = block.annotation, block["indptr"].astype(np.intp)
        # A bare `Vocab()` lacks this flag; `Language` adds it.
        has_flag = annotation.unit == TOKEN and IS_SPACE in cast(Any, doc.vocab).lex_attr_getters
        is_space = doc.to_array([IS_SPACE]).reshape(-1) if has_flag else is_blank(annotation, doc)
        labels = np.zeros(len(bounds) - 1, dtype=np.uint64)
        labels[rows] = np.where(np.asarray(is_space)[units] == 0, annotation.hashes(doc)[units], 0)
        owners = np.repeat(np.arange(len(labels)), np.diff(bounds))
        entries = np.flatnonzero((self._hashes_of(block["tags"])[block["tag"]] == labels[owners]) & (labels[owners] != 0))
        if (owners[entries][1:] == owners[entries][:-1]).any():
            # Several labels of the source may give one label (edit trees and their lemma): keep the most probable.
            entries = entries[np.lexsort((block["raw"][entries], owners[entries]))]
            entries = entries[np.append(owners[entries][1:] != owners[entries][:-1], True)]
        columns = [self._columns.get(name, -1) for name in block["tags"]]
        codes = block["column"] if "column" in block else np.array(columns, dtype=np.intp)[block["tag"]]
        return codes[entries].astype(np.intp), block["raw"][entries], block["calibrated"][entries]

    def _hashes_of(self, tags: Sequence[str]) -> Hashes:
        hashes = [self._hashes.get(name) for name in tags]
        return label_hashes(tags) if None in hashes else np.array(hashes, dtype=np.uint64)


_NO_LABELS = LabelPredictions(*(np.zeros(0, dtype=np.intp),) * 2, *(np.zeros(0),) * 4)


def join_labels(parts: Sequence[LabelPredictions]) -> LabelPredictions:
    """Concatenate the predictions of several Docs, which are numbered from 0."""
    numbered_parts = [part._replace(documents=np.full(len(part.raw), number)) for number, part in enumerate(parts)]
    return LabelPredictions(*(np.concatenate(column) for column in zip(_NO_LABELS, *numbered_parts, strict=True)))
