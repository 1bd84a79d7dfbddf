"""How a token finds its own row in the blocks of its Doc, and a span its values.

A row belongs to a token if start and word agree, and either both neighbours are those of its row, or one neighbour is
(or an end of the Doc) and the token carries the label that the row was written for. Start and word are not enough: rows
that a cut left over may lie on equal words of a Doc joined behind. Where labels are of arcs, the token must have its
old head. A token that two blocks claim has no row.

The row of a whole document belongs to a Doc that begins where the block does and has the same text.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, Token

from ..annotations import Annotation, Hashes, get_annotation
from ..pairs.documents import TOKEN
from ..types import Ints
from .blocks import REMEMBERED, Block, UserData, sound_blocks, word_digests
from .parsed import ParsedBlock, SpanKey, SpanValues, parse_spans

# How many Docs are remembered: those that were read last.
_KEPT = 64


def find_span(span: Span, attr: str) -> SpanValues | None:
    """Return what the blocks hold of a span; None where no block or more than one claims it."""
    key, claim = (span.start_char, span.end_char, span.label_), None
    for _, _, spans in _held_in(span.doc.user_data, attr).blocks:
        values = spans.get(key)
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
    for _, block, spans in _held_in(user_data, attr).blocks:
        for key, values in spans.items() if block["layer"] == layer else ():
            if key in by_key:
                duplicates.add(key)
            by_key[key] = (values, block["spans"]["event"])
    return [(key, *by_key[key]) for key in sorted(by_key) if key not in duplicates]


class _Held:
    """The sound blocks of one attribute as (key, block, spans), those with rows of tokens (also parsed), and of documents."""

    __slots__ = ("blocks", "documents", "parsed", "size", "tokens", "user_data")

    def __init__(self, user_data: UserData, attr: str):
        self.user_data, self.size = user_data, len(user_data)
        self.blocks: list[tuple[Any, Block, dict[SpanKey, SpanValues]]] = []
        for key, block in sound_blocks(user_data, attr):
            with contextlib.suppress(Exception):  # spans that somebody made up may be anything
                self.blocks.append((key, block, parse_spans(block, key[2])))
        self.tokens: list[tuple[Any, Block]] = []
        self.documents: list[tuple[Any, Block]] = []
        for key, block, _ in self.blocks:
            of_tokens = get_annotation(block["layer"]).unit == TOKEN
            (self.tokens if of_tokens else self.documents).append((key, block))
        self.parsed: list[ParsedBlock] | None = None

    def parsed_tokens(self) -> list[ParsedBlock]:
        """Return the blocks whose rows are tokens, parsed at the first call."""
        if self.parsed is None:
            self.parsed = [ParsedBlock(key[2], block) for key, block in self.tokens]
        return self.parsed


def _held_in(user_data: UserData, attr: str) -> _Held:
    """Return the blocks of this attribute, from the memory of the Docs read last."""
    entry: _Held | None = REMEMBERED.get((id(user_data), attr))
    if entry is not None and entry.user_data is user_data and entry.size == len(user_data):
        for key, block, _ in entry.blocks:
            if user_data.get(key) is not block:
                break
        else:
            return entry
    REMEMBERED[id(user_data), attr] = entry = _Held(user_data, attr)
    if len(REMEMBERED) > _KEPT:
        REMEMBERED.popitem(last=False)
    return entry


def find_row(token: Token, attr: str) -> tuple[ParsedBlock, int] | None:
    """Return the block and row of a token; None where no block or more than one claims it."""
    doc, i, claim = token.doc, token.i, None
    entry = _held_in(doc.user_data, attr)
    for block in entry.parsed or entry.parsed_tokens():
        row = block.row_of(token)
        if row is not None:
            if claim is not None:
                return None
            claim = block, row
    return claim if claim is not None and _is_own(*claim, token, doc, i) else None


def row_of_span(span: Span, attr: str) -> tuple[ParsedBlock, int] | None:
    """Return the block and row of a span that has its own row, as links do, or None."""
    claim = find_row(span[0], attr) if len(span) and span[0].ent_iob_ == "B" else None
    if claim is None or not claim[0].annotation.spans_are_units or claim[0].annotation.partner(span[0]).i + 1 != span.end:
        return None
    return claim


def link_values(span: Span, attr: str) -> SpanValues | None:
    """Return the values of an entity's predicted identity, or None."""
    block, row = row_of_span(span, attr) or (None, 0)
    entry = None if block is None else block.entry_of(row, span.kb_id_)
    if block is None or entry is None:
        return None
    accept = block.accept[row] if block.accept is not None and block.carries(row, span.kb_id_) else -1
    return SpanValues(block.start[row], block.word[row], block.raw[entry], block.calibrated[entry], accept, True, "", 0)


# A block, some tokens, and the row of each in it.
RowsOfTokens = tuple[ParsedBlock, Sequence[int], Sequence[int]]


def rows_of_tokens(doc: Doc, attr: str) -> list[RowsOfTokens]:
    """Return (block, tokens, rows): `find_row` for all tokens, by block, at once if the one block fits the Doc."""
    blocks = _held_in(doc.user_data, attr).parsed_tokens()
    if len(blocks) == 1 and blocks[0].stands_on(doc):
        return [(blocks[0], range(len(doc)), range(len(doc)))]
    by_block: dict[int, tuple[ParsedBlock, list[int], list[int]]] = {}
    for token in doc:
        claim = find_row(token, attr)
        if claim is not None:
            _, tokens, rows = by_block.setdefault(id(claim[0]), (claim[0], [], []))
            tokens.append(token.i)
            rows.append(claim[1])
    return list(by_block.values())


def annotations_of(doc: Doc, attr: str) -> list[Annotation]:
    """Return the annotations that the blocks of a Doc have scores of."""
    layers = dict.fromkeys(block["layer"] for _, block, _ in _held_in(doc.user_data, attr).blocks)
    return [get_annotation(layer) for layer in layers]


def has_labelled_spans(doc: Doc, attr: str) -> bool:
    """Whether a pipe wrote scores of spans with labels, or of links, on this Doc; scores of sentences are neither."""
    for _, block, _ in _held_in(doc.user_data, attr).blocks:
        annotation = get_annotation(block["layer"])
        if annotation.spans_are_units or ("spans" in block and annotation.span_words[0] != "sentence"):
            return True
    return False


def document_block(doc: Doc, attr: str) -> Block | None:
    """Return the block of this Doc as a whole; None where no block or more than one claims it."""
    blocks = _held_in(doc.user_data, attr).documents
    text = get_string_id(doc.text) if blocks else 0
    claims = [block for key, block in blocks if is_whole(block, key[2], text)]
    return claims[0] if len(claims) == 1 else None


def is_whole(block: Block, start: int, text: int) -> bool:
    """Return whether a block that begins at character `start` is of a whole Doc with this text. text (int): Its hash."""
    place = block["start"].astype(np.int64)
    if len(place) != 1 or place[0] + start != 0:
        return False
    words = word_digests(np.array([text], dtype=np.uint64), place + block.get("origin", 0), np.uint32)
    return bool(words[0] == block["word"][0])


def _is_own(block: ParsedBlock, row: int, token: Token, doc: Doc, i: int) -> bool:
    """Return whether neighbours, label and head agree that the row is the token's, see the module's docstring."""
    if block.head is not None and not block.has_head(row, token):
        return False
    follows = i == 0 or (row > 0 and block.row_of(doc[i - 1]) == row - 1)
    carries = block.carries(row, block.annotation.label(token))
    if follows and carries:
        return True
    return (follows or carries) and (i + 1 == len(doc) or block.row_of(doc[i + 1]) == row + 1)


def claimed_rows(doc: Doc, attr: str) -> list[tuple[Block, Ints, Ints]]:
    """Return (block, tokens, rows) for each block: `find_row` for all tokens of a Doc at once."""
    place = doc.to_array(["IDX", "ORTH", "LENGTH"]).astype(np.uint64, copy=False).reshape(-1, 3)
    matches = []
    claims = np.zeros(len(doc), dtype=np.intp)
    for key, block in _held_in(doc.user_data, attr).tokens:
        fits, rows = _fitting_rows(block, key[2], place)
        claims += fits
        matches.append((block, fits, rows))
    return [
        (block, tokens, rows[tokens])
        for block, fits, rows in matches
        for tokens in [np.flatnonzero(_are_own(block, fits, rows, doc) & (claims == 1))]
    ]


def _fitting_rows(block: Block, start: int, place: Hashes) -> tuple[NDArray[np.bool_], Ints]:
    """Return (whether there is a row, it), as `ParsedBlock.row_of`. place: Start, hash and width of each token."""
    row_starts, starts = block["start"].astype(np.int64) + start, place[:, 0].astype(np.int64)
    if not len(row_starts):
        return np.zeros(len(place), dtype=bool), np.zeros(len(place), dtype=np.intp)
    rows = np.minimum(np.searchsorted(row_starts, starts), len(row_starts) - 1)
    ends = starts + place[:, 2].astype(np.int64)
    gaps = np.append(row_starts[1:], block.get("end", 0) + start)[rows] - ends
    if "end" not in block:
        gaps[rows + 1 == len(row_starts)] = 0
    words = word_digests(place[:, 1], starts - start + block.get("origin", 0))
    return (row_starts[rows] == starts) & ((gaps == 0) | (gaps == 1)) & (words == block["word"][rows]), rows


def _are_own(block: Block, fits: NDArray[np.bool_], rows: Ints, doc: Doc) -> NDArray[np.bool_]:
    """Apply `_is_own` to all tokens. fits, rows: See `_fitting_rows`."""
    if not fits.any():
        return fits
    is_next = fits[1:] & fits[:-1] & (rows[1:] == rows[:-1] + 1)
    follows, precedes = np.append(True, is_next), np.append(is_next, True)
    result = fits & (follows | precedes)
    if "carried" in block and not (follows & precedes)[result].all():
        labels = get_annotation(block["layer"]).hashes(doc).astype(np.uint32)
        result &= (follows & precedes) | (block["carried"][rows] == labels)
    partners = get_annotation(block["layer"]).partners
    if "head" in block and partners is not None:
        places = partners(doc)
        starts = doc.to_array(["IDX"]).astype(np.int64).reshape(-1)
        result &= (places == block["head"][rows]) & fits[np.searchsorted(starts, starts + places)]
    return result
