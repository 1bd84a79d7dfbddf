"""How a token finds its own row in the blocks of its Doc, and a span what they hold of it.

A row belongs to a token if start and word agree and there is more to say for it: the token carries the label that the block was written
for and stands beside the token of the row before or behind (or at an end of the Doc), or both of these stand where they stood. (Rows that a
cut left over may by chance lie on equal words of a Doc that is joined behind it.) A token that two blocks claim has none.

The row of a whole document belongs to a Doc that begins where the block does and has the same text; a token never finds it, although the text
of a Doc may be one word.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from spacy.strings import get_string_id
from spacy.tokens import Doc, Token

from ..pairs.documents import TOKEN
from .annotations import Annotation, get_annotation
from .blocks import REMEMBERED, Block, UserData, sound_blocks

# So many Docs that were read last are remembered.
_KEPT = 64
# Of a label's hash a block keeps so much.
_LOW_HALF = (1 << 32) - 1

# Of a span: (first character, the one after the last, label).
SpanKey = tuple[int, int, str]


class SpanValues(NamedTuple):
    """What a block holds of one span: the hash of its text, raw and calibrated probability, 1 or 0 whether it reaches its cut-off (-1
    without cut-offs), and whether it stands on the Doc (not a candidate)."""

    text: int
    raw: float
    calibrated: float
    accept: int
    chosen: bool


def parse_spans(held: Block | None, start: int) -> dict[SpanKey, SpanValues]:
    """The spans of a block whose Doc begins at the character `start`."""
    if held is None:
        return {}
    keys = zip(
        (held["start"].astype(np.int64) + start).tolist(),
        (held["end"].astype(np.int64) + start).tolist(),
        held["labels"],
        strict=True,
    )
    columns = (held[name].tolist() for name in ("text", "raw", "calibrated", "accept", "chosen"))
    return dict(zip(keys, map(SpanValues, *columns), strict=True))


def find_span(user_data: UserData, attr: str, key: SpanKey, text: str) -> SpanValues | None:
    """What the blocks hold of a span that stands on the Doc; None where none holds it or more than one claims it."""
    claim = None
    for _, _, spans in _held_in(user_data, attr).blocks:
        values = spans.get(key)
        if values is not None and values.text == get_string_id(text):
            if claim is not None:
                return None
            claim = values
    return claim


def held_spans(user_data: UserData, attr: str, layer: str) -> list[tuple[SpanKey, SpanValues, str]]:
    """(key, values, event) of every span of all blocks of an annotation, in the order of the text; those that two blocks claim left out."""
    found: dict[SpanKey, tuple[SpanValues, str]] = {}
    twice: set[SpanKey] = set()
    for _, block, spans in _held_in(user_data, attr).blocks:
        for key, values in spans.items() if block["layer"] == layer else ():
            if key in found:
                twice.add(key)
            found[key] = (values, block["spans"]["event"])
    return [(key, *found[key]) for key in sorted(found) if key not in twice]


# An interval of probabilities.
LowHigh = tuple[float, float]


class TokenValues(NamedTuple):
    """Raw and calibrated probability of a label at a token, and its interval if the pipe keeps intervals."""

    raw: float
    calibrated: float
    interval: LowHigh | None


class ParsedBlock:
    """The units of a block as Python lists, which are several times as fast as arrays to read one item from.

    label, raw, calibrated, low, high: Of each entry; behind those of the rows (see `indptr`) stand the labels below the threshold, see `below`.
    """

    __slots__ = (
        "accept", "annotation", "below", "calibrated", "carried", "flag", "high", "in_set", "indptr", "label", "low", "orth", "out_of_reach", "raw",
        "row_of_start",
    )  # fmt: skip

    def __init__(self, start: int, block: Block):
        self.annotation = get_annotation(block["layer"])
        starts = (block["start"].astype(np.int64) + start).tolist()
        self.row_of_start: dict[int, int] = dict(zip(starts, range(len(starts)), strict=True))
        self.orth: list[int] = block["orth"].tolist()
        self.carried: Any = block.get("carried")  # an array: seldom asked
        self.indptr: list[int] = block["indptr"].tolist()
        self.label: list[str] = [*map(block["tags"].__getitem__, block["tag"].tolist())]
        self.raw: list[float] = block["raw"].tolist()
        self.calibrated: list[float] = block["calibrated"].tolist()
        self.low: list[float] | None = block["low"].tolist() if "low" in block else None
        self.high: list[float] | None = block["high"].tolist() if "low" in block else None
        self.in_set: list[bool] | None = block["in_set"].tolist() if "in_set" in block else None
        self.out_of_reach: list[bool] | None = block["out_of_reach"].tolist() if "in_set" in block else None
        self.accept: list[int] | None = block["accept"].tolist() if "accept" in block else None
        self.flag: list[int] | None = block["flag"].tolist() if "flag" in block else None
        # Row -> the entry of a label below the threshold.
        self.below: dict[int, int] = {}
        if block.get("extra"):
            self._add_below(block["extra"])

    def _add_below(self, extra: Block) -> None:
        self.below = {row: i for i, row in enumerate(extra["row"].tolist(), len(self.label))}
        self.label += extra["tags"]
        for name in ("raw", "calibrated", "low", "high"):
            held = getattr(self, name)
            if held is not None:
                held += extra[name].tolist()

    def stands_at(self, row: int, token: Token) -> bool:
        """Whether a token stands where that of the row stood."""
        return self.row_of_start.get(token.idx) == row and self.orth[row] == token.orth

    def carries(self, row: int, label: str) -> bool:
        """Whether this row was written for this label, "" for none."""
        return bool(self.carried[row] == (get_string_id(label) & _LOW_HALF if label else 0))

    def entry_of(self, row: int, label: str) -> int | None:
        """The entry of this label at this row, None where the block has none for it."""
        try:
            return self.label.index(label, self.indptr[row], self.indptr[row + 1])
        except ValueError:
            i = self.below.get(row)
            return i if i is not None and self.label[i] == label else None

    def values_of(self, row: int, label: str) -> TokenValues | None:
        """The values of this label at this row, None where the block has none for it."""
        i = self.entry_of(row, label)
        if i is None:
            return None
        interval = None if self.low is None or self.high is None else (self.low[i], self.high[i])
        return TokenValues(self.raw[i], self.calibrated[i], interval)

    def set_of(self, row: int) -> tuple[str, ...] | None:
        """The labels of the set at this row, highest calibrated score first; None without sets, and where the promise is out of reach."""
        if self.in_set is None or self.out_of_reach is None or self.out_of_reach[row]:
            return None
        return tuple(self.label[i] for i in self._best_first(row) if self.in_set[i])

    def _best_first(self, row: int) -> list[int]:
        """The entries of a row by calibrated score, equal ones by raw score."""
        return sorted(range(self.indptr[row], self.indptr[row + 1]), key=lambda i: (-self.calibrated[i], -self.raw[i]))

    def scores_of(self, row: int) -> dict[str, float]:
        """Label -> calibrated probability, highest first; equal ones by raw score."""
        return {self.label[i]: self.calibrated[i] for i in self._best_first(row)}

    def raw_of(self, row: int) -> dict[str, float]:
        """The same before calibration, in the same order."""
        return {self.label[i]: self.raw[i] for i in self._best_first(row)}


class _Held:
    """What the user data of a Doc hold for an attribute.

    user_data, size: Whose, and how many entries they had. blocks: (key, block, spans) of each sound block.
    tokens, documents: (key, block) of those whose rows are tokens, and of those whose one row is a document.
    parsed (list[ParsedBlock] | None): The blocks of tokens, made when the first one is read.
    """

    __slots__ = ("blocks", "documents", "parsed", "size", "tokens", "user_data")

    def __init__(self, user_data: UserData, attr: str):
        self.user_data, self.size = user_data, len(user_data)
        self.blocks: list[tuple[Any, Block, dict[SpanKey, SpanValues]]] = []
        for key, block in sound_blocks(user_data, attr):
            with contextlib.suppress(Exception):  # spans that somebody made up may be anything
                self.blocks.append((key, block, parse_spans(block.get("spans"), key[2])))
        self.tokens: list[tuple[Any, Block]] = []
        self.documents: list[tuple[Any, Block]] = []
        for key, block, _ in self.blocks:
            (self.tokens if get_annotation(block["layer"]).unit == TOKEN else self.documents).append((key, block))
        self.parsed: list[ParsedBlock] | None = None

    def parsed_tokens(self) -> list[ParsedBlock]:
        """The blocks whose rows are tokens."""
        if self.parsed is None:
            self.parsed = [ParsedBlock(key[2], block) for key, block in self.tokens]
        return self.parsed


def _held_in(user_data: UserData, attr: str) -> _Held:
    """What is held for this attribute; the last Docs that were read are remembered."""
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
    """The block and row that belong to a token; None where no block or more than one claims it."""
    doc, i = token.doc, token.i
    held = _held_in(doc.user_data, attr)
    start, orth, claim = token.idx, token.orth, None
    for parsed in held.parsed_tokens():
        row = parsed.row_of_start.get(start)
        if row is not None and parsed.orth[row] == orth:
            if claim is not None:
                return None
            claim = parsed, row
    return claim if claim is not None and _is_own(*claim, token, doc, i) else None


# A block, some tokens, and the row of each in it.
RowsOfTokens = tuple[ParsedBlock, Sequence[int], Sequence[int]]


def rows_of_tokens(doc: Doc, attr: str, starts: Sequence[int], orths: Sequence[int]) -> list[RowsOfTokens]:
    """`find_row` of all tokens of a Doc, for each block that has rows of some; in the order of the first of these. Where the one block has a row for each
    token at its place, the tokens need not be asked.

    starts, orths: First character and word hash of each token.
    """
    blocks = _held_in(doc.user_data, attr).parsed_tokens()
    if len(blocks) == 1 and blocks[0].orth == orths and list(blocks[0].row_of_start) == starts:
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
    """The annotations whose labels the blocks of a Doc have scores of; none where it has no block."""
    layers = dict.fromkeys(block["layer"] for _, block, _ in _held_in(doc.user_data, attr).blocks)
    return [get_annotation(layer) for layer in layers]


def document_block(doc: Doc, attr: str) -> Block | None:
    """The block whose row is this Doc as a whole; None where no block or more than one claims it."""
    held = _held_in(doc.user_data, attr).documents
    text = get_string_id(doc.text) if held else 0
    claims = [block for key, block in held if is_whole(block, key[2], text)]
    return claims[0] if len(claims) == 1 else None


def is_whole(block: Block, start: int, text: int) -> bool:
    """Whether the row of a block that now begins at this character is a Doc with this text (its hash)."""
    return len(block["start"]) == 1 and int(block["start"][0]) + start == 0 and int(block["orth"][0]) == text


def _is_own(parsed: ParsedBlock, row: int, token: Token, doc: Doc, i: int) -> bool:
    """Whether there is more to say for a row than start and word: see the head of this file. doc, i: The token's."""
    before = i == 0 or parsed.stands_at(row - 1, doc[i - 1])
    behind = i + 1 == len(doc) or parsed.stands_at(row + 1, doc[i + 1])
    if before and behind:
        return True
    if not (before or behind):
        return False
    if parsed.carried is None:
        return True
    return parsed.carries(row, parsed.annotation.label(token))


def claimed_rows(
    user_data: UserData, attr: str, starts: Any, orths: Any, labels: Callable[[str], Any]
) -> list[tuple[Block, Any, Any]]:
    """For all tokens of a Doc at once: (block, tokens, rows) for each block, tokens that two blocks claim left out.

    starts, orths: Character offset and word hash of each token, shape (n,). labels (Callable): Annotation -> hashes of their labels.
    """
    matches = []
    claims = np.zeros(len(starts), dtype=np.intp)
    for key, block in _held_in(user_data, attr).tokens:
        at = block["start"].astype(np.int64) + key[2]
        rows = np.minimum(np.searchsorted(at, starts), max(0, len(at) - 1))
        own = (at[rows] == starts) & (block["orth"][rows] == orths) if len(at) else np.zeros(len(starts), dtype=bool)
        claims += own
        matches.append((block, own, rows))
    return [
        (block, kept, rows[kept])
        for block, own, rows in matches
        for kept in [np.flatnonzero(_are_own(block, own, rows, labels) & (claims == 1))]
    ]


def _are_own(block: Block, own: Any, rows: Any, labels: Callable[[str], Any]) -> Any:
    """`_is_own` for all tokens. own: Which agree in start and word. rows: Of each token."""
    if not own.any():
        return own
    linked = own[1:] & own[:-1] & (rows[1:] == rows[:-1] + 1)
    before, behind = np.append(True, linked), np.append(linked, True)
    if (before & behind)[own].all():
        return own
    same: Any = True if "carried" not in block else block["carried"][rows] == labels(block["layer"]).astype(np.uint32)
    return own & ((before & behind) | ((before | behind) & same))
