"""Brier, log loss and accuracy, worked by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.errors import CalibError
from spacy_calib.metrics import accuracy, brier, calibration_error, log_loss
from spacy_calib.metrics.proper import accuracy_at_coverage, decompose
from spacy_calib.pairs.bins import make_binner

from ..strategies import make_pairs, pairs_of_tokens, scored_hits, scored_hits_with_order


@pytest.mark.parametrize(("metric", "scores", "hits", "value"), [
    # (0.2^2 + (0.9 - 1)^2 + (0.5 - 0)^2) / 3
    (brier, [0.2, 0.9, 0.5], [0, 1, 0], (0.04 + 0.01 + 0.25) / 3),
    (brier, [0.0, 1.0], [0, 1], 0),
    (brier, [1.0, 0.0], [0, 1], 1),
    (log_loss, [0.2, 0.9], [0, 1], -(math.log(0.8) + math.log(0.9)) / 2),
    (log_loss, [0.5], [1], math.log(2)),
    # Clipped to a millionth: a score of 0 that hits, and of 1 that misses, cost -log(1e-6) and not infinity.
    (log_loss, [0.0], [1], -math.log(1e-6)),
    (log_loss, [1.0], [0], -math.log(1e-6)),
    (log_loss, [1e-9], [1], -math.log(1e-6)),
    # Right and sure costs a millionth, not nothing. Just inside the limits nothing is clipped.
    (log_loss, [1.0, 0.0], [1, 0], -math.log(1 - 1e-6)),
    (log_loss, [2e-6], [1], -math.log(2e-6)),
])  # fmt: skip
def test_losses_worked_by_hand(metric, scores, hits, value):
    assert metric(scores, hits) == pytest.approx(value, rel=1e-9, abs=1e-15)


def test_accuracy_worked_by_hand():
    # Token 0: highest pair hits. 1: highest misses (the second hits). 2: no pair above the threshold. 3: its only pair hits.
    pairs = make_pairs([0.7, 0.3, 0.5, 0.4, 0.2], [1, 0, 0, 1, 1], tags=[0, 1, 0, 1, 0], rows=[0, 0, 1, 1, 3], n_units=4)
    assert accuracy(pairs) == 0.5


def test_tokens_without_a_pair_are_wrong():
    assert accuracy(make_pairs([], [], n_units=0)) is None
    assert accuracy(make_pairs([], [], n_units=3)) == 0
    assert accuracy(make_pairs([0.9], [1], n_units=4)) == 0.25


def test_of_two_equal_scores_the_first_is_the_tag():
    assert accuracy(make_pairs([0.5, 0.5], [1, 0], tags=[0, 1], rows=[0, 0])) == 1
    assert accuracy(make_pairs([0.5, 0.5], [0, 1], tags=[0, 1], rows=[0, 0])) == 0


@given(pairs_of_tokens())
def test_accuracy_equals_counting(pairs):
    right = 0
    for row in range(pairs.n_units):
        inside = [i for i in range(len(pairs)) if pairs.rows[i] == row]
        right += bool(inside) and bool(pairs.hits[max(inside, key=lambda i: (pairs.scores[i], -i))])
    assert accuracy(pairs) == right / pairs.n_units
    assert type(accuracy(pairs)) is float


@given(scored_hits())
def test_the_share_of_hits_is_the_best_constant(pair):
    # What "proper" means, for constants: no other constant scores better than the share of hits.
    _, hits = pair
    share = hits.mean()
    for other in (0.0, 0.1, 0.5, 0.9, 1.0):
        assert brier([share] * len(hits), hits) <= brier([other] * len(hits), hits) + 1e-12
        assert log_loss([share] * len(hits), hits) <= log_loss([other] * len(hits), hits) + 1e-12


PAIRS = st.lists(st.tuples(st.sampled_from([0.1, 0.5, 0.9, 1.0]), st.booleans()), min_size=1, max_size=30)


def test_worked_by_hand():
    accuracies = accuracy_at_coverage([0.9, 0.2, 0.8, 0.4], [1, 0, 0, 1], [0.25, 0.5, 0.75, 1.0])
    np.testing.assert_allclose(accuracies, [1.0, 0.5, 2 / 3, 0.5])


def test_equal_scores_are_kept_in_no_order():
    # The half that is kept of four equal scores, one of them right, has their accuracy.
    np.testing.assert_allclose(accuracy_at_coverage([0.5] * 4, [1, 0, 0, 0], [0.25, 0.5, 1.0]), 0.25)
    np.testing.assert_allclose(accuracy_at_coverage([0.9, 0.5, 0.5], [1, 1, 0], [1 / 3, 2 / 3]), [1.0, 0.75])


@given(PAIRS)
def test_all_that_is_kept_has_the_accuracy_of_all(pairs):
    scores, hits = zip(*pairs, strict=True)
    np.testing.assert_allclose(accuracy_at_coverage(scores, hits, np.linspace(0.01, 1, 100))[-1], np.mean(hits))


binners = st.one_of(st.integers(1, 12).map(make_binner), st.integers(1, 20).map(lambda size: make_binner(bin_size=size)))


def test_equal_scores_in_a_bin_worked_by_hand():
    # Five at 0.2, one right; five at 0.8, three right. p = 0.4, p_b = 0.2 and 0.6.
    scores, hits = np.repeat([0.2, 0.8], 5), np.array([1, 0, 0, 0, 0, 1, 1, 1, 0, 0])
    decomposition = decompose(scores, hits, make_binner(2))
    assert decomposition.reliability == pytest.approx((0.0 + 0.2**2) / 2)
    assert decomposition.refinement == pytest.approx((0.2 * 0.8 + 0.6 * 0.4) / 2)
    assert decomposition.resolution == pytest.approx(0.2**2)
    assert decomposition.uncertainty == pytest.approx(0.24)
    assert (decomposition.within_variance, decomposition.within_covariance) == pytest.approx((0, 0))
    assert decomposition.sharpness == pytest.approx(0.3**2)
    assert decomposition.claimed == pytest.approx(0.16)
    assert (decomposition.n, decomposition.bins) == (10, 2)
    # Five times: one (0.2 - 1)^2 and four 0.2^2; three 0.2^2 and two 0.8^2.
    assert decomposition.brier == pytest.approx((0.64 + 4 * 0.04 + 3 * 0.04 + 2 * 0.64) / 10)


def test_one_bin_hides_variance_and_covariance_worked_by_hand():
    # q_b = 0.5, p_b = 0.5; deviations of q: -0.3, 0.3, of y: -0.5, 0.5.
    decomposition = decompose([0.2, 0.8], [0, 1], make_binner(1))
    assert decomposition.reliability == pytest.approx(0)
    assert decomposition.refinement == pytest.approx(0.25)
    assert decomposition.resolution == pytest.approx(0)
    assert decomposition.within_variance == pytest.approx(0.09)
    assert decomposition.within_covariance == pytest.approx(2 * 0.15)
    assert decomposition.brier == pytest.approx(0.04)


@given(scored_hits(), binners)
def test_the_parts_are_the_brier_score_whatever_the_bins(pair, binner):
    decomposition = decompose(*pair, binner)
    assert decomposition.brier == pytest.approx(brier(*pair), abs=1e-12)
    assert decomposition.refinement == pytest.approx(decomposition.uncertainty - decomposition.resolution, abs=1e-12)
    parts = (
        decomposition.reliability, decomposition.refinement, decomposition.resolution, decomposition.within_variance,
        decomposition.sharpness, decomposition.claimed,
    )  # fmt: skip
    assert min(parts) >= 0
    assert decomposition.sharpness + decomposition.claimed <= 0.25 + 1e-12


@given(scored_hits(), st.integers(1, 12))
def test_the_root_of_the_reliability_is_the_calibration_error(pair, n_bins):
    decomposition = decompose(*pair, make_binner(n_bins))
    assert math.sqrt(decomposition.reliability) == pytest.approx(calibration_error(*pair, n_bins=n_bins), abs=1e-12)


@given(scored_hits_with_order(), binners)
def test_the_order_of_the_pairs_does_not_matter(given_pairs, binner):
    scores, hits, order = given_pairs
    one, other = decompose(scores, hits, binner), decompose(scores[order], hits[order], binner)
    assert vars(one) == pytest.approx(vars(other), abs=1e-12)


def test_the_estimates_approach_the_truth():
    rng = np.random.default_rng(0)
    scores = rng.beta(2.0, 1.0, 200_000)
    decomposition = decompose(scores, rng.random(200_000) < scores**2, make_binner(50))
    # The standard error of a mean of 200,000 numbers in [0, 1] is at most 0.0011. A score s has the density 2 s and is right as often as s^2:
    # the mean of s^2 (1 - s^2) is 2/4 - 2/6, that of (s - s^2)^2 is 2/4 - 4/5 + 2/6.
    assert decomposition.refinement == pytest.approx(1 / 6, abs=0.005)
    assert math.sqrt(decomposition.reliability) == pytest.approx(math.sqrt(1 / 30), abs=0.01)
    assert decomposition.sharpness == pytest.approx(1 / 18, abs=0.003)


def test_ten_adaptive_bins_where_nothing_is_said():
    rng = np.random.default_rng(1)
    scores = rng.beta(0.3, 0.1, 500)
    hits = rng.random(500) < scores
    assert decompose(scores, hits) == decompose(scores, hits, make_binner(10))
    assert decompose(scores, hits).bins == 10


def test_no_pairs_say_nothing_and_bad_input_is_refused():
    assert decompose([], []) is None
    with pytest.raises(CalibError, match=r"\[C001\] scores"):
        decompose([1.5], [0])
    with pytest.raises(CalibError, match=r"\[C002\]"):
        decompose([0.5], [0, 1])
