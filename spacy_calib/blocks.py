"""What a Doc keeps: one block of arrays per annotated Doc in `doc.user_data`, and how a token finds its own row in it.

spaCy shifts the two offsets of a user_data key along in `Span.as_doc` and `Doc.from_docs`. A block stands under
("._.", "_<attr>", start, start + print): `start` is 0 where it is written and afterwards says where in the text the block's Doc
begins, `print` is a checksum of the block. The checksum keeps blocks of different Docs apart that end up at the same start (they would
overwrite each other, and a leftover could then claim a token that is not its own). A row belongs to a token if start *and* word
agree; a token that two blocks claim has none.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any, NamedTuple

import numpy as np

Block = dict[str, Any]
UserData = MutableMapping[Any, Any]

BLOCK_VERSION = 1
_KEPT = 64


def block_name(attr: str) -> str:
    return f"_{attr}"


def write_block(user_data: UserData, attr: str, block: Block) -> None:
    """Put a block into user_data, in place of all that the same attribute had there."""
    delete_blocks(user_data, attr)
    add_block(user_data, attr, block)


def add_block(user_data: UserData, attr: str, block: Block) -> None:
    """Put a block into user_data, beside those of other parts of the Doc. Its own part begins with the text."""
    print_ = 0
    for column in ("raw", "orth", "calibrated"):
        print_ = zlib.crc32(block[column].tobytes(), print_)
    if "spans" in block:
        print_ = zlib.crc32(block["spans"]["calibrated"].tobytes(), print_)
    user_data[("._.", block_name(attr), 0, print_)] = block


def delete_blocks(user_data: UserData, attr: str) -> None:
    """Remove every block of this attribute."""
    for key, _ in list(_find_blocks(user_data, attr)):
        del user_data[key]
    _CACHE.pop((id(user_data), attr), None)


def _find_blocks(user_data: UserData, attr: str) -> Iterator[tuple[Any, Block]]:
    name = block_name(attr)
    for key, value in user_data.items():
        if type(key) is tuple and len(key) == 4 and key[1] == name and key[0] == "._.":
            yield key, value


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


def find_span(user_data: UserData, attr: str, key: SpanKey, text: int) -> SpanValues | None:
    """What the blocks hold of a span that stands on the Doc; None where none holds it or more than one claims it."""
    claim = None
    for _, _, parsed in parsed_blocks(user_data, attr):
        values = parsed.spans.get(key)
        if values is not None and values.text == text:
            if claim is not None:
                return None
            claim = values
    return claim


def held_spans(user_data: UserData, attr: str) -> list[tuple[SpanKey, SpanValues, str]]:
    """(key, values, event) of every span of all blocks, in the order of the text; those that two blocks claim left out."""
    found: dict[SpanKey, tuple[SpanValues, str]] = {}
    twice: set[SpanKey] = set()
    for _, block, parsed in parsed_blocks(user_data, attr):
        for key, values in parsed.spans.items():
            if key in found:
                twice.add(key)
            found[key] = (values, block["spans"]["event"])
    return [(key, *found[key]) for key in sorted(found) if key not in twice]


Interval = tuple[float, float]


class TokenValues(NamedTuple):
    """Raw and calibrated probability of a label at a token, and its interval if the pipe keeps intervals."""

    raw: float
    calibrated: float
    interval: Interval | None


def _intervals(held: Block) -> list[Interval] | None:
    return list(zip(held["low"].tolist(), held["high"].tolist(), strict=True)) if "low" in held else None


class ParsedBlock:
    """A block as Python lists, which are several times as fast as arrays to read one item from."""

    __slots__ = (
        "calibrated", "extra", "in_set", "indptr", "intervals", "layer", "orth", "out_of_reach", "raw", "row_of_start", "spans", "tag", "tags",
    )  # fmt: skip

    def __init__(self, start: int, block: Block):
        self.layer: str = block["layer"]
        self.row_of_start = {at + start: row for row, at in enumerate(block["start"].tolist())}
        self.orth: list[int] = block["orth"].tolist()
        self.indptr: list[int] = block["indptr"].tolist()
        self.tag: list[int] = block["tag"].tolist()
        self.tags: list[str] = list(block["tags"])
        self.raw: list[float] = block["raw"].tolist()
        self.calibrated: list[float] = block["calibrated"].tolist()
        self.intervals = _intervals(block)
        self.in_set: list[bool] | None = block["in_set"].tolist() if "in_set" in block else None
        self.out_of_reach: list[bool] = block["out_of_reach"].tolist() if "in_set" in block else []
        # Row -> label, raw, calibrated, interval of a label below the threshold.
        self.extra: dict[int, tuple[str, float, float, Interval | None]] = {}
        extra = block.get("extra")
        if extra is not None:
            intervals: Sequence[Interval | None] = _intervals(extra) or [None] * len(extra["tags"])
            columns = (extra["row"].tolist(), extra["tags"], extra["raw"].tolist(), extra["calibrated"].tolist(), intervals)
            self.extra = {row: values for row, *values in zip(*columns, strict=True)}  # type: ignore[misc]
        self.spans: dict[SpanKey, SpanValues] = parse_spans(block.get("spans"), start)

    def values_of(self, row: int, label: str) -> TokenValues | None:
        """The values of this label at this row, None where the block has none for it."""
        for i in range(self.indptr[row], self.indptr[row + 1]):
            if self.tags[self.tag[i]] == label:
                return TokenValues(self.raw[i], self.calibrated[i], None if self.intervals is None else self.intervals[i])
        extra = self.extra.get(row)
        return TokenValues(*extra[1:]) if extra is not None and extra[0] == label else None

    def set_of(self, row: int) -> tuple[str, ...] | None:
        """The labels of the set at this row, highest calibrated score first; None without sets, and where the promise is out of reach."""
        if self.in_set is None or self.out_of_reach[row]:
            return None
        return tuple(self.tags[self.tag[i]] for i in self._best_first(row) if self.in_set[i])

    def _best_first(self, row: int) -> list[int]:
        """The entries of a row by calibrated score, equal ones by raw score."""
        return sorted(range(self.indptr[row], self.indptr[row + 1]), key=lambda i: (-self.calibrated[i], -self.raw[i]))

    def scores_of(self, row: int) -> dict[str, float]:
        """Label -> calibrated probability, highest first; equal ones by raw score."""
        return {self.tags[self.tag[i]]: self.calibrated[i] for i in self._best_first(row)}


_Entry = tuple[UserData, int, list[tuple[Any, Block, ParsedBlock]]]
_CACHE: OrderedDict[tuple[int, str], _Entry] = OrderedDict()


def parsed_blocks(user_data: UserData, attr: str) -> list[tuple[Any, Block, ParsedBlock]]:
    """(key, block, parsed block) of every block of this attribute; the last Docs that were read are remembered."""
    place = (id(user_data), attr)
    entry = _CACHE.get(place)
    if entry is not None and entry[0] is user_data and entry[1] == len(user_data):
        for key, block, _ in entry[2]:
            if user_data.get(key) is not block:
                break
        else:
            return entry[2]
    found = [(key, block, ParsedBlock(key[2], block)) for key, block in _find_blocks(user_data, attr)]
    _CACHE[place] = (user_data, len(user_data), found)
    if len(_CACHE) > _KEPT:
        _CACHE.popitem(last=False)
    return found


def find_row(user_data: UserData, attr: str, start: int, orth: int) -> tuple[ParsedBlock, int] | None:
    """The block and row that belong to the token with this start and word; None where no block or more than one claims it."""
    claim = None
    for _, _, parsed in parsed_blocks(user_data, attr):
        row = parsed.row_of_start.get(start)
        if row is not None and parsed.orth[row] == orth:
            if claim is not None:
                return None
            claim = (parsed, row)
    return claim


def claimed_rows(user_data: UserData, attr: str, starts: Any, orths: Any) -> list[tuple[Block, Any, Any]]:
    """For all tokens of a Doc at once: (block, tokens, rows) for each block, tokens that two blocks claim left out.

    starts, orths: Character offset and word hash of each token, shape (n,).
    """
    matches = []
    claims = np.zeros(len(starts), dtype=np.intp)
    for key, block in _find_blocks(user_data, attr):
        at = block["start"].astype(np.int64) + key[2]
        rows = np.minimum(np.searchsorted(at, starts), max(0, len(at) - 1))
        own = (at[rows] == starts) & (block["orth"][rows] == orths) if len(at) else np.zeros(len(starts), dtype=bool)
        claims += own
        matches.append((block, own, rows))
    return [(block, np.flatnonzero(own & (claims == 1)), rows[own & (claims == 1)]) for block, own, rows in matches]
