"""Sorting and adding up rows of counts, in pieces that fit into little memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    """The columns of pieces that follow one another. Memory holds rows once: what is not filled of an array takes none, and is cut off at the end.

    most (int): There are no more rows. kinds (Sequence): The narrowest type of each column.
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
    """Where the rows of one range of (tag, block) stand in each part, range after range: about _PIECE rows or one block's each.

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
    """Where the rows of 0, 1, ... end. column: Ascending whole numbers; numbers of its own type are looked up without a copy of it."""
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
