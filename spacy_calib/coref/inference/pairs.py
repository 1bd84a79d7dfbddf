"""The probability that two mentions are in one cluster, exact without a sample.

For i < j, P(i ~ j) = sum over k < j of P(a_j = k) P(k ~ i), with P(i ~ i) = 1: j shares the cluster of the antecedent that it chooses, and no
later mention joins two clusters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...types import Floats, Ints
from .antecedents import Antecedents
from .long_documents import pair_blocks

# With more mentions than this the pairs are kept sparse while they are computed: see `long_documents.py`.
DENSE = 1000
# What is less is nothing.
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class MentionPairs:
    """Pairs of mentions with the probability that they are in one cluster; of those that are not here it is less than the threshold.

    later, earlier (Ints): The mentions, earlier < later; pairs in the order of `later`, then of `earlier`. chances (Floats): Of each pair.
    n_mentions (int): How many mentions there are.
    """

    later: Ints
    earlier: Ints
    chances: Floats
    n_mentions: int

    def __len__(self) -> int:
        return len(self.chances)

    @property
    def possible(self) -> int:
        """How many pairs there are, with those that are left out."""
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

    threshold (float): Pairs below it are left out. In documents of more than DENSE mentions those below a hundredth of it are taken for 0 in the sums,
        so that the memory is that of the others: with .01 the pairs of a speech of 27,000 words lose 2 of 100,000 parts of their sum, and .0002 at most.
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
    """The same of a long document."""
    found = []
    for begin, table in pair_blocks(antecedents, max(threshold / 100, _TINY)):
        rows, earlier = np.nonzero(np.tril(table >= max(threshold, _TINY), begin - 1))
        found.append((rows + begin, earlier, table[rows, earlier]))
    later, earlier, chances = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return MentionPairs(later, earlier, chances, len(antecedents))


def nearest_sample(samples: Ints, pairs: MentionPairs) -> Ints:
    """The clustering among samples that is expected to have the fewest pairs wrong. samples (Ints): See `Antecedents.sample`.

    A pair in one cluster is wrong with probability 1 - P, one that is not with P: what differs between samples is the sum of 1 - 2 P over the
    pairs that they put together.
    """
    # sample by sample: a long document has a million pairs
    together = np.array([pairs.chances @ (one[pairs.later] == one[pairs.earlier]) for one in samples])
    sizes = np.stack([np.bincount(one, minlength=pairs.n_mentions) for one in samples])
    expected = (sizes * (sizes - 1) / 2).sum(axis=1) - 2 * together
    return samples[int(expected.argmin())]
