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

from ..pairs.documents import TOKEN
from ..types import Ints
from .annotations import Annotation, Hashes, get_annotation
from .blocks import REMEMBERED, Block, UserData, sound_blocks, word_digests
from .parsed import ParsedBlock, SpanKey, SpanValues, parse_spans

# How many Docs are remembered: those that were read last.
_KEPT = 64


def find_span(span: Span, attr: str) -> SpanValues | None:
    """What the blocks hold of a span; None where no block or more than one claims it."""
    key, claim = (span.start_char, span.end_char, span.label_), None
    for _, _, spans in _held_in(span.doc.user_data, attr).blocks:
        values = spans.get(key)
        if values is not None and values.agrees(span):
            if claim is not None:
                return None
            claim = values
    return claim if claim is not None and _stands(span) else None


def _stands(span: Span) -> bool:
    """Whether the tokens of a span lie where it says: spaCy leaves span groups as they are when tokens are merged or split."""
    doc, last = span.doc, span.end - 1
    return last < len(doc) and (doc[span.start].idx, doc[last].idx + len(doc[last])) == (span.start_char, span.end_char)


def held_spans(user_data: UserData, attr: str, layer: str) -> list[tuple[SpanKey, SpanValues, str]]:
    """(key, values, event) of an annotation's spans, in the order of the text, without those that two blocks claim."""
    found: dict[SpanKey, tuple[SpanValues, str]] = {}
    twice: set[SpanKey] = set()
    for _, block, spans in _held_in(user_data, attr).blocks:
        for key, values in spans.items() if block["layer"] == layer else ():
            if key in found:
                twice.add(key)
            found[key] = (values, block["spans"]["event"])
    return [(key, *found[key]) for key in sorted(found) if key not in twice]


class _Held:
    """The sound blocks in a Doc's user data under one attribute.

    user_data, size: The user data, and their length. blocks: (key, block, spans) of each.
    tokens, documents: (key, block) where rows are tokens, and where the one row is a document.
    parsed (list[ParsedBlock] | None): The blocks of tokens, made when the first is read.
    """

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
        """The blocks whose rows are tokens."""
        if self.parsed is None:
            self.parsed = [ParsedBlock(key[2], block) for key, block in self.tokens]
        return self.parsed


def _held_in(user_data: UserData, attr: str) -> _Held:
    """The blocks of this attribute; those of the Docs read last are remembered."""
    held: _Held | None = REMEMBERED.get((id(user_data), attr))
    if held is not None and held.user_data is user_data and held.size == len(user_data):
        for key, block, _ in held.blocks:
            if user_data.get(key) is not block:
                break
        else:
            return held
    REMEMBERED[id(user_data), attr] = held = _Held(user_data, attr)
    if len(REMEMBERED) > _KEPT:
        REMEMBERED.popitem(last=False)
    return held


def find_row(token: Token, attr: str) -> tuple[ParsedBlock, int] | None:
    """The block and row of a token; None where no block or more than one claims it."""
    doc, i, claim = token.doc, token.i, None
    held = _held_in(doc.user_data, attr)
    for parsed in held.parsed or held.parsed_tokens():
        row = parsed.row_of(token)
        if row is not None:
            if claim is not None:
                return None
            claim = parsed, row
    return claim if claim is not None and _is_own(*claim, token, doc, i) else None


def row_of_span(span: Span, attr: str) -> tuple[ParsedBlock, int] | None:
    """The block and row of a span that has a row by itself, as links do; None where no block or more than one claims it."""
    found = find_row(span[0], attr) if len(span) and span[0].ent_iob_ == "B" else None
    if found is None or not found[0].annotation.spans_are_units or found[0].annotation.partner(span[0]).i + 1 != span.end:
        return None
    return found


def link_values(span: Span, attr: str) -> SpanValues | None:
    """What the row of an entity holds of the identity that it carries; None without a row, and where that identity has no score."""
    block, row = row_of_span(span, attr) or (None, 0)
    entry = None if block is None else block.entry_of(row, span.kb_id_)
    if block is None or entry is None:
        return None
    accept = block.accept[row] if block.accept is not None and block.carries(row, span.kb_id_) else -1
    return SpanValues(block.start[row], block.word[row], block.raw[entry], block.calibrated[entry], accept, True, "", 0)


# A block, some tokens, and the row of each in it.
RowsOfTokens = tuple[ParsedBlock, Sequence[int], Sequence[int]]


def rows_of_tokens(doc: Doc, attr: str) -> list[RowsOfTokens]:
    """(block, tokens, rows): what `find_row` gives for all tokens of a Doc, by block, in the order of their first
    tokens. Where the one block fits the Doc token by token, no token is looked up.
    """
    blocks = _held_in(doc.user_data, attr).parsed_tokens()
    if len(blocks) == 1 and blocks[0].stands_on(doc):
        return [(blocks[0], range(len(doc)), range(len(doc)))]
    found: dict[int, tuple[ParsedBlock, list[int], list[int]]] = {}
    for token in doc:
        claim = find_row(token, attr)
        if claim is not None:
            _, tokens, rows = found.setdefault(id(claim[0]), (claim[0], [], []))
            tokens.append(token.i)
            rows.append(claim[1])
    return list(found.values())


def annotations_of(doc: Doc, attr: str) -> list[Annotation]:
    """The annotations that the blocks of a Doc have scores of."""
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
    """The block of this Doc as a whole; None where no block or more than one claims it."""
    held = _held_in(doc.user_data, attr).documents
    text = get_string_id(doc.text) if held else 0
    claims = [block for key, block in held if is_whole(block, key[2], text)]
    return claims[0] if len(claims) == 1 else None


def is_whole(block: Block, start: int, text: int) -> bool:
    """Whether a block that now begins at character `start` is of a whole Doc with this text. text (int): Its hash."""
    place = block["start"].astype(np.int64)
    if len(place) != 1 or place[0] + start != 0:
        return False
    words = word_digests(np.array([text], dtype=np.uint64), place + block.get("origin", 0), np.uint32)
    return bool(words[0] == block["word"][0])


def _is_own(parsed: ParsedBlock, row: int, token: Token, doc: Doc, i: int) -> bool:
    """Whether neighbours, label and head say that the row is the token's: see the head of this file."""
    if parsed.head is not None and not parsed.has_head(row, token):
        return False
    before = i == 0 or (row > 0 and parsed.row_of(doc[i - 1]) == row - 1)
    carries = parsed.carries(row, parsed.annotation.label(token))
    if before and carries:
        return True
    return (before or carries) and (i + 1 == len(doc) or parsed.row_of(doc[i + 1]) == row + 1)


def claimed_rows(doc: Doc, attr: str) -> list[tuple[Block, Ints, Ints]]:
    """`find_row` for all tokens of a Doc at once: (block, tokens, rows) for each block."""
    place = doc.to_array(["IDX", "ORTH", "LENGTH"]).astype(np.uint64, copy=False).reshape(-1, 3)
    matches = []
    claims = np.zeros(len(doc), dtype=np.intp)
    for key, block in _held_in(doc.user_data, attr).tokens:
        fits, rows = _fitting_rows(block, key[2], place)
        claims += fits
        matches.append((block, fits, rows))
    return [
        (block, kept, rows[kept])
        for block, fits, rows in matches
        for kept in [np.flatnonzero(_are_own(block, fits, rows, doc) & (claims == 1))]
    ]


def _fitting_rows(block: Block, start: int, place: Hashes) -> tuple[NDArray[np.bool_], Ints]:
    """`ParsedBlock.row_of` for all tokens: (whether there is one, it). place: Start, hash and width of each token."""
    at, starts = block["start"].astype(np.int64) + start, place[:, 0].astype(np.int64)
    if not len(at):
        return np.zeros(len(place), dtype=bool), np.zeros(len(place), dtype=np.intp)
    rows = np.minimum(np.searchsorted(at, starts), len(at) - 1)
    ends = starts + place[:, 2].astype(np.int64)
    gaps = np.append(at[1:], block.get("end", 0) + start)[rows] - ends
    if "end" not in block:
        gaps[rows + 1 == len(at)] = 0
    words = word_digests(place[:, 1], starts - start + block.get("origin", 0))
    return (at[rows] == starts) & ((gaps == 0) | (gaps == 1)) & (words == block["word"][rows]), rows


def _are_own(block: Block, fits: NDArray[np.bool_], rows: Ints, doc: Doc) -> NDArray[np.bool_]:
    """`_is_own` for all tokens. fits (NDArray[np.bool_]), rows (Ints): See `_fitting_rows`."""
    if not fits.any():
        return fits
    linked = fits[1:] & fits[:-1] & (rows[1:] == rows[:-1] + 1)
    before, behind = np.append(True, linked), np.append(linked, True)
    own = fits & (before | behind)
    if "carried" in block and not (before & behind)[own].all():
        labels = get_annotation(block["layer"]).hashes(doc).astype(np.uint32)
        own &= (before & behind) | (block["carried"][rows] == labels)
    partners = get_annotation(block["layer"]).partners
    if "head" in block and partners is not None:
        places = partners(doc)
        starts = doc.to_array(["IDX"]).astype(np.int64).reshape(-1)
        own &= (places == block["head"][rows]) & fits[np.searchsorted(starts, starts + places)]
    return own
