"""What answers about a random sample of entities can promise: expected before the first one, and checked later. No Docs are needed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..types import Floats, Ints
from .thresholds import binomial_p_values, effective_sizes, find_threshold

# Numbers of answers that are tried, and the share of simulated samples that have to succeed.
SIZES, PROBABLY = (30, 60, 120, 250, 500, 1000), 0.8
_N_DRAWS = 20
HOLDS, BROKEN, UNCLEAR = "holds", "no longer", "unclear"


def expect_promise(scores: Floats, precision: float, confidence: float = 0.95, seed: int = 0) -> dict[str, Any]:
    """Return what answers about a random sample will probably promise if the scores of all n entities are calibrated.

    RETURNS (dict): "precision"; "share": share of the entities, the most certain ones, that has this precision; "answers":
        smallest of SIZES with a cut-off in PROBABLY of simulated samples, None if there is none; "accepted": mean share of the
        entities that these accept.
    """
    rng, n_right = np.random.default_rng(seed), np.cumsum(-np.sort(-scores))
    reached = np.flatnonzero(n_right >= precision * np.arange(1, len(scores) + 1))
    expected = {"precision": precision, "share": float((reached.max(initial=-1) + 1) / max(1, len(scores)))}
    for n in SIZES if len(reached) else ():
        shares = []
        for _ in range(_N_DRAWS):
            sample = rng.choice(scores, n)
            hits = rng.random(n) < sample
            # No two scores are equal, so that all samples of a size have the same tests, whose level is computed once.
            shares.append(find_threshold(sample + 1e-9 * rng.random(n), hits, np.arange(n), precision, confidence).share or 0.0)
        if np.count_nonzero(shares) >= PROBABLY * _N_DRAWS:
            return {**expected, "answers": n, "accepted": float(np.mean(shares))}
    return {**expected, "answers": None, "accepted": None}


def check_promise(hits: NDArray[np.bool_], documents: Ints, precision: float, confidence: float = 0.95) -> dict[str, Any]:
    """Test on new answers whether a promised precision holds, by one-sided exact binomial tests in both directions.

    hits, documents: Whether each accepted entity is right, and its document, shape (n,), of a random sample.
    RETURNS (dict): "answers", "right", "precision" (None without answers), and "verdict": HOLDS (with this confidence),
        BROKEN (with this confidence it does not), or UNCLEAR.
    """
    n, k = len(hits), int(hits.sum())
    result = {"answers": n, "right": k, "precision": k / n if n else None, "verdict": UNCLEAR}
    if n:
        size = effective_sizes(hits, documents, np.array([n]), np.array([k]))
        if binomial_p_values(np.array([k / n]), size, precision)[0] <= 1 - confidence:
            result["verdict"] = HOLDS
        elif binomial_p_values(np.array([1 - k / n]), size, 1 - precision)[0] <= 1 - confidence:
            result["verdict"] = BROKEN
    return result


def answers_to_check(share_right: float, precision: float, confidence: float = 0.95) -> int | None:
    """Return the smallest of SIZES that PROBABLY shows that a precision holds if `share_right` are right; None if none does."""
    from scipy.stats import binom

    for n in SIZES:
        right = np.arange(n + 1)
        passes = binomial_p_values(right / n, np.full(n + 1, float(n)), precision) <= 1 - confidence
        if binom.pmf(right[passes], n, share_right).sum() >= PROBABLY:
            return n
    return None
