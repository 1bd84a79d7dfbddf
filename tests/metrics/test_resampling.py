"""Means by document: against resampling pairs by hand, and by coverage where the truth is known."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit

from spacy_calib.errors import CalibError
from spacy_calib.metrics import brier, log_loss
from spacy_calib.metrics.bootstrap import document_bootstrap
from spacy_calib.metrics.error_interval import error_interval
from spacy_calib.metrics.proper import log_losses, squared_losses
from spacy_calib.metrics.resampling import (
    Resampled,
    mean_interval,
    paired_difference,
    percentiles,
    resample_mean,
    resamples,
)

from ..strategies import bernoulli, make_pairs, scored_hits
from .simulated import shares_covered, texts


def test_every_resample_takes_as_many_documents_as_there_are():
    weights = np.concatenate(list(resamples(7, 500, seed=0)), axis=1)
    assert weights.shape == (7, 500)
    assert (weights.sum(axis=0) == 7).all()
    assert (weights == weights.round()).all()
    # Each weight is binomial(7, 1/7): mean 1, variance 6/7; five standard errors of 3,500 of them.
    assert weights.mean(axis=1) == pytest.approx(np.ones(7), abs=5 * math.sqrt(6 / 7 / 500))
    assert weights.var() == pytest.approx(6 / 7, rel=0.15)


def test_resamples_do_not_depend_on_how_many_are_drawn_at_once(monkeypatch):
    whole = np.concatenate(list(resamples(7, 50, seed=3)), axis=1)
    monkeypatch.setattr(sys.modules[Resampled.__module__], "_CELLS_AT_ONCE", 20)
    parts = list(resamples(7, 50, seed=3))
    assert len(parts) == 25
    assert np.array_equal(np.concatenate(parts, axis=1), whole)


# Means


def test_mean_and_standard_error_worked_by_hand():
    # Document sums 1 and 5 of 2 pairs each: mean 1.5, residuals -2 and 2, error sqrt(2 / 1 * 8) / 4 = 1.
    made = resample_mean([0.0, 1.0, 2.0, 3.0], ["x", "x", "y", "y"], n_samples=99)
    assert (made.estimate, made.error, made.documents) == pytest.approx((1.5, 1.0, 2))


def test_distances_equal_repeating_the_pairs():
    rng = np.random.default_rng(0)
    documents = np.repeat(np.arange(8), rng.integers(1, 6, 8))
    values = rng.normal(size=len(documents)) + documents / 4
    made = resample_mean(values, documents, n_samples=60, seed=4)
    expected = []
    for weights in np.concatenate(list(resamples(8, 60, seed=4)), axis=1).T.astype(int):
        # Every copy of a document is a document of its own.
        parts = [values[documents == d] for d in range(8) for _ in range(weights[d])]
        mean = np.concatenate(parts).mean()
        rest = [part.sum() - mean * len(part) for part in parts]
        expected.append((mean - values.mean()) / (math.sqrt(8 / 7 * np.square(rest).sum()) / sum(map(len, parts))))
    assert made.estimate == pytest.approx(values.mean())
    assert made.distances == pytest.approx(np.sort(expected))


def test_bounds_are_order_statistics():
    made = Resampled(10.0, 2.0, np.arange(-50.0, 49.0), 60)
    # 99 resamples: the 5th lowest distance is -46, the 5th highest 44.
    assert (made.upper(0.95), made.lower(0.95)) == (10 + 2 * 46, 10 - 2 * 44)
    found = made.interval(0.9)
    assert (found.low, found.high, found.upper) == (10 - 2 * 44, 10 + 2 * 46, 10 + 2 * 41)


def test_p_value_worked_by_hand():
    # Nine resamples: distances of at most (10 - 12) / 2 = -1 are -4 to -1, and one more is counted, of ten.
    made = Resampled(10.0, 2.0, np.arange(-4.0, 5.0), 60)
    assert (made.p_value(12.0), made.p_value(12.5), made.p_value(99.0), made.p_value(-99.0)) == (0.5, 0.4, 0.1, 1.0)


@given(st.floats(-4, 4), st.floats(0.01, 0.6), st.integers(0, 5))
def test_p_value_and_bound_agree(margin, share, seed):
    values, _, documents = texts(12, seed)
    made = resample_mean(values - 0.5, documents, n_samples=199, seed=seed)
    assert (made.p_value(margin * made.error) <= share + 1e-9) == (made.upper(1 - share) < margin * made.error)


def test_differences_of_documents_are_covered_as_often_as_they_say():
    # The second map adds 0.2, which suits texts in one mood and not the others. What is drawn from a pool has the pool's mean as its truth.
    pool, hits, documents = texts(20_000, seed=0, spread=0.6)
    losses = squared_losses(np.minimum(pool + 0.2, 1), hits) - squared_losses(pool, hits)
    truth = losses.mean()
    starts = np.searchsorted(documents, np.arange(20_001))

    def simulate(seed):
        drawn = np.random.default_rng(seed).integers(20_000, size=25)
        some = np.concatenate([np.arange(starts[d], starts[d + 1]) for d in drawn])
        of_pair = np.repeat(np.arange(25), starts[drawn + 1] - starts[drawn])
        found = mean_interval(losses[some], of_pair, n_samples=199, seed=seed)
        # The same as if every pair were a document.
        alone = mean_interval(losses[some], np.arange(len(some)), n_samples=199, seed=seed)
        return found.low <= truth <= found.high, truth <= found.upper, alone.low <= truth <= alone.high

    two_sided, one_sided, of_pairs = shares_covered(400, simulate)
    # Binomial: 95 % of 400 has a standard deviation of 1.1 %; with 25 documents some of 95 % is lost.
    assert 0.90 <= two_sided <= 0.985
    assert 0.90 <= one_sided <= 0.985
    assert of_pairs < two_sided - 0.03


def test_differences_of_independent_pairs_are_covered_as_often_as_they_say():
    # Scores p uniform and true. E[(p^2 - hit)^2 - (p - hit)^2] = E[(p^2 - p)^2] = 1/3 - 1/2 + 1/5 = 1/30.
    def simulate(seed):
        scores, hits = bernoulli(150, seed)
        found = paired_difference(
            squared_losses(scores**2, hits), squared_losses(scores, hits), np.arange(150), n_samples=199, seed=seed
        )
        return found.low <= 1 / 30 <= found.high, found.upper >= 1 / 30

    assert shares_covered(400, simulate) == pytest.approx([0.95, 0.95], abs=0.035)


def test_paired_difference_is_that_of_the_means():
    scores, hits, documents = texts(30, seed=1)
    a, b = log_losses(scores**2, hits), log_losses(scores, hits)
    found = paired_difference(a, b, documents)
    assert found.estimate == pytest.approx(log_loss(scores**2, hits) - log_loss(scores, hits))
    assert found.low < found.estimate < found.upper < found.high
    other = paired_difference(b, a, documents)
    assert (other.estimate, other.low, other.high) == pytest.approx((-found.estimate, -found.high, -found.low))
    assert (found.documents, found.coverage, found.reason, found.corrected) == (30, 0.95, None, None)


def test_losses_of_pairs_have_the_metrics_as_means():
    scores, hits = bernoulli(200, seed=1)
    scores[:2] = 0, 1
    assert log_losses(scores, hits).mean() == pytest.approx(log_loss(scores, hits))
    assert squared_losses(scores, hits).mean() == pytest.approx(brier(scores, hits))


def test_order_of_pairs_and_names_of_documents_do_not_matter():
    scores, hits, documents = texts(20, seed=2)
    losses = log_losses(scores, hits)
    order = np.random.default_rng(0).permutation(len(scores))
    found = mean_interval(losses, documents)
    names = np.array([f"text {d:03}" for d in documents])
    for other in (mean_interval(losses[order], documents[order]), mean_interval(losses, names)):
        assert (other.estimate, other.low, other.high, other.upper) == pytest.approx(
            (found.estimate, found.low, found.high, found.upper)
        )


def test_moving_and_stretching_the_losses_moves_and_stretches_the_interval():
    scores, hits, documents = texts(20, seed=2)
    found = mean_interval(log_losses(scores, hits), documents)
    other = mean_interval(5 + 3 * log_losses(scores, hits), documents)
    assert (other.estimate, other.low, other.high) == pytest.approx(
        (5 + 3 * found.estimate, 5 + 3 * found.low, 5 + 3 * found.high)
    )


@pytest.mark.parametrize("value", [0.0, 0.1, -1 / 3, 1e9])
def test_equal_losses_leave_no_doubt(value):
    found = mean_interval(np.full(90, value), np.arange(90) // 7)
    assert found.estimate == found.low == found.high == found.upper == value
    assert resample_mean(np.full(90, value), np.arange(90) // 7).p_value(value + 1) == 1 / 1001
    assert resample_mean(np.full(90, value), np.arange(90) // 7).p_value(value) == 1.0


def test_documents_that_are_all_alike_leave_no_doubt():
    # 0.1 + 0.2 + 0.4 in every document, in another order: the sums differ by a rounding error.
    values = np.array([0.1, 0.2, 0.4, 0.4, 0.2, 0.1, 0.2, 0.4, 0.1])
    found = mean_interval(values, np.arange(9) // 3)
    assert found.low == found.high == found.estimate == pytest.approx(0.7 / 3)


def test_two_documents_take_students_quantile():
    # Half of the resamples hold one document twice and have no spread.
    found = mean_interval([0.0, 1.0], [0, 1], n_samples=999)
    assert found.estimate == 0.5
    assert (found.low, found.high) == pytest.approx((0.5 + stdtrit(1, 0.025) / 2, 0.5 + stdtrit(1, 0.975) / 2))


def test_one_document_that_differs_gives_finite_bounds():
    values = np.zeros(500)
    values[7] = 1.0
    found = mean_interval(values, np.arange(500) // 5)
    assert found.low <= found.estimate == pytest.approx(1 / 500)
    # One event in 100 documents: the bound of a Poisson mean is 4.7 events; half or twice as many is no surprise here.
    assert 2 / 500 <= found.upper <= 10 / 500
    assert math.isfinite(found.low)


@given(scored_hits(min_size=2), st.integers(1, 6))
def test_bounds_are_in_order_and_finite(pair, length):
    scores, hits = pair
    found = mean_interval(squared_losses(scores, hits), np.arange(len(scores)) // length, n_samples=99)
    if found.documents > 1:
        assert found.low <= found.high
        assert found.upper <= found.high
        assert all(
            type(value) is float and math.isfinite(value) for value in (found.estimate, found.low, found.high, found.upper)
        )
    else:
        assert found.low is found.high is found.upper is None


def test_no_pairs_and_one_document():
    assert mean_interval([], []) is None
    assert paired_difference([], [], []) is None
    assert error_interval([], [], []) is None
    assert document_bootstrap(log_loss, make_pairs([], []), []) is None
    assert document_bootstrap(lambda pairs, scores, weights: 1.0, make_pairs([], []), []) is None
    one = np.zeros(3)
    pairs = make_pairs([0.1, 0.5, 0.9], [0, 1, 1])
    for found in (
        mean_interval([1.0, 2.0, 3.0], one),
        error_interval(pairs.scores, pairs.hits, one),
        document_bootstrap(lambda pairs, scores, weights: 1.0, pairs, one),
    ):
        assert found.low is found.high is found.upper is found.corrected is None
        assert math.isfinite(found.estimate)
        assert "one document" in found.reason
    assert resample_mean([1.0, 2.0], [0, 0]).p_value(5.0) == 1.0


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: mean_interval([1.0, np.nan], [0, 1]), r"\[C001\] losses must be a one-dimensional array of finite numbers"),
        (lambda: mean_interval([[1.0]], [0]), r"\[C001\] losses"),
        (lambda: mean_interval([1.0, 2.0], [0]), r"\[C002\] A bootstrap over documents needs one pair for every document"),
        (lambda: mean_interval([1.0, 2.0], [0, 1], n_samples=0), r"\[C001\] n_samples must be a whole number"),
        (lambda: mean_interval([1.0, 2.0], [0, 1], n_samples=38), r"\[C001\] n_samples must be at least 39 .* but 38"),
        (lambda: mean_interval([1.0, 2.0], [0, 1], coverage=1.0), r"\[C001\] coverage must be a number between 0 and 1"),
        (lambda: paired_difference([1.0], [1.0, 2.0], [0]), r"\[C002\] A paired difference"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(call, match):
    with pytest.raises(CalibError, match=match):
        call()


@pytest.mark.parametrize(
    ("n_samples", "n_documents", "low", "high"),
    [
        (10, 5, 0.0, 9.0),  # a few documents ask for less than the first of ten: it is taken
        (78, 10**9, 0.0, 77.0),  # .025 of 79 places is 1.975: the first
        (80, 10**9, 1.0, 78.0),  # .025 of 81 is 2.025: the second from either side
    ],
)
def test_percentiles_are_places_among_the_resamples(n_samples, n_documents, low, high):
    found = percentiles(np.arange(float(n_samples)), 0.0, 0.95, n_documents)
    assert (found.low, found.high) == (low, high)
