"""Intervals of calibration errors: against resampling pairs by hand, and by coverage where the truth is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.errors import CalibError
from spacy_calib.metrics import calibration_error, gmce
from spacy_calib.metrics.bootstrap import document_bootstrap
from spacy_calib.metrics.calibration_error import error_of_table
from spacy_calib.metrics.error_interval import error_interval, mean_gmce_interval, resample_error
from spacy_calib.metrics.resampling import (
    resamples,
)
from spacy_calib.pairs.bins import adaptive_edges, assign, bin_table
from spacy_calib.types import Groups

from ..strategies import make_pairs, scored_hits
from .simulated import shares_covered, texts

GROUPS = Groups(("a", "b", "c"), np.array([0, 0, 1, 2, -1]))


def true_error(scores, hits):
    edges = adaptive_edges(scores, 10)
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
    starts = np.searchsorted(documents, np.arange(20_001))

    def simulate(seed):
        drawn = np.random.default_rng(seed).integers(20_000, size=40)
        some = np.concatenate([np.arange(starts[d], starts[d + 1]) for d in drawn])
        of_pair = np.repeat(np.arange(40), starts[drawn + 1] - starts[drawn])
        found = error_interval(pool[some], pool_hits[some], of_pair, n_samples=199, seed=seed)
        return found.low <= truth <= found.high, truth <= found.upper

    two_sided, one_sided = shares_covered(200, simulate)
    # It errs on the safe side, never by much on the other: 95 % of 200 has a standard deviation of 1.5 %.
    assert two_sided >= 0.91
    assert one_sided >= 0.91


def test_plain_percentiles_do_not_hold_the_error_of_true_scores():
    # Why error_interval exists: what the docstring of its module says of percentiles.
    def repeated(pairs, judged, weights):
        times = weights.astype(int)
        return calibration_error(np.repeat(judged, times), np.repeat(pairs.hits, times))

    def simulate(seed):
        scores, hits, documents = texts(40, seed)
        found = document_bootstrap(repeated, make_pairs(scores, hits), documents, n_samples=99, seed=seed)
        return found.low <= 0.001, error_interval(scores, hits, documents, n_samples=99, seed=seed).low <= 0.001

    assert shares_covered(60, simulate).tolist() == pytest.approx([0.0, 1.0], abs=0.05)


def test_errors_equal_repeating_the_pairs():
    scores, hits, documents = texts(9, seed=5, slope=-1)
    found = error_interval(scores, hits, documents, n_bins=4, n_samples=80, seed=2, coverage=0.5)
    bins = assign(scores, adaptive_edges(scores, 4))
    n = len(scores)
    # Each document's part in a bin, less its share of the bin's gap.
    noise = 0.0
    for b in range(4):
        inside = bins == b
        gap = (scores - hits)[inside].mean()
        rest = [np.sum((scores - hits)[inside & (documents == d)] - gap) for d in range(9)]
        noise += 9 / 8 * np.square(rest).sum() / inside.sum() / n
    plain = calibration_error(scores, hits, 4)
    assert found.estimate == pytest.approx(plain)
    assert found.corrected == pytest.approx(math.sqrt(max(0.0, plain**2 - noise)))
    drawn = []
    for weights in np.concatenate(list(resamples(9, 80, seed=2)), axis=1).T.astype(int):
        index = np.concatenate([np.flatnonzero(documents == d) for d in range(9) for _ in range(weights[d])])
        gaps = [(scores - hits)[index][bins[index] == b] for b in range(4)]
        squared = sum(len(gap) * gap.mean() ** 2 for gap in gaps if len(gap)) / len(index)
        drawn.append(math.sqrt(max(0.0, squared - 2 * noise)))
    drawn.sort()
    low, high = drawn.index(pytest.approx(found.low)), drawn[::-1].index(pytest.approx(found.high))
    # Phi(sqrt(9/8) * t_8(0.25)) = Phi(-0.749) = 0.227, of 81: the 18th.
    assert (low + 1, high + 1) == (18, 18)


def test_mean_gmce_of_one_group_is_the_error_of_its_pairs():
    scores, hits, documents = texts(30, seed=5)
    pairs = make_pairs(scores, hits, tags=np.arange(len(scores)) % 5)
    groups = Groups(("all",), np.zeros(5, int))
    found = mean_gmce_interval(pairs, groups, documents)
    assert found == error_interval(scores, hits, documents)
    # Tag 4 has no group, and group c here no pairs.
    part = make_pairs(scores, hits, tags=np.where(np.arange(len(scores)) % 2 == 0, 2, 4))
    own = np.arange(len(scores)) % 2 == 0
    assert mean_gmce_interval(part, GROUPS, documents) == error_interval(scores[own], hits[own], documents[own])


def test_mean_gmce_is_the_unweighted_mean_of_the_groups():
    scores, hits, documents = texts(60, seed=6, slope=0.5)
    pairs = make_pairs(scores, hits, tags=np.arange(len(scores)) % 7 % 3)
    judged = scores**1.5
    found = mean_gmce_interval(pairs, GROUPS, documents, judged, n_bins=5)
    there = [value for value in gmce(pairs, GROUPS, judged, n_bins=5) if value is not None]
    assert len(there) == 2
    assert found.estimate == pytest.approx(np.mean(there))
    assert 0 < found.low < found.corrected < found.high
    assert found.corrected < found.estimate
    assert mean_gmce_interval(make_pairs([0.5], [1], tags=[4]), GROUPS, [0]) is None


def test_a_group_that_a_resample_misses_is_left_out_of_its_mean():
    # Group a is off by 0.5 in every document, group b by 0.9 and only in the first.
    pairs = make_pairs([0.5, 0.9, 0.5, 0.5, 0.5], [1, 0, 1, 1, 1], tags=[0, 2, 0, 0, 0])
    found = mean_gmce_interval(pairs, GROUPS, [0, 0, 1, 2, 3])
    assert (found.estimate, found.corrected, found.low, found.high) == pytest.approx((0.7, 0.7, 0.5, 0.7))


def test_true_mean_gmce_is_covered_as_often_as_it_says():
    # Group a is calibrated, group b off by 0.2 times the standard deviation of its scores.
    truth = 0.1 / math.sqrt(12)

    def simulate(seed):
        scores, hits, documents = texts(60, seed, spread=0.5)
        rng = np.random.default_rng(seed)
        second = rng.random(len(scores)) < 0.3
        hits = np.where(second, rng.random(len(scores)) < 0.5 + 0.8 * (scores - 0.5), hits)
        found = mean_gmce_interval(make_pairs(scores, hits, tags=2 * second), GROUPS, documents, n_samples=199, seed=seed)
        return found.low <= truth <= found.high

    assert shares_covered(200, simulate) >= 0.91


@given(scored_hits(), st.integers(1, 5), st.integers(1, 6))
def test_error_intervals_lie_between_0_and_1(pair, length, n_bins):
    scores, hits = pair
    found = error_interval(scores, hits, np.arange(len(scores)) // length, n_bins=n_bins, n_samples=60)
    assert found.estimate == pytest.approx(calibration_error(scores, hits, n_bins), abs=1e-12)
    if found.documents > 1:
        assert 0 <= found.low <= found.high <= 2
        assert found.low <= found.upper <= found.high
        assert 0 <= found.corrected <= found.estimate + 1e-12


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: error_interval([1.5], [1], [0]), r"\[C001\] scores"),
        (lambda: error_interval([0.5], [1, 0], [0]), r"\[C002\]"),
        (lambda: error_interval([0.5], [1], [0, 1]), r"\[C002\] A bootstrap over documents"),
        (lambda: error_interval([0.5, 0.6], [1, 0], [0, 1], n_bins=0), r"\[C001\] n_bins"),
        (lambda: error_interval([0.5, 0.6], [1, 0], [0, 1], n_samples=20), r"\[C001\] n_samples must be at least 39"),
        (lambda: error_interval([0.5, 0.6], [1, 0], [0, 1], coverage="a lot"), r"\[C001\] coverage"),
        (lambda: mean_gmce_interval(make_pairs([0.5], [1]), GROUPS, [0, 1]), r"\[C002\] A bootstrap over documents"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(call, match):
    with pytest.raises(CalibError, match=match):
        call()


def test_the_difference_of_two_errors_is_judged_on_the_same_resamples():
    scores, hits, documents = texts(60, seed=5, slope=0.5)
    true = np.clip(0.5 + (scores - 0.5) * 0.5, 0, 1)
    sure, better = (resample_error(given, hits, documents, n_samples=199) for given in (scores, true))
    same = sure.difference(resample_error(scores, hits, documents, n_samples=199))
    assert (same.estimate, same.low, same.high) == (0.0, 0.0, 0.0)
    found, mirrored = better.difference(sure), sure.difference(better)
    assert found.low < found.high < 0
    assert found.estimate == better.estimate - sure.estimate
    assert (mirrored.low, mirrored.high) == (-found.high, -found.low)
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
