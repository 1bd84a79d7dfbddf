"""One recalibrator per group of tags, copied from a prototype, with the pooled map as the fallback. Knows no method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import calib_error
from .recalibrators.base import Recalibrator
from .recalibrators.identity import Identity
from .types import Floats, Groups, Ints, Pairs


@dataclass(frozen=True)
class GroupFit:
    """What a group was fitted on.

    pairs (int): Its pairs. hits (int): How many of them hit.
    fallback (str): Why it uses another map than its own; empty where it has its own.
    """

    pairs: int
    hits: int
    fallback: str = ""


class GroupedRecalibrator:
    """Maps the score of a (token, tag) pair by the recalibrator of the tag's group.

    prototype (Recalibrator): Copied for every group and for the pooled map.
    groups (Groups): The tags of each group.
    pooled_ (Recalibrator): Fitted on all pairs; serves tags without a group and groups that cannot be fitted alone.
    maps_ (list): One fitted map per group, None where the group falls back to the pooled one.
    fits_ (list[GroupFit]): One per group.
    """

    def __init__(self, prototype: Recalibrator, groups: Groups):
        self.prototype = prototype
        self.groups = groups
        self.pooled_: Recalibrator | None = None
        self.maps_: list[Recalibrator | None] = []
        self.fits_: list[GroupFit] = []
        self.pooled_fit_ = GroupFit(0, 0)

    def fit(self, pairs: Pairs) -> GroupedRecalibrator:
        """Fit the pooled map and the map of every group.

        RAISES C003: no pairs at all. C005: fewer pairs in all than the method needs.
        """
        if not len(pairs):
            raise calib_error("C003", what=type(self.prototype).__name__, threshold="the threshold")
        if len(pairs) < self.prototype.min_pairs:
            raise calib_error("C005", n_pairs=len(pairs), threshold="", n_bins=self.prototype.min_pairs)
        whole = _fit_of(pairs.hits, self.prototype, otherwise="identity")
        self.pooled_ = Identity() if whole.fallback else self.prototype.clone().fit(pairs.scores, pairs.hits)
        self.pooled_fit_ = whole
        self.maps_, self.fits_ = [], []
        groups = self.groups.of(pairs.tags)
        for index in range(len(self.groups)):
            inside = groups == index
            scores, hits = pairs.scores[inside], pairs.hits[inside]
            fit = _fit_of(hits, self.prototype, otherwise="pooled map")
            self.fits_.append(fit)
            self.maps_.append(None if fit.fallback else self.prototype.clone().fit(scores, hits))
        return self

    def predict(self, scores: Floats, tags: Ints) -> Floats:
        """The calibrated probabilities of n pairs; each depends only on its own score and tag.

        scores (Floats): In [0, 1]. tags (Ints): Columns of the labels; columns past those fitted use the pooled map.
        RAISES C004: not fitted.
        """
        if self.pooled_ is None:
            raise calib_error("C004", what="GroupedRecalibrator")
        groups = self.groups.of(tags)
        if not len(groups):
            return np.zeros(0)
        order = np.argsort(groups, kind="stable")
        calibrated = np.empty(len(scores))
        present, starts = np.unique(groups[order], return_index=True)
        for group, inside in zip(present, np.split(order, starts[1:]), strict=True):
            own = self.maps_[group] if group >= 0 else None
            calibrated[inside] = (own or self.pooled_).predict(scores[inside])
        return calibrated

    def state(self) -> dict[str, Any]:
        """Plain data and arrays: what `from_state` needs."""
        assert self.pooled_ is not None
        return {
            "prototype": self.prototype.clone().state(),
            "groups": {"names": list(self.groups.names), "of_tag": self.groups.of_tag, "counts": self.groups.counts},
            "pooled": self.pooled_.state(),
            "pooled_fit": vars(self.pooled_fit_),
            "maps": [None if m is None else m.state() for m in self.maps_],
            "fits": [vars(fit) for fit in self.fits_],
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], load: Callable[[dict[str, Any]], Recalibrator]) -> GroupedRecalibrator:
        """Rebuild from `state`.

        load (Callable): Rebuilds one recalibrator from its state (the registry knows how).
        """
        groups = state["groups"]
        made = cls(
            load(state["prototype"]),
            Groups(tuple(groups["names"]), np.array(groups["of_tag"]), np.array(groups["counts"])),
        )
        made.pooled_ = load(state["pooled"])
        made.pooled_fit_ = GroupFit(**state["pooled_fit"])
        made.maps_ = [None if m is None else load(m) for m in state["maps"]]
        made.fits_ = [GroupFit(**fit) for fit in state["fits"]]
        return made


def _fit_of(hits: Any, prototype: Recalibrator, otherwise: str) -> GroupFit:
    """Whether these hits can be fitted alone, and if not, why."""
    n, n_hits = len(hits), int(np.count_nonzero(hits))
    why = ""
    if prototype.min_pairs == 0:
        pass
    elif n == 0:
        why = "no pairs"
    elif n < prototype.min_pairs:
        why = "one pair" if n == 1 else f"{n} pairs, {prototype.min_pairs} needed"
    elif n_hits == 0:
        why = "no pair hits"
    elif n_hits == n:
        why = "every pair hits"
    return GroupFit(n, n_hits, f"{otherwise}: {why}" if why else "")
