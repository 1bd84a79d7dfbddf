"""Reads the predicted label of each unit of many Docs, with its scores, from whole blocks at once.

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
from .blocks import BLOCK_VERSION, Block, held_blocks, unit_digests
from .view import doc_view

# What is read of a block: no column by which a word could be recognised.
_COLUMNS = ("tags", "tag", "indptr", "carried", "raw", "calibrated", "column", "extra")


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
    """Reads the Docs of one pipe. attr (str): Prefix of its attributes. labels (Sequence[str]): Its source's labels."""

    def __init__(self, attr: str, labels: Sequence[str]):
        self.attr = attr
        self._columns: Mapping[str, int] = {label: i for i, label in enumerate(labels)}
        # Labels that are none of the source's (lemmas) are without end: they are not remembered.
        self._hashes = dict(zip(labels, label_hashes(labels).astype(np.uint32).tolist(), strict=True))

    def prepare(self, doc: Doc) -> Carried | Block:
        """Return what `read` needs of a Doc: its block, or the values if the block is not enough."""
        blocks = held_blocks(doc.user_data, self.attr)
        if not blocks:
            return _NOTHING
        key, block = blocks[0]
        if len(blocks) == 1 and key[2] == 0 and "carried" in block and block["version"] == BLOCK_VERSION:
            annotation = get_annotation(block["layer"])
            if np.array_equal(unit_digests(annotation.unit, annotation.places(doc)), block["word"]):
                columns = {name: block[name] for name in _COLUMNS if name in block}
                if "spans" in block:
                    columns["spans"] = {name: block["spans"][name] for name in ("raw", "calibrated", "chosen")}
                # A Language sets this flag; a vocab that no Language made has none.
                has_flag = annotation.unit == TOKEN and IS_SPACE in cast(Any, doc.vocab).lex_attr_getters
                return {**columns, "space": doc.to_array([IS_SPACE]) if has_flag else is_blank(annotation, doc)}
        return self._by_units(doc)

    def read(self, inputs: Sequence[Carried | Block]) -> Carried:
        """Return the units and spans of all these Docs."""
        blocks = [(i, part) for i, part in enumerate(inputs) if isinstance(part, dict)]
        unit_parts = [
            part._replace(documents=np.full(len(part.raw), i)) for i, part in enumerate(inputs) if isinstance(part, Carried)
        ]
        parts = [*unit_parts, *([self._of_blocks(*map(list, zip(*blocks, strict=True)))] if blocks else [])]
        documents, columns, raw, calibrated, *spans = self._join(parts)
        order = np.argsort(documents, kind="stable")
        return Carried(documents[order], columns[order], raw[order], calibrated[order], *spans)

    @staticmethod
    def _join(parts: Sequence[Carried]) -> list[Any]:
        return [np.concatenate(column) for column in zip(_NOTHING, *parts, strict=True)]

    def _of_blocks(self, numbers: list[int], blocks: list[Block]) -> Carried:
        """Read blocks. numbers (list[int]): Number of each block's Doc."""
        tags = [name for block in blocks for name in block["tags"]]
        first_tag = _starts([len(block["tags"]) for block in blocks])
        n_entries = [len(block["raw"]) for block in blocks]
        codes = _join(blocks, "tag").astype(np.intp) + np.repeat(first_tag, n_entries)
        # Where one block ends and the next begins, the difference is no token's.
        ends = np.cumsum([len(block["indptr"]) for block in blocks])[:-1] - 1
        lengths = np.delete(np.diff(_join(blocks, "indptr").astype(np.intp)), ends)
        rows = np.repeat(np.arange(len(lengths)), lengths)
        hashes, columns_of = self._hashes_of(tags), np.array([self._columns.get(name, -1) for name in tags], dtype=np.intp)
        carried_hashes = _join(blocks, "carried")
        entries = np.flatnonzero((hashes[codes] == carried_hashes[rows]) & (carried_hashes[rows] != 0))
        columns = columns_of[codes]
        if all("column" in block for block in blocks):
            columns = _join(blocks, "column").astype(np.intp)
        raw, calibrated = _join(blocks, "raw"), _join(blocks, "calibrated")
        # Where several labels of the source give one label (trees and their lemma), the likeliest.
        entries = (
            entries[np.lexsort((raw[entries], rows[entries]))] if (rows[entries][1:] == rows[entries][:-1]).any() else entries
        )
        entries = entries[np.append(rows[entries][1:] != rows[entries][:-1], True)[: len(entries)]]
        result = [rows[entries], columns[entries], raw[entries], calibrated[entries]]
        first_row = _starts([len(block["carried"]) for block in blocks])
        for start, block in zip(first_row.tolist(), blocks, strict=True):
            if "extra" in block:
                extra = block["extra"]
                place = np.array([self._columns.get(name, -1) for name in extra["tags"]], dtype=np.intp)
                extra_columns = (extra["row"].astype(np.intp) + start, place, extra["raw"], extra["calibrated"])
                result = [np.append(a, b) for a, b in zip(result, extra_columns, strict=True)]
        token_docs = np.repeat(numbers, [len(block["carried"]) for block in blocks])
        is_word = np.flatnonzero(_join(blocks, "space")[result[0]] == 0)
        rows, columns, raw, calibrated = (column[is_word] for column in result)
        spans = [block["spans"] for block in blocks if "spans" in block]
        return Carried(
            token_docs[rows], columns, raw, calibrated, _span_column(spans, "raw"), _span_column(spans, "calibrated")
        )

    def _hashes_of(self, tags: Sequence[str]) -> Any:
        """Return the low halves of the labels' hashes, as in blocks."""
        hashes = [self._hashes.get(name) for name in tags]
        if None in hashes:
            hashes = label_hashes(tags).astype(np.uint32).tolist()
        return np.array(hashes, dtype=np.uint32)

    def _by_units(self, doc: Doc) -> Carried:
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


def _starts(lengths: Sequence[int]) -> Ints:
    return np.cumsum([0, *lengths[:-1]]).astype(np.intp)


def _join(blocks: Sequence[Block], name: str) -> Any:
    return np.concatenate([block[name] for block in blocks])


def _span_column(spans: Sequence[Block], name: str) -> Floats:
    return np.concatenate([np.zeros(0), *(block[name][block["chosen"]] for block in spans)])
