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
    "raw": 1 minus the raw probability of the label; "calibrated" and "random": 1 minus its calibrated probability.
    """
    if order == "margin":
        is_rival = corpus.tags != corpus.labels[corpus.rows]
        rival_scores = np.zeros(len(corpus))  # stays 0 for a token whose other tags are too improbable to be in the corpus
        np.maximum.at(rival_scores, corpus.rows[is_rival], corpus.tag_calibrated[is_rival])
        doubts = rival_scores - corpus.calibrated
    else:
        doubts = 1 - (corpus.raw if order == "raw" else corpus.calibrated)
    return np.where(corpus.is_counted, doubts, np.nan)


def unit_doubts(corpus: ScoredCorpus, units: ReviewUnits, order: str, seed: int = 0) -> Floats:
    """Return the priority of each unit, shape (n_units,); the unit with the highest priority is reviewed first.

    order (str): One of ORDERS. "calibrated" and "raw": the probability, after and before calibration, that the unit has a wrong
    label; "margin": the largest of its tokens' doubts; "random": distinct random numbers, by `seed`.
    """
    if order == "random":
        return np.random.default_rng(seed).permutation(len(units)) / max(1, len(units))
    if order == "margin":
        return units.maxima(token_doubts(corpus, order))
    return 1 - (units.raw if order == "raw" else units.calibrated)
