"""smECE: worked values, the direct sum over all pairs, and what the paper proves of it."""

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import brentq
from scipy.stats import norm

from spacy_calib.metrics import smooth_calibration_error

from ..strategies import bernoulli, scored_hits


def direct_error(scores, hits, sigma, n_points=2001):
    """smECE_sigma by its definition: every pair's reflected Gaussian at every point, with the images of nine reflections."""
    t = np.linspace(0, 1, n_points)
    images = np.add.outer(2 * np.arange(-4, 5), [1, -1] * np.asarray(scores)[:, None]).reshape(9, len(scores), 2)
    height = sum(norm.pdf(t[:, None, None], image, sigma).sum(axis=2) @ (hits - scores) for image in images)
    return np.sum((np.abs(height[1:]) + np.abs(height[:-1])) / 2) / (n_points - 1) / len(scores)


def ece_of_distinct_scores(scores, hits):
    """The l1 error of bins that hold one score each."""
    _, own = np.unique(scores, return_inverse=True)
    return np.abs(np.bincount(own.reshape(-1), hits - scores)).sum() / len(scores)


@pytest.mark.parametrize(("scores", "hits", "wanted"), [
    # One score: the kernel spreads the mean residual and loses none of it. |0.7 - 1/2|; |0 - 1|.
    ([0.7] * 4, [1, 1, 0, 0], 0.2),
    ([0.0, 0.0], [1, 1], 1.0),
    # All residuals have one sign, so that none cancel: (0.1 + 0.3 + 1) / 3.
    ([0.1, 0.3, 1.0], [0, 0, 0], 1.4 / 3),
    # A constant correct forecast.
    ([0.25] * 8, [1, 1, 0, 0, 0, 0, 0, 0], 0.0),
])  # fmt: skip
def test_worked_by_hand(scores, hits, wanted):
    assert smooth_calibration_error(scores, hits) == pytest.approx(wanted, abs=1e-12)


def test_opposite_residuals_cancel_as_far_as_the_kernel_reaches():
    # At 0.25 the mean residual is 1/4, at 0.75 it is -1/4, and half of the pairs are at each. r(t) is antisymmetric around 1/2, so that
    # smECE_sigma is 1/4 (P(stays in its half) - P(crosses over)). Started from 0.25 and reflected, a normal variable lies above 1/2 where
    # before it lay in (1/2, 3/2), (5/2, 7/2) ... or (-3/2, -1/2), (-7/2, -5/2) ...
    def crosses(sigma):
        bands = [(low, low + 1) for low in np.arange(-9.5, 10, 2)]
        return sum(norm.cdf(high, 0.25, sigma) - norm.cdf(low, 0.25, sigma) for low, high in bands)

    wanted = brentq(lambda sigma: (1 - 2 * crosses(sigma)) / 4 - sigma, 0.01, 1)
    assert smooth_calibration_error([0.25, 0.25, 0.75, 0.75], [1, 0, 1, 0]) == pytest.approx(wanted, abs=1e-7)


@pytest.mark.parametrize(("n", "seed"), [(7, 0), (40, 1)])
def test_is_the_direct_sum_over_all_pairs(n, seed):
    scores, hits = bernoulli(n, seed)
    error = smooth_calibration_error(scores**2, hits)
    assert direct_error(scores**2, hits, error) == pytest.approx(error, abs=5e-6)


@given(scored_hits())
def test_lies_between_the_mean_residual_and_the_error_of_distinct_scores(drawn):
    scores, hits = drawn
    error = smooth_calibration_error(scores, hits)
    assert abs(np.mean(hits - scores)) - 1e-9 <= error <= ece_of_distinct_scores(scores, hits) + 1e-9


def test_where_a_score_lies_matters_little_to_it_and_much_to_bins():
    # A hair beside 1/2 the two halves fall into bins of their own, though nothing has changed.
    at_half, beside = np.full(100, 0.5), np.where(np.arange(100) < 50, 0.5 - 1e-6, 0.5 + 1e-6)
    hits = np.arange(100) < 50
    assert ece_of_distinct_scores(at_half, hits) == 0
    assert ece_of_distinct_scores(beside, hits) == pytest.approx(0.5, abs=1e-5)
    assert smooth_calibration_error(beside, hits) < 0.01


def test_a_million_true_pairs_have_next_to_none():
    scores, hits = bernoulli(1_000_000, seed=3)
    assert smooth_calibration_error(scores, hits) < 0.005
    assert smooth_calibration_error(scores**2, hits) == pytest.approx(np.mean(scores - scores**2), abs=0.002)
