"""Orders of a queue: how doubtful each token's label is, by several signals, and the priority of a unit made of these.

Source: Mejer & Crammer 2010, sections 5 (relative confidence) and 6 (priorities).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....pairs.scored_corpus import ScoredCorpus
from ....types import Floats
from ..messages import calib_error
from .units import ReviewUnits

DOUBTS = ("calibrated", "raw", "margin")


class Order(NamedTuple):
    """How units are ordered.

    value (str): How each token is valued, one of DOUBTS. aggregation (str): How the values make the priority of a unit: "max",
    "whole" (1 - P(all labels right)), or "random" (without them).
    """

    value: str
    aggregation: str


# Orders to review predictions in.
REVIEW = {
    "calibrated": Order("calibrated", "whole"),
    "raw": Order("raw", "whole"),
    "margin": Order("margin", "max"),
    "random": Order("calibrated", "random"),
}


def priorities(corpus: ScoredCorpus, units: ReviewUnits, order: Order, values: Floats, seed: int = 0) -> Floats:
    """Return the priority of each unit, shape (n_units,). values: Of each token, from `doubts`. seed: For the random order."""
    if order.aggregation == "whole":
        return 1 - (units.raw if order.value == "raw" else units.calibrated)
    if order.aggregation == "random":
        return np.random.default_rng(seed).permutation(n := len(units.firsts)) / max(1, n)  # distinct
    return units.maxima(values)


def unit_doubts(corpus: ScoredCorpus, units: ReviewUnits, order: str = "calibrated", seed: int = 0) -> Floats:
    """Return how doubtful each unit is, shape (n_units,). order (str): A name of REVIEW. RAISES C001: no such order."""
    if order not in REVIEW:
        raise calib_error("C001", name="order", wanted=f"one of {', '.join(REVIEW)}", given=repr(order))
    return priorities(corpus, units, REVIEW[order], doubts(corpus, REVIEW[order].value), seed)


def doubts(corpus: ScoredCorpus, signal: str = "calibrated") -> Floats:
    """Return how doubtful the label of each token is.

    signal (str): "calibrated" or "raw" (1 minus the label's probability), or "margin" (the calibrated probability of the best
    other tag minus that of the label). RETURNS (Floats): Higher is more doubtful, shape (n_tokens,); NaN for tokens without a
    score. RAISES C001: no signal has this name.
    """
    if signal not in DOUBTS:
        raise calib_error("C001", name="signal", wanted=f"one of {', '.join(DOUBTS)}", given=repr(signal))
    values = 1 - (corpus.raw if signal == "raw" else corpus.calibrated)
    if signal == "margin":
        is_rival = corpus.tags != corpus.labels[corpus.rows]
        best = np.zeros(len(corpus))  # 0 if no other tag reaches the threshold
        np.maximum.at(best, corpus.rows[is_rival], corpus.tag_calibrated[is_rival])
        values = best - corpus.calibrated
    return np.where(corpus.is_counted, values, np.nan)
