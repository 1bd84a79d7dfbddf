"""Intervals of probabilities: a Venn-Abers predictor for each group of tags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import calib_error
from ..types import Floats, Groups, Ints, check_lengths
from .grouped import GroupedRecalibrator
from .recalibrators.venn_abers import VennAbers


class GroupedVennAbers(GroupedRecalibrator):
    """A Venn-Abers predictor for each group of tags: calibrated within every group.

    groups (Groups): The tags of each group. Other tags, and groups without pairs, use the predictor of all pairs.
    `predict` gives the single probability of each interval, by `minimax`.
    """

    def __init__(self, groups: Groups):
        super().__init__(VennAbers(), groups)

    def interval(self, scores: Floats, tags: Ints) -> tuple[Floats, Floats]:
        """The probabilities (low, high) of n pairs, low < high, shape (n,) each.

        scores (Floats): In [0, 1]. tags (Ints): Columns of the labels; later columns use the predictor of all pairs.
        RAISES C001: values out of range. C002: lengths differ. C004: not fitted.
        """
        if self.pooled_ is None:
            raise calib_error("C004", what="GroupedVennAbers")
        check_lengths("Mapping", "score", len(scores), {"tag": tags})
        low, high = np.empty(len(scores)), np.empty(len(scores))
        of_pair = self.groups.of(tags)
        for group in np.unique(of_pair).tolist():
            inside = np.flatnonzero(of_pair == group)
            own = self.maps_[group] if group >= 0 else None
            predictor = own or self.pooled_
            assert isinstance(predictor, VennAbers)
            low[inside], high[inside] = predictor.interval(scores[inside])
        return low, high

    @classmethod
    def from_state(
        cls, state: dict[str, Any], load: Callable[[dict[str, Any]], Any] = lambda one: VennAbers().load_learned(one["learned"])
    ) -> GroupedVennAbers:
        """Rebuild from a state that GROUPED has checked. RAISES Misfit: a predictor is not of the form declared."""
        made = cls(state["groups"])
        made._take_over(state, load)
        return made
