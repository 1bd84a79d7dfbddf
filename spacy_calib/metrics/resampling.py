"""How sure a figure is, by resampling whole documents: pairs of one document are alike, and as many single pairs would know more.

A resample takes as many documents as there are, each time any of them, so that a document stands in it 0, 1, 2 ... times: its *weight*.
Figures that depend on sums over documents alone are drawn from those sums, whatever the number of pairs.

The kind of interval was chosen by coverage where the truth is known (tests/metrics/test_bootstrap.py simulates a part of that):

- Means (log loss, Brier, their differences): studentised. Each resample's distance from the mean is divided by its own standard error
  over documents (the bootstrap-t; Efron & Tibshirani 1993, chapter 12). Of five kinds its upper bound failed least often.
- Calibration errors: noise in the bins makes a resample look worse than the data, and the data worse than the truth. Where scores are
  true, plain percentiles never hold the true error, and nor does Algorithm 2 of Nguyen & O'Connor (2015). So that noise, estimated from
  the spread among documents, is taken off the squared error twice: once for the data and once for the resample.
- Anything else: percentiles, moved outwards where documents are few (the "expanded" ones of Hesterberg 2015).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import calib_error
from ..pairs.bins import assign, check_count, make_binner
from ..types import Floats, Groups, Ints, Pairs, as_hits, as_probabilities
from .calibration_error import smce
from .proper import brier, log_loss, log_losses, squared_losses

_CELLS_AT_ONCE = 1 << 22
# A spread this much smaller than what it is the spread of is rounding.
_NOTHING = 1e-12
_ONE_DOCUMENT = "all pairs are of one document, and nothing says how documents differ"

Statistic = Callable[[Pairs, Floats, Floats], "float | None"]


@dataclass(frozen=True)
class Interval:
    """A figure and where its true value lies; None where nothing can be said, and `reason` tells why.

    estimate (float): The figure as measured. low, high (float): Two-sided interval. upper (float): One-sided bound.
    coverage (float): How often low .. high holds the true value, and how often the true value is at most `upper`.
    documents (int): That have pairs. corrected (float): Of calibration errors, the estimate less the bins' noise; low .. high is around it.
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
    documents (int): That have pairs; with one, bounds are None and p values 1.
    """

    estimate: float
    error: float
    distances: Floats
    documents: int

    def upper(self, coverage: float = 0.95) -> float | None:
        """One-sided bound: the true mean is at most this.

        RAISES C001: coverage not in (0, 1), or too near 1 for so few resamples.
        """
        rank = _rank(1 - _check_coverage(coverage), len(self.distances))
        return None if self.documents < 2 else float(self.estimate - self.distances[rank - 1] * self.error)

    def lower(self, coverage: float = 0.95) -> float | None:
        """One-sided bound: the true mean is at least this. RAISES C001: see `upper`."""
        rank = _rank(1 - _check_coverage(coverage), len(self.distances))
        return None if self.documents < 2 else float(self.estimate - self.distances[-rank] * self.error)

    def p_value(self, margin: float = 0.0) -> float:
        """Of the hypothesis that the true mean is `margin` or more: p <= a exactly where upper(1 - a) < margin."""
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
        """Two-sided interval and one-sided bound. RAISES C001: see `upper`."""
        outer = (1 + _check_coverage(coverage)) / 2
        return Interval(
            self.estimate, self.lower(outer), self.upper(outer), self.upper(coverage), coverage, self.documents,
            reason=_ONE_DOCUMENT if self.documents < 2 else None,
        )  # fmt: skip


@dataclass(frozen=True)
class HolmBound:
    """One of several differences after Holm's adjustment.

    estimate (float): The difference. margin (float): What it should stay under. p_value, adjusted (float): Of "it is margin or more".
    rejected (bool): It is under the margin: `adjusted` is at most 1 - coverage. upper (float): Simultaneous bound, at most the margin
        where rejected and above it elsewhere; None with one document.
    bonferroni (float): Simultaneous bound that knows no margin; None with one document.
    """

    estimate: float
    margin: float
    p_value: float
    adjusted: float
    rejected: bool
    upper: float | None
    bonferroni: float | None


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
    columns: Sequence[ArrayLike], documents: ArrayLike, n_samples: int = 1000, seed: int = 0
) -> list[Resampled] | None:
    """Resample the means of several values of the same pairs, all with the same resamples: as `resample_mean` for each, in much less time.

    columns (Sequence[ArrayLike]): n finite numbers each. RETURNS (list[Resampled]): One per column; None without pairs.
    RAISES C001, C002: see `resample_mean`.
    """
    given = [_as_finite(values) for values in columns]
    n = len(given[0]) if given else 0
    for values in given:
        if len(values) != n:
            raise calib_error("C002", what="Resampling", first="value", second="other value", n_first=n, n_second=len(values))
    codes, n_documents = _codes(documents, n)
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
    totals = np.concatenate([stacked @ weights for weights in _weights(n_documents, n_samples, seed)], axis=1)
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
        squared[squared <= _NOTHING * squared_sums] = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            distances = shift / (np.sqrt(small_sample * squared) / sizes)
        error = math.sqrt(small_sample * np.sum(part.rest**2)) / counts.sum()
        ordered = _finite_distances(np.nan_to_num(distances, posinf=np.inf, neginf=-np.inf), n_documents)
        found.append(Resampled(part.estimate, error, ordered, n_documents))
    return found


@dataclass(frozen=True, eq=False)
class _Residuals:
    """The mean of some values, what each document's sum differs from it, and whether that is rounding only."""

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
        flat = math.sqrt(np.sum(rest**2)) <= _NOTHING * math.sqrt(np.sum(size**2))
        return cls(float(values[0] + centre), rest, flat)


def mean_interval(
    values: ArrayLike, documents: ArrayLike, n_samples: int = 1000, seed: int = 0, coverage: float = 0.95
) -> Interval | None:
    """Interval of the mean of n values (losses), by document; None without pairs. Arguments and errors: see `resample_mean`."""
    _check_coverage(coverage)
    resampled = resample_mean(values, documents, n_samples, seed)
    return resampled.interval(coverage) if resampled else None


def resample_difference(
    loss_a: ArrayLike, loss_b: ArrayLike, documents: ArrayLike, n_samples: int = 1000, seed: int = 0
) -> Resampled | None:
    """Resample the mean of loss_a - loss_b of the same n pairs by document: what `holm_upper_bounds` takes.

    RAISES C001, C002: see `resample_mean`.
    """
    first, second = _as_finite(loss_a), _as_finite(loss_b)
    if len(first) != len(second):
        raise calib_error(
            "C002",
            what="A paired difference",
            first="first loss",
            second="second loss",
            n_first=len(first),
            n_second=len(second),
        )
    return resample_mean(first - second, documents, n_samples, seed)


def paired_difference(
    loss_a: ArrayLike, loss_b: ArrayLike, documents: ArrayLike, n_samples: int = 1000, seed: int = 0, coverage: float = 0.95
) -> Interval | None:
    """Mean of loss_a - loss_b with its two-sided interval and its one-sided upper bound, by document; below 0, a is better.

    loss_a, loss_b: Loss of each of the same n pairs under two methods (`log_losses`, `squared_losses`). documents: See `resample_mean`.
    RETURNS (Interval): None without pairs; of zero width where all differences are equal.
    RAISES C001, C002: see `resample_mean`.
    """
    _check_coverage(coverage)
    resampled = resample_difference(loss_a, loss_b, documents, n_samples, seed)
    return resampled.interval(coverage) if resampled else None


def error_interval(
    scores: ArrayLike,
    hits: ArrayLike,
    documents: ArrayLike,
    n_bins: int = 10,
    bin_size: int | None = None,
    n_samples: int = 1000,
    seed: int = 0,
    coverage: float = 0.95,
) -> Interval | None:
    """Interval of the true l2 calibration error (SMCE, or GMCE over one group's pairs), by document.

    The true error is that of the same bins with endless data; the measured one is larger by the bins' noise and may lie above `high`.
    Simulated 95 % intervals held it in 95 to 100 % of cases with 10 to 300 documents, and in 87 to 93 % with 5.
    The bins stay those of all the data: made anew from each resample they give the same coverage and cost a pass over all pairs each.

    scores, hits, documents: One of each per pair. n_bins (int): Adaptive bins. bin_size (int | None): beta; replaces n_bins.
    RETURNS (Interval): None without pairs.
    RAISES C001: values out of range, n_samples too few for the coverage. C002: lengths differ.
    """
    given = as_probabilities("scores", scores)
    one = np.zeros(len(given), dtype=np.intp)
    return _error_interval(given, as_hits(hits, len(given)), one, 1, documents, n_bins, bin_size, n_samples, seed, coverage)


def mean_gmce_interval(
    pairs: Pairs,
    groups: Groups,
    documents: ArrayLike,
    scores: ArrayLike | None = None,
    n_bins: int = 10,
    bin_size: int | None = None,
    n_samples: int = 1000,
    seed: int = 0,
    coverage: float = 0.95,
) -> Interval | None:
    """Interval of the true mean GMCE (unweighted, over the groups that have pairs), by document. See `error_interval`.

    scores: Replace the pairs' raw scores. RETURNS (Interval): None where no group has pairs.
    """
    judged = _judged(pairs, scores)
    codes, _ = _codes(documents, len(pairs))
    of_pair = groups.of(pairs.tags)
    own = np.flatnonzero(of_pair >= 0)
    return _error_interval(
        judged[own], pairs.hits[own], of_pair[own], len(groups), codes[own], n_bins, bin_size, n_samples, seed, coverage
    )


def document_bootstrap(
    statistic: Statistic | Callable[..., float | None],
    pairs: Pairs,
    documents: ArrayLike,
    scores: ArrayLike | None = None,
    n_samples: int = 1000,
    seed: int = 0,
    coverage: float = 0.95,
) -> Interval | None:
    """Interval of any figure over pairs, by document.

    statistic: `log_loss`, `brier` or `smce` itself (drawn from sums, see the module), or a function of (pairs, scores, weights) with a
        weight of 0, 1, 2 ... for each pair, computed anew for every resample; its interval is one of percentiles, which suits smooth
        figures and no calibration errors. Resamples where it gives None are left out.
    documents: The document of each pair. scores: Replace the pairs' raw scores.
    RETURNS (Interval): None where the figure of all pairs is None.
    RAISES C001: scores out of range, n_samples too few for the coverage. C002: lengths differ.
    """
    judged = _judged(pairs, scores)
    if statistic is log_loss or statistic is brier:
        losses = (log_losses if statistic is log_loss else squared_losses)(judged, pairs.hits)
        return mean_interval(losses, documents, n_samples, seed, coverage)
    if statistic is smce:
        return error_interval(judged, pairs.hits, documents, n_samples=n_samples, seed=seed, coverage=coverage)
    codes, n_documents = _codes(documents, len(pairs))
    _check_coverage(coverage)
    _rank((1 - coverage) / 2, check_count("n_samples", n_samples))
    estimate = statistic(pairs, judged, np.ones(len(pairs))) if len(pairs) else None
    if estimate is None:
        return None
    if n_documents < 2:
        return Interval(float(estimate), None, None, None, coverage, n_documents, reason=_ONE_DOCUMENT)
    drawn = [
        value
        for weights in _weights(n_documents, n_samples, seed)
        for column in range(weights.shape[1])
        if (value := statistic(pairs, judged, weights[codes, column])) is not None
    ]
    return _percentiles(np.array(drawn), float(estimate), coverage, n_documents)


def weighted_calibration_error(
    scores: Floats, hits: ArrayLike, weights: Floats, n_bins: int = 10, bin_size: int | None = None
) -> float | None:
    """The l2 calibration error of pairs that count `weights` times, with bins made from the weighted pairs.

    weights (Floats): At least 0; whole numbers give the error of the pairs repeated so often. None where all are 0.
    """
    own = np.flatnonzero(weights > 0)
    if not len(own):
        return None
    given, mass = scores[own], weights[own]
    bins = assign(given, make_binner(n_bins, bin_size)(given, mass))
    gaps = np.bincount(bins, weights=mass * (given - np.asarray(hits)[own]))
    counts = np.bincount(bins, weights=mass)
    held = counts > 0
    return float(np.sqrt(np.sum(gaps[held] ** 2 / counts[held]) / counts.sum()))


def holm(p_values: ArrayLike) -> Floats:
    """Adjusted p values (Holm 1979): rejecting those at most a keeps the chance of any false rejection at most a.

    p_values: m numbers in [0, 1], of tests that may depend on one another.
    RETURNS (Floats): Shape (m,), in the same order.
    RAISES C001: values out of range.
    """
    given = as_probabilities("p_values", p_values)
    order = np.argsort(given, kind="stable")
    adjusted = np.empty(len(given))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(given[order] * np.arange(len(given), 0, -1)))
    return adjusted


def holm_upper_bounds(
    differences: Sequence[Resampled], margins: ArrayLike | None = None, coverage: float = 0.95
) -> list[HolmBound]:
    """Simultaneous one-sided upper bounds of m differences that agree with Holm's tests of "difference k is margin k or more".

    With the chance `coverage` or more every true difference is at most its bound (Strassburger & Bretz 2008; Guilbaud 2008). Where Holm's
    procedure rejects, the bound is at most the margin; where it does not, it is not below it. While any difference is retained, rejected
    ones say no more than their margin, and the retained r are bounded at 1 - (1 - coverage) / r; once all are rejected each has the lower
    of its margin and its bound at 1 - (1 - coverage) / m.

    differences (Sequence[Resampled]): Of `resample_difference`, of one data set or several. n_samples should be 20 m / (1 - coverage).
    margins: What each should stay under (1 % of the raw loss, say), shape (m,); None for 0.
    RAISES C001: margins not finite, resamples too few for m bounds. C002: lengths differ.
    """
    n = len(differences)
    wanted = np.zeros(n) if margins is None else _as_finite(margins)
    if len(wanted) != n:
        raise calib_error("C002", what="Holm's procedure", first="difference", second="margin", n_first=n, n_second=len(wanted))
    share = 1 - _check_coverage(coverage)
    if not n:
        return []
    for one in differences:
        _rank(share / n, len(one.distances))
    p_values = [one.p_value(float(margin)) for one, margin in zip(differences, wanted, strict=True)]
    adjusted = holm(p_values)
    rejected = adjusted <= share + _NOTHING
    retained = int(np.count_nonzero(~rejected))
    bounds = []
    for k, (one, margin) in enumerate(zip(differences, wanted.tolist(), strict=True)):
        bonferroni = one.upper(1 - share / n)
        if not rejected[k]:
            upper = one.upper(1 - share / retained)
        else:
            upper = margin if retained or bonferroni is None else min(margin, bonferroni)
        bounds.append(HolmBound(one.estimate, margin, p_values[k], float(adjusted[k]), bool(rejected[k]), upper, bonferroni))
    return bounds


def _as_finite(values: ArrayLike) -> Floats:
    """RAISES C001: not one-dimensional, or a value that is no finite number."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise calib_error("C001", name="losses", wanted="a one-dimensional array of finite numbers", given="something else")
    return array


def _check_coverage(coverage: float) -> float:
    """RAISES C001: not a number between 0 and 1."""
    if isinstance(coverage, bool) or not isinstance(coverage, (int, float, np.number)) or not 0 < coverage < 1:
        raise calib_error("C001", name="coverage", wanted="a number between 0 and 1", given=repr(coverage))
    return float(coverage)


def _rank(share: float, n_samples: int) -> int:
    """Which of the n resamples, in order, has this share of all possible ones below it: 1 for the first.

    RAISES C001: they are too few for any.
    """
    rank = math.floor(share * (n_samples + 1) + 1e-9)
    if not rank:
        needed = math.ceil(1 / share - 1e-9) - 1
        raise calib_error("C001", name="n_samples", wanted=f"at least {needed} for these bounds", given=repr(n_samples))
    return rank


def _judged(pairs: Pairs, scores: ArrayLike | None) -> Floats:
    """RAISES C001: scores out of range. C002: another length than the pairs."""
    if scores is None:
        return pairs.scores
    judged = as_probabilities("scores", scores)
    as_hits(pairs.hits, len(judged))
    return judged


def _codes(documents: ArrayLike, n: int) -> tuple[Ints, int]:
    """(number of each pair's document from 0, how many there are). RAISES C002: not one document per pair."""
    given = np.asarray(documents)
    if given.shape != (n,):
        raise calib_error(
            "C002", what="A bootstrap over documents", first="pair", second="document", n_first=n, n_second=given.size
        )
    distinct, codes = np.unique(given, return_inverse=True)
    return codes.astype(np.intp), len(distinct)


def _weights(n_documents: int, n_samples: int, seed: int) -> Iterator[Floats]:
    """How often each document stands in each resample: blocks of shape (n_documents, some), n_samples columns in all."""
    rng = np.random.default_rng(seed)
    step = max(1, _CELLS_AT_ONCE // n_documents)
    for begin in range(0, n_samples, step):
        some = min(step, n_samples - begin)
        drawn = rng.integers(n_documents, size=(some, n_documents))
        drawn *= some
        drawn += np.arange(some)[:, None]
        yield np.bincount(drawn.ravel(), minlength=n_documents * some).reshape(n_documents, some).astype(np.float64)


def _finite_distances(distances: Floats, n_documents: int) -> Floats:
    """Ascending; those without end, of resamples whose documents are all alike, become Student's quantiles of their ranks."""
    ordered = np.sort(distances)
    endless = np.flatnonzero(~np.isfinite(ordered))
    if len(endless):
        from scipy.special import stdtrit

        ordered[endless] = stdtrit(n_documents - 1, (endless + 1) / (len(ordered) + 1))
        ordered.sort()
    return ordered


def _percentiles(drawn: Floats, estimate: float, coverage: float, n_documents: int, corrected: float | None = None) -> Interval:
    """Percentiles of the resamples' figures, at shares that few documents move outwards (Hesterberg 2015)."""
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


def _error_interval(
    scores: Floats,
    hits: Any,
    of_pair: Ints,
    n_groups: int,
    documents: ArrayLike,
    n_bins: int,
    bin_size: int | None,
    n_samples: int,
    seed: int,
    coverage: float,
) -> Interval | None:
    """Interval of the mean over groups of their calibration errors. of_pair (Ints): Group of each pair, in [0, n_groups)."""
    binner = make_binner(n_bins, bin_size)
    codes, n_documents = _codes(documents, len(scores))
    _check_coverage(coverage)
    _rank((1 - coverage) / 2, check_count("n_samples", n_samples))
    if not len(scores):
        return None
    cells, group_of_cell = _cells(scores, of_pair, n_groups, binner)
    sums = _DocumentSums(scores - hits, cells, group_of_cell, codes, n_documents)
    estimate = float(np.mean(np.sqrt(sums.squared)))
    if n_documents < 2:
        return Interval(estimate, None, None, None, coverage, n_documents, reason=_ONE_DOCUMENT)
    noise = sums.noise()
    drawn = np.concatenate([sums.resampled(weights, 2 * noise) for weights in _weights(n_documents, n_samples, seed)])
    found = _percentiles(
        np.maximum(0.0, drawn), estimate, coverage, n_documents, max(0.0, float(np.mean(_signed_root(sums.squared - noise))))
    )
    return found


def _cells(scores: Floats, of_pair: Ints, n_groups: int, binner: Callable[..., Floats]) -> tuple[Ints, Ints]:
    """(cell of each pair, group of each cell): the bins of all groups, those that hold pairs, numbered one after another."""
    cells = np.empty(len(scores), dtype=np.intp)
    of_cell: list[Ints] = []
    begin = 0
    for group in range(n_groups):
        own = np.flatnonzero(of_pair == group)
        held, cell = np.unique(assign(scores[own], binner(scores[own])), return_inverse=True)
        cells[own] = cell + begin
        of_cell.append(np.full(len(held), group))
        begin += len(held)
    # Groups without pairs take no part: the others are numbered from 0.
    return cells, np.unique(np.concatenate(of_cell), return_inverse=True)[1]


def _signed_root(values: Floats) -> Floats:
    return np.sign(values) * np.sqrt(np.abs(values))


class _DocumentSums:
    """Sums over each document's pairs in each cell (bin of a group), sparse, and the squared errors that follow from them.

    squared (Floats): Squared calibration error of each group.
    """

    def __init__(self, gaps: Floats, cells: Ints, group_of_cell: Ints, codes: Ints, n_documents: int):
        from scipy.sparse import csr_matrix

        n_cells = len(group_of_cell)
        present, at = np.unique(codes * n_cells + cells, return_inverse=True)
        self.of_document, self.of_cell = np.divmod(present, n_cells)
        self.gaps = np.bincount(at, weights=gaps)
        self.counts = np.bincount(at).astype(np.float64)
        self.n_documents = n_documents
        shape = (n_cells, n_documents)
        where = (self.of_cell, self.of_document)
        self.gap_matrix = csr_matrix((self.gaps, where), shape=shape)
        self.count_matrix = csr_matrix((self.counts, where), shape=shape)
        self.by_group = csr_matrix((np.ones(n_cells), (group_of_cell, np.arange(n_cells))))
        self.gap = np.bincount(self.of_cell, weights=self.gaps)
        self.count = np.bincount(self.of_cell, weights=self.counts)
        self.total = self.by_group @ self.count
        self.squared = self.by_group @ (self.gap**2 / self.count) / self.total

    def noise(self) -> Floats:
        """What the randomness of documents adds to the squared error of each group on average (Kumar et al. 2019, section 5, for clusters)."""
        mean = self.gap / self.count
        rest = self.gaps - mean[self.of_cell] * self.counts
        spread = np.bincount(self.of_cell, weights=rest**2) * self.n_documents / (self.n_documents - 1)
        return self.by_group @ (spread / self.count) / self.total

    def resampled(self, weights: Floats, less: Floats) -> Floats:
        """Mean over the groups of the signed root of (squared error - less) in each resample; groups without pairs there are left out."""
        gap, count = self.gap_matrix @ weights, self.count_matrix @ weights
        total = self.by_group @ count
        squared = self.by_group @ (gap**2 / np.maximum(count, 1.0)) / np.maximum(total, 1.0)
        roots = np.where(total > 0, _signed_root(squared - less[:, None]), 0.0)
        return roots.sum(axis=0) / (total > 0).sum(axis=0)
