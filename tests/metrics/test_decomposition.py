"""The parts of the Brier score, worked by hand, and that they always add up."""

from __future__ import annotations

import math

import numpy as np
import pytest
from analysis.synthetic import Synthetic
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.errors import CalibError
from spacy_calib.metrics import brier, calibration_error
from spacy_calib.metrics.decomposition import decompose
from spacy_calib.pairs.bins import make_binner

from ..strategies import scored_hits, scored_hits_with_order

binners = st.one_of(st.integers(1, 12).map(make_binner), st.integers(1, 20).map(lambda size: make_binner(bin_size=size)))


def test_equal_scores_in_a_bin_worked_by_hand():
    # Five at 0.2, one right; five at 0.8, three right. p = 0.4, p_b = 0.2 and 0.6.
    scores, hits = np.repeat([0.2, 0.8], 5), np.array([1, 0, 0, 0, 0, 1, 1, 1, 0, 0])
    found = decompose(scores, hits, make_binner(2))
    assert found.reliability == pytest.approx((0.0 + 0.2**2) / 2)
    assert found.refinement == pytest.approx((0.2 * 0.8 + 0.6 * 0.4) / 2)
    assert found.resolution == pytest.approx(0.2**2)
    assert found.uncertainty == pytest.approx(0.24)
    assert (found.within_variance, found.within_covariance) == pytest.approx((0, 0))
    assert found.sharpness == pytest.approx(0.3**2)
    assert found.claimed == pytest.approx(0.16)
    assert (found.n, found.bins) == (10, 2)
    # Five times: one (0.2 - 1)^2 and four 0.2^2; three 0.2^2 and two 0.8^2.
    assert found.brier == pytest.approx((0.64 + 4 * 0.04 + 3 * 0.04 + 2 * 0.64) / 10)


def test_one_bin_hides_variance_and_covariance_worked_by_hand():
    # q_b = 0.5, p_b = 0.5; deviations of q: -0.3, 0.3, of y: -0.5, 0.5.
    found = decompose([0.2, 0.8], [0, 1], make_binner(1))
    assert found.reliability == pytest.approx(0)
    assert found.refinement == pytest.approx(0.25)
    assert found.resolution == pytest.approx(0)
    assert found.within_variance == pytest.approx(0.09)
    assert found.within_covariance == pytest.approx(2 * 0.15)
    assert found.brier == pytest.approx(0.04)


@given(scored_hits(), binners)
def test_the_parts_are_the_brier_score_whatever_the_bins(pair, binner):
    found = decompose(*pair, binner)
    assert found.brier == pytest.approx(brier(*pair), abs=1e-12)
    assert found.refinement == pytest.approx(found.uncertainty - found.resolution, abs=1e-12)
    parts = (found.reliability, found.refinement, found.resolution, found.within_variance, found.sharpness, found.claimed)
    assert min(parts) >= 0
    assert found.sharpness + found.claimed <= 0.25 + 1e-12


@given(scored_hits(), st.integers(1, 12))
def test_the_root_of_the_reliability_is_the_calibration_error(pair, n_bins):
    found = decompose(*pair, make_binner(n_bins))
    assert math.sqrt(found.reliability) == pytest.approx(calibration_error(*pair, n_bins=n_bins), abs=1e-12)


@given(scored_hits_with_order(), binners)
def test_the_order_of_the_pairs_does_not_matter(given_pairs, binner):
    scores, hits, order = given_pairs
    one, other = decompose(scores, hits, binner), decompose(scores[order], hits[order], binner)
    assert vars(one) == pytest.approx(vars(other), abs=1e-12)


def test_the_estimates_approach_the_truth():
    source = Synthetic(2.0, 1.0, "power", 2.0)
    found = decompose(*source.draw(200_000, np.random.default_rng(0)), make_binner(50))
    # The standard error of a mean of 200,000 numbers in [0, 1] is at most 0.0011.
    assert found.refinement == pytest.approx(source.refinement(), abs=0.005)
    assert math.sqrt(found.reliability) == pytest.approx(source.error(), abs=0.01)
    assert found.sharpness == pytest.approx(1 / 18, abs=0.003)


def test_ten_adaptive_bins_where_nothing_is_said():
    scores, hits = Synthetic().draw(500, np.random.default_rng(1))
    assert decompose(scores, hits) == decompose(scores, hits, make_binner(10))
    assert decompose(scores, hits).bins == 10


def test_no_pairs_say_nothing_and_bad_input_is_refused():
    assert decompose([], []) is None
    with pytest.raises(CalibError, match=r"\[C001\] scores"):
        decompose([1.5], [0])
    with pytest.raises(CalibError, match=r"\[C002\]"):
        decompose([0.5], [0, 1])
