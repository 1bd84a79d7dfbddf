"""The antecedent of each mention: independent distributions (Nguyen & O'Connor 2015, definition 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spacy_calib.calibration.conditional_logit import softmax
from spacy_calib.types import Floats, Ints

# No antecedent: the mention begins a new cluster.
NEW = -1


@dataclass(frozen=True, eq=False)
class Candidates:
    """The earlier mentions that each mention may choose as its antecedent.

    starts (Ints): First candidate of each of the n mentions, and the end, shape (n + 1,). earlier (Ints): The candidates,
    ascending within a mention.
    """

    starts: Ints
    earlier: Ints

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def mentions(self) -> Ints:
        """The mention that each candidate belongs to, shape (n_candidates,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    @property
    def options(self) -> Ints:
        """First option of each mention, with NEW before the candidates; shape (n + 1,)."""
        return self.starts + np.arange(len(self.starts))


@dataclass(frozen=True, eq=False)
class Antecedents:
    """P(a_j) of each mention j of a document, in text order.

    probabilities (Floats): P(a_j = k) of each candidate; NEW has the rest.
    """

    candidates: Candidates
    probabilities: Floats

    def __len__(self) -> int:
        return len(self.candidates)

    @classmethod
    def from_scores(cls, scores: Floats, candidates: Candidates) -> Antecedents:
        """Apply the softmax to the scores of each mention's options, which are NEW, then its candidates; shape (n_options,)."""
        probabilities = softmax(scores, candidates.options)
        keep = np.ones(len(scores), dtype=bool)
        keep[candidates.options[:-1]] = False
        return cls(candidates, probabilities[keep])

    def get_options(self, mention: int) -> tuple[Ints, Floats]:
        """Return (the candidates of a mention, their probabilities)."""
        part = slice(self.candidates.starts[mention], self.candidates.starts[mention + 1])
        return self.candidates.earlier[part], self.probabilities[part]

    def best(self) -> Ints:
        """Return the top antecedent of each mention, or NEW, shape (n_mentions,)."""
        best = np.full(len(self), NEW)
        for mention in range(len(self)):
            earlier, probabilities = self.get_options(mention)
            if len(probabilities) and probabilities.max() > max(0.0, 1.0 - probabilities.sum()):
                best[mention] = earlier[probabilities.argmax()]
        return best

    def sample(self, n: int, seed: int) -> Ints:
        """Sample n clusterings: the first mention of each mention's cluster, (n, n_mentions)."""
        numbers = np.random.default_rng(seed).random((len(self), n)).T
        first_of_cluster = np.tile(np.arange(len(self)), (n, 1))
        rows = np.arange(n)
        for mention in range(len(self)):
            earlier, probabilities = self.get_options(mention)
            choices = np.searchsorted(np.cumsum(probabilities), numbers[:, mention], side="right")
            is_linked = choices < len(earlier)  # a number above the sum of all candidates selects NEW
            first_of_cluster[is_linked, mention] = first_of_cluster[rows[is_linked], earlier[choices[is_linked]]]
        return first_of_cluster


def first_mentions(antecedents: Ints) -> Ints:
    """Return the first mention of each mention's cluster, (n,). antecedents (Ints): Antecedent of each mention or NEW, (n,)."""
    first = np.arange(len(antecedents))
    for mention, earlier in enumerate(antecedents.tolist()):
        if earlier != NEW:
            first[mention] = first[earlier]
    return first
