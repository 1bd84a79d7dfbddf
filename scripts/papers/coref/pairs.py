"""The probability that two mentions are in one cluster, exact without a sample.

For i < j, P(i ~ j) = sum over k < j of P(a_j = k) P(k ~ i), with P(i ~ i) = 1: j shares the cluster of the antecedent
that it chooses, and no later mention joins two clusters.

With thousands of mentions there is no table of all pairs but one block of mentions after the other. Sums over
antecedents before the block are one sparse product; within the block they are built mention by mention. A sum below the
minimum is set to 0 at once, so that memory and time grow only with the number of pairs above it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from spacy_calib.types import Floats, Ints

from .antecedents import Antecedents

# Mentions in a block.
BLOCK = 64
# A candidate chosen more rarely than this share of the minimum adds only itself, not those in its cluster.
_RARE = 0.01


def pair_blocks(antecedents: Antecedents, minimum: float) -> Iterator[tuple[int, Floats]]:
    """Yield (first mention i of a block, P(i ~ j) of its mentions and all j before its end), 0 below the minimum."""
    partners = _Partners(len(antecedents))
    for begin in range(0, len(antecedents), BLOCK):
        table = _block(antecedents, partners, begin, min(begin + BLOCK, len(antecedents)), minimum)
        partners.add(begin, table)
        yield begin, table


def _block(antecedents: Antecedents, partners: _Partners, begin: int, end: int, minimum: float) -> Floats:
    """Return P(i ~ j) of mentions from begin to end (rows) with all before the end (columns), 0 below the minimum."""
    from scipy.sparse import csr_matrix

    starts = antecedents.candidates.starts
    part = slice(starts[begin], starts[end])
    earlier, probabilities = antecedents.candidates.earlier[part], antecedents.probabilities[part]
    rows = np.repeat(np.arange(end - begin), np.diff(starts[begin : end + 1]))
    likely, is_before = probabilities >= minimum * _RARE, earlier < begin
    in_block, before_block = likely & ~is_before, likely & is_before
    block_probabilities = np.zeros((end - begin, end - begin))
    block_probabilities[rows[in_block], earlier[in_block] - begin] = probabilities[in_block]
    through, columns = np.unique(earlier[before_block], return_inverse=True)
    links = csr_matrix((probabilities[before_block], (rows[before_block], columns)), shape=(end - begin, len(through)))
    table = np.zeros((end - begin, end))
    table[:, :begin] = (links @ partners.get_rows(through, begin)).toarray()
    table[rows, earlier] += probabilities  # the antecedent itself
    steps, probabilities_through = links.toarray(), np.zeros((end - begin, len(through)))
    for row in range(end - begin):
        sums = table[row, : begin + row]
        sums += block_probabilities[row, :row] @ table[:row, : begin + row]
        sums[begin:] += probabilities_through[:row] @ steps[row]
        sums[sums < minimum] = 0.0
        np.minimum(sums, 1.0, out=sums)
        table[:row, begin + row] = sums[begin:]
        probabilities_through[row] = table[row, through]
    return table


class _Partners:
    """The mentions that may be in the cluster of each mention so far, with probabilities: 12 bytes each."""

    def __init__(self, n: int):
        self._numbers = [bytearray() for _ in range(n)]
        self._probabilities = [bytearray() for _ in range(n)]

    def get_rows(self, mentions: Ints, width: int) -> Any:
        """Return the partners of some mentions as a sparse matrix, shape (n_mentions, width)."""
        from scipy.sparse import csr_matrix

        numbers = mentions.tolist()
        partners = np.frombuffer(b"".join(self._numbers[number] for number in numbers), dtype=np.intc)
        probabilities = np.frombuffer(b"".join(self._probabilities[number] for number in numbers))
        starts = np.cumsum([0, *(len(self._numbers[number]) // partners.itemsize for number in numbers)])
        return csr_matrix((probabilities, partners, starts), shape=(len(numbers), width))

    def add(self, begin: int, table: Floats) -> None:
        """Add the pairs of a block, in both directions. begin (int): Its first mention. table (Floats): P(i ~ j), by `_block`."""
        from scipy.sparse import csc_matrix, csr_matrix

        rows, columns = csr_matrix(table), csc_matrix(table[:, :begin])
        self._extend(begin, rows.indptr, rows.indices, rows.data)
        self._extend(0, columns.indptr, columns.indices + begin, columns.data)

    def _extend(self, first: int, starts: Ints, partners: Ints, probabilities: Floats) -> None:
        """Add partners from mention `first` on. starts (Ints): First partner of each, and the end."""
        bounds, partners = starts.tolist(), partners.astype(np.intc)
        for mention in np.flatnonzero(np.diff(starts)).tolist():
            part = slice(bounds[mention], bounds[mention + 1])
            self._numbers[first + mention] += partners[part].tobytes()
            self._probabilities[first + mention] += probabilities[part].tobytes()


# With more mentions than this, pairs are kept sparse while they are computed.
DENSE = 1000
# Anything less is 0.
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class MentionPairs:
    """Pairs of mentions (later, earlier; in this order) that reach a threshold, with P(same cluster); n_mentions in all."""

    later: Ints
    earlier: Ints
    probabilities: Floats
    n_mentions: int

    def __len__(self) -> int:
        return len(self.probabilities)

    @property
    def possible(self) -> int:
        """Number of all pairs, below the threshold too."""
        return self.n_mentions * (self.n_mentions - 1) // 2

    def index_of(self, a: int, b: int) -> int:
        """Return the index of a pair, its mentions in either order; -1 if it is below the threshold."""
        later, earlier = max(a, b), min(a, b)
        begin, end = np.searchsorted(self.later, [later, later + 1])
        index = int(begin + np.searchsorted(self.earlier[begin:end], earlier))
        return index if index < end and self.earlier[index] == earlier else -1

    def matrix(self) -> Floats:
        """Return all pairs as a symmetric array (n, n), 1 on the diagonal, 0 for pairs below the threshold."""
        full = np.eye(self.n_mentions)
        full[self.later, self.earlier] = full[self.earlier, self.later] = self.probabilities
        return full


def pair_probabilities(antecedents: Antecedents, threshold: float = 0.0) -> MentionPairs:
    """Return P(i ~ j) of all pairs that reach the threshold.

    threshold (float): With more than DENSE mentions, sums count a pair below a hundredth of it as 0, to save memory: with .01,
    pairs of a speech of 27,000 words lose 2 in 100,000 of their sum, and at most .0002 each.
    """
    n = len(antecedents)
    if n > DENSE:
        return _from_blocks(antecedents, threshold)
    full = np.eye(n)
    for mention in range(1, n):
        earlier, probabilities = antecedents.get_options(mention)
        if len(earlier):
            full[mention, :mention] = full[:mention, mention] = np.minimum(probabilities @ full[earlier, :mention], 1.0)
    later, earlier = np.nonzero(np.tril(full >= max(threshold, _TINY), -1))
    return MentionPairs(later, earlier, full[later, earlier], n)


def _from_blocks(antecedents: Antecedents, threshold: float) -> MentionPairs:
    """Compute `pair_probabilities` block by block."""
    blocks = []
    for begin, table in pair_blocks(antecedents, max(threshold / 100, _TINY)):
        rows, earlier = np.nonzero(np.tril(table >= max(threshold, _TINY), begin - 1))
        blocks.append((rows + begin, earlier, table[rows, earlier]))
    later, earlier, probabilities = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return MentionPairs(later, earlier, probabilities, len(antecedents))


def nearest_sample(samples: Ints, pairs: MentionPairs) -> Ints:
    """Return the sample with the fewest wrong pairs in expectation: each pair that it puts together adds 1 - 2 P to them."""
    # sample by sample: a long document has a million pairs
    sums = np.array([pairs.probabilities @ (sample[pairs.later] == sample[pairs.earlier]) for sample in samples])
    sizes = np.stack([np.bincount(sample, minlength=pairs.n_mentions) for sample in samples])
    expected_errors = (sizes * (sizes - 1) / 2).sum(axis=1) - 2 * sums
    return samples[int(expected_errors.argmin())]
