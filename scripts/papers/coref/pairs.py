"""The probability that two mentions are in one cluster, exact without a sample.

For i < j, P(i ~ j) = sum over k < j of P(a_j = k) P(k ~ i), with P(i ~ i) = 1: j shares the cluster of the antecedent
that it chooses, and no later mention joins two clusters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spacy_calib.types import Floats, Ints

from .antecedents import Antecedents

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

    def matrix(self) -> Floats:
        """Return all pairs as a symmetric array (n, n), 1 on the diagonal, 0 for pairs below the threshold."""
        full = np.eye(self.n_mentions)
        full[self.later, self.earlier] = full[self.earlier, self.later] = self.probabilities
        return full


def pair_probabilities(antecedents: Antecedents, threshold: float = 0.0) -> MentionPairs:
    """Return P(i ~ j) of all pairs that reach the threshold; time and memory grow with the square of the mentions."""
    full = np.eye(len(antecedents))
    for mention in range(1, len(antecedents)):
        earlier, probabilities = antecedents.get_options(mention)
        if len(earlier):
            full[mention, :mention] = full[:mention, mention] = np.minimum(probabilities @ full[earlier, :mention], 1.0)
    later, earlier = np.nonzero(np.tril(full >= max(threshold, _TINY), -1))
    return MentionPairs(later, earlier, full[later, earlier], len(antecedents))
