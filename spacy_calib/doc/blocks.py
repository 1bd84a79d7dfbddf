"""What a Doc keeps: one block of arrays per annotated Doc in `doc.user_data`, and how a token finds its own row in it.

spaCy shifts the two offsets of a user_data key along in `Span.as_doc` and `Doc.from_docs`. A block stands under
("._.", "_<attr>", start, start + print): `start` is 0 where it is written and afterwards says where in the text the block's Doc
begins, `print` is a checksum of all that the block holds. The checksum keeps blocks of different Docs apart that end up at the same start (they
would overwrite each other, and a leftover could then claim a token that is not its own), and a block that was damaged is told by it.

A row belongs to a token if start and word agree and there is more to say for it: the token carries the label that the block was written
for and stands beside the token of the row before or behind (or at an end of the Doc), or both of these stand where they stood. (Rows that a cut left
over may by chance lie on equal words of a Doc that is joined behind it.) A token that two blocks claim has none.
"""

from __future__ import annotations

import contextlib
import functools
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..types import ROUNDING
from .annotations import get_annotation

Block = dict[str, Any]
UserData = MutableMapping[Any, Any]

BLOCK_VERSION = 2
_KEPT = 64
# Of a label's hash a block keeps so much.
_LOW_HALF = (1 << 32) - 1


def block_name(attr: str) -> str:
    return f"_{attr}"


def write_block(user_data: UserData, attr: str, block: Block) -> None:
    """Put a block into user_data, in place of all that the same attribute had there."""
    delete_blocks(user_data, attr)
    add_block(user_data, attr, block)


def add_block(user_data: UserData, attr: str, block: Block) -> None:
    """Put a block into user_data, beside those of other parts of the Doc. Its own part begins with the text."""
    user_data[("._.", block_name(attr), 0, print_of(block))] = block


def print_of(part: Block, print_: int = 0) -> int:
    """A checksum of all that a block holds. Those of version 1 were of some columns."""
    if part.get("version") == 1:
        columns = [part["raw"], part["orth"], part["calibrated"], *([part["spans"]["calibrated"]] if "spans" in part else [])]
        return functools.reduce(lambda sum_, column: zlib.crc32(column.tobytes(), sum_), columns, 0)
    for value in part.values():
        if isinstance(value, np.ndarray):
            print_ = zlib.crc32(value.data, print_)
        elif isinstance(value, dict):
            print_ = print_of(value, print_)
        else:
            # Lists come back as tuples from `Doc.from_bytes`.
            said = "\0".join(value) if isinstance(value, (list, tuple)) else str(value)
            print_ = zlib.crc32(said.encode("utf-8", "surrogatepass"), print_)
    return print_


def delete_blocks(user_data: UserData, attr: str) -> None:
    """Remove every block of this attribute."""
    for key, _ in _held(user_data, attr):
        user_data.pop(key, None)
    _CACHE.pop((id(user_data), attr), None)


def _held(user_data: UserData, attr: str) -> list[tuple[Any, Block]]:
    """All that stands under keys of this attribute, whole or not."""
    name = block_name(attr)
    # The list is made in one step, which another thread that writes on the Doc cannot get into.
    return [
        (key, value)
        for key, value in list(user_data.items())
        if type(key) is tuple and len(key) == 4 and key[1] == name and key[0] == "._."
    ]


def _find_blocks(user_data: UserData, attr: str) -> Iterator[tuple[Any, Block]]:
    """The blocks of this attribute that are as they were written."""
    for key, block in _held(user_data, attr):
        try:
            whole = print_of(block) == key[3] - key[2] and _is_sound(block)
        except Exception:  # a damaged block may be anything
            continue
        if whole:
            yield key, block


# Columns of a block: the kind of their numbers, and of what each has one.
_COLUMNS = {
    "start": ("u", "token"), "orth": ("u", "token"), "carried": ("u", "token"), "out_of_reach": ("b", "token"), "tag": ("u", "entry"),
    "raw": ("f", "entry"), "calibrated": ("f", "entry"), "low": ("f", "entry"), "high": ("f", "entry"), "in_set": ("b", "entry"),
    "column": ("u", "entry"),
}  # fmt: skip
_SCORES = ("raw", "calibrated", "low", "high")


def _is_sound(block: Block) -> bool:
    """Whether its parts fit each other and its scores are probabilities: they do unless somebody made it up.

    RAISES C001, and whatever the map in an annotation's name says of itself: there is no such annotation.
    """
    get_annotation(block["layer"])
    indptr, tags = block["indptr"], block["tags"]
    size = {"token": len(indptr) - 1, "entry": int(indptr[-1])}
    if indptr[0] != 0 or not (indptr[1:] >= indptr[:-1]).all() or not all(type(tag) is str for tag in tags):
        return False
    for name, (kind, of) in _COLUMNS.items():
        if name not in block and name in ("start", "orth", "tag", *_SCORES[:2]):
            return False
        if name in block and (block[name].dtype.kind != kind or block[name].shape != (size[of],)):
            return False
    scores = [part[name] for part in (block, block.get("extra", {})) for name in _SCORES if name in part]
    in_range = all(one.min(initial=0.0) >= 0 and one.max(initial=0.0) <= 1 + ROUNDING for one in scores)
    named = not size["entry"] or int(block["tag"].max()) < len(tags)
    return in_range and named and ("in_set" in block) == ("out_of_reach" in block)


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


def held_spans(user_data: UserData, attr: str, layer: str) -> list[tuple[SpanKey, SpanValues, str]]:
    """(key, values, event) of every span of all blocks of an annotation, in the order of the text; those that two blocks claim left out."""
    found: dict[SpanKey, tuple[SpanValues, str]] = {}
    twice: set[SpanKey] = set()
    for _, block, parsed in parsed_blocks(user_data, attr):
        for key, values in parsed.spans.items() if parsed.layer == layer else ():
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
        "calibrated", "carried", "extra", "in_set", "indptr", "intervals", "layer", "orth", "out_of_reach", "raw", "row_of_start", "spans", "tag",
        "tags",
    )  # fmt: skip

    def __init__(self, start: int, block: Block):
        self.layer: str = block["layer"]
        self.row_of_start = {at + start: row for row, at in enumerate(block["start"].tolist())}
        self.orth: list[int] = block["orth"].tolist()
        self.carried: list[int] | None = block["carried"].tolist() if "carried" in block else None
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
    found = []
    for key, block in _find_blocks(user_data, attr):
        with contextlib.suppress(Exception):  # spans that somebody made up may be anything
            found.append((key, block, ParsedBlock(key[2], block)))
    _CACHE[place] = (user_data, len(user_data), found)
    if len(_CACHE) > _KEPT:
        _CACHE.popitem(last=False)
    return found


# (start, word) of a token; None past an end of the Doc.
Place = tuple[int, int] | None


def find_row(
    user_data: UserData,
    attr: str,
    place: tuple[int, int],
    beside: Callable[[], tuple[Place, Place]],
    label: Callable[[str], int],
) -> tuple[ParsedBlock, int] | None:
    """The block and row that belong to a token; None where no block or more than one claims it.

    place (tuple): Its start and word. beside (Callable): Gives those of the tokens before and behind. label (Callable): Annotation -> hash of the
        label that the token carries, 0 for none.
    """
    claim = None
    for _, _, parsed in parsed_blocks(user_data, attr):
        row = parsed.row_of_start.get(place[0])
        if row is not None and parsed.orth[row] == place[1]:
            if claim is not None:
                return None
            claim = (parsed, row)
    return claim if claim is not None and _is_own(*claim, beside(), label) else None


def _is_own(parsed: ParsedBlock, row: int, beside: tuple[Place, Place], label: Callable[[str], int]) -> bool:
    """Whether there is more to say for a row than start and word: see the head of this file."""
    before, behind = _stands_at(parsed, row - 1, beside[0]), _stands_at(parsed, row + 1, beside[1])
    if before and behind:
        return True
    return (before or behind) and (parsed.carried is None or parsed.carried[row] == label(parsed.layer) & _LOW_HALF)


def _stands_at(parsed: ParsedBlock, row: int, place: Place) -> bool:
    """Whether the token at the place is that of the row; past an end of the Doc there is none to disagree."""
    return place is None or (parsed.row_of_start.get(place[0]) == row and parsed.orth[row] == place[1])


def claimed_rows(
    user_data: UserData, attr: str, starts: Any, orths: Any, labels: Callable[[str], Any]
) -> list[tuple[Block, Any, Any]]:
    """For all tokens of a Doc at once: (block, tokens, rows) for each block, tokens that two blocks claim left out.

    starts, orths: Character offset and word hash of each token, shape (n,). labels (Callable): Annotation -> hashes of their labels.
    """
    matches = []
    claims = np.zeros(len(starts), dtype=np.intp)
    for key, block, _ in parsed_blocks(user_data, attr):
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
