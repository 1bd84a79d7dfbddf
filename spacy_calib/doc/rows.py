"""How a token finds its own row in the blocks of its Doc, and a span its values.

A row belongs to a token if start and word agree, and either both neighbours are those of its row, or one neighbour is
(or an end of the Doc) and the token carries the label that the row was written for. Start and word are not enough: rows
that a cut left over may lie on equal words of a Doc joined behind. Where labels are of arcs, the token must have its
old head. A token that two blocks claim has no row.

The row of a whole document belongs to a Doc that begins where the block does and has the same text.
"""

from __future__ import annotations

import numpy as np
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, Token

from ..annotations import Annotation
from ..pairs.documents import TOKEN
from ..types import Ints
from .block import Block, SpanKey, SpanValues, sound_blocks
from .blocks import REMEMBERED, Stored, UserData, word_digests

# How many Docs are remembered: those that were read last.
_KEPT = 64


def find_span(span: Span, attr: str) -> SpanValues | None:
    """Return what the blocks hold of a span; None where no block or more than one claims it."""
    key, claim = (span.start_char, span.end_char, span.label_), None
    for block in _held_in(span.doc.user_data, attr).blocks:
        values = block.spans.get(key)
        if values is not None and values.agrees(span):
            if claim is not None:
                return None
            claim = values
    return claim if claim is not None and _is_in_place(span) else None


def _is_in_place(span: Span) -> bool:
    """Return whether a span's tokens are at its characters: spaCy does not update span groups when tokens are merged."""
    doc, last = span.doc, span.end - 1
    return last < len(doc) and (doc[span.start].idx, doc[last].idx + len(doc[last])) == (span.start_char, span.end_char)


def held_spans(user_data: UserData, attr: str, layer: str) -> list[tuple[SpanKey, SpanValues, str]]:
    """Return (key, values, event) of an annotation's spans, in text order, without those that two blocks claim."""
    by_key: dict[SpanKey, tuple[SpanValues, str]] = {}
    duplicates: set[SpanKey] = set()
    for block in _held_in(user_data, attr).blocks:
        for key, values in block.spans.items() if block.stored["layer"] == layer else ():
            if key in by_key:
                duplicates.add(key)
            by_key[key] = (values, block.stored["spans"]["event"])
    return [(key, *by_key[key]) for key in sorted(by_key) if key not in duplicates]


class _Held:
    """The sound blocks of one attribute: all, those with rows of tokens (also parsed), and those of documents."""

    __slots__ = ("blocks", "documents", "parsed", "size", "tokens", "user_data")

    def __init__(self, user_data: UserData, attr: str):
        self.user_data, self.size = user_data, len(user_data)
        self.blocks = list(sound_blocks(user_data, attr))
        self.tokens = [block for block in self.blocks if block.annotation.unit == TOKEN]
        self.documents = [block for block in self.blocks if block.annotation.unit != TOKEN]
        self.parsed: list[Block] = []

    def parse(self) -> list[Block]:
        """Parse the blocks with rows of tokens, at the first call."""
        self.parsed = [block.parse() for block in self.tokens]
        return self.parsed


def _held_in(user_data: UserData, attr: str) -> _Held:
    """Return the blocks of this attribute, from the memory of the Docs read last."""
    entry: _Held | None = REMEMBERED.get((id(user_data), attr))
    if entry is not None and entry.user_data is user_data and entry.size == len(user_data):
        for block in entry.blocks:
            if user_data.get(block.key) is not block.stored:
                break
        else:
            return entry
    REMEMBERED[id(user_data), attr] = entry = _Held(user_data, attr)
    if len(REMEMBERED) > _KEPT:
        REMEMBERED.popitem(last=False)
    return entry


def find_row(token: Token, attr: str) -> tuple[Block, int] | None:
    """Return the block and row of a token; None where no block or more than one claims it."""
    doc, i, claim = token.doc, token.i, None
    entry = _held_in(doc.user_data, attr)
    for block in entry.parsed or entry.parse():
        row = block.row_of(token)
        if row is not None:
            if claim is not None:
                return None
            claim = block, row
    return claim if claim is not None and _is_own(*claim, token, doc, i) else None


def row_of_span(span: Span, attr: str) -> tuple[Block, int] | None:
    """Return the block and row of a span that has its own row, as links do, or None."""
    claim = find_row(span[0], attr) if len(span) and span[0].ent_iob_ == "B" else None
    last = None if claim is None or not claim[0].annotation.spans_are_units else claim[0].annotation.partner(span[0])
    return claim if last is not None and last.i + 1 == span.end else None


def link_values(span: Span, attr: str) -> SpanValues | None:
    """Return the values of an entity's predicted identity, or None."""
    block, row = row_of_span(span, attr) or (None, 0)
    entry = None if block is None else block.entry_of(row, span.kb_id_)
    if block is None or entry is None:
        return None
    accept = block.accept[row] if block.accept is not None and block.carries(row, span.kb_id_) else -1
    return SpanValues(block.starts[row], block.word[row], 0, block.raw[entry], block.calibrated[entry], accept, True, "", 0)


def rows_of(doc: Doc, attr: str) -> list[tuple[Block, Ints, Ints]]:
    """Return (block, tokens, rows) for each block: `find_row` for all tokens, at once if the one block fits the Doc."""
    blocks = _held_in(doc.user_data, attr).tokens
    if len(blocks) == 1 and blocks[0].stands_on(doc):
        tokens = np.arange(len(doc))
        return [(blocks[0], tokens, tokens)]
    matches: list[list[tuple[int, int]]] = [[] for _ in blocks]
    numbers = {block.key: number for number, block in enumerate(blocks)}
    for token in doc:
        claim = find_row(token, attr)
        if claim is not None:
            matches[numbers[claim[0].key]].append((token.i, claim[1]))
    pairs = [np.array(match, dtype=np.intp).reshape(-1, 2) for match in matches]
    return [(block, *pair.T) for block, pair in zip(blocks, pairs, strict=True)]


def fitting_block(doc: Doc, attr: str) -> Block | None:
    """Return the one block whose rows are exactly the units of this Doc, or None."""
    blocks = _held_in(doc.user_data, attr).blocks
    return blocks[0] if len(blocks) == 1 and blocks[0].stands_on(doc) else None


def annotations_of(doc: Doc, attr: str) -> list[Annotation]:
    """Return the annotations that the blocks of a Doc have scores of."""
    by_layer = {block.annotation.name: block.annotation for block in _held_in(doc.user_data, attr).blocks}
    return list(by_layer.values())


def has_labelled_spans(doc: Doc, attr: str) -> bool:
    """Whether a pipe wrote scores of spans with labels, or of links, on this Doc; scores of sentences are neither."""
    return any(
        block.annotation.spans_are_units or ("spans" in block.stored and block.annotation.span_words[0] != "sentence")
        for block in _held_in(doc.user_data, attr).blocks
    )


def document_block(doc: Doc, attr: str) -> Block | None:
    """Return the block of this Doc as a whole; None where no block or more than one claims it."""
    blocks = _held_in(doc.user_data, attr).documents
    text = get_string_id(doc.text) if blocks else 0
    claims = [block for block in blocks if is_whole(block.stored, block.key[2], text)]
    return claims[0].parse() if len(claims) == 1 else None


def is_whole(block: Stored, start: int, text: int) -> bool:
    """Return whether a block that begins at character `start` is of a whole Doc with this text. text (int): Its hash."""
    place = block["start"].astype(np.int64)
    if len(place) != 1 or place[0] + start != 0:
        return False
    words = word_digests(np.array([text], dtype=np.uint64), place + block.get("origin", 0), np.uint32)
    return bool(words[0] == block["word"][0])


def _is_own(block: Block, row: int, token: Token, doc: Doc, i: int) -> bool:
    """Return whether neighbours, label and head agree that the row is the token's, see the module's docstring."""
    if block.head is not None and not block.has_head(row, token):
        return False
    follows = i == 0 or (row > 0 and block.row_of(doc[i - 1]) == row - 1)
    carries = block.carries(row, block.annotation.label(token))
    if follows and carries:
        return True
    return (follows or carries) and (i + 1 == len(doc) or block.row_of(doc[i + 1]) == row + 1)
