"""The probability that two mentions are in one cluster, exact without a sample.

For i < j, P(i ~ j) = sum over k < j of P(a_j = k) P(k ~ i), with P(i ~ i) = 1: j shares the cluster of the antecedent
that it chooses, and no later mention joins two clusters.

With thousands of mentions there is no table of all pairs but one block of mentions after the other. Sums over
antecedents before the block are one sparse product; within the block they are built mention by mention. A sum below the
given least probability is set to 0 at once, so that memory and time are those of the pairs that are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...types import Floats, Ints
from .antecedents import Antecedents

# Mentions in a block.
BLOCK = 64
# A candidate chosen more rarely than this share of the least probability adds only itself, not those in its cluster.
_RARE = 0.01


def pair_blocks(antecedents: Antecedents, least: float) -> Iterator[tuple[int, Floats]]:
    """(first mention i of a block, P(i ~ j) of its mentions and all j before its end), 0 below `least`; per block."""
    partners = _Partners(len(antecedents))
    for begin in range(0, len(antecedents), BLOCK):
        table = _block(antecedents, partners, begin, min(begin + BLOCK, len(antecedents)), least)
        partners.add(begin, table)
        yield begin, table


def _block(antecedents: Antecedents, partners: _Partners, begin: int, end: int, least: float) -> Floats:
    """The table of one block, see `pair_blocks`."""
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
    """Other mentions in the cluster of each mention, found so far, and with what probability: 12 bytes each."""

    def __init__(self, n: int):
        self._others = [bytearray() for _ in range(n)]
        self._chances = [bytearray() for _ in range(n)]

    def of(self, mentions: Ints, width: int) -> Any:
        """The partners of some mentions as a sparse matrix, shape (n_mentions, width)."""
        from scipy.sparse import csr_matrix

        numbers = mentions.tolist()
        others = np.frombuffer(b"".join(self._others[one] for one in numbers), dtype=np.intc)
        chances = np.frombuffer(b"".join(self._chances[one] for one in numbers))
        starts = np.cumsum([0, *(len(self._others[one]) // others.itemsize for one in numbers)])
        return csr_matrix((chances, others, starts), shape=(len(numbers), width))

    def add(self, begin: int, table: Floats) -> None:
        """Add those of a block, and the block as partners of mentions before it. begin, table: See `pair_blocks`."""
        from scipy.sparse import csc_matrix, csr_matrix

        own, before = csr_matrix(table), csc_matrix(table[:, :begin])
        self._extend(begin, own.indptr, own.indices, own.data)
        self._extend(0, before.indptr, before.indices + begin, before.data)

    def _extend(self, first: int, starts: Ints, others: Ints, chances: Floats) -> None:
        """Add partners from mention `first` on. starts (Ints): Where those of each begin, and the end of the last."""
        places, others = starts.tolist(), others.astype(np.intc)
        for mention in np.flatnonzero(np.diff(starts)).tolist():
            part = slice(places[mention], places[mention + 1])
            self._others[first + mention] += others[part].tobytes()
            self._chances[first + mention] += chances[part].tobytes()


# With more mentions than this, pairs are kept sparse while they are computed.
DENSE = 1000
# Anything less is 0.
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class MentionPairs:
    """Pairs of mentions that reach a threshold, with the probability that they are in one cluster.

    later, earlier (Ints): The mentions, earlier < later; pairs in order of `later`, then `earlier`. chances (Floats):
    Of each pair. n_mentions (int): How many mentions there are.
    """

    later: Ints
    earlier: Ints
    chances: Floats
    n_mentions: int

    def __len__(self) -> int:
        return len(self.chances)

    @property
    def possible(self) -> int:
        """The number of all pairs, below the threshold too."""
        return self.n_mentions * (self.n_mentions - 1) // 2

    def where(self, one: int, other: int) -> int:
        """The place of a pair, in either order; -1 where it is not here."""
        late, early = max(one, other), min(one, other)
        begin, end = np.searchsorted(self.later, [late, late + 1])
        place = int(begin + np.searchsorted(self.earlier[begin:end], early))
        return place if place < end and self.earlier[place] == early else -1

    def matrix(self) -> Floats:
        """All pairs as a symmetric array (n, n), 1 on the diagonal, 0 for pairs that are not here."""
        full = np.eye(self.n_mentions)
        full[self.later, self.earlier] = full[self.earlier, self.later] = self.chances
        return full


def pair_chances(antecedents: Antecedents, threshold: float = 0.0) -> MentionPairs:
    """P(i ~ j) of all pairs that reach the threshold.

    threshold (float): With more than DENSE mentions, sums count a pair below a hundredth of it as 0, to save memory:
    with .01, pairs of a speech of 27,000 words lose 2 in 100,000 of their sum, and at most .0002 each.
    """
    n = len(antecedents)
    if n > DENSE:
        return _from_blocks(antecedents, threshold)
    full = np.eye(n)
    for late in range(1, n):
        earlier, chances = antecedents.of(late)
        if len(earlier):
            full[late, :late] = full[:late, late] = np.minimum(chances @ full[earlier, :late], 1.0)
    later, earlier = np.nonzero(np.tril(full >= max(threshold, _TINY), -1))
    return MentionPairs(later, earlier, full[later, earlier], n)


def _from_blocks(antecedents: Antecedents, threshold: float) -> MentionPairs:
    """`pair_chances` of a long document."""
    found = []
    for begin, table in pair_blocks(antecedents, max(threshold / 100, _TINY)):
        rows, earlier = np.nonzero(np.tril(table >= max(threshold, _TINY), begin - 1))
        found.append((rows + begin, earlier, table[rows, earlier]))
    later, earlier, chances = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return MentionPairs(later, earlier, chances, len(antecedents))


def nearest_sample(samples: Ints, pairs: MentionPairs) -> Ints:
    """The clustering among samples with the fewest expected wrong pairs. samples (Ints): See `Antecedents.sample`.

    A pair put together is wrong with probability 1 - P, another with P: samples differ by the sum of 1 - 2 P over pairs
    put together.
    """
    # sample by sample: a long document has a million pairs
    together = np.array([pairs.chances @ (one[pairs.later] == one[pairs.earlier]) for one in samples])
    sizes = np.stack([np.bincount(one, minlength=pairs.n_mentions) for one in samples])
    expected = (sizes * (sizes - 1) / 2).sum(axis=1) - 2 * together
    return samples[int(expected.argmin())]
