"""Calibrated pair probabilities, learned from held-out documents: a map for each kind of pair, or a context."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...calibration.grouped import GROUPED, GroupedRecalibrator
from ...calibration.recalibrators.base import Recalibrator
from ...calibration.recalibrators.logistic import log_odds
from ...calibration.sufficiency import DOCUMENTS_TO_CHOOSE
from ...context.ridge import RidgeModel, fit_ridge
from ...errors import calib_error
from ...schema import floats, lengths, maybe, record
from ...types import Floats, Groups, Ints, Pairs
from .pairs import MentionPairs

# Of more pairs than this, so many at equal distances are used: pairs of one document tell much the same.
_MOST = 100_000


def expected_sizes(pairs: MentionPairs) -> Floats:
    """Expected size of each mention's cluster, shape (n_mentions,): 1 for itself, and the sum of its pairs' chances."""
    ends = np.concatenate([pairs.later, pairs.earlier])
    return np.asarray(1.0 + np.bincount(ends, weights=np.tile(pairs.chances, 2), minlength=pairs.n_mentions), dtype=np.float64)


def context_columns(pairs: MentionPairs, groups: Ints, n_kinds: int) -> list[Floats]:
    """2 * n_kinds + 4 features of each pair: indicators of its kinds and of distant mentions, and the mean log of the
    expected sizes of their clusters; then these times the pair's log-odds.

    groups (Ints): Twice the number of the kinds, below n_kinds, plus 1 for distant mentions.
    """
    logs: Floats = np.log(expected_sizes(pairs))
    kinds = [(groups // 2 == kind).astype(np.float64) for kind in range(n_kinds)]
    around = [*kinds, (groups % 2).astype(np.float64), (logs[pairs.later] + logs[pairs.earlier]) / 2]
    own = log_odds(pairs.chances)
    return around + [column * own for column in around]


def fit_context(
    documents: Sequence[MentionPairs], groups: Sequence[Ints], hits: NDArray[np.bool_], n_kinds: int
) -> RidgeModel | None:
    """Logistic regression on the pairs' log-odds and these features; None if documents are too few to differ.

    groups: Of each document's pairs. hits: Of all pairs, document after document.
    """
    if len(documents) < DOCUMENTS_TO_CHOOSE:
        return None
    numbers = np.repeat(np.arange(len(documents)), [len(pairs) for pairs in documents])
    some = np.arange(0, len(numbers), -(-len(numbers) // _MOST))
    each = [context_columns(pairs, own, n_kinds) for pairs, own in zip(documents, groups, strict=True)]
    columns = [np.concatenate(parts)[some] for parts in zip(*each, strict=True)]
    own = log_odds(np.concatenate([pairs.chances for pairs in documents]))
    return fit_ridge(own[some], columns, hits[some], numbers[some]).model


def in_context(model: RidgeModel, pairs: MentionPairs, groups: Ints, n_kinds: int) -> Floats:
    """The probability of each pair of a document. groups, n_kinds: See `context_columns`."""
    return model.predict(log_odds(pairs.chances), model.margins(context_columns(pairs, groups, n_kinds)))


# The kinds of mentions.
KINDS = ("nominal", "proper", "pronoun")
# A pair is near if its mentions are in one sentence, or in consecutive ones.
_NEAR = 1
_KINDS = tuple(combinations_with_replacement(range(len(KINDS)), 2))
PAIR_GROUPS = tuple(f"{KINDS[a]}, {KINDS[b]}, {place}" for a, b in _KINDS for place in ("near", "far"))
_OF_KINDS = np.zeros((len(KINDS), len(KINDS)), dtype=np.intp)
for _number, (_a, _b) in enumerate(_KINDS):
    _OF_KINDS[_a, _b] = _OF_KINDS[_b, _a] = _number


@dataclass(frozen=True, eq=False)
class Places:
    """What decides the group of a pair. kinds (Ints): Each mention's, in KINDS. sentences (Ints): Its sentence."""

    kinds: Ints
    sentences: Ints

    def groups(self, later: Ints, earlier: Ints) -> Ints:
        """The group of each pair, a number of PAIR_GROUPS."""
        far = self.sentences[later] - self.sentences[earlier] > _NEAR
        return 2 * _OF_KINDS[self.kinds[later], self.kinds[earlier]] + far


@dataclass(frozen=True, eq=False)
class JudgedMentions:
    """A document with gold, and pairs by a model that did not learn from it. clusters (Ints): Gold ones of mentions."""

    places: Places
    pairs: MentionPairs
    clusters: Ints

    @property
    def kept(self) -> tuple[Ints, Ints]:
        """The mentions of each pair that reaches the threshold."""
        return self.pairs.later, self.pairs.earlier

    def hits(self, later: Ints, earlier: Ints) -> NDArray[np.bool_]:
        return self.clusters[later] == self.clusters[earlier]


def _form(held: dict[str, Any]) -> str:
    if (held["maps"] is None) == (held["context"] is None):
        return "maps or a context, not both"
    if held["context"] is None:
        return lengths({"rest": len(held["maps"]["groups"])}, held)
    return lengths({"rest": len(PAIR_GROUPS)}, held) or lengths({"weights": 2 * len(_KINDS) + 4}, vars(held["context"]))


CALIBRATION = record({"maps": maybe(GROUPED), "rest": floats(0.0, 1.0), "context": maybe(RidgeModel.read)}, _form)


@dataclass(frozen=True, eq=False)
class PairCalibration:
    """The calibration of pairs: maps (GroupedRecalibrator | None), one for each group, or context (RidgeModel | None).
    rest (Floats): For each group, the share in one cluster of pairs below the threshold, as their probability.
    """

    maps: GroupedRecalibrator | None
    rest: Floats
    context: RidgeModel | None = None

    @classmethod
    def fit(
        cls, documents: Sequence[JudgedMentions], prototype: Recalibrator, name: str, context: bool = False
    ) -> PairCalibration:
        """prototype (Recalibrator): Of the maps. context (bool): Use the context instead, if documents suffice. name
        (str): Of the component, for the message. RAISES C361: too few pairs reach the threshold.
        """
        groups = [one.places.groups(*one.kept) for one in documents]
        none = np.zeros(0, dtype=np.intp)
        tags = np.concatenate([none, *groups])
        hits = np.concatenate([none.astype(bool), *(one.hits(*one.kept) for one in documents)])
        scores = np.concatenate([np.zeros(0), *(one.pairs.chances for one in documents)])
        if len(scores) < max(2, prototype.min_pairs):
            raise calib_error("C361", name=name, why=f"{len(scores)} of them reach the threshold")
        rest = shares_below(documents, tags, hits)
        model = fit_context([one.pairs for one in documents], groups, hits, len(_KINDS)) if context else None
        if model is not None:
            return cls(None, rest, model)
        held = Groups(PAIR_GROUPS, np.arange(len(PAIR_GROUPS)), np.bincount(tags, minlength=len(PAIR_GROUPS)))
        pairs = Pairs(np.arange(len(tags)), tags, scores, hits, len(tags))
        return cls(GroupedRecalibrator(prototype, held).fit(pairs), rest)

    def predict(self, pairs: MentionPairs, places: Places) -> Floats:
        """The calibrated probability of each pair."""
        groups = places.groups(pairs.later, pairs.earlier)
        if self.context is not None:
            return in_context(self.context, pairs, groups, len(_KINDS))
        assert self.maps is not None
        return self.maps.predict(pairs.chances, groups)

    def state(self) -> dict[str, Any]:
        """Plain data and arrays of the form CALIBRATION."""
        maps, context = (None if one is None else one.state() for one in (self.maps, self.context))
        return {"maps": maps, "rest": self.rest, "context": context}

    @classmethod
    def from_state(cls, state: dict[str, Any], load: Callable[[dict[str, Any]], Any]) -> PairCalibration:
        """Rebuild from a state that CALIBRATION has read. load (Callable): Rebuilds a map by its name."""
        if state["context"] is not None:
            return cls(None, state["rest"], state["context"])
        return cls(GroupedRecalibrator.from_state(state["maps"], load), state["rest"])


def shares_below(documents: Sequence[JudgedMentions], tags: Ints, hits: NDArray[np.bool_]) -> Floats:
    """For each group the share in one cluster of the pairs below the threshold; 0 without any.

    tags (Ints), hits: Group of the pairs that reach it, and whether they are in one cluster.
    """
    n = len(PAIR_GROUPS)
    all_hits, all_pairs = np.zeros(n), np.zeros(n)
    for one in documents:
        later, earlier = np.tril_indices(len(one.clusters), -1)
        groups = one.places.groups(later, earlier)
        all_pairs += np.bincount(groups, minlength=n)
        all_hits += np.bincount(groups, weights=one.hits(later, earlier), minlength=n)
    below = all_pairs - np.bincount(tags, minlength=n)
    hits_below = all_hits - np.bincount(tags, weights=hits, minlength=n)
    return np.divide(hits_below, below, out=np.zeros(n), where=below > 0)
