"""How sure a mean is, by resampling whole documents: pairs of one document are alike and tell less than as many others.

A resample takes as many documents as there are, each time any of them, so that a document stands in it 0, 1, 2 ...
times: its *weight*. Figures that follow from sums over documents are drawn from those sums.

Each figure has the kind of interval that held the truth most often in simulations (tests/metrics has some). For means
(log loss, Brier score, their differences) that is the studentised one, whose upper bound failed least of five: each
resample's distance from the mean is divided by its own standard error over documents (the bootstrap-t; Efron &
Tibshirani 1993, chapter 12).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import calib_error
from ..pairs.bins import check_count
from ..types import Floats, Ints, Pairs, as_hits, as_probabilities, check_lengths

_CELLS_AT_ONCE = 1 << 22
# Relative size below which a deviation counts as floating-point noise.
ROUNDING_NOISE = 1e-12
ONE_DOCUMENT = "all pairs are of one document, and nothing says how documents differ"


@dataclass(frozen=True)
class Interval:
    """A figure and where its true value lies; None where nothing can be said, and `reason` tells why.

    estimate (float): The figure as measured. low, high (float): Two-sided interval. upper (float): One-sided bound.
    coverage (float): How often low .. high holds the true value, and how often the true value is at most `upper`.
    documents (int): How many have pairs. corrected (float): A calibration error less the bins' noise; low .. high is
        around it.
    """

    estimate: float
    low: float | None
    high: float | None
    upper: float | None
    coverage: float
    documents: int
    corrected: float | None = None
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Resampled:
    """A mean over pairs, and the studentised means of its resamples.

    estimate (float): The mean. error (float): Its standard error over documents; 0 where all losses are equal.
    distances (Floats): (mean of a resample - estimate) / standard error of the resample, ascending, shape (n_samples,).
    documents (int): How many have pairs; with one, bounds are None and p values 1.
    """

    estimate: float
    error: float
    distances: Floats
    documents: int

    def upper(self, coverage: float = 0.95) -> float | None:
        """One-sided bound: the true mean is at most this.

        RAISES C001: coverage not in (0, 1), or too near 1 for so few resamples.
        """
        rank = rank_of(1 - check_coverage(coverage), len(self.distances))
        return None if self.documents < 2 else float(self.estimate - self.distances[rank - 1] * self.error)

    def lower(self, coverage: float = 0.95) -> float | None:
        """One-sided bound: the true mean is at least this. RAISES C001: as `upper`."""
        rank = rank_of(1 - check_coverage(coverage), len(self.distances))
        return None if self.documents < 2 else float(self.estimate - self.distances[-rank] * self.error)

    def p_value(self, margin: float = 0.0) -> float:
        """p value of "the true mean is `margin` or more": at most a exactly where upper(1 - a) < margin."""
        if self.documents < 2:
            return 1.0
        if self.error == 0:
            far = -math.inf if self.estimate < margin else math.inf
        else:
            far = (self.estimate - margin) / self.error
        return (
            float((1 + np.searchsorted(self.distances, far, side="right")) / (1 + len(self.distances)))
            if far < math.inf
            else 1.0
        )

    def interval(self, coverage: float = 0.95) -> Interval:
        """Two-sided interval and one-sided bound. RAISES C001: as `upper`."""
        outer = (1 + check_coverage(coverage)) / 2
        return Interval(
            self.estimate, self.lower(outer), self.upper(outer), self.upper(coverage), coverage, self.documents,
            reason=ONE_DOCUMENT if self.documents < 2 else None,
        )  # fmt: skip


def resample_mean(values: ArrayLike, documents: ArrayLike, n_samples: int = 1000, seed: int = 0) -> Resampled | None:
    """Resample the mean of n values by document.

    values: One finite number per pair. documents: The document of each pair (numbers or names, in any order).
    n_samples (int): Resamples; about ten times 1 / (1 - coverage) are needed for bounds of that coverage.
    RETURNS (Resampled): None without pairs.
    RAISES C001: values not finite, n_samples below 1. C002: lengths differ.
    """
    found = resample_means([values], documents, n_samples, seed)
    return found[0] if found else None


def resample_means(
    columns: Sequence[ArrayLike],
    documents: ArrayLike,
    n_samples: int = 1000,
    seed: int = 0,
) -> list[Resampled] | None:
    """Resample the means of several values of the same pairs with the same resamples: faster than one by one.

    columns (Sequence[ArrayLike]): n finite numbers each. RETURNS (list[Resampled]): One per column; None without pairs.
    RAISES C001: values not finite, n_samples below 1. C002: lengths differ.
    """
    given = [as_finite(values) for values in columns]
    n = len(given[0]) if given else 0
    for values in given:
        check_lengths("Resampling", "value", n, {"other value": values})
    codes, n_documents = document_codes(documents, n)
    check_count("n_samples", n_samples)
    if not n:
        return None
    counts = np.bincount(codes).astype(np.float64)
    parts = [_Residuals.of(values, codes, counts) for values in given]
    spread = [part for part in parts if not part.flat]
    if n_documents < 2 or not spread:
        return [Resampled(part.estimate, 0.0, np.zeros(n_samples), n_documents) for part in parts]
    rests = np.stack([part.rest for part in spread])
    stacked = np.concatenate([[counts, counts**2], rests, rests**2, rests * counts])
    totals = np.concatenate([stacked @ times for times in resamples(n_documents, n_samples, seed)], axis=1)
    sizes, squares = totals[:2]
    of_part = iter(zip(*np.split(totals[2:], 3), strict=True))
    small_sample = n_documents / (n_documents - 1)
    found = []
    for part in parts:
        if part.flat:
            found.append(Resampled(part.estimate, 0.0, np.zeros(n_samples), n_documents))
            continue
        sums, squared_sums, products = next(of_part)
        shift = sums / sizes
        squared = squared_sums - 2 * shift * products + shift**2 * squares
        squared[squared <= ROUNDING_NOISE * squared_sums] = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            distances = shift / (np.sqrt(small_sample * squared) / sizes)
        error = math.sqrt(small_sample * np.sum(part.rest**2)) / counts.sum()
        ordered = _finite_distances(np.nan_to_num(distances, posinf=np.inf, neginf=-np.inf), n_documents)
        found.append(Resampled(part.estimate, error, ordered, n_documents))
    return found


@dataclass(frozen=True, eq=False)
class _Residuals:
    """The residuals of values by document.

    estimate (float): Mean of all values. rest (Floats): The sum of each document, less what it would be if all its
        values were the mean. flat (bool): Whether `rest` is rounding noise alone.
    """

    estimate: float
    rest: Floats
    flat: bool

    @classmethod
    def of(cls, values: Floats, codes: Ints, counts: Floats) -> _Residuals:
        # Taking off the first value makes the differences of equal values exactly 0.
        moved = values - values[0]
        sums = np.bincount(codes, weights=moved)
        centre = sums.sum() / counts.sum()
        rest = sums - centre * counts
        size = np.bincount(codes, weights=np.abs(moved)) + abs(centre) * counts
        flat = math.sqrt(np.sum(rest**2)) <= ROUNDING_NOISE * math.sqrt(np.sum(size**2))
        return cls(float(values[0] + centre), rest, flat)


def mean_interval(
    values: ArrayLike, documents: ArrayLike, n_samples: int = 1000, seed: int = 0, coverage: float = 0.95
) -> Interval | None:
    """Interval of the mean of n losses, by document; None without pairs. Arguments and errors as in `resample_mean`."""
    check_coverage(coverage)
    resampled = resample_mean(values, documents, n_samples, seed)
    return resampled.interval(coverage) if resampled else None


def resample_difference(
    loss_a: ArrayLike,
    loss_b: ArrayLike,
    documents: ArrayLike,
    n_samples: int = 1000,
    seed: int = 0,
) -> Resampled | None:
    """Resample the mean of loss_a - loss_b of the same n pairs by document.

    RAISES C001: losses not finite, n_samples below 1. C002: lengths differ.
    """
    first, second = as_finite(loss_a), as_finite(loss_b)
    check_lengths("A paired difference", "first loss", len(first), {"second loss": second})
    return resample_mean(first - second, documents, n_samples, seed)


def paired_difference(
    loss_a: ArrayLike,
    loss_b: ArrayLike,
    documents: ArrayLike,
    n_samples: int = 1000,
    seed: int = 0,
) -> Interval | None:
    """Mean of loss_a - loss_b with its two-sided 95 % interval and one-sided upper bound, by document; below 0, a is better.

    loss_a, loss_b: Loss of each of the same n pairs under two methods (`log_losses`, `squared_losses`).
    documents: The document of each pair.
    RETURNS (Interval): None without pairs; of zero width where all differences are equal.
    RAISES C001: losses not finite, n_samples too few. C002: lengths differ.
    """
    resampled = resample_difference(loss_a, loss_b, documents, n_samples, seed)
    return resampled.interval() if resampled else None


def as_finite(values: ArrayLike) -> Floats:
    """The values as an array. RAISES C001: not one-dimensional, or a value that is no finite number."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise calib_error("C001", name="losses", wanted="a one-dimensional array of finite numbers", given="something else")
    return array


def check_coverage(coverage: float) -> float:
    """The coverage as a float. RAISES C001: not a number between 0 and 1."""
    if isinstance(coverage, bool) or not isinstance(coverage, (int, float, np.number)) or not 0 < coverage < 1:
        raise calib_error("C001", name="coverage", wanted="a number between 0 and 1", given=repr(coverage))
    return float(coverage)


def rank_of(share: float, n_samples: int) -> int:
    """Which of the n resamples, in order, has this share of all possible ones below it: 1 for the first.

    RAISES C001: they are too few for any.
    """
    rank = math.floor(share * (n_samples + 1) + 1e-9)
    if not rank:
        needed = math.ceil(1 / share - 1e-9) - 1
        raise calib_error("C001", name="n_samples", wanted=f"at least {needed} for these bounds", given=repr(n_samples))
    return rank


def checked_scores(pairs: Pairs, scores: ArrayLike | None) -> Floats:
    """The scores, or the pairs' raw ones. RAISES C001: scores out of range. C002: another length than the pairs."""
    if scores is None:
        return pairs.scores
    judged = as_probabilities("scores", scores)
    as_hits(pairs.hits, len(judged))
    return judged


def document_codes(documents: ArrayLike, n: int) -> tuple[Ints, int]:
    """(number of each pair's document from 0, how many there are). RAISES C002: not one document per pair."""
    given = np.asarray(documents)
    if given.shape != (n,):
        raise calib_error(
            "C002", what="A bootstrap over documents", first="pair", second="document", n_first=n, n_second=given.size
        )
    distinct, codes = np.unique(given, return_inverse=True)
    return codes.astype(np.intp), len(distinct)


def resamples(n_documents: int, n_samples: int, seed: int) -> Iterator[Floats]:
    """How often each document stands in each resample: blocks (n_documents, some), n_samples columns in all."""
    rng = np.random.default_rng(seed)
    step = max(1, _CELLS_AT_ONCE // n_documents)
    for begin in range(0, n_samples, step):
        some = min(step, n_samples - begin)
        drawn = rng.integers(n_documents, size=(some, n_documents))
        drawn *= some
        drawn += np.arange(some)[:, None]
        yield np.bincount(drawn.ravel(), minlength=n_documents * some).reshape(n_documents, some).astype(np.float64)


def _finite_distances(distances: Floats, n_documents: int) -> Floats:
    """Ascending; infinite distances (of resamples of equal documents) become Student's quantiles of their ranks."""
    ordered = np.sort(distances)
    endless = np.flatnonzero(~np.isfinite(ordered))
    if len(endless):
        from scipy.special import stdtrit

        ordered[endless] = stdtrit(n_documents - 1, (endless + 1) / (len(ordered) + 1))
        ordered.sort()
    return ordered


def percentiles(drawn: Floats, estimate: float, coverage: float, n_documents: int, corrected: float | None = None) -> Interval:
    """Interval of the resamples' percentiles, at shares that few documents move outwards (Hesterberg 2015)."""
    from scipy.special import ndtr, stdtrit

    ordered = np.sort(drawn)

    def bound(share: float, from_below: bool) -> float | None:
        if not len(ordered):
            return None
        outer = ndtr(math.sqrt(n_documents / (n_documents - 1)) * stdtrit(n_documents - 1, share))
        rank = max(1, math.floor(outer * (len(ordered) + 1) + 1e-9))
        return float(ordered[rank - 1] if from_below else ordered[-rank])

    half = (1 - coverage) / 2
    return Interval(
        estimate, bound(half, True), bound(half, False), bound(1 - coverage, False), coverage, n_documents, corrected,
        None if len(ordered) else "no resample has a value",
    )  # fmt: skip
