"""Intervals of probabilities: a Venn-Abers predictor for each group of tags."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import calib_error
from ..types import Floats, Groups, Ints, Pairs
from .grouped import Countable, GroupedRecalibrator
from .recalibrators.venn_abers import VennAbers, minimax


class GroupedVennAbers:
    """A Venn-Abers predictor for each group of tags: calibrated within every group.

    groups (Groups): The tags of each group. Other tags, and groups without pairs, use the predictor of all pairs.
    maps (GroupedRecalibrator): The predictors; its `fits_` tells what each group was fitted on.
    """

    def __init__(self, groups: Groups):
        self.groups = groups
        self.maps = GroupedRecalibrator(VennAbers(), groups)

    def fit(self, pairs: Pairs) -> GroupedVennAbers:
        """Fit the predictor of every group, and that of all pairs.

        RAISES C003: no pairs at all.
        """
        self.maps.fit(pairs)
        return self

    def fit_counts(self, counts: Countable) -> GroupedVennAbers:
        """As `fit`, from a table of the pairs: the same to the bit. RAISES C003: no pairs at all."""
        self.maps.fit_counts(counts)
        return self

    def interval(self, scores: Floats, tags: Ints) -> tuple[Floats, Floats]:
        """The probabilities (low, high) of n pairs, low < high, shape (n,) each.

        scores (Floats): In [0, 1]. tags (Ints): Columns of the labels; later columns use the predictor of all pairs.
        RAISES C001: values out of range. C002: lengths differ. C004: not fitted.
        """
        if self.maps.pooled_ is None:
            raise calib_error("C004", what="GroupedVennAbers")
        if len(scores) != len(tags):
            raise calib_error("C002", what="Mapping", first="score", second="tag", n_first=len(scores), n_second=len(tags))
        low, high = np.empty(len(scores)), np.empty(len(scores))
        of_pair = self.groups.of(tags)
        for group in np.unique(of_pair).tolist():
            inside = np.flatnonzero(of_pair == group)
            own = self.maps.maps_[group] if group >= 0 else None
            predictor = own or self.maps.pooled_
            assert isinstance(predictor, VennAbers)
            low[inside], high[inside] = predictor.interval(scores[inside])
        return low, high

    def predict(self, scores: Floats, tags: Ints) -> Floats:
        """The single probabilities of n pairs (by `minimax`), shape (n,). RAISES C001, C002, C004: as `interval`."""
        return minimax(*self.interval(scores, tags))

    def state(self) -> dict[str, Any]:
        """Plain data and arrays."""
        return self.maps.state()

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> GroupedVennAbers:
        """Rebuild from a state that GROUPED has checked. RAISES Misfit: a predictor is not of the form declared."""
        made = cls(state["groups"])
        made.maps = GroupedRecalibrator.from_state(state, lambda one: VennAbers().load_learned(one["learned"]))
        return made
