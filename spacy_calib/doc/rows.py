"""Finds the row of a token, and the values of a span, in the blocks of the Doc.

A row belongs to a token if start and word agree, and either both neighbours are those of its row, or one neighbour is
(or an end of the Doc) and the token has the label that the row was written for. Start and word are not enough: rows
left over by a cut may lie on equal words of a Doc that was joined on. For arcs, the token must have its old head. A
token that two blocks claim has no row.

The row of a whole document belongs to a Doc that begins where the block does and has the same text.
"""

from __future__ import annotations

import numpy as np
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, Token

from ..annotations import Annotation
from ..pairs.documents import TOKEN
from ..types import Ints
from .block import Block, SpanKey, SpanValues, valid_blocks
from .blocks import BLOCK_CACHE, BlockData, UserData, word_digests

# Number of Docs in the cache.
_CACHE_SIZE = 64


def find_span(span: Span, attr: str) -> SpanValues | None:
    """Return the values of a span; None if no block or more than one has it."""
    key, claim = (span.start_char, span.end_char, span.label_), None
    for block in _blocks_of(span.doc.user_data, attr).blocks:
        values = block.spans.get(key)
        if values is not None and values.agrees(span):
            if claim is not None:
                return None
            claim = values
    return claim if claim is not None and _matches_characters(span) else None


def _matches_characters(span: Span) -> bool:
    """Return whether a span's tokens are at its characters: spaCy does not update span groups when tokens are merged."""
    doc, last = span.doc, span.end - 1
    return last < len(doc) and (doc[span.start].idx, doc[last].idx + len(doc[last])) == (span.start_char, span.end_char)


def find_spans(user_data: UserData, attr: str, layer: str) -> list[tuple[SpanKey, SpanValues, str]]:
    """Return (key, values, event) of an annotation's spans, in text order, without those that two blocks claim."""
    by_key: dict[SpanKey, tuple[SpanValues, str]] = {}
    duplicates: set[SpanKey] = set()
    for block in _blocks_of(user_data, attr).blocks:
        for key, values in block.spans.items() if block.data["layer"] == layer else ():
            if key in by_key:
                duplicates.add(key)
            by_key[key] = (values, block.data["spans"]["event"])
    return [(key, *by_key[key]) for key in sorted(by_key) if key not in duplicates]


class _AttrBlocks:
    """The valid blocks of one attribute: all, those of tokens (also parsed), and those of documents."""

    __slots__ = ("blocks", "document_blocks", "parsed_blocks", "size", "token_blocks", "user_data")

    def __init__(self, user_data: UserData, attr: str):
        self.user_data, self.size = user_data, len(user_data)
        self.blocks = list(valid_blocks(user_data, attr))
        self.token_blocks = [block for block in self.blocks if block.annotation.unit == TOKEN]
        self.document_blocks = [block for block in self.blocks if block.annotation.unit != TOKEN]
        self.parsed_blocks: list[Block] = []

    def parse(self) -> list[Block]:
        self.parsed_blocks = [block.parse() for block in self.token_blocks]
        return self.parsed_blocks


def _blocks_of(user_data: UserData, attr: str) -> _AttrBlocks:
    """Return the blocks of an attribute, from a cache of the Docs read last."""
    entry: _AttrBlocks | None = BLOCK_CACHE.get((id(user_data), attr))
    if entry is not None and entry.user_data is user_data and entry.size == len(user_data):
        for block in entry.blocks:
            if user_data.get(block.key) is not block.data:
                break
        else:
            return entry
    BLOCK_CACHE[id(user_data), attr] = entry = _AttrBlocks(user_data, attr)
    if len(BLOCK_CACHE) > _CACHE_SIZE:
        BLOCK_CACHE.popitem(last=False)
    return entry


def find_row(token: Token, attr: str) -> tuple[Block, int] | None:
    """Return the block and row of a token; None if no block or more than one claims it."""
    doc, i, claim = token.doc, token.i, None
    entry = _blocks_of(doc.user_data, attr)
    for block in entry.parsed_blocks or entry.parse():
        row = block.row_of(token)
        if row is not None:
            if claim is not None:
                return None
            claim = block, row
    return claim if claim is not None and _belongs_to(*claim, token, doc, i) else None


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
    accept = block.accept[row] if block.accept is not None and block.had_label(row, span.kb_id_) else -1
    return SpanValues(block.starts[row], block.word[row], 0, block.raw[entry], block.calibrated[entry], accept, True, "", 0)


def rows_of(doc: Doc, attr: str) -> list[tuple[Block, Ints, Ints]]:
    """Return (block, tokens, rows) of each block: `find_row` for all tokens, in one step if the only block fits the Doc."""
    blocks = _blocks_of(doc.user_data, attr).token_blocks
    if len(blocks) == 1 and blocks[0].matches_doc(doc):
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


def matching_block(doc: Doc, attr: str) -> Block | None:
    """Return the only block if its rows are exactly the units of this Doc, else None."""
    blocks = _blocks_of(doc.user_data, attr).blocks
    return blocks[0] if len(blocks) == 1 and blocks[0].matches_doc(doc) else None


def annotations_of(doc: Doc, attr: str) -> list[Annotation]:
    """Return the annotations that the blocks of a Doc have scores of."""
    by_layer = {block.annotation.name: block.annotation for block in _blocks_of(doc.user_data, attr).blocks}
    return list(by_layer.values())


def has_labelled_spans(doc: Doc, attr: str) -> bool:
    """Return whether a pipe scored labelled spans or links on this Doc; sentences do not count."""
    return any(
        block.annotation.spans_are_units or ("spans" in block.data and block.annotation.span_words[0] != "sentence")
        for block in _blocks_of(doc.user_data, attr).blocks
    )


def document_block(doc: Doc, attr: str) -> Block | None:
    """Return the block of this Doc as a whole; None if no block or more than one claims it."""
    blocks = _blocks_of(doc.user_data, attr).document_blocks
    text = get_string_id(doc.text) if blocks else 0
    claims = [block for block in blocks if is_whole(block.data, block.key[2], text)]
    return claims[0].parse() if len(claims) == 1 else None


def is_whole(block: BlockData, start: int, text: int) -> bool:
    """Return whether a block at character `start` belongs to a whole Doc with this text. text (int): Hash of the text."""
    starts = block["start"].astype(np.int64)
    if len(starts) != 1 or starts[0] + start != 0:
        return False
    words = word_digests(np.array([text], dtype=np.uint64), starts + block.get("origin", 0), np.uint32)
    return bool(words[0] == block["word"][0])


def _belongs_to(block: Block, row: int, token: Token, doc: Doc, i: int) -> bool:
    """Return whether neighbours, label and head agree that the row is the token's, by the rule in the module's docstring."""
    if block.head is not None and not block.has_head(row, token):
        return False
    follows = i == 0 or (row > 0 and block.row_of(doc[i - 1]) == row - 1)
    carries = block.had_label(row, block.annotation.label(token))
    if follows and carries:
        return True
    return (follows or carries) and (i + 1 == len(doc) or block.row_of(doc[i + 1]) == row + 1)
