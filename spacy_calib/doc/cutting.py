"""Copies part of a Doc to a new Doc, with all that belongs to its tokens and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, SpanGroup

from ..pairs.documents import TOKEN
from .store import BOUND, COLUMNS, ENTRY, UNIT, Block, BlockData, add_block, blocks_of, delete_blocks, is_whole


def cut(doc: Doc, start: int, end: int) -> Doc:
    """Copy tokens of a Doc to a new Doc, with their annotation, span groups and user data.

    Of blocks (see `store`), and of arrays with a row per token, the rows of these tokens are copied; what blocks hold about
    the whole Doc is left out.
    """
    part = doc[start:end].as_doc(copy_user_data=True)
    _cut_user_data(doc, part, start, end)
    for key, group in doc.spans.items():
        indices = [i for i, span in enumerate(group) if start <= span.start and span.end <= end]
        spans_inside = [group[i] for i in indices]
        spans = [Span(part, span.start - start, span.end - start, span.label, span.kb_id, span.id) for span in spans_inside]
        # Arrays with one number per span, such as the scores of a span categorizer, are cut too.
        attrs = {
            name: value[indices] if getattr(value, "ndim", 0) == 1 and len(value) == len(group) else value
            for name, value in group.attrs.items()
        }
        part.spans[key] = SpanGroup(part, name=group.name, attrs=attrs, spans=spans)
    return part


def _cut_user_data(doc: Doc, part: Doc, start: int, end: int) -> None:
    """Remove user data that belongs to other tokens from a part cut by spaCy. Offsets below 0 are before the part."""
    length, text = len(part.text), get_string_id(part.text)
    attrs: set[str] = set()
    for key, value in list(part.user_data.items()):
        if type(key) is tuple and len(key) == 4 and key[0] == "._." and key[2] is not None:
            if isinstance(value, dict) and {"version", "start", "indptr"} <= value.keys():
                attrs.add(key[1][1:])
            elif not (0 <= key[2] < length and (key[3] is None or key[3] <= length)):
                del part.user_data[key]
        elif getattr(value, "ndim", 0) >= 2 and len(value) == len(doc):
            part.user_data[key] = value[start:end].copy()
    for attr in attrs:
        places = [(block, block.key[2]) for block in blocks_of(part.user_data, attr)]  # type: ignore[index]
        delete_blocks(part.user_data, attr)
        for block, begin in places:
            own = cut_block(block, begin, length) if block.annotation.unit == TOKEN or is_whole(block, begin, text) else None
            if own is not None and len(own["start"]):
                add_block(part.user_data, attr, own)


def cut_block(block: BlockData, start: int, length: int) -> BlockData:
    """Cut a block to a text of this length. start (int): Character at which the block's Doc begins, negative if before."""
    starts = block["start"].astype(np.int64) + start
    first, last = np.searchsorted(starts, [0, length])
    begin, end = int(block["indptr"][first]), int(block["indptr"][last])
    bounds = {UNIT: slice(first, last), ENTRY: slice(begin, end), BOUND: slice(first, last + 1)}
    part = {name: value[bounds[COLUMNS[name].per]].copy() if name in COLUMNS else value for name, value in block.items()}
    used, local = np.unique(part["tag"], return_inverse=True)
    part |= {
        "start": starts[first:last].astype(np.uint32),
        "indptr": (part["indptr"] - begin).astype(np.uint32),
        "tag": local.reshape(-1).astype(np.uint32),
        "tags": [block["tags"][code] for code in used.tolist()],
    }
    if "extra" in block:
        extra = _select_rows(block["extra"], (block["extra"]["row"] >= first) & (block["extra"]["row"] < last))
        part["extra"] = {**extra, "row": (extra["row"] - first).astype(np.uint32)}
        if not len(extra["row"]):
            del part["extra"]
    is_inside = np.zeros(0, dtype=bool)
    if "spans" in block:
        begins, ends = (block["spans"][name].astype(np.int64) + start for name in ("start", "end"))
        is_inside = (begins >= 0) & (ends <= length)
        bounds_columns = {"start": begins[is_inside].astype(np.uint32), "end": ends[is_inside].astype(np.uint32)}
        part["spans"] = {**_select_rows(block["spans"], is_inside), **bounds_columns}
    if not isinstance(block, Block) or block.words is None or block.texts is None:
        return part
    return Block(part, block.words[first:last].copy(), np.array(block.texts, np.uint64)[is_inside].tolist())


def _select_rows(part: BlockData, mask: Any) -> BlockData:
    """Select rows from the arrays and lists (after loading, tuples) of a part of a block."""
    indices = np.flatnonzero(mask).tolist()
    return {
        name: value[indices]
        if isinstance(value, np.ndarray)
        else [value[i] for i in indices]
        if isinstance(value, (list, tuple))
        else value
        for name, value in part.items()
    }
