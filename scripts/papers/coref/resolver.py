"""Coreference by the probability of each possible antecedent, with pairs calibrated on cross-validated documents (Nguyen & O'Connor 2015, section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from spacy.tokens import Doc

from spacy_calib.types import Floats, Ints

from ..chains.features import FeatureIndex
from .antecedents import Antecedents, Candidates, first_mentions
from .calibration import LabelledPairs, PairCalibration
from .features import MentionWords, candidates_of, option_rows
from .figures import Cluster
from .learning import PENALTIES, Choices, learn, right_options
from .mentions import Mentions, clusters_in, mentions_of, speakers_of
from .pairs import MentionPairs, pair_probabilities

GoldMentions = dict[tuple[int, int], int]
# Keys of doc.spans.
MENTIONS, PREFIX, SPEAKERS = "coref_mentions", "coref_clusters", "speakers"
# Number of candidates right before a mention; documents that a feature has to stand in; pairs of lower probability are left out.
WINDOW, LEAST, THRESHOLD = 50, 2, 0.01


@dataclass(frozen=True, eq=False)
class Resolved:
    """The mentions of a Doc, their antecedents, the pairs with their calibrated probabilities, and each mention's first one."""

    mentions: Mentions
    antecedents: Antecedents
    pairs: MentionPairs
    calibrated: Floats
    below_threshold: Floats
    first: Ints

    def matrix(self) -> Floats:
        """Return the calibrated probability of every pair, shape (n_mentions, n_mentions)."""
        full = self.pairs.matrix()
        later, earlier = np.tril_indices(len(self.mentions), -1)
        full[later, earlier] = self.below_threshold[self.mentions.grouping.groups(later, earlier)]
        full[self.pairs.later, self.pairs.earlier] = self.calibrated
        full[earlier, later] = full[later, earlier]
        return full

    @property
    def clusters(self) -> list[Cluster]:
        """The clusters of two or more mentions (first token, the one after the last)."""
        bounds = zip(self.mentions.starts.tolist(), self.mentions.ends.tolist(), strict=True)
        return clusters_of_several(dict(zip(bounds, self.first.tolist(), strict=True)))


def clusters_of_several(gold: GoldMentions) -> list[Cluster]:
    """Return the clusters of two or more mentions."""
    by_number: dict[int, set[tuple[int, int]]] = {}
    for bounds, cluster in gold.items():
        by_number.setdefault(cluster, set()).add(bounds)
    return [frozenset(mentions) for mentions in by_number.values() if len(mentions) > 1]


@dataclass(eq=False)
class Resolver:
    """P(a_j = k) is proportional to exp(weights · features of mention j and antecedent k), an earlier mention or NEW.

    penalty (float | None): Strength of the L2 penalty; None lets cross-validation choose. held_out: The pairs of each document
    that it learned from, by weights of the other folds.
    """

    penalty: float | None = None
    index: FeatureIndex | None = None
    weights: Floats = field(default_factory=lambda: np.zeros(0))
    calibration: PairCalibration | None = None
    held_out: list[LabelledPairs] = field(default_factory=list)

    def fit(self, docs: Sequence[Doc], golds: Sequence[GoldMentions]) -> Resolver:
        """Learn from annotated Docs and the cluster of each of their gold mentions."""
        words, candidates, clusters = [], [], []
        for doc, gold in zip(docs, golds, strict=True):
            mentions = Mentions.on(doc, gold)
            words.append(MentionWords.from_doc(doc, mentions, speakers_of(doc, SPEAKERS)))
            candidates.append(self._candidates(words[-1]))
            clusters.append(clusters_in(mentions, gold))
        hashes = [(one.new_hashes(), one.link_hashes(own)) for one, own in zip(words, candidates, strict=True)]
        distinct = [np.unique(np.concatenate([part.reshape(-1) for part in pair])) for pair in hashes]
        self.index = FeatureIndex.from_hashes(distinct, min(LEAST, len(words)))
        choices = [
            Choices(option_rows(self.index, *pair, own), own, right_options(own, gold))
            for pair, own, gold in zip(hashes, candidates, clusters, strict=True)
        ]
        result = learn(choices, PENALTIES if self.penalty is None else [self.penalty], minimum=LEAST)
        self.weights, self.penalty = result.weights, result.penalty
        self.held_out = [
            LabelledPairs(one.mentions.grouping, pair_probabilities(antecedents, THRESHOLD), gold)
            for one, antecedents, gold in zip(words, result.held_out, clusters, strict=False)
        ]
        self.calibration = PairCalibration.fit(self.held_out)
        return self

    @staticmethod
    def _candidates(words: MentionWords) -> Candidates:
        return candidates_of(words.mentions, words.columns["head"], WINDOW)

    def antecedents(self, doc: Doc, mentions: Mentions) -> Antecedents:
        """Return the antecedents of the mentions of an annotated Doc."""
        index: Any = self.index
        words = MentionWords.from_doc(doc, mentions, speakers_of(doc, SPEAKERS))
        candidates = self._candidates(words)
        rows = option_rows(index, words.new_hashes(), words.link_hashes(candidates), candidates)
        return Antecedents.from_scores(rows @ self.weights, candidates)

    def resolve(self, doc: Doc) -> Resolved:
        """Resolve a Doc by the most probable antecedents."""
        assert self.calibration is not None
        mentions = mentions_of(doc, MENTIONS)
        antecedents = self.antecedents(doc, mentions)
        pairs = pair_probabilities(antecedents, THRESHOLD)
        calibrated = self.calibration.predict(pairs, mentions.grouping)
        first = first_mentions(antecedents.best())
        return Resolved(mentions, antecedents, pairs, calibrated, self.calibration.below_threshold, first)
