"""The update rules, by hand and by what they promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from spacy_calib.errors import CalibError
from spacy_calib.sequence.online.rules import Arow, ConfidenceWeighted, Difference, PassiveAggressive, Perceptron, make_rule

ONE = Difference(np.array([0, 2]), np.array([1.0, -1.0]), 1)


def applied(rule, mu, sigma, rivals):
    mu, sigma = mu.copy(), sigma.copy()
    for step in rule.steps(mu, sigma, rivals):
        mu[step.at] += step.mean
        if step.variance is not None:
            sigma[step.at] -= step.variance
    return mu, sigma


def test_perceptron_adds_the_difference():
    mu, sigma = applied(Perceptron(), np.zeros(3), np.ones(3), [ONE])
    assert mu.tolist() == [1, 0, -1]
    assert sigma.tolist() == [1, 1, 1]


def test_arow_by_hand():
    # v = 1 + 1 = 2, m = 0, one label differs: alpha = 1 / (1 + 2), beta = 1; sigma loses 1 * 1 / (1 + 2).
    mu, sigma = applied(Arow(r=1), np.zeros(3), np.ones(3), [ONE])
    assert mu == pytest.approx([1 / 3, 0, -1 / 3])
    assert sigma == pytest.approx([2 / 3, 1, 2 / 3])


@given(st.floats(0.1, 3), st.floats(-3, 3), st.floats(0.1, 5))
def test_cw_reaches_its_confidence_just_so(phi, m, v):
    """After the update P(w . Delta > 0) = Phi(phi) under the full covariance: m' = phi sqrt(v')."""
    alpha, beta = ConfidenceWeighted(phi=phi).rates(v, m, 1)
    after_mean, after_variance = m + alpha * v, v - beta * v**2 / (1 + beta * v)
    if alpha == 0:
        assert m >= phi * np.sqrt(v) - 1e-9
    else:
        assert after_mean == pytest.approx(phi * np.sqrt(after_variance), rel=1e-6)
        assert norm.cdf(after_mean / np.sqrt(after_variance)) == pytest.approx(norm.cdf(phi), abs=1e-6)


@given(st.integers(0, 10_000))
def test_pa_makes_every_rival_lose_by_its_distance_where_it_may(seed):
    rng = np.random.default_rng(seed)
    rivals = [
        Difference(at, rng.choice([-1.0, 1.0, 2.0], len(at)), int(rng.integers(1, 4)))
        for at in (np.sort(rng.choice(12, 5, replace=False)) for _ in range(3))
    ]
    before = rng.normal(size=12)
    mu, _ = applied(PassiveAggressive(k=3, most=1e9, rounds=2000), before, np.ones(12), rivals)
    margins = [mu[one.at] @ one.by - one.distance for one in rivals]
    assert min(margins) > -1e-3
    # The least such change: no step is longer than the one that repairs each alone, one after the other.
    if all(before[one.at] @ one.by >= one.distance for one in rivals):
        assert (mu == before).all()


def test_pa_with_one_rival_by_hand():
    # It loses 1 - 0 on features of squared length 2: each moves by half.
    mu, _ = applied(PassiveAggressive(k=1), np.zeros(3), np.ones(3), [ONE])
    assert mu == pytest.approx([0.5, 0, -0.5])


@pytest.mark.parametrize(("name", "settings"), [("mira", {}), ("cw", {"phi": 0}), ("arow", {"r": -1})])
def test_faults(name, settings):
    with pytest.raises(CalibError):
        make_rule(name, **settings)
