"""Blocks of documents: those whose digests begin with the same bits, as many bits as leave at most MOST_BLOCKS.

Folds and intervals are made over documents, but a table that kept millions of documents apart would be as large as the
corpus. How many bits are kept follows from the set of digests alone, never from the order in which tables were merged;
with few documents each is a block of its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..types import Ints

# The most blocks of a table.
MOST_BLOCKS = 1 << 14
# How many digests, the lowest, are kept to count documents by: exact for a million, an estimate beyond.
MOST = 1 << 20
_BITS = 64

Digests = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks of a table.

    bits (int): How many bits of a digest are kept, 0 to 64: one more would make more than MOST_BLOCKS.
    prefixes (Digests): Distinct digests with all other bits 0, ascending.
    """

    bits: int
    prefixes: Digests

    @classmethod
    def of(cls, digests: Digests, most_bits: int = _BITS) -> Blocks:
        """The blocks of some documents. most_bits (int): How many bits of the digests are known."""
        distinct = _first_bits(np.unique(digests), most_bits)
        bits = bisect_right(range(most_bits + 1), MOST_BLOCKS, key=lambda kept: _count(distinct, kept)) - 1
        return cls(bits, np.unique(_first_bits(distinct, bits)))

    @classmethod
    def merged(cls, parts: Sequence[Blocks]) -> Blocks:
        """The blocks of the documents of all parts: what `of` gives of all digests at once."""
        if not parts:
            return cls.of(np.zeros(0, dtype=np.uint64))
        return cls.of(np.concatenate([part.prefixes for part in parts]), min(part.bits for part in parts))

    def __len__(self) -> int:
        return len(self.prefixes)

    @property
    def single(self) -> bool:
        """Whether each block is one document."""
        return self.bits == _BITS

    def holds(self) -> bool:
        """Whether prefixes ascend, have only these bits, and are no more than there may be."""
        ascending = (self.prefixes[1:] > self.prefixes[:-1]).all() and len(self) <= MOST_BLOCKS
        return bool(self.bits <= _BITS and ascending and (_first_bits(self.prefixes, self.bits) == self.prefixes).all())

    def numbers(self, digests: Digests) -> Ints:
        """The number of each digest's block, from 0; each must be of one of these documents."""
        return np.searchsorted(self.prefixes, _first_bits(digests, self.bits))


def _first_bits(digests: Digests, bits: int) -> NDArray[Any]:
    """The digests with all bits but the first ones 0."""
    kept = ((1 << bits) - 1) << (_BITS - bits)
    return digests & np.uint64(kept)


def _count(distinct: Digests, bits: int) -> int:
    """How many blocks so many bits make. distinct (Digests): Ascending."""
    prefixes = _first_bits(distinct, bits)
    return min(1, len(distinct)) + int(np.count_nonzero(prefixes[1:] != prefixes[:-1]))


def lowest(parts: Iterable[Digests], most: int = MOST) -> Digests:
    """The lowest digests of all parts, each once, ascending."""
    return np.unique(np.concatenate([np.zeros(0, dtype=np.uint64), *parts]))[:most]


def count_distinct(kept: Digests, most: int = MOST) -> int:
    """How many digests there were: their number where all were kept, else as many as put the last one where it stands
    (Bar-Yossef et al. 2002, the k-th minimum value; with a million kept the standard error is .1 %).
    """
    return len(kept) if len(kept) < most else round((most - 1) * 2.0**64 / float(kept[-1]))


Numbers = NDArray[Any]
# Rows that are sorted at a time.
_PIECE = 1 << 22


class Rows(NamedTuple):
    """Columns of one length, the most significant first."""

    columns: list[Numbers]

    def changes(self) -> NDArray[np.bool_]:
        """Whether each row but the first differs from the one before."""
        found = np.zeros(max(0, len(self.columns[0]) - 1), dtype=bool)
        for column in self.columns:
            found |= column[1:] != column[:-1]
        return found

    def ascending(self) -> bool:
        """Whether each row is above the one before."""
        equal = np.ones(max(0, len(self.columns[0]) - 1), dtype=bool)
        for column in self.columns:
            if (equal & (column[1:] < column[:-1])).any():
                return False
            equal &= column[1:] == column[:-1]
        return not equal.any()


def collapse_rows(columns: Sequence[Numbers], pairs: Numbers, hits: Numbers) -> Rows:
    """Distinct rows of the columns, ascending, with the sums of pairs and hits as two more columns."""
    order = np.lexsort([_sortable(column) for column in reversed(columns)])
    ordered = [column[order] for column in columns]
    if not len(order):
        return Rows([*ordered, np.zeros(0, np.uint8), np.zeros(0, np.uint8)])
    starts = np.flatnonzero(np.append(True, Rows(ordered).changes()))
    sums = [smallest(np.add.reduceat(counts[order], starts, dtype=np.uint64)) for counts in (pairs, hits)]
    return Rows([*(column[starts] for column in ordered), *sums])


def joined_rows(pieces: Iterable[Rows], most: int, kinds: Sequence[Any]) -> list[Numbers]:
    """The columns of pieces that follow one another. Unfilled ends of arrays take no memory, and are cut off at last.

    most (int): Bound of the number of rows. kinds (Sequence): The narrowest type of each column.
    """
    columns: list[Numbers] = [np.empty(most, kind) for kind in kinds]
    n = 0
    for piece in pieces:
        end = n + len(piece.columns[0])
        for i, own in enumerate(piece.columns):
            kind = np.promote_types(columns[i].dtype, own.dtype)
            if kind != columns[i].dtype:
                wider = np.empty(most, kind)
                wider[:n] = columns[i][:n]
                columns[i] = wider
            columns[i][n:end] = own
        n = end
    for column in columns:
        column.resize(n, refcheck=False)
    return columns


def _sortable(column: Numbers) -> Numbers:
    """Numbers that sort as these do, and fast: the bits of floats in [0, 1] sort as the floats do."""
    return column.view(f"u{column.itemsize}") if column.dtype.kind == "f" else column


def in_pieces(parts: Sequence[tuple[Numbers, Numbers]]) -> Iterator[list[slice]]:
    """Where the rows of one range of (tag, block) stand in each part; a range has about _PIECE rows, or one block.

    parts (Sequence[tuple]): (tags, blocks) of each part, ascending.
    """
    ends = _aligned([_ends(tags) for tags, _ in parts])
    sums = ends.sum(axis=0)
    begin, n_tags = 0, ends.shape[1]
    starts = np.zeros(len(parts), dtype=np.intp)
    while begin < n_tags:
        done = int(sums[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(sums, done + _PIECE, side="right")))
        where = list(map(slice, starts.tolist(), ends[:, end - 1].tolist()))
        if sums[end - 1] - done <= _PIECE:
            yield where
        else:
            yield from _by_block([blocks[at] for (_, blocks), at in zip(parts, where, strict=True)], where)
        begin, starts = end, ends[:, end - 1]


def _by_block(blocks: Sequence[Numbers], where: list[slice]) -> Iterator[list[slice]]:
    """The same rows, which are of one tag, in several ranges of blocks. blocks: Of these rows in each part."""
    ends = _aligned([_ends(own) for own in blocks])
    sums = ends.sum(axis=0)
    cuts = np.unique(np.append(np.searchsorted(sums, np.arange(_PIECE, sums[-1], _PIECE)), ends.shape[1] - 1))
    starts = np.array([at.start for at in where])
    edges = np.concatenate([starts[:, None], starts[:, None] + ends[:, cuts]], axis=1).tolist()
    for i in range(len(cuts)):
        yield [slice(edge[i], edge[i + 1]) for edge in edges]


def _ends(column: Numbers) -> Numbers:
    """Where the rows of 0, 1, ... end. column: Ascending whole numbers; looked up in its own type, without a copy."""
    wanted = np.arange(int(column[-1]) + 1 if len(column) else 0)
    return np.searchsorted(column, wanted.astype(column.dtype), side="right")


def _aligned(ends: Sequence[Numbers]) -> Numbers:
    """Arrays of ends as rows of one array: past its own numbers a part ends where it ended."""
    found = np.zeros((len(ends), max(map(len, ends), default=0)), dtype=np.intp)
    for row, one in zip(found, ends, strict=True):
        row[: len(one)] = one
        row[len(one) :] = one[-1] if len(one) else 0
    return found


def smallest(values: Numbers) -> Numbers:
    """The same whole numbers in the narrowest unsigned type that holds the greatest."""
    return values.astype(np.min_scalar_type(int(values.max(initial=0))), copy=False)


def widest(kinds: Sequence[Any]) -> Any:
    """float64 where one of these types is, else float32."""
    return np.result_type(*kinds) if kinds else np.dtype(np.float32)
