"""The gap between mean score and accuracy in a part of the data, its significance, and the control of false discoveries.

A gap above 0 means that scores are too high. Documents are the independent units: tests are of sums over each document.
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
    """The gap between the mean score and the accuracy in a part of the data.

    n (int): Number of scores. documents (int): Number of documents with scores. score, right (float): Mean score, and share
    that is right. gap (float): score - right. low, high (float | None): 95 % interval of the gap; None for a single document.
    p (float): p value of the hypothesis that the scores are calibrated.
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
        return asdict(self)


def gap_of(scores: ArrayLike, hits: ArrayLike, documents: ArrayLike, overdispersion: float | None = None) -> Gap | None:
    """Return the gap between mean score and accuracy of n units, with a 95 % interval and a p value by document.

    The test is a t test of the documents' summed gaps. The variance of their sum is at least the variance for independent
    calibrated scores, the sum of score * (1 - score). The degrees of freedom are one less than the number of documents of equal
    size that would give as much evidence (Kish 1965). With few documents the test rejects less often than its level.

    scores, hits, documents: Score, hit and document of each unit (token, entity). overdispersion (float | None): From
        `document_overdispersion` of all data, if the units are a part of them: it counts as much as ten documents of the part.
    RETURNS (Gap | None): None without scores. RAISES C001: values out of range. C002: lengths differ.
    """
    probabilities, right, codes, n_documents = _check_units(scores, hits, documents)
    if not len(probabilities):
        return None
    totals = totals_of(probabilities - right, probabilities * (1.0 - probabilities), codes)
    error, degrees_of_freedom = errors_of(totals, overdispersion)
    gap, n = float(totals[0, 0]) / len(probabilities), len(probabilities)
    low = high = None
    if n_documents > 1:
        from scipy.special import stdtrit

        half_width = float(stdtrit(degrees_of_freedom[0], 0.975) * error[0]) / n
        low, high = max(gap - half_width, float(probabilities.mean()) - 1.0), min(gap + half_width, float(probabilities.mean()))
    p = float(p_values(totals[0] / error, degrees_of_freedom)[0])
    return Gap(n, n_documents, float(probabilities.mean()), float(right.mean()), gap, low, high, p)


def document_overdispersion(scores: ArrayLike, hits: ArrayLike, documents: ArrayLike) -> float:
    """Return the variance of documents' summed gaps, over the variance for independent calibrated scores; at least 1."""
    probabilities, right, codes, n_documents = _check_units(scores, hits, documents)
    variance = float((probabilities * (1.0 - probabilities)).sum())
    if n_documents < 2 or not variance:
        return 1.0
    sums = np.bincount(codes, probabilities - right - (probabilities - right).mean(), n_documents)
    return max(1.0, float((sums**2).sum()) / variance * n_documents / (n_documents - 1))


def _check_units(scores: ArrayLike, hits: ArrayLike, documents: ArrayLike) -> tuple[Floats, NDArray[np.bool_], Ints, int]:
    """Return (scores, hits, number of each one's document from 0, number of documents). RAISES C001, C002: not valid."""
    probabilities = as_probabilities("scores", scores)
    codes, n_documents = document_codes(documents, len(probabilities))
    return probabilities, as_hits(hits, len(probabilities)), codes, n_documents


# The overdispersion among all documents counts as much as so many documents of a part.
_PRIOR = 10.0


def totals_of(gaps: Floats, variances: Floats, documents: Ints) -> Floats:
    """Return six sums over the documents of one part of the data, which `errors_of` describes and takes, shape (6, 1).

    gaps, variances (Floats), documents (Ints): score - hit, score * (1 - score), and document (from 0) of each unit.
    """
    sizes, sums = np.bincount(documents), np.bincount(documents, gaps)
    totals = (sums.sum(), (sums**2).sum(), sizes.sum(), (sizes**2).sum(), len(sizes), variances.sum())
    return np.array(totals, dtype=np.float64)[:, None]


def errors_of(totals: Floats, overdispersion: float | None = None) -> tuple[Floats, Floats]:
    """Return (standard error of the summed gap, degrees of freedom) of k parts of the data, for the t test of `gap_of`.

    totals (Floats): Shape (6, k). If G is the sum of the gaps of a document and N its number of units: the sums over
        documents of G, G^2, N and N^2; the number of documents with units; and the sum of score * (1 - score).
    overdispersion (float | None): Overdispersion among all documents, which counts as ten documents; None is not used.
    """
    sums, squares, sizes, square_sizes, documents, variances = totals
    n_documents = np.maximum(documents, 2)
    error_variance = n_documents / (n_documents - 1.0) * (squares - sums**2 / n_documents)
    degrees_of_freedom = np.maximum(sizes**2 / np.maximum(square_sizes, 1.0) - 1.0, 0.0)
    if overdispersion is not None:
        error_variance = (degrees_of_freedom * error_variance + _PRIOR * overdispersion * variances) / (
            degrees_of_freedom + _PRIOR
        )
        degrees_of_freedom = np.where(degrees_of_freedom > 0, degrees_of_freedom + _PRIOR, 0.0)
    return np.sqrt(np.maximum(np.maximum(error_variance, variances), np.finfo(float).tiny)), degrees_of_freedom


def p_values(t: Floats, degrees_of_freedom: Floats) -> Floats:
    """Return the two-sided p value of each t statistic; 1 for 0 degrees of freedom (a single document), without evidence."""
    from scipy.special import stdtr

    is_testable = degrees_of_freedom > 0
    p: Floats = np.where(is_testable, 2.0 * stdtr(np.where(is_testable, degrees_of_freedom, 1.0), -np.abs(t)), 1.0)
    return p


# False discovery rate: on average, no more than this share of the discoveries are chance.
RATE = 0.05


def find_discoveries(p: Sequence[float] | Floats) -> NDArray[np.bool_]:
    """Return which hypotheses, by their p values, are rejected at the false discovery rate RATE (Benjamini, Hochberg 1995)."""
    values = np.asarray(p, dtype=np.float64)
    if ((values < 0) | (values > 1)).any():
        raise calib_error("C001", name="p", wanted="numbers from 0 to 1", given=values[(values < 0) | (values > 1)][0])
    order: Ints = np.argsort(values, kind="stable")
    below_line = np.flatnonzero(values[order] <= RATE * np.arange(1, len(values) + 1) / max(1, len(values)))
    is_discovery = np.zeros(len(values), dtype=bool)
    is_discovery[order[: below_line[-1] + 1 if len(below_line) else 0]] = True
    return is_discovery
