"""How near a clustering comes to the gold: MUC (Vilain et al. 1995), B3 (Bagga & Baldwin 1998), CEAF and LEA."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from ...types import Adds

Cluster = frozenset[Hashable]
Clusters = Sequence[Cluster]


@dataclass(frozen=True)
class Shares(Adds):
    """What makes precision and recall: (how much was right, of how much), so that documents add up.

    precision, recall (tuple[float, float]): Of the clusters found, and of the gold ones.
    """

    precision: tuple[float, float]
    recall: tuple[float, float]

    @property
    def p(self) -> float:
        """Precision; 0 where nothing was found."""
        return self.precision[0] / self.precision[1] if self.precision[1] else 0.0

    @property
    def r(self) -> float:
        """Recall; 0 where the gold has nothing."""
        return self.recall[0] / self.recall[1] if self.recall[1] else 0.0

    @property
    def f(self) -> float:
        """Their harmonic mean; 0 where both are."""
        return 2 * self.p * self.r / (self.p + self.r) if self.p + self.r else 0.0


NOTHING = Shares((0.0, 0.0), (0.0, 0.0))


def _both_ways(share: Callable[[Clusters, Clusters], tuple[float, float]], found: Clusters, gold: Clusters) -> Shares:
    return Shares(share(found, gold), share(gold, found))


def _parts(cluster: Cluster, others: Clusters) -> list[int]:
    """How many mentions of a cluster lie in each of the others; a mention in none is a part by itself."""
    of_mention = {mention: i for i, other in enumerate(others) for mention in other}
    counts = Counter(of_mention.get(mention, (mention,)) for mention in cluster)
    return list(counts.values())


def muc(found: Clusters, gold: Clusters) -> Shares:
    """Links of clusters that the other clustering keeps: size less number of parts, of size less one."""

    def share(own: Clusters, other: Clusters) -> tuple[float, float]:
        return (float(sum(len(one) - len(_parts(one, other)) for one in own)), float(sum(len(one) - 1 for one in own)))

    return _both_ways(share, found, gold)


def b_cubed(found: Clusters, gold: Clusters) -> Shares:
    """Of each mention's cluster, the share that the other clustering puts with it."""

    def share(own: Clusters, other: Clusters) -> tuple[float, float]:
        of_mention = {mention: one for one in other for mention in one}
        right = sum(len(one & of_mention.get(mention, frozenset())) / len(one) for one in own for mention in one)
        return float(right), float(sum(map(len, own)))

    return _both_ways(share, found, gold)


def ceaf(found: Clusters, gold: Clusters) -> Shares:
    """CEAF-e (Luo 2005): clusters are paired one to one so that the sum of 2 |both| / (|one| + |other|) is largest."""
    from scipy.optimize import linear_sum_assignment

    if not found or not gold:
        return Shares((0.0, float(len(found))), (0.0, float(len(gold))))
    likeness = np.array([[2 * len(one & other) / (len(one) + len(other)) for other in gold] for one in found])
    best = float(likeness[linear_sum_assignment(likeness, maximize=True)].sum())
    return Shares((best, float(len(found))), (best, float(len(gold))))


def lea(found: Clusters, gold: Clusters) -> Shares:
    """LEA (Moosavi & Strube 2016): shares of clusters' links kept, by size; a single mention is linked to itself."""

    def share(own: Clusters, other: Clusters) -> tuple[float, float]:
        alone = {next(iter(one)) for one in other if len(one) == 1}
        right = 0.0
        for one in own:
            if len(one) == 1:
                right += float(next(iter(one)) in alone)
                continue
            kept = sum(size * (size - 1) / 2 for size in _parts(one, other))
            right += len(one) * kept / (len(one) * (len(one) - 1) / 2)
        return right, float(sum(map(len, own)))

    return _both_ways(share, found, gold)


FIGURES: dict[str, Callable[[Clusters, Clusters], Shares]] = {"muc": muc, "b3": b_cubed, "ceaf": ceaf, "lea": lea}
