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
from .blocks import Stored
from .rows import fitting_block
from .view import doc_view


class Carried(NamedTuple):
    """The n units (tokens or documents) of some Docs that are no white space and have a scored label; and m spans.

    documents (Ints): Number of each unit's Doc, ascending. columns (Ints): Its label, in the source's labels, or -1. raw,
    calibrated (Floats): Its scores, shape (n,). span_raw, span_calibrated (Floats): The spans', (m,).
    """

    documents: Ints
    columns: Ints
    raw: Floats
    calibrated: Floats
    span_raw: Floats
    span_calibrated: Floats


class CarriedReader:
    """Reads the Docs of one pipe, one by one: nothing by which a word could be recognised.

    attr (str): Prefix of its attributes. labels (Sequence[str]): Its source's labels.
    """

    def __init__(self, attr: str, labels: Sequence[str]):
        self.attr = attr
        self._columns: Mapping[str, int] = {label: i for i, label in enumerate(labels)}
        # Labels that are none of the source's (lemmas) are without end: they are not remembered.
        self._hashes = dict(zip(labels, label_hashes(labels).astype(np.uint32).tolist(), strict=True))

    def read(self, doc: Doc) -> Carried:
        """Return the units and spans of a Doc, which is number 0."""
        block = fitting_block(doc, self.attr)
        if block is None or "carried" not in block.stored:
            return self._read_units(doc)
        annotation = block.annotation
        # A Language sets this flag; a vocab that no Language made has none.
        has_flag = annotation.unit == TOKEN and IS_SPACE in cast(Any, doc.vocab).lex_attr_getters
        return self._read_block(block.stored, doc.to_array([IS_SPACE]) if has_flag else is_blank(annotation, doc))

    def _read_block(self, stored: Stored, blank: Any) -> Carried:
        """blank (NDArray): Which units are white space."""
        rows = np.repeat(np.arange(len(stored["carried"])), np.diff(stored["indptr"].astype(np.intp)))
        carried_hashes, tags = stored["carried"][rows], stored["tag"]
        entries = np.flatnonzero((self._hashes_of(stored["tags"])[tags] == carried_hashes) & (carried_hashes != 0))
        if (rows[entries][1:] == rows[entries][:-1]).any():
            # Where several labels of the source give one label (trees and their lemma), the likeliest.
            entries = entries[np.lexsort((stored["raw"][entries], rows[entries]))]
            entries = entries[np.append(rows[entries][1:] != rows[entries][:-1], True)]
        columns = stored["column"] if "column" in stored else self._columns_of(stored["tags"])[tags]
        values = [rows[entries], columns[entries].astype(np.intp), stored["raw"][entries], stored["calibrated"][entries]]
        if "extra" in stored:
            extra = stored["extra"]
            more = (extra["row"].astype(np.intp), self._columns_of(extra["tags"]), extra["raw"], extra["calibrated"])
            values = [np.append(a, b) for a, b in zip(values, more, strict=True)]
        is_word = np.flatnonzero(np.asarray(blank)[values[0]] == 0)
        spans = stored.get("spans")
        span_scores = [spans[name][spans["chosen"]] if spans else np.zeros(0) for name in ("raw", "calibrated")]
        return Carried(np.zeros(len(is_word), dtype=np.intp), *(column[is_word] for column in values[1:]), *span_scores)

    def _columns_of(self, tags: Sequence[str]) -> Ints:
        return np.array([self._columns.get(name, -1) for name in tags], dtype=np.intp)

    def _hashes_of(self, tags: Sequence[str]) -> Any:
        """Return the low halves of the labels' hashes, as in blocks."""
        hashes = [self._hashes.get(name) for name in tags]
        if None in hashes:
            hashes = label_hashes(tags).astype(np.uint32).tolist()
        return np.array(hashes, dtype=np.uint32)

    def _read_units(self, doc: Doc) -> Carried:
        view = doc_view(doc, self.attr)
        if view is None:
            return _NOTHING
        annotation, values_found = get_annotation(view.layer), []
        for i in np.flatnonzero(view.scored & ~is_blank(annotation, doc)).tolist():
            values = unit_values(doc, i, self.attr, annotation.unit)
            if values is not None:
                values_found.append((self._columns.get(annotation.label_at(doc, i), -1), values.raw, values.calibrated))
        columns, raw, calibrated = (
            (np.array(column) for column in zip(*values_found, strict=True)) if values_found else _NOTHING[1:4]
        )
        spans = np.array([(span.raw, span.score) for span in view.ents]).reshape(-1, 2)
        return Carried(np.zeros(len(raw), dtype=np.intp), columns.astype(np.intp), raw, calibrated, spans[:, 0], spans[:, 1])


_NOTHING = Carried(*(np.zeros(0, dtype=np.intp),) * 2, *(np.zeros(0),) * 4)


def join(parts: Sequence[Carried]) -> Carried:
    """Put together what was read of Docs, which are numbered from 0."""
    numbered = [part._replace(documents=np.full(len(part.raw), number)) for number, part in enumerate(parts)]
    return Carried(*(np.concatenate(column) for column in zip(_NOTHING, *numbered, strict=True)))
