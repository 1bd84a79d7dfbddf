"""The probability that two mentions are in one cluster, exact without a sample.

For i < j, P(i ~ j) = sum over k < j of P(a_j = k) P(k ~ i), with P(i ~ i) = 1: j shares the cluster of the antecedent that it chooses, and no
later mention joins two clusters.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass

import numpy as np

from ...types import Floats, Ints
from .antecedents import Antecedents

# With more mentions than this the pairs are kept sparse while they are computed.
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

    threshold (float): Pairs below it are left out; in documents of more than DENSE mentions they are taken for 0 in the sums too, a hundred times
        smaller ones, so that the memory is that of the pairs that are kept.
    """
    n = len(antecedents)
    if n > DENSE:
        return _above(_sparse(antecedents, threshold / 100), threshold)
    full = np.eye(n)
    for late in range(1, n):
        earlier, chances = antecedents.of(late)
        if len(earlier):
            full[late, :late] = full[:late, late] = np.minimum(chances @ full[earlier, :late], 1.0)
    later, earlier = np.nonzero(np.tril(full >= max(threshold, _TINY), -1))
    return MentionPairs(later, earlier, full[later, earlier], n)


def _sparse(antecedents: Antecedents, least: float) -> MentionPairs:
    """The same from lists: of each mention those that it was found in one cluster with so far, earlier and later ones."""
    n = len(antecedents)
    others, chances_of = [array("i") for _ in range(n)], [array("d") for _ in range(n)]
    found: list[tuple[Ints, Floats]] = [(np.zeros(0, dtype=np.intp), np.zeros(0))]
    sums = np.zeros(n)
    for late in range(1, n):
        sums[:] = 0.0
        candidates, chances = antecedents.of(late)
        sums[candidates] = chances  # the antecedent itself
        for one, chance in zip(candidates.tolist(), chances.tolist(), strict=True):
            if others[one] and chance >= least / 100:
                sums[np.frombuffer(others[one], dtype=np.intc)] += chance * np.frombuffer(chances_of[one])
        kept = np.flatnonzero(sums[:late] >= max(least, _TINY))
        own = np.minimum(sums[kept], 1.0)
        others[late].frombytes(kept.astype(np.intc).tobytes())
        chances_of[late].frombytes(own.tobytes())
        for one, chance in zip(kept.tolist(), own.tolist(), strict=True):
            others[one].append(late)
            chances_of[one].append(chance)
        found.append((kept, own))
    later = np.repeat(np.arange(len(found)), [len(kept) for kept, _ in found])
    return MentionPairs(later, np.concatenate([kept for kept, _ in found]), np.concatenate([own for _, own in found]), n)


def _above(pairs: MentionPairs, threshold: float) -> MentionPairs:
    keep = np.flatnonzero(pairs.chances >= threshold)
    return MentionPairs(pairs.later[keep], pairs.earlier[keep], pairs.chances[keep], pairs.n_mentions)


def nearest_sample(samples: Ints, pairs: MentionPairs) -> Ints:
    """The clustering among samples that is expected to have the fewest pairs wrong. samples (Ints): See `Antecedents.sample`.

    A pair in one cluster is wrong with probability 1 - P, one that is not with P: what differs between samples is the sum of 1 - 2 P over the
    pairs that they put together.
    """
    together = samples[:, pairs.later] == samples[:, pairs.earlier]
    sizes = np.stack([np.bincount(one, minlength=pairs.n_mentions) for one in samples])
    expected = (sizes * (sizes - 1) / 2).sum(axis=1) - 2 * together @ pairs.chances
    return samples[int(expected.argmin())]
