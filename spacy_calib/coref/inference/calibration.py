"""Pair probabilities made true: a map for each kind of pair, learned from held-out documents. Knows arrays only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...calibration.grouped import GROUPED, GroupedRecalibrator
from ...calibration.recalibrators.base import Recalibrator
from ...errors import calib_error
from ...schema import floats, lengths, record
from ...types import Floats, Groups, Ints, Pairs
from .pairs import MentionPairs

# What mentions are.
KINDS = ("nominal", "proper", "pronoun")
# A pair is near where its mentions stand in one sentence, or in two that follow one another.
_NEAR = 1
_KINDS = tuple(combinations_with_replacement(range(len(KINDS)), 2))
PAIR_GROUPS = tuple(f"{KINDS[a]}, {KINDS[b]}, {place}" for a, b in _KINDS for place in ("near", "far"))
_OF_KINDS = np.zeros((len(KINDS), len(KINDS)), dtype=np.intp)
for _number, (_a, _b) in enumerate(_KINDS):
    _OF_KINDS[_a, _b] = _OF_KINDS[_b, _a] = _number


@dataclass(frozen=True, eq=False)
class Places:
    """What tells the group of a pair of mentions. kinds (Ints): Of each mention, a number of KINDS. sentences (Ints): The number of its sentence."""

    kinds: Ints
    sentences: Ints

    def groups(self, later: Ints, earlier: Ints) -> Ints:
        """The group of each pair, a number of PAIR_GROUPS."""
        far = self.sentences[later] - self.sentences[earlier] > _NEAR
        return 2 * _OF_KINDS[self.kinds[later], self.kinds[earlier]] + far


@dataclass(frozen=True, eq=False)
class JudgedMentions:
    """A document whose gold is known, with pairs by a model that did not learn from it. clusters (Ints): The gold cluster of each mention."""

    places: Places
    pairs: MentionPairs
    clusters: Ints

    @property
    def kept(self) -> tuple[Ints, Ints]:
        """The mentions of each pair that reaches the threshold."""
        return self.pairs.later, self.pairs.earlier

    def hits(self, later: Ints, earlier: Ints) -> NDArray[np.bool_]:
        return self.clusters[later] == self.clusters[earlier]


# The saved form of PairCalibration.
CALIBRATION = record(
    {"maps": GROUPED, "rest": floats(0.0, 1.0)},
    lambda held: lengths({"rest": len(held["maps"]["groups"]["names"])}, held),
)


@dataclass(frozen=True, eq=False)
class PairCalibration:
    """maps (GroupedRecalibrator): Of the pairs that reach the threshold, a map for each group. rest (Floats): Of each group the share of those below
    it that are in one cluster: what is said of each of them.
    """

    maps: GroupedRecalibrator
    rest: Floats

    @classmethod
    def fit(cls, documents: Sequence[JudgedMentions], prototype: Recalibrator, name: str) -> PairCalibration:
        """name (str): Of the component, for the message. RAISES C361: too few pairs reach the threshold."""
        kept = [(one.places.groups(*one.kept), one.hits(*one.kept)) for one in documents]
        none = np.zeros(0, dtype=np.intp)
        tags = np.concatenate([none, *(groups for groups, _ in kept)])
        hits = np.concatenate([none.astype(bool), *(own for _, own in kept)])
        scores = np.concatenate([np.zeros(0), *(one.pairs.chances for one in documents)])
        if len(scores) < max(2, prototype.min_pairs):
            raise calib_error("C361", name=name, why=f"{len(scores)} of them reach the threshold")
        n = len(PAIR_GROUPS)
        all_hits, all_pairs = np.zeros(n), np.zeros(n)
        for one in documents:
            later, earlier = np.tril_indices(len(one.clusters), -1)
            groups = one.places.groups(later, earlier)
            all_pairs += np.bincount(groups, minlength=n)
            all_hits += np.bincount(groups, weights=one.hits(later, earlier), minlength=n)
        counts = np.bincount(tags, minlength=n)
        below = all_pairs - counts
        hits_below = all_hits - np.bincount(tags, weights=hits, minlength=n)
        rest = np.divide(hits_below, below, out=np.zeros(n), where=below > 0)
        groups_held = Groups(PAIR_GROUPS, np.arange(n), counts)
        maps = GroupedRecalibrator(prototype, groups_held).fit(Pairs(np.arange(len(tags)), tags, scores, hits, len(tags)))
        return cls(maps, rest)

    def predict(self, pairs: MentionPairs, places: Places) -> Floats:
        """The calibrated probability of each pair."""
        return self.maps.predict(pairs.chances, places.groups(pairs.later, pairs.earlier))

    def state(self) -> dict[str, Any]:
        """Plain data and arrays, of CALIBRATION."""
        return {"maps": self.maps.state(), "rest": self.rest}

    @classmethod
    def from_state(cls, state: dict[str, Any], load: Callable[[dict[str, Any]], Any]) -> PairCalibration:
        """Rebuild from a state that CALIBRATION has read. load (Callable): Rebuilds a map by its registered name."""
        return cls(GroupedRecalibrator.from_state(state["maps"], load), state["rest"])
