"""A line in log-odds, between no change and what labelled entries say."""

import numpy as np
import pytest
from scipy.optimize import minimize

from spacy_calib.calibration.adaptation.adaptation import LEAST_SLOPE, Line, Prior, document_weights, fit_line
from spacy_calib.calibration.recalibrators.logistic import sigmoid

ONE = np.ones


def drawn(n: int, slope: float, intercept: float, seed: int = 0):
    """(log-odds, hits): what hits as often as this line says."""
    rng = np.random.default_rng(seed)
    margins = rng.normal(2, 2, n)
    return margins, rng.random(n) < sigmoid(slope * margins + intercept)


def test_one_spread_is_the_maximum_a_posteriori():
    margins, hits = drawn(60, 0.6, -0.5)
    weights = np.linspace(0.5, 1.5, 60)

    def objective(at):
        moved = at[0] * margins + at[1]
        loss = (weights * np.where(hits, np.log1p(np.exp(-moved)), np.log1p(np.exp(moved)))).sum()
        return loss + 0.5 * ((at[0] - 1) / 0.2) ** 2 + 0.5 * (at[1] / 0.4) ** 2

    wanted = minimize(objective, [1.0, 0.0], tol=1e-12).x
    found = fit_line(margins, hits, weights, Prior(spreads=(0.4,)))
    np.testing.assert_allclose([found.slope, found.intercept], wanted, atol=1e-5)


def test_without_entries_nothing_changes():
    assert fit_line(np.zeros(0), np.zeros(0, dtype=bool), np.zeros(0), Prior()) == Line()


def test_a_part_of_the_prior_weighs_as_much_as_the_hits_are_likely_under_it():
    """With one entry of log-odds 0, evidence can be had by integration: the mean of sigmoid over the Gaussian is 1/2 for each spread, so
    all parts weigh the same, up to what Laplace's approximation misses.
    """
    margins, hits = np.zeros(1), ONE(1, dtype=bool)
    wide = fit_line(margins, hits, ONE(1), Prior(spreads=(0.5,)))
    both = fit_line(margins, hits, ONE(1), Prior(spreads=(0.0, 0.5)))
    assert both.intercept == pytest.approx(wide.intercept / 2, rel=0.02)
    assert both.slope == pytest.approx(1.0)  # log-odds of 0 say nothing of it


def test_much_data_finds_the_line_and_true_scores_stay():
    found = fit_line(*drawn(20_000, 0.7, -0.5), ONE(20_000), Prior())
    assert (found.slope, found.intercept) == pytest.approx((0.7, -0.5), abs=0.06)
    same = fit_line(*drawn(20_000, 1.0, 0.0), ONE(20_000), Prior())
    assert (same.slope, same.intercept) == pytest.approx((1.0, 0.0), abs=0.03)


def test_scores_in_the_wrong_order_keep_their_order():
    margins, hits = drawn(5000, -1.0, 0.5)
    assert fit_line(margins, hits, ONE(5000), Prior(spreads=(0.5,))).slope == LEAST_SLOPE


def test_a_long_document_counts_for_no_more_than_its_own_shift_leaves():
    """40 tokens of score 1/2 hold the information 10, 4 tokens 1: weights 1 / (1 + .09 * 10) and 1 / (1 + .09)."""
    documents = np.repeat([7, 3], [40, 4])
    weights = document_weights(np.full(44, 0.5), documents, 0.3)
    np.testing.assert_allclose(weights, np.repeat([1 / 1.9, 1 / 1.09], [40, 4]))
    endless = document_weights(np.full(100_000, 0.5), np.zeros(100_000, dtype=np.intp), 0.3)
    assert (endless * 0.25).sum() < 1 / 0.3**2


def test_sure_scores_that_are_wrong_together_say_it_once():
    """Ten tokens of score .9: information .9 by their scores, and 10 * .81 where all of them miss, so weights 1 / 1.9 and 1 / 9.1."""
    documents, hits = np.repeat([0, 1], 10), np.repeat([True, False], 10)
    weights = document_weights(np.full(20, 0.9), documents, 1.0, hits)
    np.testing.assert_allclose(weights, np.repeat([1 / 1.9, 1 / 9.1], 10))
