"""Slices, parts of the data that share a property: the gap between mean score and accuracy in each, and their errors.

A gap above 0 means that scores are too high. Documents are the independent units: tests are of sums over each document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import calib_error
from ..pairs.documents import document_codes
from ..pairs.pairing import JudgedPairs
from ..types import Floats, Ints, as_hits, as_probabilities
from .table import error_row

# A slice with fewer tokens or entities, or documents, is not evaluated.
FEWEST_UNITS, FEWEST_DOCUMENTS = 30, 2
_MIN_PER_BIN = 20  # minimum number of tokens or entities in each bin of a slice
RATE = 0.05  # false discovery rate: on average, at most this share of the slices that are reported as off are calibrated
_PRIOR = 10.0  # the overdispersion among all documents counts as much as this number of documents of a slice


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


def gap_of(scores: ArrayLike, hits: ArrayLike, documents: ArrayLike, overdispersion: float | None = None) -> Gap | None:
    """Return the gap between mean score and accuracy of n tokens or entities, with a 95 % interval and a p value by document.

    The test is a t test of the documents' summed gaps. The variance of their sum is at least the variance for independent
    calibrated scores, the sum of score * (1 - score). The degrees of freedom are one less than the number of documents of equal
    size that would give as much evidence (Kish 1965). With few documents the test rejects less often than its level.
    scores, hits, documents: Score, hit and document of each token or entity. overdispersion (float | None): For a part of the
        data the `document_overdispersion` of all data. The variance then includes it with the weight of ten documents.
    RETURNS (Gap | None): None without scores. RAISES C001: values out of range. C002: lengths differ.
    """
    from scipy.special import stdtr, stdtrit

    probabilities, right, codes, n_documents = _check_arrays(scores, hits, documents)
    n = len(probabilities)
    if not n:
        return None
    mean_score, share_right = float(probabilities.mean()), float(right.mean())
    total, error, freedom = _sum_with_error(probabilities, right, codes, overdispersion)
    gap = total / n
    low = high = None
    if n_documents > 1:
        half_width = float(stdtrit(freedom, 0.975) * error) / n  # then cut to the gaps that accuracies of 0 to 1 allow
        low, high = max(gap - half_width, mean_score - 1.0), min(gap + half_width, mean_score)
    # A single document, with 0 degrees of freedom, is no evidence.
    p = float(2.0 * stdtr(freedom, -abs(total / error))) if freedom > 0 else 1.0
    return Gap(n, n_documents, mean_score, share_right, gap, low, high, p)


def _sum_with_error(
    probabilities: Floats, right: NDArray[np.bool_], codes: Ints, overdispersion: float | None
) -> tuple[float, float, float]:
    """Return (sum of score - hit, its standard error over documents, degrees of freedom of the error).

    probabilities, right, codes: Score, hit and document (from 0) of each pair. overdispersion (float | None): Variance of the
        sums of all documents of the data, as a multiple of that of independent scores. The variance of these pairs is averaged
        with the one that this multiple predicts for them, which counts as _PRIOR documents. None: no average.
    """
    sizes, sums = np.bincount(codes).astype(np.float64), np.bincount(codes, probabilities - right)  # by document
    independent_variance = (probabilities * (1.0 - probabilities)).sum()  # of the sum, if scores are calibrated
    n_documents = max(len(sizes), 2)  # a single document has 0 degrees of freedom, so its error is not used
    # The variance of the sum, from the squared deviations of the documents' sums from their mean.
    variance = n_documents / (n_documents - 1.0) * (np.square(sums).sum() - np.square(sums.sum()) / n_documents)
    freedom = max(np.square(sizes.sum()) / np.square(sizes).sum() - 1.0, 0.0)  # Kish's effective number of documents - 1
    if overdispersion is not None:
        variance = (freedom * variance + _PRIOR * overdispersion * independent_variance) / (freedom + _PRIOR)
        freedom = freedom + _PRIOR if freedom > 0 else 0.0  # the average rests on _PRIOR more documents
    error = np.sqrt(max(variance, independent_variance, np.finfo(float).tiny))  # a lower variance is luck; tiny: above 0
    return float(sums.sum()), float(error), float(freedom)


def document_overdispersion(scores: ArrayLike, hits: ArrayLike, documents: ArrayLike) -> float:
    """Return the variance of documents' sums of score - hit, divided by that of independent calibrated scores; at least 1."""
    probabilities, right, codes, n_documents = _check_arrays(scores, hits, documents)
    independent_variance = float((probabilities * (1.0 - probabilities)).sum())
    if n_documents < 2 or not independent_variance:
        return 1.0
    sums = np.bincount(codes, probabilities - right - (probabilities - right).mean(), n_documents)
    return max(1.0, float((sums**2).sum()) / independent_variance * n_documents / (n_documents - 1))


def _check_arrays(scores: ArrayLike, hits: ArrayLike, documents: ArrayLike) -> tuple[Floats, NDArray[np.bool_], Ints, int]:
    """Return (scores, hits, document number of each, number of documents). RAISES C001: out of range. C002: lengths differ."""
    probabilities = as_probabilities("scores", scores)
    codes, n_documents = document_codes(documents, len(probabilities))
    return probabilities, as_hits(hits, len(probabilities)), codes, n_documents


def find_discoveries(p: Sequence[float] | Floats) -> NDArray[np.bool_]:
    """Return which p values are significant at false discovery rate RATE. RAISES C001: a p value is not in [0, 1]."""
    values = np.asarray(p, dtype=np.float64)
    invalid = values[(values < 0) | (values > 1)]
    if len(invalid):
        raise calib_error("C001", name="p", wanted="numbers from 0 to 1", given=invalid[0])
    order: Ints = np.argsort(values, kind="stable")
    # All are rejected up to the last one whose p value is below the line RATE * rank / number (Benjamini & Hochberg 1995).
    below_line = np.flatnonzero(values[order] <= RATE * np.arange(1, len(values) + 1) / max(1, len(values)))
    is_discovery = np.zeros(len(values), dtype=bool)
    n_discoveries = int(below_line[-1]) + 1 if len(below_line) else 0
    is_discovery[order[:n_discoveries]] = True
    return is_discovery


def slices_by(values: Sequence[str | None], docs: Ints, indices: Ints) -> dict[str, Ints]:
    """Group the pairs of tokens (or entities) by a value of their Docs: return value -> indices of pairs, sorted by value.

    values (Sequence): The value of each Doc; None leaves its tokens out. docs (Ints): Number of each token's Doc, shape (n,).
    indices (Ints): Index of each token's pair, (n,).
    """
    distinct = sorted({value for value in values if value is not None})
    number_of = {value: number for number, value in enumerate(distinct)}
    numbers = np.array([-1 if value is None else number_of[value] for value in values], dtype=np.intp)[docs]  # of each token
    order = np.argsort(numbers, kind="stable")
    bounds = np.searchsorted(numbers[order], np.arange(len(distinct) + 1))
    return {value: indices[order[bounds[number] : bounds[number + 1]]] for value, number in number_of.items()}


def judge_slices(
    judged_pairs: JudgedPairs, slices: Mapping[str, Ints], among: Ints, n_bins: int = 10, seed: int = 0
) -> dict[str, Any]:
    """Evaluate the scores of judged_pairs in each slice. Significantly wrong slices come first, then the largest gaps.

    slices (Mapping): Name of a slice -> indices of the pairs of its tokens (or entities) with their predicted labels.
    among (Ints): Indices of the pairs of all tokens with their predicted labels, (n,). They show how much documents differ.
    n_bins (int): Maximum number of bins of a slice; small slices have fewer. seed (int): Seed of the random numbers.
    RETURNS (dict): "rate": false discovery rate of "off". "too_small": number of slices that were left out. "rows": a dict for
        each other slice, with its name ("slice"), the fields of its `Gap`, its errors under the keys of `error_row` (without
        "group" and "tags"), and "off": whether its scores are significantly too high or too low.
    """
    calibrated, hits, documents = judged_pairs.calibrated, judged_pairs.pairs.hits, judged_pairs.documents
    overdispersion = document_overdispersion(calibrated[among], hits[among], documents[among])
    gaps: dict[str, Gap] = {}
    for name, index in slices.items():
        gap = gap_of(calibrated[index], hits[index], documents[index], overdispersion)
        if gap is not None and gap.n >= FEWEST_UNITS and gap.documents >= FEWEST_DOCUMENTS:
            gaps[name] = gap
    is_off = find_discoveries([gap.p for gap in gaps.values()]).tolist()
    rows: list[dict[str, Any]] = []
    for (name, gap), off in zip(gaps.items(), is_off, strict=True):
        slice_bins = max(1, min(n_bins, gap.n // _MIN_PER_BIN))
        errors = error_row(name, 0, judged_pairs.pairs, calibrated, slices[name], slice_bins, seed, documents)
        del errors["group"], errors["tags"]
        rows.append({"slice": name, **asdict(gap), **errors, "off": off})
    rows.sort(key=lambda row: (not row["off"], -abs(row["gap"])))
    return {"rate": RATE, "too_small": len(slices) - len(gaps), "rows": rows}
