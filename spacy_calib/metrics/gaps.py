"""By how much scores are off in a part of the data, whether that can be chance, and what of many such findings stands.

The gap is the mean score less the share that is right: above 0, scores are too high. Documents are the units that are
independent, so that a test looks at their sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import calib_error
from ..pairs.documents import document_codes
from ..types import Floats, Ints, as_hits, as_probabilities


@dataclass(frozen=True)
class Gap:
    """By how much the scores of a part of the data are off.

    n (int): Scores. documents (int): Documents with scores. score, right (float): Mean score, and the share that is right.
    gap (float): score - right. low, high (float | None): Interval of the gap; None in a single document. p (float): p value
        of "calibrated scores show a gap as large".
    """

    n: int
    documents: int
    score: float
    right: float
    gap: float
    low: float | None
    high: float | None
    p: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def gap_of(scores: ArrayLike, hits: ArrayLike, documents: ArrayLike, apart: float | None = None) -> Gap | None:
    """The gap of n scores, by document, with a 95 % interval.

    The test is a t test of the documents' summed gaps, whose error is never taken for smaller than that of as many
    independent scores that are true. Its degrees of freedom are one less than the number of documents of equal size
    that would tell as much (Kish 1965). With few documents it rejects less often than its level. Where these are some
    of many, `apart` says how far documents differ among all of them, and counts as much as ten documents of their own.

    scores, hits, documents: One of each per unit. apart (float | None): See `documents_apart`.
    RETURNS (Gap): None without any. RAISES C001: values out of range. C002: lengths differ.
    """
    probabilities, right, codes, n_documents = _checked(scores, hits, documents)
    if not len(probabilities):
        return None
    totals = totals_of(probabilities - right, probabilities * (1.0 - probabilities), codes)
    error, freedom = errors_of(totals, apart)
    gap, n = float(totals[0, 0]) / len(probabilities), len(probabilities)
    low = high = None
    if n_documents > 1:
        from scipy.special import stdtrit

        wide = float(stdtrit(freedom[0], 0.975) * error[0]) / n
        low, high = max(gap - wide, float(probabilities.mean()) - 1.0), min(gap + wide, float(probabilities.mean()))
    p = float(p_values(totals[0] / error, freedom)[0])
    return Gap(n, n_documents, float(probabilities.mean()), float(right.mean()), gap, low, high, p)


def documents_apart(scores: ArrayLike, hits: ArrayLike, documents: ArrayLike) -> float:
    """How many times as much document gaps vary as those of independent calibrated scores; at least 1. See `gap_of`."""
    probabilities, right, codes, n_documents = _checked(scores, hits, documents)
    variance = float((probabilities * (1.0 - probabilities)).sum())
    if n_documents < 2 or not variance:
        return 1.0
    sums = np.bincount(codes, probabilities - right - (probabilities - right).mean(), n_documents)
    return max(1.0, float((sums**2).sum()) / variance * n_documents / (n_documents - 1))


def _checked(scores: ArrayLike, hits: ArrayLike, documents: ArrayLike) -> tuple[Floats, NDArray[np.bool_], Ints, int]:
    probabilities = as_probabilities("scores", scores)
    codes, n_documents = document_codes(documents, len(probabilities))
    return probabilities, as_hits(hits, len(probabilities)), codes, n_documents


# So many documents of its own the spread among all of them counts as.
_PRIOR = 10.0


def totals_of(gaps: Floats, variances: Floats, documents: Ints) -> Floats:
    """The totals of one part, shape (6, 1), see `errors_of`. gaps, variances (Floats), documents (Ints): Of each unit."""
    sizes, sums = np.bincount(documents), np.bincount(documents, gaps)
    totals = (sums.sum(), (sums**2).sum(), sizes.sum(), (sizes**2).sum(), len(sizes), variances.sum())
    return np.array(totals, dtype=np.float64)[:, None]


def errors_of(totals: Floats, apart: float | None = None) -> tuple[Floats, Floats]:
    """(error of the summed gap, degrees of freedom) of k parts, see `gap_of`.

    totals (Floats): Shape (6, k): the sums over documents of the gaps of their units, of these squared, of their units,
        and of these squared; how many documents have units; and the sum of score (1 - score).
    """
    sums, squares, sizes, square_sizes, documents, variances = totals
    n_documents = np.maximum(documents, 2)
    error_variance = n_documents / (n_documents - 1.0) * (squares - sums**2 / n_documents)
    freedom = np.maximum(sizes**2 / np.maximum(square_sizes, 1.0) - 1.0, 0.0)
    if apart is not None:
        error_variance = (freedom * error_variance + _PRIOR * apart * variances) / (freedom + _PRIOR)
        freedom = np.where(freedom > 0, freedom + _PRIOR, 0.0)
    return np.sqrt(np.maximum(np.maximum(error_variance, variances), np.finfo(float).tiny)), freedom


def p_values(distances: Floats, freedom: Floats) -> Floats:
    """Two-sided p of each t; 1 where a single document tells nothing."""
    from scipy.special import stdtr

    enough = freedom > 0
    p: Floats = np.where(enough, 2.0 * stdtr(np.where(enough, freedom, 1.0), -np.abs(distances)), 1.0)
    return p


# On average, no more than this share of the findings that stand are chance.
RATE = 0.05


def stand(p: Sequence[float] | Floats) -> NDArray[np.bool_]:
    """Which of many findings stand at the false discovery rate RATE (Benjamini and Hochberg 1995)."""
    values = np.asarray(p, dtype=np.float64)
    if ((values < 0) | (values > 1)).any():
        raise calib_error("C001", name="p", wanted="numbers from 0 to 1", given=values[(values < 0) | (values > 1)][0])
    order: Ints = np.argsort(values, kind="stable")
    passing = np.flatnonzero(values[order] <= RATE * np.arange(1, len(values) + 1) / max(1, len(values)))
    standing = np.zeros(len(values), dtype=bool)
    standing[order[: passing[-1] + 1 if len(passing) else 0]] = True
    return standing
