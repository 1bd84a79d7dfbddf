"""Choosing the strength of the penalty on the weights of a log-linear scaling, by log loss on held-out documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ...pairs.documents import thin_out
from ...types import Ints, Pairs
from .base import held_out
from .entries import LEAST

if TYPE_CHECKING:
    from .log_linear import LogLinearScaling

DEFAULT_RIDGE = 100.0
# Choices, the strongest first: with the first, little but the temperature is learned.
RIDGES = (10_000.0, 3000.0, 1000.0, 300.0, DEFAULT_RIDGE, 30.0)
# To choose, at most so many pairs are looked at, in so many folds, no closer than needed to tell ridges apart.
_MOST_PAIRS = 40_000
_FOLDS = 3
_TOLERANCE = 1e-5


def choose_ridge(scaling: LogLinearScaling, pairs: Pairs, documents: Ints, n_tags: int) -> LogLinearScaling:
    """A scaling like this one with the ridge of least log loss on held-out documents, fitted on some of the pairs.

    The search begins at the default ridge and goes where the loss falls; of equal ridges the strongest is taken.
    documents (Ints): Of the pairs, two at least.
    """
    some = thin_out(documents, _MOST_PAIRS)
    few, of_pair = pairs.take(some), documents[some]
    usual = RIDGES.index(DEFAULT_RIDGE)
    fitted: dict[int, LogLinearScaling] = {}

    def loss(place: int) -> float:
        own = scaling.like(RIDGES[place]).fit(few, n_tags, fitted.get(usual), _TOLERANCE)
        fitted[place] = own
        scaled = held_out(few, of_pair, _FOLDS, lambda part: own.like(own.ridge_).fit(part, n_tags, own, _TOLERANCE))
        return -float(np.log(np.maximum(np.where(few.hits, scaled, 1.0 - scaled), LEAST)).sum())

    return fitted[lowest_from(usual, len(RIDGES), loss)]


def lowest_from(place: int, n: int, loss: Callable[[int], float]) -> int:
    """The place in [0, n) where walking downhill from this one ends; of equals the first."""
    losses = {place: loss(place)}

    def lower(one: int, other: int) -> bool:
        if 0 <= one < n and one not in losses:
            losses[one] = loss(one)
        return 0 <= one < n and (losses[one] < losses[other] or (losses[one] == losses[other] and one < other))

    for step in (-1, 1):
        while lower(place + step, place):
            place += step
    return place
