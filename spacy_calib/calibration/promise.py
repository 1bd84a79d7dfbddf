"""The precision that answers about a random sample of entities can promise: estimated before any answer, and checked later."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..types import Floats, Ints
from .thresholds import binomial_p_values, effective_sizes, find_threshold

# Numbers of answers that are tried; the share of simulated samples that have to succeed; and how many are simulated.
SIZES, PROBABLY, _N_SIMULATED = (30, 60, 120, 250, 500, 1000), 0.8, 20
HOLDS, BROKEN, UNCLEAR = "holds", "no longer", "unclear"


def expect_promise(scores: Floats, precision: float, seed: int = 0) -> dict[str, Any]:
    """Estimate how many answers about randomly sampled entities give a cut-off with this precision, by simulation.

    scores (Floats): Score of every entity, (n,), taken as the probability that it is right. seed (int): Of random numbers.
    RETURNS (dict): "precision"; "answers": smallest of SIZES that gives at least 80 % of samples a cut-off (95 % confidence);
        "accepted": mean share of the entities of a sample that its cut-off accepts. The last two are None if no size does.
    """
    rng = np.random.default_rng(seed)
    can_reach = scores.max(initial=0.0) >= precision  # else no cut-off can
    for n in SIZES if can_reach else ():
        accepted_shares = []  # of each simulated sample; 0 without a cut-off
        for sample in rng.choice(scores, (_N_SIMULATED, n)):
            # Noise makes all scores distinct, so that all samples of a size have the same tests, whose level is computed once.
            distinct_scores, is_right = sample + 1e-9 * rng.random(n), rng.random(n) < sample
            threshold = find_threshold(distinct_scores, is_right, np.arange(n), precision)
            accepted_shares.append(threshold.share or 0.0)
        if np.count_nonzero(accepted_shares) >= PROBABLY * _N_SIMULATED:
            return {"precision": precision, "answers": n, "accepted": float(np.mean(accepted_shares))}
    return {"precision": precision, "answers": None, "accepted": None}


def check_promise(hits: NDArray[np.bool_], documents: Ints, precision: float, confidence: float = 0.95) -> str:
    """Test a promised precision on a random sample of accepted entities, by one-sided exact binomial tests in both directions.

    hits, documents: Whether each entity is right, and its document, shape (n,).
    RETURNS (str): HOLDS or BROKEN if the test shows it with this confidence, else UNCLEAR.
    """
    if len(hits):
        share, n = np.array([hits.mean()]), len(hits)
        size = effective_sizes(hits, documents, np.array([n]), np.array([hits.sum()]))
        # HOLDS if so many are right that the precision is reached, BROKEN if so many are wrong that it is not.
        for verdict, observed, target in ((HOLDS, share, precision), (BROKEN, 1 - share, 1 - precision)):
            if binomial_p_values(observed, size, target)[0] <= 1 - confidence:
                return verdict
    return UNCLEAR


def answers_to_check(share_right: float, precision: float, confidence: float = 0.95) -> int | None:
    """Return how many answers show with probability PROBABLY that a precision holds: the least of SIZES, None if none does.

    share_right (float): Share of the accepted entities that is right in truth. confidence (float): Confidence of the test.
    """
    from scipy.stats import binom

    for n in SIZES:
        right = np.arange(n + 1)
        passes = binomial_p_values(right / n, np.full(n + 1, float(n)), precision) <= 1 - confidence
        if binom.pmf(right[passes], n, share_right).sum() >= PROBABLY:
            return n
    return None
