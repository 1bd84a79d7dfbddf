"""Pair probabilities of documents with thousands of mentions, without a table of all pairs: a block of mentions after the other.

The sums over antecedents that stand before the block are one sparse product for all of its mentions; within the block they are built mention by
mention. What is less than a given probability is taken for 0 as soon as its mention is done, so that memory and time are those of the pairs that are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...types import Floats, Ints
from .antecedents import Antecedents

# Mentions in a block.
BLOCK = 64
# A candidate that is chosen more rarely than this share of the least probability brings no more than itself: not those that are with it.
_RARE = 0.01


def pair_blocks(antecedents: Antecedents, least: float) -> Iterator[tuple[int, Floats]]:
    """(first mention, P(i ~ j) of the mentions i of a block and all j before its end, shape (n_block, end)), 0 where it is below `least` or i = j."""
    partners = _Partners(len(antecedents))
    for begin in range(0, len(antecedents), BLOCK):
        table = _block(antecedents, partners, begin, min(begin + BLOCK, len(antecedents)), least)
        partners.add(begin, table)
        yield begin, table


def _block(antecedents: Antecedents, partners: _Partners, begin: int, end: int, least: float) -> Floats:
    """See `pair_blocks`."""
    from scipy.sparse import csr_matrix

    starts = antecedents.candidates.starts
    own = slice(starts[begin], starts[end])
    earlier, chances = antecedents.candidates.earlier[own], antecedents.chances[own]
    rows = np.repeat(np.arange(end - begin), np.diff(starts[begin : end + 1]))
    likely, before = chances >= least * _RARE, earlier < begin
    near, far = likely & ~before, likely & before
    within = np.zeros((end - begin, end - begin))
    within[rows[near], earlier[near] - begin] = chances[near]
    through, places = np.unique(earlier[far], return_inverse=True)
    links = csr_matrix((chances[far], (rows[far], places)), shape=(end - begin, len(through)))
    table = np.zeros((end - begin, end))
    table[:, :begin] = (links @ partners.of(through, begin)).toarray()
    table[rows, earlier] += chances  # the antecedent itself
    steps, reached = links.toarray(), np.zeros((end - begin, len(through)))
    for row in range(end - begin):
        sums = table[row, : begin + row]
        sums += within[row, :row] @ table[:row, : begin + row]
        sums[begin:] += reached[:row] @ steps[row]
        sums[sums < least] = 0.0
        np.minimum(sums, 1.0, out=sums)
        table[:row, begin + row] = sums[begin:]
        reached[row] = table[row, through]
    return table


class _Partners:
    """Of each mention those that it was found in one cluster with so far, earlier and later ones, and with what probability: 12 bytes each."""

    def __init__(self, n: int):
        self._others = [bytearray() for _ in range(n)]
        self._chances = [bytearray() for _ in range(n)]

    def of(self, mentions: Ints, width: int) -> Any:
        """Those of some mentions as a sparse matrix, shape (n_mentions, width)."""
        from scipy.sparse import csr_matrix

        numbers = mentions.tolist()
        others = np.frombuffer(b"".join(self._others[one] for one in numbers), dtype=np.intc)
        chances = np.frombuffer(b"".join(self._chances[one] for one in numbers))
        starts = np.cumsum([0, *(len(self._others[one]) // others.itemsize for one in numbers)])
        return csr_matrix((chances, others, starts), shape=(len(numbers), width))

    def add(self, begin: int, table: Floats) -> None:
        """Those of a block, and the block for those before it. begin (int), table (Floats): See `pair_blocks`."""
        from scipy.sparse import csc_matrix, csr_matrix

        own, before = csr_matrix(table), csc_matrix(table[:, :begin])
        self._extend(begin, own.indptr, own.indices, own.data)
        self._extend(0, before.indptr, before.indices + begin, before.data)

    def _extend(self, first: int, starts: Ints, others: Ints, chances: Floats) -> None:
        """More of each mention from the first on. starts (Ints): Where those of each begin, and the end of the last."""
        places, others = starts.tolist(), others.astype(np.intc)
        for mention in np.flatnonzero(np.diff(starts)).tolist():
            part = slice(places[mention], places[mention + 1])
            self._others[first + mention] += others[part].tobytes()
            self._chances[first + mention] += chances[part].tobytes()
