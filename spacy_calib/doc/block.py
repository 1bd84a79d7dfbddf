"""A block as it is read: declared columns, each as a list once somebody asks for it, and its spans."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Generic, NamedTuple, TypeVar, overload

import numpy as np
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, Token

from ..annotations import Annotation, get_annotation
from ..types import ROUNDING
from .blocks import (
    BLOCK_VERSION,
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
Item = TypeVar("Item")
UNIT, ENTRY, BOUND = "unit", "entry", "bound"


class SpanValues(NamedTuple):
    """What a block holds of one span.

    place, text (int): First character in its block, and digest. accept (int): Whether it reaches its cut-off; -1 without
    cut-offs. chosen (bool): Whether it is on the Doc. layer (str), said (int): Annotation and digest of the token labels that
    the probability depends on; else "" and 0.
    """

    place: int
    text: int
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
        if word_digest(get_string_id(span.text), self.place) != self.text:
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


class Column(Generic[Item]):
    """A declared column of a block: read from an instance, its numbers as a list that is made at the first read; None where it is not stored.

    kind (str): Of its numbers, as `numpy.dtype.kind`. of (str): What each number is of, UNIT, ENTRY or BOUND (of each row's entries, one more than rows). needed (bool): Whether every
    block has it. extra (bool): Whether entries below the threshold follow.
    """

    def __init__(self, kind: str, of: str, *, needed: bool = False, extra: bool = False):
        self.kind, self.of, self.needed, self.extra = kind, of, needed, extra

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, block: None, owner: type) -> Column[Item]: ...
    @overload
    def __get__(self, block: Block, owner: type) -> Item: ...
    def __get__(self, block: Block | None, owner: type) -> Any:
        if block is None:
            return self
        column, extra = block.stored.get(self.name), block.stored.get("extra") if self.extra else None
        values = None if column is None else column.tolist() + (extra[self.name].tolist() if extra else [])
        # Later reads find the list in front of this descriptor.
        block.__dict__[self.name] = values
        return values


@dataclass(frozen=True, eq=False)
class Block:
    """What one Doc got, under one key of its user data. One item is read from lists several times as fast as from arrays.

    key (tuple): See `blocks`; its third item is the character of the Doc at which the text of the block now begins. stored (Mapping): The block as it is stored: the columns below as arrays; besides "version"; "layer", name
    of the annotation; "tags", the labels of its entries, and "indptr", the bounds of each row's entries; perhaps "end", "origin",
    "token_scores", "extra" (entries below the threshold) and "spans".
    """

    key: tuple[Any, ...]
    stored: Stored

    start = Column[list[int]]("u", UNIT, needed=True)
    word = Column[list[int]]("u", UNIT, needed=True)
    head = Column[list[int] | None]("i", UNIT)
    carried = Column[list[int] | None]("u", UNIT)
    out_of_reach = Column[list[bool] | None]("b", UNIT)
    flag = Column[list[int] | None]("i", UNIT)
    accept = Column[list[int] | None]("i", UNIT)
    indptr = Column[list[int]]("u", BOUND, needed=True)
    tag = Column[list[int]]("u", ENTRY, needed=True)
    raw = Column[list[float]]("f", ENTRY, needed=True, extra=True)
    calibrated = Column[list[float]]("f", ENTRY, needed=True, extra=True)
    in_set = Column[list[bool] | None]("b", ENTRY)
    column = Column[list[int] | None]("u", ENTRY)

    @cached_property
    def annotation(self) -> Annotation:
        """Of its labels. RAISES C001, or an error of the label map in the name: there is no such annotation."""
        return get_annotation(self.stored["layer"])

    @cached_property
    def origin(self) -> int:
        """Character of the Doc at which the text that the block was written for would begin."""
        return int(self.key[2] - self.stored.get("origin", 0))

    @cached_property
    def end(self) -> int | None:
        """Character after the last unit and its white space."""
        return self.stored["end"] + self.key[2] if "end" in self.stored else None

    @cached_property
    def token_scores(self) -> bool:
        """Whether tokens have attributes with their scores."""
        return bool(self.stored.get("token_scores", True))

    @cached_property
    def label(self) -> list[str]:
        """Of each entry, row by row; then of those below the threshold."""
        return [*map(self.stored["tags"].__getitem__, self.tag), *self.stored.get("extra", {}).get("tags", ())]

    @cached_property
    def extra_entries(self) -> dict[int, int]:
        """Row -> the entry of its label below the threshold."""
        extra = self.stored.get("extra")
        return {row: i for i, row in enumerate(extra["row"].tolist(), len(self.tag))} if extra else {}

    @cached_property
    def starts(self) -> list[int]:
        """First character of each unit in the Doc."""
        return [start + self.key[2] for start in self.start]

    @cached_property
    def row_of_start(self) -> dict[int, int]:
        """First character -> row."""
        return dict(zip(self.starts, range(len(self.starts)), strict=True))

    @cached_property
    def word_hashes(self) -> list[int]:
        """Hash of each row's word, 0 until it was met."""
        return [0] * len(self.start)

    @cached_property
    def spans(self) -> dict[SpanKey, SpanValues]:
        """Span of the Doc -> what the block holds of it."""
        columns_by_name = self.stored.get("spans")
        if columns_by_name is None:
            return {}
        begins, ends = columns_by_name["start"].astype(np.int64), columns_by_name["end"].astype(np.int64)
        keys = zip((begins + self.key[2]).tolist(), (ends + self.key[2]).tolist(), columns_by_name["labels"], strict=True)
        columns = (columns_by_name[name].tolist() for name in ("text", "raw", "calibrated", "accept", "chosen"))
        layers = [columns_by_name.get("layer", "")] * len(begins)
        label_digests = columns_by_name.get("said", np.zeros(len(begins), dtype=np.uint32)).tolist()
        places = (begins + self.stored.get("origin", 0)).tolist()
        return dict(zip(keys, map(SpanValues, places, *columns, layers, label_digests), strict=True))

    # Whose rows they are

    def stands_on(self, doc: Doc) -> bool:
        """Return whether its rows are exactly a Doc's units, with the heads that they had."""
        places = self.annotation.places(doc)
        starts = self.stored["start"].astype(np.int64) + self.key[2]
        if not np.array_equal(places[:, 0].astype(np.int64), starts):
            return False
        places = np.column_stack([(starts - self.origin).astype(np.uint64), places[:, 1]])
        if not np.array_equal(unit_digests(self.annotation.unit, places), self.stored["word"]):
            return False
        partners = self.annotation.partners
        return "head" not in self.stored or (partners is not None and np.array_equal(partners(doc), self.stored["head"]))

    def row_of(self, token: Token) -> int | None:
        """Return the row of a token, by first character, width and word; None for none."""
        start = token.idx
        row = self.row_of_start.get(start)
        if row is None or self.word_hashes[row] == token.orth:
            return row
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


# Name -> declared column.
COLUMNS: dict[str, Column[Any]] = {name: column for name, column in vars(Block).items() if isinstance(column, Column)}
_SCORES = tuple(name for name, column in COLUMNS.items() if column.extra)
# Kind of numbers of the columns of its spans, and of entries below the threshold.
_OF_SPANS = {"start": "u", "end": "u", "text": "u", "raw": "f", "calibrated": "f", "accept": "i", "chosen": "b", "said": "u"}
_OF_EXTRA = {"row": "u", "raw": "f", "calibrated": "f"}


def _is_sound(block: Block) -> bool:
    """Whether its parts fit each other and its scores are probabilities, as in every block that was not made up.

    RAISES anything: it was made up.
    """
    stored, bounds = block.stored, block.indptr
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
        block = Block(key, stored)
        if print_of(stored) == key[3] - key[2] and _is_sound(block):
            # Read here, where what raises was made up.
            _ = block.annotation, get_annotation(stored.get("spans", {}).get("layer") or stored["layer"]), block.spans
            return block
    return None


def sound_blocks(user_data: UserData, attr: str) -> Iterator[Block]:
    """The blocks of this attribute that are as they were written."""
    blocks = (sound_block(key, stored) for key, stored in held_blocks(user_data, attr))
    return (block for block in blocks if block is not None)
