"""A block as it is read: its columns, as lists once they are needed, and its spans."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, Token

from ..annotations import get_annotation
from ..annotations.base import NO_PARTNER
from ..types import ROUNDING
from .blocks import (
    BLOCK_VERSION,
    BlockData,
    HashedBlock,
    UserData,
    checksum_of,
    digest_labels,
    find_blocks,
    span_label_rows,
    unit_digests,
    word_digest,
)  # fmt: skip

# The bits of a label's hash that a block keeps.
_LOW_BITS = (1 << 32) - 1

# A span: (first character, last character + 1, label).
SpanKey = tuple[int, int, str]
UNIT, ENTRY, BOUND = "unit", "entry", "bound"


class SpanValues(NamedTuple):
    """The scores of one span in a block, and whether it reaches its cut-off (accept: 1 or 0, -1 without cut-offs).

    offset (int): First character, in the text of the block. text_digest (int): Digest of text and offset. text_hash (int): Hash
        of the text, 0 if only the digest is known. on_doc (bool): False for a candidate. layer (str), label_digest (int):
        Annotation and digest of the token labels that the probability depends on; "" and 0 if none.
    """

    offset: int
    text_digest: int
    text_hash: int
    raw: float
    calibrated: float
    accept: int
    on_doc: bool
    layer: str
    label_digest: int

    @property
    def is_accepted(self) -> bool | None:
        """Whether it reaches its cut-off; None without cut-offs, and for candidates."""
        return None if self.accept < 0 or not self.on_doc else bool(self.accept)

    def agrees(self, span: Span) -> bool:
        """Return whether the span still has the text, and the token labels if they count, that were scored."""
        text_hash = get_string_id(span.text)
        if self.text_hash not in (0, text_hash) or word_digest(text_hash, self.offset) != self.text_digest:
            return False
        rows = span_label_rows(get_annotation(self.layer), span, self.offset) if self.layer else None
        return rows is None or digest_labels(rows) == self.label_digest


class TokenValues(NamedTuple):
    """Raw and calibrated probability of a unit's label."""

    raw: float
    calibrated: float


@lru_cache(maxsize=4096)
def _low_bits(label: str) -> int:
    """Return the bits of a label's hash that blocks keep, 0 for no label."""
    return get_string_id(label) & _LOW_BITS if label else 0


class BlockColumn(NamedTuple):
    """A column of a block.

    kind (str): As `numpy.dtype.kind`. is_required (bool): Whether every block has it. per (str): What each value belongs to:
    UNIT, ENTRY or BOUND (first entry of each row, and the number of entries: CSR row pointers).
    has_extra (bool): Whether values of entries below the threshold follow.
    """

    kind: str
    per: str
    is_required: bool = False
    has_extra: bool = False


# start, word: first character of a unit, and digest of its text and start. head: offset to its partner. carried: low bits of
# the hash of its predicted label. out_of_reach: only a set of all labels has the coverage. flag, accept: 1, 0, or -1 without
# cut-off. tag: index in the labels of the block. in_set: in the prediction set. column: column of the source, for lemmas.
COLUMNS = {
    "start": BlockColumn("u", UNIT, True), "word": BlockColumn("u", UNIT, True), "head": BlockColumn("i", UNIT),
    "carried": BlockColumn("u", UNIT), "flag": BlockColumn("i", UNIT),
    "accept": BlockColumn("i", UNIT), "indptr": BlockColumn("u", BOUND, True), "tag": BlockColumn("u", ENTRY, True),
    "raw": BlockColumn("f", ENTRY, True, has_extra=True), "calibrated": BlockColumn("f", ENTRY, True, has_extra=True),
    "column": BlockColumn("u", ENTRY),
}  # fmt: skip
_SCORES = tuple(name for name, column in COLUMNS.items() if column.has_extra)


def _read_column(data: BlockData, name: str) -> list[Any] | None:
    column, extra = data.get(name), data.get("extra") if COLUMNS[name].has_extra else None
    return None if column is None else column.tolist() + (extra[name].tolist() if extra else [])


def _read_spans(data: BlockData, text_start: int) -> dict[SpanKey, SpanValues]:
    """Return the values of each span of the Doc. text_start (int): Character of the Doc where the text of the block begins."""
    span_data = data.get("spans")
    if span_data is None:
        return {}
    starts, ends = span_data["start"].astype(np.int64), span_data["end"].astype(np.int64)
    keys = zip((starts + text_start).tolist(), (ends + text_start).tolist(), span_data["labels"], strict=True)
    hashes = data.span_hashes if isinstance(data, HashedBlock) else [0] * len(starts)
    text_digests, *columns = (span_data[name].tolist() for name in ("text", "raw", "calibrated", "accept", "chosen"))
    layers = [span_data.get("layer", "")] * len(starts)
    # "said": digests of the token labels that the probabilities depend on; a block without them depends on none.
    digests = span_data.get("said", np.zeros(len(starts), dtype=np.uint32)).tolist()
    # "origin": what to add to a character of a block cut from another, whose digests are of places in the whole text.
    offsets = (starts + data.get("origin", 0)).tolist()
    return dict(zip(keys, map(SpanValues, offsets, text_digests, hashes, *columns, layers, digests), strict=True))


class Block:
    """What one pipe wrote on one Doc, under one key of its user data; lists, since single items are read faster than from
    arrays.

    key (tuple): As in `blocks`; its third item is the character of the Doc at which the text of the block now begins.
    data (dict): The stored block: COLUMNS as arrays; "version"; "layer", name of the annotation; "tags", labels of the entries;
        optional "end", "origin", "token_scores", "extra" (entries below the threshold) and "spans".
    annotation (Annotation): Annotation of its labels.
    origin (int): Character of the Doc at which the text that the block was written for would begin.
    spans (dict): Span of the Doc -> its values. token_scores (bool): Whether tokens show their scores.
    After `parse`: COLUMNS as lists; label (list): Label of each entry, row by row, then of those below the threshold;
        extra_entries (dict): Row -> its entry below the threshold; end (int | None): Character after the last unit and its
        white space; starts (list): First character of each unit in the Doc; row_of_start (dict): Start -> row;
        word_hashes (list): Hash of each row's word; 0 if only its digest is stored and no word was checked yet.
    """

    # Slots, all set by `parse`, are read faster than cached properties.
    __slots__ = (
        "key", "data", "annotation", "origin", "spans", "token_scores", *COLUMNS, "label", "extra_entries", "end", "starts",
        "row_of_start", "word_hashes", "_is_parsed",
    )  # fmt: skip

    start: list[int]
    word: list[int]
    head: list[int] | None
    carried: list[int] | None
    flag: list[int] | None
    accept: list[int] | None
    indptr: list[int]
    tag: list[int]
    raw: list[float]
    calibrated: list[float]
    column: list[int] | None

    def __init__(self, key: tuple[Any, ...], data: BlockData):
        self.key, self.data, self.annotation = key, data, get_annotation(data["layer"])
        self.origin = int(key[2] - data.get("origin", 0))
        self.spans = _read_spans(data, key[2])
        self.token_scores = bool(data.get("token_scores", True))
        self._is_parsed = False

    def parse(self) -> Block:
        """Convert the columns to lists, on the first call only."""
        if self._is_parsed:
            return self
        data, begin, extra = self.data, self.key[2], self.data.get("extra", {"row": np.zeros(0, np.intp), "tags": ()})
        for name in COLUMNS:
            setattr(self, name, _read_column(data, name))
        self.label = [*map(data["tags"].__getitem__, self.tag), *extra["tags"]]
        self.extra_entries = {row: i for i, row in enumerate(extra["row"].tolist(), len(self.tag))}
        self.end = data["end"] + begin if "end" in data else None
        self.starts = [start + begin for start in self.start]
        self.row_of_start = {start: row for row, start in enumerate(self.starts)}
        self.word_hashes = data.word_hashes.tolist() if isinstance(data, HashedBlock) else [0] * len(self.start)
        self._is_parsed = True
        return self

    # Rows of tokens

    def matches_doc(self, doc: Doc) -> bool:
        """Return whether the rows are exactly the units of a Doc, with the heads that they had."""
        units = self.annotation.unit_positions(doc)
        starts = self.data["start"].astype(np.int64) + self.key[2]
        if not np.array_equal(units[:, 0].astype(np.int64), starts):
            return False
        if isinstance(self.data, HashedBlock):
            if not np.array_equal(units[:, 1], self.data.word_hashes):
                return False
        elif not np.array_equal(
            unit_digests(self.annotation.unit, np.column_stack([(starts - self.origin).astype(np.uint64), units[:, 1]])),
            self.data["word"],
        ):
            return False
        partners = self.annotation.partners
        return "head" not in self.data or (partners is not None and np.array_equal(partners(doc), self.data["head"]))

    def row_of(self, token: Token) -> int | None:
        """Return the row of a token, by its first character, width and word, or None."""
        start = token.idx
        row = self.row_of_start.get(start)
        if row is None or self.word_hashes[row] == token.orth:
            return row
        if isinstance(self.data, HashedBlock):
            return None
        next_start = self.starts[row + 1] if row + 1 < len(self.starts) else self.end
        gap = 0 if next_start is None else next_start - start - len(token)
        if gap not in (0, 1) or word_digest(token.orth, start - self.origin) != self.word[row]:
            return None
        self.word_hashes[row] = token.orth
        return row

    def has_head(self, row: int, token: Token) -> bool:
        """Return whether the token still has the head (or last token of its entity) of its row; True for rows without heads."""
        if self.head is None:
            return True
        head = self.annotation.partner(token)
        if head is None:
            return self.head[row] == NO_PARTNER
        return head.idx - token.idx == self.head[row] and self.row_of(head) is not None

    def had_label(self, row: int, label: str) -> bool:
        """Return whether the unit had this label ("" for none) when the pipe ran; True if unknown."""
        return self.carried is None or self.carried[row] == _low_bits(label)

    def entry_of(self, row: int, label: str) -> int | None:
        """Return the entry of a label in a row, or None."""
        try:
            return self.label.index(label, self.indptr[row], self.indptr[row + 1])
        except ValueError:
            i = self.extra_entries.get(row)
            return i if i is not None and self.label[i] == label else None

    def values_of(self, row: int, label: str) -> TokenValues | None:
        """Return the probabilities of a label in a row, or None."""
        i = self.entry_of(row, label)
        return None if i is None else TokenValues(self.raw[i], self.calibrated[i])

    def _best_first(self, row: int) -> list[int]:
        """Return the entries of a row by falling calibrated score, ties by raw score."""
        return sorted(range(self.indptr[row], self.indptr[row + 1]), key=lambda i: (-self.calibrated[i], -self.raw[i]))

    def scores_of(self, row: int) -> dict[str, float]:
        """Return label -> calibrated probability of a row, highest first."""
        return {self.label[i]: self.calibrated[i] for i in self._best_first(row)}

    def raw_of(self, row: int) -> dict[str, float]:
        """Return label -> raw probability of a row, in the order of `scores_of`."""
        return {self.label[i]: self.raw[i] for i in self._best_first(row)}


# `numpy.dtype.kind` of the columns of the spans of a block, and of its entries below the threshold.
_EXTRA_COLUMNS = {"row": "u", "raw": "f", "calibrated": "f"}
_SPAN_COLUMNS = dict(start="u", end="u", text="u", raw="f", calibrated="f", accept="i", chosen="b", said="u")


def _is_valid(block: Block) -> bool:
    """Return whether the parts fit each other and the scores are probabilities; may RAISE any exception if they do not."""
    data, bounds = block.data, block.data["indptr"].tolist()
    tags, extra, spans = data["tags"], data.get("extra", {}), data.get("spans", {})
    size = {UNIT: len(bounds) - 1, ENTRY: bounds[-1], BOUND: len(bounds)}
    texts = [*tags, *extra.get("tags", ()), *spans.get("labels", ()), spans.get("event", ""), spans.get("layer", "")]
    if bounds[0] != 0 or bounds != sorted(bounds) or {*map(type, texts)} != {str}:
        return False
    columns = [(data.get(name), column.kind, size[column.per], column.is_required) for name, column in COLUMNS.items()]
    columns += [(spans.get(name), kind, len(spans["labels"]), name != "said") for name, kind in _SPAN_COLUMNS.items() if spans]
    columns += [(extra[name], kind, len(extra["tags"]), True) for name, kind in _EXTRA_COLUMNS.items() if extra]
    for column, kind, length, is_required in columns:
        if is_required if column is None else (column.dtype.kind != kind or column.shape != (length,)):
            return False
    scores = np.concatenate([part[name] for part in (data, extra) if part for name in _SCORES])
    in_range = not len(scores) or (np.minimum.reduce(scores) >= 0 and np.maximum.reduce(scores) <= 1 + ROUNDING)
    tags_exist = not size[ENTRY] or int(np.maximum.reduce(data["tag"])) < len(tags)
    return bool(
        in_range
        and tags_exist
        and data["version"] == BLOCK_VERSION
        and (not isinstance(data, HashedBlock) or len(data.word_hashes) == size[UNIT])
        and ("spans" in data) == bool(spans)
        and extra.keys() <= {*_EXTRA_COLUMNS, "tags"}
        and spans.keys() <= {*_SPAN_COLUMNS, "labels", "event", "layer"}
        and {type(data.get(name, 0)) for name in ("end", "origin")} == {int}
        and type(data.get("token_scores", True)) is bool
    )


def valid_block(key: Any, data: Any) -> Block | None:
    """Return the block if checksum and form are valid, else None: user data may be damaged or forged."""
    with contextlib.suppress(Exception):  # a damaged block may be anything
        if checksum_of(data) == key[3] - key[2] and _is_valid(block := Block(key, data)):
            get_annotation(data.get("spans", {}).get("layer") or data["layer"])  # raises if there is no such annotation
            return block
    return None


def valid_blocks(user_data: UserData, attr: str) -> Iterator[Block]:
    """Yield the valid blocks of an attribute."""
    blocks = (valid_block(key, data) for key, data in find_blocks(user_data, attr))
    return (block for block in blocks if block is not None)
