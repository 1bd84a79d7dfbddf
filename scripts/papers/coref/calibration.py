"""Calibrated pair probabilities, learned from cross-validated documents: a map for each kind of pair, or a context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from spacy_calib.calibration.grouped import GroupedRecalibrator
from spacy_calib.calibration.recalibrators import Beta
from spacy_calib.calibration.solvers import log_odds
from spacy_calib.context.ridge import RidgeModel, fit_ridge
from spacy_calib.pairs.documents import DOCUMENTS_TO_CHOOSE
from spacy_calib.types import Floats, Groups, Ints, Pairs

from .pairs import MentionPairs

# Maximum number of pairs to fit on, evenly spaced: pairs of one document are much alike.
_MOST = 100_000


def expected_sizes(pairs: MentionPairs) -> Floats:
    """Return the expected size of each mention's cluster: 1, plus the sum of its pairs' probabilities."""
    ends = np.concatenate([pairs.later, pairs.earlier])
    sums = np.bincount(ends, weights=np.tile(pairs.probabilities, 2), minlength=pairs.n_mentions)
    return np.asarray(1.0 + sums, dtype=np.float64)


def context_columns(pairs: MentionPairs, groups: Ints, n_kinds: int) -> list[Floats]:
    """Return 2 * n_kinds + 4 features of each pair of mentions.

    They are indicators of its kinds and of distant mentions, and the mean log of the expected cluster sizes; then these times
    the pair's log-odds. groups (Ints): Group of each pair, shape (n_pairs,): twice the number of its kinds (below n_kinds),
    plus 1 for distant mentions.
    """
    logs: Floats = np.log(expected_sizes(pairs))
    kinds = [(groups // 2 == kind).astype(np.float64) for kind in range(n_kinds)]
    features = [*kinds, (groups % 2).astype(np.float64), (logs[pairs.later] + logs[pairs.earlier]) / 2]
    odds = log_odds(pairs.probabilities)
    return features + [column * odds for column in features]


def fit_context(
    documents: Sequence[MentionPairs], groups: Sequence[Ints], hits: NDArray[np.bool_], n_kinds: int
) -> RidgeModel | None:
    """Fit a logistic regression on the pairs' log-odds and `context_columns`; None for too few documents.

    groups (Sequence): Groups of the pairs of each document. hits (NDArray[bool]): Whether each pair is in one gold cluster, all
    documents one after another, shape (n_pairs,).
    """
    if len(documents) < DOCUMENTS_TO_CHOOSE:
        return None
    numbers = np.repeat(np.arange(len(documents)), [len(pairs) for pairs in documents])
    subset = np.arange(0, len(numbers), -(-len(numbers) // _MOST))
    columns_by_document = [context_columns(pairs, odds, n_kinds) for pairs, odds in zip(documents, groups, strict=True)]
    columns = [np.concatenate(parts)[subset] for parts in zip(*columns_by_document, strict=True)]
    odds = log_odds(np.concatenate([pairs.probabilities for pairs in documents]))
    return fit_ridge(odds[subset], columns, hits[subset], numbers[subset]).model


# The kinds of mentions.
KINDS = ("nominal", "proper", "pronoun")
# A pair is near if its mentions are in one sentence, or in consecutive ones.
_NEAR = 1
_KINDS = tuple(combinations_with_replacement(range(len(KINDS)), 2))
PAIR_GROUPS = tuple(f"{KINDS[a]}, {KINDS[b]}, {distance}" for a, b in _KINDS for distance in ("near", "far"))
_OF_KINDS = np.zeros((len(KINDS), len(KINDS)), dtype=np.intp)
for _number, (_a, _b) in enumerate(_KINDS):
    _OF_KINDS[_a, _b] = _OF_KINDS[_b, _a] = _number


@dataclass(frozen=True, eq=False)
class PairGrouping:
    """Assigns pairs to groups. kinds (Ints): Index in KINDS, of each mention. sentences (Ints): Number of its sentence."""

    kinds: Ints
    sentences: Ints

    def groups(self, later: Ints, earlier: Ints) -> Ints:
        """Return the group of each pair, as an index in PAIR_GROUPS."""
        is_far = self.sentences[later] - self.sentences[earlier] > _NEAR
        return 2 * _OF_KINDS[self.kinds[later], self.kinds[earlier]] + is_far


@dataclass(frozen=True, eq=False)
class LabelledPairs:
    """Pairs of a document, scored by a model that was not fitted on it. clusters (Ints): Gold cluster of each mention."""

    grouping: PairGrouping
    pairs: MentionPairs
    clusters: Ints

    @property
    def ends(self) -> tuple[Ints, Ints]:
        """The later and the earlier mention of each pair that reaches the threshold."""
        return self.pairs.later, self.pairs.earlier

    def hits(self, later: Ints, earlier: Ints) -> NDArray[np.bool_]:
        return self.clusters[later] == self.clusters[earlier]


@dataclass(frozen=True, eq=False)
class PairCalibration:
    """Calibrates pairs by a map for each group (`maps`), or by a logistic regression (`context`); the other is None.

    below_threshold (Floats): Probability of a pair below the threshold, for each group.
    """

    maps: GroupedRecalibrator | None
    below_threshold: Floats
    context: RidgeModel | None = None

    @classmethod
    def fit(cls, documents: Sequence[LabelledPairs]) -> PairCalibration:
        """Fit a context, or beta maps for too few documents."""
        groups = [document.grouping.groups(*document.ends) for document in documents]
        empty = np.zeros(0, dtype=np.intp)
        tags = np.concatenate([empty, *groups])
        hits = np.concatenate([empty.astype(bool), *(document.hits(*document.ends) for document in documents)])
        scores = np.concatenate([np.zeros(0), *(document.pairs.probabilities for document in documents)])
        shares = shares_below(documents, tags, hits)
        model = fit_context([document.pairs for document in documents], groups, hits, len(_KINDS))
        if model is not None:
            return cls(None, shares, model)
        pair_groups = Groups(PAIR_GROUPS, np.arange(len(PAIR_GROUPS)), np.bincount(tags, minlength=len(PAIR_GROUPS)))
        pairs = Pairs(np.arange(len(tags)), tags, scores, hits, len(tags))
        return cls(GroupedRecalibrator(Beta(), pair_groups).fit(pairs), shares)

    def predict(self, pairs: MentionPairs, grouping: PairGrouping) -> Floats:
        """Return the calibrated probability of each pair."""
        groups = grouping.groups(pairs.later, pairs.earlier)
        if self.context is not None:
            margins = self.context.margins(context_columns(pairs, groups, len(_KINDS)))
            return self.context.predict(log_odds(pairs.probabilities), margins)
        assert self.maps is not None
        return self.maps.predict(pairs.probabilities, groups)


def shares_below(documents: Sequence[LabelledPairs], tags: Ints, hits: NDArray[np.bool_]) -> Floats:
    """Return the share of the pairs below the threshold that are in one gold cluster, by group; 0 for a group without pairs.

    tags (Ints), hits (NDArray[bool]): Group of each pair that reaches the threshold, and whether it is in one cluster,
    (n_pairs,).
    RETURNS (Floats): Shape (n_groups,).
    """
    n = len(PAIR_GROUPS)
    all_hits, all_pairs = np.zeros(n), np.zeros(n)
    for document in documents:
        later, earlier = np.tril_indices(len(document.clusters), -1)
        groups = document.grouping.groups(later, earlier)
        all_pairs += np.bincount(groups, minlength=n)
        all_hits += np.bincount(groups, weights=document.hits(later, earlier), minlength=n)
    pairs_below = all_pairs - np.bincount(tags, minlength=n)
    hits_below = all_hits - np.bincount(tags, weights=hits, minlength=n)
    return np.divide(hits_below, pairs_below, out=np.zeros(n), where=pairs_below > 0)
