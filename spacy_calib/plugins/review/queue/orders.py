"""Orders of a queue: how doubtful each token's label is, and the priority that this gives a unit.

Source: Mejer & Crammer 2010, sections 5 (relative confidence) and 6 (priorities).
"""

from __future__ import annotations

import numpy as np

from ....pairs.scored_corpus import ScoredCorpus
from ....types import Floats
from .units import ReviewUnits

ORDERS = ("calibrated", "raw", "margin", "random")


def token_doubts(corpus: ScoredCorpus, order: str) -> Floats:
    """Return how doubtful the label of each token is, shape (n_tokens,); NaN for tokens without a score.

    order (str): One of ORDERS. "margin": the calibrated probability of the best other label minus that of the token's label;
    "raw": 1 minus the raw probability of the label; the others: 1 minus the calibrated one.
    """
    if order == "margin":
        is_rival = corpus.tags != corpus.labels[corpus.rows]
        best = np.zeros(len(corpus))  # 0 if no other tag reaches the threshold
        np.maximum.at(best, corpus.rows[is_rival], corpus.tag_calibrated[is_rival])
        values = best - corpus.calibrated
    else:
        values = 1 - (corpus.raw if order == "raw" else corpus.calibrated)
    return np.where(corpus.is_counted, values, np.nan)


def unit_doubts(corpus: ScoredCorpus, units: ReviewUnits, order: str, seed: int = 0) -> Floats:
    """Return the priority of each unit, shape (n_units,): the unit with the highest is reviewed first.

    order (str): One of ORDERS. "margin": the largest of its tokens' doubts; "random": distinct random numbers, by `seed`; the
    others: the probability that a label of the unit is wrong.
    """
    if order == "random":
        return np.random.default_rng(seed).permutation(len(units)) / max(1, len(units))
    if order == "margin":
        return units.maxima(token_doubts(corpus, order))
    return 1 - (units.raw if order == "raw" else units.calibrated)
