"""A block as it is read: declared columns, each as a list once somebody asks for it, and its spans."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, Token

from ..annotations import get_annotation
from ..types import ROUNDING
from .blocks import (
    BLOCK_VERSION,
    HashedBlock,
    Stored,
    UserData,
    held_blocks,
    print_of,
    said_by,
    said_digest,
    unit_digests,
    word_digest,
)  # fmt: skip

# The part of a label's hash that a block keeps.
_LOW_HALF = (1 << 32) - 1

# A span: (first character, the one after the last, label).
SpanKey = tuple[int, int, str]
UNIT, ENTRY, BOUND = "unit", "entry", "bound"


class SpanValues(NamedTuple):
    """What a block holds of one span.

    place, text (int): First character in its block, and digest. text_hash (int): 0 where only the digest is known. accept (int): Whether it reaches its cut-off; -1 without
    cut-offs. chosen (bool): Whether it is on the Doc. layer (str), said (int): Annotation and digest of the token labels that
    the probability depends on; else "" and 0.
    """

    place: int
    text: int
    text_hash: int
    raw: float
    calibrated: float
    accept: int
    chosen: bool
    layer: str
    said: int

    @property
    def accepted(self) -> bool | None:
        """Whether it reaches its cut-off; None without cut-offs, and for candidates."""
        return None if self.accept < 0 or not self.chosen else bool(self.accept)

    def agrees(self, span: Span) -> bool:
        """Return whether the text (and token labels, if they count) of the span are as scored."""
        text_hash = get_string_id(span.text)
        if self.text_hash not in (0, text_hash) or word_digest(text_hash, self.place) != self.text:
            return False
        return not self.layer or said_digest(said_by(get_annotation(self.layer), span, self.place)) == self.said


class TokenValues(NamedTuple):
    """Raw and calibrated probability of a unit's label."""

    raw: float
    calibrated: float


@lru_cache(maxsize=4096)
def _low_half(label: str) -> int:
    """Return the part of a label's hash that blocks keep, 0 for none."""
    return get_string_id(label) & _LOW_HALF if label else 0


class Column(NamedTuple):
    """A declared column of a block.

    kind (str): Of its numbers, as `numpy.dtype.kind`. of (str): What each number is of, UNIT, ENTRY or BOUND (of each row's entries, one
    more than rows). needed (bool): Whether every block has it. extra (bool): Whether entries below the threshold follow.
    """

    kind: str
    of: str
    needed: bool = False
    extra: bool = False


COLUMNS = {
    "start": Column("u", UNIT, needed=True), "word": Column("u", UNIT, needed=True), "head": Column("i", UNIT), "carried": Column("u", UNIT),
    "out_of_reach": Column("b", UNIT), "flag": Column("i", UNIT), "accept": Column("i", UNIT), "indptr": Column("u", BOUND, needed=True),
    "tag": Column("u", ENTRY, needed=True), "raw": Column("f", ENTRY, needed=True, extra=True),
    "calibrated": Column("f", ENTRY, needed=True, extra=True), "in_set": Column("b", ENTRY), "column": Column("u", ENTRY),
}  # fmt: skip
_SCORES = tuple(name for name, column in COLUMNS.items() if column.extra)


def _read_column(stored: Stored, name: str) -> list[Any] | None:
    column, extra = stored.get(name), stored.get("extra") if COLUMNS[name].extra else None
    return None if column is None else column.tolist() + (extra[name].tolist() if extra else [])


def _read_spans(stored: Stored, begin: int) -> dict[SpanKey, SpanValues]:
    """begin (int): Character of the Doc at which the text of the block begins."""
    columns_by_name = stored.get("spans")
    if columns_by_name is None:
        return {}
    begins, ends = columns_by_name["start"].astype(np.int64), columns_by_name["end"].astype(np.int64)
    keys = zip((begins + begin).tolist(), (ends + begin).tolist(), columns_by_name["labels"], strict=True)
    hashes = stored.span_hashes if isinstance(stored, HashedBlock) else [0] * len(begins)
    digests, *columns = (columns_by_name[name].tolist() for name in ("text", "raw", "calibrated", "accept", "chosen"))
    layers = [columns_by_name.get("layer", "")] * len(begins)
    label_digests = columns_by_name.get("said", np.zeros(len(begins), dtype=np.uint32)).tolist()
    places = (begins + stored.get("origin", 0)).tolist()
    return dict(zip(keys, map(SpanValues, places, digests, hashes, *columns, layers, label_digests), strict=True))


class Block:
    """What one Doc got, under one key of its user data. One item is read from lists several times as fast as from arrays.

    key (tuple): See `blocks`; its third item is the character of the Doc at which the text of the block now begins. stored (Mapping): The
    block as it is stored: COLUMNS as arrays; besides "version"; "layer", name of the annotation; "tags", the labels of its entries; perhaps
    "end", "origin", "token_scores", "extra" (entries below the threshold) and "spans".
    annotation (Annotation): Of its labels. origin (int): Character of the Doc at which the text that it was written for would begin.
    spans (dict): Span of the Doc -> its values. token_scores (bool): Whether tokens have attributes with their scores.
    After `parse`, COLUMNS as lists, and label: Of each entry, row by row; then of those below the threshold, which `extra_entries` finds by
    row. end: Character after the last unit and its white space. starts: First character of each unit in the Doc. row_of_start: The row of
    each. word_hashes: Hash of each row's word; 0 where it was not met yet and only the digest is stored.
    """

    # Slots that are all set are read faster than anything that is made when it is asked for.
    __slots__ = (
        "key", "stored", "annotation", "origin", "spans", "token_scores", *COLUMNS, "label", "extra_entries", "end", "starts",
        "row_of_start", "word_hashes", "_is_parsed",
    )  # fmt: skip

    start: list[int]
    word: list[int]
    head: list[int] | None
    carried: list[int] | None
    out_of_reach: list[bool] | None
    flag: list[int] | None
    accept: list[int] | None
    indptr: list[int]
    tag: list[int]
    raw: list[float]
    calibrated: list[float]
    in_set: list[bool] | None
    column: list[int] | None

    def __init__(self, key: tuple[Any, ...], stored: Stored):
        self.key, self.stored, self.annotation = key, stored, get_annotation(stored["layer"])
        self.origin = int(key[2] - stored.get("origin", 0))
        self.spans = _read_spans(stored, key[2])
        self.token_scores = bool(stored.get("token_scores", True))
        self._is_parsed = False

    def parse(self) -> Block:
        """Make the lists, at the first call; whole columns are read from `stored`."""
        if self._is_parsed:
            return self
        stored, begin, extra = self.stored, self.key[2], self.stored.get("extra", {"row": np.zeros(0, np.intp), "tags": ()})
        for name in COLUMNS:
            setattr(self, name, _read_column(stored, name))
        self.label = [*map(stored["tags"].__getitem__, self.tag), *extra["tags"]]
        self.extra_entries = {row: i for i, row in enumerate(extra["row"].tolist(), len(self.tag))}
        self.end = stored["end"] + begin if "end" in stored else None
        self.starts = [start + begin for start in self.start]
        self.row_of_start = {start: row for row, start in enumerate(self.starts)}
        self.word_hashes = stored.word_hashes.tolist() if isinstance(stored, HashedBlock) else [0] * len(self.start)
        self._is_parsed = True
        return self

    # Whose rows they are

    def stands_on(self, doc: Doc) -> bool:
        """Return whether its rows are exactly a Doc's units, with the heads that they had."""
        places = self.annotation.unit_positions(doc)
        starts = self.stored["start"].astype(np.int64) + self.key[2]
        if not np.array_equal(places[:, 0].astype(np.int64), starts):
            return False
        if isinstance(self.stored, HashedBlock):
            if not np.array_equal(places[:, 1], self.stored.word_hashes):
                return False
        elif not np.array_equal(
            unit_digests(self.annotation.unit, np.column_stack([(starts - self.origin).astype(np.uint64), places[:, 1]])),
            self.stored["word"],
        ):
            return False
        partners = self.annotation.partners
        return "head" not in self.stored or (partners is not None and np.array_equal(partners(doc), self.stored["head"]))

    def row_of(self, token: Token) -> int | None:
        """Return the row of a token, by first character, width and word; None for none."""
        start = token.idx
        row = self.row_of_start.get(start)
        if row is None or self.word_hashes[row] == token.orth:
            return row
        if isinstance(self.stored, HashedBlock):
            return None
        next_start = self.starts[row + 1] if row + 1 < len(self.starts) else self.end
        gap = 0 if next_start is None else next_start - start - len(token)
        if gap not in (0, 1) or word_digest(token.orth, start - self.origin) != self.word[row]:
            return None
        self.word_hashes[row] = token.orth
        return row

    def has_head(self, row: int, token: Token) -> bool:
        """Return whether the token of a row still has its partner (head, or last token of its entity), if it needs one."""
        if self.head is None:
            return True
        head = self.annotation.partner(token)
        return head.idx - token.idx == self.head[row] and self.row_of(head) is not None

    def carries(self, row: int, label: str) -> bool:
        """Return whether this row was written for this label, "" for none; True if unknown."""
        return self.carried is None or self.carried[row] == _low_half(label)

    def entry_of(self, row: int, label: str) -> int | None:
        """Return the entry of a label at a row, or None."""
        try:
            return self.label.index(label, self.indptr[row], self.indptr[row + 1])
        except ValueError:
            i = self.extra_entries.get(row)
            return i if i is not None and self.label[i] == label else None

    def values_of(self, row: int, label: str) -> TokenValues | None:
        """Return the values of a label at a row, or None."""
        i = self.entry_of(row, label)
        return None if i is None else TokenValues(self.raw[i], self.calibrated[i])

    def set_of(self, row: int) -> tuple[str, ...] | None:
        """Return the labels in the set of a row, best first; None without sets, or if no set is enough."""
        if self.in_set is None or self.out_of_reach is None or self.out_of_reach[row]:
            return None
        return tuple(self.label[i] for i in self._best_first(row) if self.in_set[i])

    def _best_first(self, row: int) -> list[int]:
        """Return the entries of a row by calibrated score, then raw score, highest first."""
        return sorted(range(self.indptr[row], self.indptr[row + 1]), key=lambda i: (-self.calibrated[i], -self.raw[i]))

    def scores_of(self, row: int) -> dict[str, float]:
        """Return label -> calibrated probability of a row, highest first."""
        return {self.label[i]: self.calibrated[i] for i in self._best_first(row)}

    def raw_of(self, row: int) -> dict[str, float]:
        """Return label -> raw probability of a row, in the order of `scores_of`."""
        return {self.label[i]: self.raw[i] for i in self._best_first(row)}


# Kind of numbers of the columns of its spans, and of entries below the threshold.
_OF_SPANS = {"start": "u", "end": "u", "text": "u", "raw": "f", "calibrated": "f", "accept": "i", "chosen": "b", "said": "u"}
_OF_EXTRA = {"row": "u", "raw": "f", "calibrated": "f"}


def _is_sound(block: Block) -> bool:
    """Whether its parts fit each other and its scores are probabilities, as in every block that was not made up.

    RAISES anything: it was made up.
    """
    stored, bounds = block.stored, block.stored["indptr"].tolist()
    tags, extra, spans = stored["tags"], stored.get("extra", {}), stored.get("spans", {})
    size = {UNIT: len(bounds) - 1, ENTRY: bounds[-1], BOUND: len(bounds)}
    texts = [*tags, *extra.get("tags", ()), *spans.get("labels", ()), spans.get("event", ""), spans.get("layer", "")]
    if bounds[0] != 0 or bounds != sorted(bounds) or {*map(type, texts)} != {str}:
        return False
    columns = [(stored.get(name), column.kind, size[column.of], column.needed) for name, column in COLUMNS.items()]
    columns += [(spans.get(name), kind, len(spans["labels"]), name != "said") for name, kind in _OF_SPANS.items() if spans]
    columns += [(extra[name], kind, len(extra["tags"]), True) for name, kind in _OF_EXTRA.items() if extra]
    for column, kind, length, needed in columns:
        if needed if column is None else (column.dtype.kind != kind or column.shape != (length,)):
            return False
    scores = np.concatenate([part[name] for part in (stored, extra) if part for name in _SCORES])
    in_range = not len(scores) or (np.minimum.reduce(scores) >= 0 and np.maximum.reduce(scores) <= 1 + ROUNDING)
    named = not size[ENTRY] or int(np.maximum.reduce(stored["tag"])) < len(tags)
    return bool(
        in_range
        and named
        and stored["version"] == BLOCK_VERSION
        and (not isinstance(stored, HashedBlock) or len(stored.word_hashes) == size[UNIT])
        and ("in_set" in stored) == ("out_of_reach" in stored)
        and ("spans" in stored) == bool(spans)
        and extra.keys() <= {*_OF_EXTRA, "tags"}
        and spans.keys() <= {*_OF_SPANS, "labels", "event", "layer"}
        and {type(stored.get(name, 0)) for name in ("end", "origin")} == {int}
        and type(stored.get("token_scores", True)) is bool
    )


def sound_block(key: Any, stored: Any) -> Block | None:
    """The block, if it is as it was written: by its checksum, and by its form if somebody made it up."""
    with contextlib.suppress(Exception):  # a damaged block may be anything
        if print_of(stored) == key[3] - key[2] and _is_sound(block := Block(key, stored)):
            get_annotation(stored.get("spans", {}).get("layer") or stored["layer"])  # raises where it was made up
            return block
    return None


def sound_blocks(user_data: UserData, attr: str) -> Iterator[Block]:
    """The blocks of this attribute that are as they were written."""
    blocks = (sound_block(key, stored) for key, stored in held_blocks(user_data, attr))
    return (block for block in blocks if block is not None)
