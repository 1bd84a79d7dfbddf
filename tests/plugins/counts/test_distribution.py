"""The distribution of a count, against enumeration and scipy's binomial."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from spacy_calib import CalibError
from spacy_calib.plugins.counts import distribution
from spacy_calib.plugins.counts.distribution import CountDistribution, convolve, mixture, poisson_binomial

CHANCES = st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.5, 1.0])), max_size=9)


def dense(counted: CountDistribution, n: int) -> np.ndarray:
    """The chances of 0 to n."""
    return np.pad(counted.probabilities, (counted.first, n + 1 - counted.first - len(counted.probabilities)))


@given(CHANCES)
@settings(max_examples=60, deadline=None)
def test_equals_enumeration(chances):
    wanted = np.zeros(len(chances) + 1)
    for held in itertools.product((0, 1), repeat=len(chances)):
        wanted[sum(held)] += np.prod([p if one else 1 - p for p, one in zip(chances, held, strict=True)])
    np.testing.assert_allclose(dense(poisson_binomial(chances), len(chances)), wanted, atol=1e-14)


@pytest.mark.parametrize(("n", "chance"), [(1, 0.3), (64, 0.5), (65, 0.01), (1000, 0.2), (5003, 0.97)])
def test_equal_chances_are_a_binomial(n, chance):
    found = poisson_binomial(np.full(n, chance))
    np.testing.assert_allclose(dense(found, n), binom.pmf(np.arange(n + 1), n, chance), atol=1e-13)
    assert found.mean == pytest.approx(n * chance)
    assert found.variance == pytest.approx(n * chance * (1 - chance))
    low, high = found.interval()
    assert binom.cdf(low - 1, n, chance) <= 0.025 < binom.cdf(low, n, chance) + 1e-9
    assert binom.sf(high, n, chance) <= 0.025 + 1e-9


def test_mean_and_variance_of_many_units():
    chances = np.random.default_rng(0).beta(0.2, 2, 30_000)
    found = poisson_binomial(chances)
    assert found.mean == pytest.approx(chances.sum())
    assert found.variance == pytest.approx((chances * (1 - chances)).sum(), rel=1e-6)
    assert len(found.probabilities) < 2000  # the ends hold nothing


@pytest.mark.parametrize("n", [1, 64 * 2, 64 * 4 + 1, 64 * 11 + 3])
def test_blocks_made_some_after_the_others_give_the_same_to_the_bit(n, monkeypatch):
    chances = np.random.default_rng(n).random(n)
    wanted = poisson_binomial(chances)
    for together in (1, 2, 8):
        monkeypatch.setattr(distribution, "_N_BLOCKS", together)
        assert poisson_binomial(chances).probabilities.tobytes() == wanted.probabilities.tobytes()


def test_no_units_and_sure_ones():
    assert poisson_binomial([]).interval() == (0, 0)
    found = poisson_binomial([1.0, 0.0, 1.0])
    assert (found.first, found.probabilities.tolist(), found.interval()) == (2, [1.0], (2, 2))


def test_an_interval_by_hand():
    found = CountDistribution(3, np.array([0.02, 0.03, 0.9, 0.04, 0.01]))
    assert found.interval(0.95) == (4, 6)  # 0.02 below 4; above 6 there is 0.01, above 5 0.05
    assert found.interval(0.9) == (5, 5)  # 0.05 on each side
    with pytest.raises(CalibError, match="C001"):
        found.interval(1.0)


def test_sums_and_mixtures():
    one, other = poisson_binomial([0.5, 1.0]), poisson_binomial([0.25])
    assert dense(convolve(one, other), 3).tolist() == [0, 0.375, 0.5, 0.125]
    assert dense(mixture([one, other], np.array([0.5, 0.5])), 2).tolist() == [0.375, 0.375, 0.25]


@pytest.mark.parametrize("wrong", [[1.5], [-0.1], [float("nan")], [[0.5]]])
def test_what_is_no_chance(wrong):
    with pytest.raises(CalibError, match="C390"):
        poisson_binomial(wrong)
