"""Scores of a clustering against gold: MUC (Vilain et al. 1995), B3 (Bagga & Baldwin 1998), CEAF and LEA."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from spacy_calib.types import FieldwiseSum

Cluster = frozenset[Hashable]
Clusters = Sequence[Cluster]


@dataclass(frozen=True)
class Shares(FieldwiseSum):
    """Numerator and denominator of precision and of recall, summed over documents."""

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
        """F, the harmonic mean of precision and recall; 0 if both are 0."""
        return 2 * self.p * self.r / (self.p + self.r) if self.p + self.r else 0.0


NOTHING = Shares((0.0, 0.0), (0.0, 0.0))


def _both_ways(share: Callable[[Clusters, Clusters], tuple[float, float]], clusters: Clusters, gold: Clusters) -> Shares:
    """Return precision and recall. share (Callable): (clusters, reference) -> (numerator, denominator)."""
    return Shares(share(clusters, gold), share(gold, clusters))


def _parts(cluster: Cluster, clusters: Clusters) -> list[int]:
    """Count a cluster's mentions in each of the other clusters; a mention in none is a part by itself."""
    of_mention = {mention: i for i, other_cluster in enumerate(clusters) for mention in other_cluster}
    counts = Counter(of_mention.get(mention, (mention,)) for mention in cluster)
    return list(counts.values())


def muc(predicted_clusters: Clusters, gold: Clusters) -> Shares:
    """Compute MUC: a cluster has size - 1 links, of which the other clustering, which divides it into parts, has size - parts."""

    def share(clusters: Clusters, reference: Clusters) -> tuple[float, float]:
        return (
            float(sum(len(cluster) - len(_parts(cluster, reference)) for cluster in clusters)),
            float(sum(len(cluster) - 1 for cluster in clusters)),
        )

    return _both_ways(share, predicted_clusters, gold)


def b_cubed(predicted_clusters: Clusters, gold: Clusters) -> Shares:
    """Compute B3: for each mention the share of its cluster that the other clustering also puts with it."""

    def share(clusters: Clusters, reference: Clusters) -> tuple[float, float]:
        of_mention = {mention: cluster for cluster in reference for mention in cluster}
        right = sum(
            len(cluster & of_mention.get(mention, frozenset())) / len(cluster) for cluster in clusters for mention in cluster
        )
        return float(right), float(sum(map(len, clusters)))

    return _both_ways(share, predicted_clusters, gold)


def ceaf(predicted_clusters: Clusters, gold: Clusters) -> Shares:
    """Compute CEAF-e (Luo 2005): clusters are paired one to one so that the sum of 2 |both| / (|a| + |b|) is largest."""
    from scipy.optimize import linear_sum_assignment

    if not predicted_clusters or not gold:
        return Shares((0.0, float(len(predicted_clusters))), (0.0, float(len(gold))))
    likeness = np.array(
        [
            [2 * len(cluster & gold_cluster) / (len(cluster) + len(gold_cluster)) for gold_cluster in gold]
            for cluster in predicted_clusters
        ]
    )
    best = float(likeness[linear_sum_assignment(likeness, maximize=True)].sum())
    return Shares((best, float(len(predicted_clusters))), (best, float(len(gold))))


def lea(predicted_clusters: Clusters, gold: Clusters) -> Shares:
    """Compute LEA (Moosavi & Strube 2016): share of a cluster's links in the other, weighted by size; singletons link to themselves."""

    def share(clusters: Clusters, reference: Clusters) -> tuple[float, float]:
        """Return the sum over clusters of size times share of links kept in the reference, and the sum of sizes."""
        singletons = {next(iter(cluster)) for cluster in reference if len(cluster) == 1}
        right = 0.0
        for cluster in clusters:
            if len(cluster) == 1:
                right += float(next(iter(cluster)) in singletons)
                continue
            links = sum(size * (size - 1) / 2 for size in _parts(cluster, reference))
            right += len(cluster) * links / (len(cluster) * (len(cluster) - 1) / 2)
        return right, float(sum(map(len, clusters)))

    return _both_ways(share, predicted_clusters, gold)


FIGURES: dict[str, Callable[[Clusters, Clusters], Shares]] = {"muc": muc, "b3": b_cubed, "ceaf": ceaf, "lea": lea}
