"""Intervals by document: against resampling pairs by hand, and by coverage where the truth is known."""

import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit

from spacy_calib.errors import CalibError
from spacy_calib.metrics import calibration_error, gmce, log_loss
from spacy_calib.metrics.by_document import (
    ResampledFigure,
    ResampledMean,
    error_interval,
    mean_interval,
    paired_difference,
    resample_error,
    resample_means,
    resamples,
)
from spacy_calib.metrics.calibration_errors import error_of_table
from spacy_calib.metrics.proper import log_losses, squared_losses
from spacy_calib.pairs.bins import assign, bin_table, equal_mass_edges
from spacy_calib.types import Groups

from ..strategies import make_pairs, scored_hits
from .simulated import sample_documents, shares_covered, texts

GROUPS = Groups(("a", "b", "c"), np.array([0, 0, 1, 2, -1]))


def test_resamples_do_not_depend_on_how_many_are_drawn_at_once(monkeypatch):
    whole = np.concatenate(list(resamples(7, 50, seed=3)), axis=1)
    monkeypatch.setattr(sys.modules[resamples.__module__], "_CELLS_AT_ONCE", 20)
    parts = list(resamples(7, 50, seed=3))
    assert len(parts) == 25
    assert np.array_equal(np.concatenate(parts, axis=1), whole)


def test_mean_and_standard_error_worked_by_hand():
    # Document sums 1 and 5 of 2 pairs each: mean 1.5, residuals -2 and 2, error sqrt(2 / 1 * 8) / 4 = 1.
    (mean,) = resample_means([[0.0, 1.0, 2.0, 3.0]], ["x", "x", "y", "y"], n_samples=99)
    assert (mean.estimate, mean.documents) == pytest.approx((1.5, 2))
    # The first of the 99 takes one document twice: its distance is Student's quantile, in standard errors.
    assert mean.values.max() == pytest.approx(1.5 - 1.0 * stdtrit(1, 0.01))


def test_values_equal_repeating_the_pairs():
    rng = np.random.default_rng(0)
    documents = np.repeat(np.arange(8), rng.integers(1, 6, 8))
    values = rng.normal(size=len(documents)) + documents / 4
    (mean,) = resample_means([values], documents, n_samples=60, seed=4)

    def studentised(weights):
        # Every copy of a document is a document of its own.
        parts = [values[documents == d] for d in range(8) for _ in range(weights[d])]
        mean = np.concatenate(parts).mean()
        rest = [part.sum() - mean * len(part) for part in parts]
        error = math.sqrt(8 / 7 * np.square(rest).sum()) / sum(map(len, parts))
        return (mean - values.mean()) / error, error

    error = studentised(np.ones(8, dtype=int))[1]
    counts = np.concatenate(list(resamples(8, 60, seed=4)), axis=1).T.astype(int)
    assert mean.estimate == pytest.approx(values.mean())
    assert np.sort(mean.values) == pytest.approx(
        np.sort([values.mean() - studentised(weights)[0] * error for weights in counts])
    )


def test_bounds_are_order_statistics():
    mean = ResampledMean(10.0, 10.0 - 2.0 * np.arange(-50.0, 49.0), 60)
    # 99 resamples: the 5th lowest distance is -46, the 5th highest 44.
    interval = mean.interval(0.9)
    assert (interval.low, interval.high, interval.upper) == (10 - 2 * 44, 10 + 2 * 46, 10 + 2 * 41)
    assert mean.interval().upper == 10 + 2 * 46


def test_differences_of_documents_are_covered_as_often_as_they_say():
    # The second map adds 0.2, which suits texts in one mood and not the others. What is drawn from a pool has the pool's mean as its truth.
    pool, hits, documents = texts(20_000, seed=0, spread=0.6)
    losses = squared_losses(np.minimum(pool + 0.2, 1), hits) - squared_losses(pool, hits)
    truth = losses.mean()

    def simulate(seed):
        rows, of_pair = sample_documents(documents, 25, seed)
        interval = mean_interval(losses[rows], of_pair, n_samples=199, seed=seed)
        # The same as if every pair were a document.
        alone = mean_interval(losses[rows], np.arange(len(rows)), n_samples=199, seed=seed)
        return interval.low <= truth <= interval.high, truth <= interval.upper, alone.low <= truth <= alone.high

    two_sided, one_sided, of_pairs = shares_covered(400, simulate)
    # Binomial: 95 % of 400 has a standard deviation of 1.1 %; with 25 documents some of 95 % is lost.
    assert 0.90 <= two_sided <= 0.985
    assert 0.90 <= one_sided <= 0.985
    assert of_pairs < two_sided - 0.03


def test_paired_difference_is_that_of_the_means():
    scores, hits, documents = texts(30, seed=1)
    a, b = log_losses(scores**2, hits), log_losses(scores, hits)
    interval = paired_difference(a, b, documents)
    assert interval.estimate == pytest.approx(log_loss(scores**2, hits) - log_loss(scores, hits))
    assert interval.low < interval.estimate < interval.upper < interval.high
    other = paired_difference(b, a, documents)
    assert (other.estimate, other.low, other.high) == pytest.approx((-interval.estimate, -interval.high, -interval.low))
    assert (interval.documents, interval.coverage, interval.reason, interval.corrected) == (30, 0.95, None, None)


def test_order_of_pairs_and_names_of_documents_do_not_matter():
    scores, hits, documents = texts(20, seed=2)
    losses = log_losses(scores, hits)
    order = np.random.default_rng(0).permutation(len(scores))
    interval = mean_interval(losses, documents)
    names = np.array([f"text {d:03}" for d in documents])
    for other in (mean_interval(losses[order], documents[order]), mean_interval(losses, names)):
        assert (other.estimate, other.low, other.high, other.upper) == pytest.approx(
            (interval.estimate, interval.low, interval.high, interval.upper)
        )


def test_documents_that_are_all_alike_leave_no_doubt():
    # 0.1 + 0.2 + 0.4 in every document, in another order: the sums differ by a rounding error.
    values = np.array([0.1, 0.2, 0.4, 0.4, 0.2, 0.1, 0.2, 0.4, 0.1])
    interval = mean_interval(values, np.arange(9) // 3)
    assert interval.low == interval.high == interval.estimate == pytest.approx(0.7 / 3)


def test_two_documents_take_students_quantile():
    # Half of the resamples hold one document twice and have no spread.
    interval = mean_interval([0.0, 1.0], [0, 1], n_samples=999)
    assert interval.estimate == 0.5
    assert (interval.low, interval.high) == pytest.approx((0.5 + stdtrit(1, 0.025) / 2, 0.5 + stdtrit(1, 0.975) / 2))


@given(scored_hits(min_size=2), st.integers(1, 6))
def test_bounds_are_in_order_and_finite(pair, length):
    scores, hits = pair
    interval = mean_interval(squared_losses(scores, hits), np.arange(len(scores)) // length, n_samples=99)
    bounds = (interval.low, interval.upper, interval.high)
    if interval.documents > 1:
        assert interval.low <= interval.high >= interval.upper
        assert all(type(value) is float and math.isfinite(value) for value in (interval.estimate, *bounds))
    else:
        assert bounds == (None, None, None)


def test_no_pairs_and_one_document():
    assert mean_interval([], []) is None
    assert paired_difference([], [], []) is None
    assert error_interval([], [], []) is None
    one = np.zeros(3)
    pairs = make_pairs([0.1, 0.5, 0.9], [0, 1, 1])
    for interval in (
        mean_interval([1.0, 2.0, 3.0], one),
        error_interval(pairs.scores, pairs.hits, one),
    ):
        assert interval.low is interval.high is interval.upper is interval.corrected is None
        assert math.isfinite(interval.estimate)
        assert "one document" in interval.reason


def true_error(scores, hits):
    edges = equal_mass_edges(scores, n_bins=10)
    return error_of_table(bin_table(scores, hits.astype(float), edges))


@pytest.mark.parametrize(
    ("slope", "spread"),
    [(1.0, 0.0), (1.0, 0.7), (0.8, 0.7)],
    ids=["true, independent", "true, clustered", "too sure, clustered"],
)
def test_true_calibration_errors_are_covered_as_often_as_they_say(slope, spread):
    pool, pool_hits, documents = texts(20_000, seed=0, spread=spread, slope=slope)
    truth = true_error(pool, pool_hits)
    # |slope - 1| times the standard deviation of a uniform number.
    assert truth == pytest.approx(abs(slope - 1) / math.sqrt(12), abs=0.005)

    def simulate(seed):
        rows, of_pair = sample_documents(documents, 40, seed)
        interval = error_interval(pool[rows], pool_hits[rows], of_pair, n_samples=199, seed=seed)
        return interval.low <= truth <= interval.high, truth <= interval.upper

    two_sided, one_sided = shares_covered(200, simulate)
    # It errs on the safe side, never by much on the other: 95 % of 200 has a standard deviation of 1.5 %.
    assert two_sided >= 0.91
    assert one_sided >= 0.91


def test_errors_equal_repeating_the_pairs():
    scores, hits, documents = texts(9, seed=5, slope=-1)
    interval = error_interval(scores, hits, documents, n_bins=4, n_samples=80, seed=2, coverage=0.5)
    bins = assign(scores, equal_mass_edges(scores, n_bins=4))
    n = len(scores)
    # Each document's part in a bin, less its share of the bin's gap.
    noise = 0.0
    for b in range(4):
        inside = bins == b
        gap = (scores - hits)[inside].mean()
        rest = [np.sum((scores - hits)[inside & (documents == d)] - gap) for d in range(9)]
        noise += 9 / 8 * np.square(rest).sum() / inside.sum() / n
    plain = calibration_error(scores, hits, 4)
    assert interval.estimate == pytest.approx(plain)
    assert interval.corrected == pytest.approx(math.sqrt(max(0.0, plain**2 - noise)))
    drawn = []
    for weights in np.concatenate(list(resamples(9, 80, seed=2)), axis=1).T.astype(int):
        index = np.concatenate([np.flatnonzero(documents == d) for d in range(9) for _ in range(weights[d])])
        gaps = [(scores - hits)[index][bins[index] == b] for b in range(4)]
        squared = sum(len(gap) * gap.mean() ** 2 for gap in gaps if len(gap)) / len(index)
        drawn.append(math.sqrt(max(0.0, squared - 2 * noise)))
    drawn.sort()
    low, high = drawn.index(pytest.approx(interval.low)), drawn[::-1].index(pytest.approx(interval.high))
    # Phi(sqrt(9/8) * t_8(0.25)) = Phi(-0.749) = 0.227, of 81: the 18th.
    assert (low + 1, high + 1) == (18, 18)


def mean_gmce_interval(pairs, groups, documents, scores=None, **settings):
    scores = pairs.scores if scores is None else scores
    return error_interval(scores, pairs.hits, documents, groups=groups.find(pairs.tags), **settings)


def test_mean_gmce_of_one_group_is_the_error_of_its_pairs():
    scores, hits, documents = texts(30, seed=5)
    pairs = make_pairs(scores, hits, tags=np.arange(len(scores)) % 5)
    groups = Groups(("all",), np.zeros(5, int))
    interval = mean_gmce_interval(pairs, groups, documents)
    assert interval == error_interval(scores, hits, documents)
    # Tag 4 has no group, and group c here no pairs.
    part = make_pairs(scores, hits, tags=np.where(np.arange(len(scores)) % 2 == 0, 2, 4))
    own = np.arange(len(scores)) % 2 == 0
    assert mean_gmce_interval(part, GROUPS, documents) == error_interval(scores[own], hits[own], documents[own])


def test_mean_gmce_is_the_unweighted_mean_of_the_groups():
    scores, hits, documents = texts(60, seed=6, slope=0.5)
    pairs = make_pairs(scores, hits, tags=np.arange(len(scores)) % 7 % 3)
    judged = scores**1.5
    interval = mean_gmce_interval(pairs, GROUPS, documents, judged, n_bins=5)
    there = [value for value in gmce(pairs, GROUPS, judged, n_bins=5) if value is not None]
    assert len(there) == 2
    assert interval.estimate == pytest.approx(np.mean(there))
    assert 0 < interval.low < interval.corrected < interval.high
    assert interval.corrected < interval.estimate
    assert mean_gmce_interval(make_pairs([0.5], [1], tags=[4]), GROUPS, [0]) is None


def test_a_group_that_a_resample_misses_is_left_out_of_its_mean():
    # Group a is off by 0.5 in every document, group b by 0.9 and only in the first.
    pairs = make_pairs([0.5, 0.9, 0.5, 0.5, 0.5], [1, 0, 1, 1, 1], tags=[0, 2, 0, 0, 0])
    interval = mean_gmce_interval(pairs, GROUPS, [0, 0, 1, 2, 3])
    assert (interval.estimate, interval.corrected, interval.low, interval.high) == pytest.approx((0.7, 0.7, 0.5, 0.7))


def test_the_difference_of_two_errors_is_judged_on_the_same_resamples():
    scores, hits, documents = texts(60, seed=5, slope=0.5)
    true = np.clip(0.5 + (scores - 0.5) * 0.5, 0, 1)
    sure, better = (resample_error(given, hits, documents, n_samples=199) for given in (scores, true))
    same = sure.difference(resample_error(scores, hits, documents, n_samples=199))
    assert (same.estimate, same.low, same.high) == (0.0, 0.0, 0.0)
    interval, mirrored = better.difference(sure), sure.difference(better)
    assert interval.low < interval.high < 0
    assert interval.estimate == better.estimate - sure.estimate
    assert (mirrored.low, mirrored.high) == (-interval.high, -interval.low)
    # The interval of one of them is that of error_interval.
    assert sure.interval() == error_interval(scores, hits, documents, n_samples=199)


def test_differences_need_the_same_resamples_and_several_documents():
    scores, hits = [0.1, 0.6, 0.9], [0, 1, 1]
    one, other = (resample_error(scores, hits, [0, 1, 2], n_samples=n) for n in (39, 40))
    with pytest.raises(CalibError, match=r"\[C002\] A paired difference .* got 39 and 40"):
        one.difference(other)
    alone = resample_error(scores, hits, [0, 0, 0], n_samples=39)
    assert alone.difference(alone).low is None
    assert resample_error([], [], []) is None


def test_the_same_seed_gives_the_same_bits_and_another_seed_others():
    scores, hits, documents = texts(30, seed=5, slope=0.3)
    interval = error_interval(scores, hits, documents, seed=3)
    assert error_interval(scores, hits, documents, seed=3) == interval
    assert error_interval(scores, hits, documents, seed=4) != interval


@pytest.mark.parametrize(("n_samples", "n_documents", "low", "high"), [
    (10, 5, 0.0, 9.0),  # a few documents ask for less than the first of ten: it is taken
    (78, 10**9, 0.0, 77.0),  # .025 of 79 places is 1.975: the first
    (80, 10**9, 1.0, 78.0),  # .025 of 81 is 2.025: the second from either side
])  # fmt: skip
def test_percentiles_are_places_among_the_resamples(n_samples, n_documents, low, high):
    interval = ResampledFigure(0.0, np.arange(float(n_samples)), n_documents).interval()
    assert (interval.low, interval.high) == (low, high)


@pytest.mark.parametrize(("call", "match"), [
    (lambda: mean_interval([1.0, np.nan], [0, 1]), r"\[C001\] losses must be a one-dimensional array of finite numbers"),
    (lambda: mean_interval([1.0, 2.0], [0]), r"\[C002\] A bootstrap over documents needs one pair for every document"),
    (lambda: mean_interval([1.0, 2.0], [0, 1], n_samples=0), r"\[C001\] n_samples must be a whole number"),
    (lambda: mean_interval([1.0, 2.0], [0, 1], n_samples=38), r"\[C001\] n_samples must be at least 39 .* but 38"),
    (lambda: mean_interval([1.0, 2.0], [0, 1], coverage=1.0), r"\[C001\] coverage must be a number between 0 and 1"),
    (lambda: paired_difference([1.0], [1.0, 2.0], [0]), r"\[C002\] A paired difference"),
    (lambda: error_interval([1.5], [1], [0]), r"\[C001\] scores"),
    (lambda: error_interval([0.5], [1, 0], [0]), r"\[C002\]"),
    (lambda: error_interval([0.5], [1], [0, 1]), r"\[C002\] A bootstrap over documents"),
    (lambda: error_interval([0.5, 0.6], [1, 0], [0, 1], n_bins=0), r"\[C001\] n_bins"),
    (lambda: error_interval([0.5, 0.6], [1, 0], [0, 1], n_samples=20), r"\[C001\] n_samples must be at least 39"),
    (lambda: mean_gmce_interval(make_pairs([0.5], [1]), GROUPS, [0, 1]), r"\[C002\] A bootstrap over documents"),
])  # fmt: skip
def test_bad_input_is_refused(call, match):
    with pytest.raises(CalibError, match=match):
        call()
