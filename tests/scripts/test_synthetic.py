"""Made-up predictions: true errors against closed forms, and draws against the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_bins import MAPS, Synthetic

from spacy_calib.errors import CalibError

TRUTHS = [
    Synthetic(),
    Synthetic(2.0, 3.0, "power", 1.7),
    Synthetic(0.5, 0.5, "step", 0.1),
]


def moment(a: float, b: float, power: float) -> float:
    """The mean of q ** power over Beta(a, b), by gamma functions."""
    return math.exp(math.lgamma(a + power) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(a + b + power))


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.3, 0.1), (0.05, 0.05), (5.0, 2.0), (40.0, 3.0)])
@pytest.mark.parametrize("power", [0.5, 1.3, 3.0])
def test_the_error_of_a_power_is_that_of_its_moments(a, b, power):
    squared = moment(a, b, 2) - 2 * moment(a, b, 1 + power) + moment(a, b, 2 * power)
    source = Synthetic(a, b, "power", power)
    assert source.error() == pytest.approx(math.sqrt(squared), rel=1e-4)


def test_the_step_of_the_thesis_worked_by_hand():
    # Uniform scores, k = 0.2: the gap is q up to 0.2, 0.2 up to 0.8, and 1 - q above.
    squared = 2 * 0.2**3 / 3 + 0.6 * 0.2**2
    source = Synthetic(1.0, 1.0, "step", 0.2)
    assert source.error() == pytest.approx(math.sqrt(squared), rel=1e-5)
    assert source.chance(np.array([0.1, 0.3, 0.5, 0.6, 0.9])) == pytest.approx([0, 0.1, 0.3, 0.8, 1])


def test_true_scores_have_no_error():
    assert Synthetic().error() == 0
    assert Synthetic(map="power", strength=1.0).error() == pytest.approx(0, abs=1e-9)
    assert Synthetic(map="step", strength=0.0).error() == 0


@pytest.mark.parametrize("source", TRUTHS, ids=lambda source: source.map)
def test_draws_follow_the_truth(source):
    n = 100_000
    scores, hits = source.draw(n, np.random.default_rng(5))
    total = source.a + source.b
    deviation = math.sqrt(source.a * source.b / total**2 / (total + 1))
    assert scores.mean() == pytest.approx(source.a / total, abs=5 * deviation / math.sqrt(n))
    assert hits.mean() == pytest.approx(source.chance(scores).mean(), abs=2.5 / math.sqrt(n))
    squared = np.mean((scores - source.chance(scores)) ** 2)
    assert math.sqrt(squared) == pytest.approx(source.error(), abs=0.005)


@given(st.sampled_from(TRUTHS), st.floats(0, 1))
def test_chances_are_probabilities_that_rise_with_the_score(source, score):
    chances = source.chance(np.array([score / 2, score]))
    assert 0 <= chances[0] <= chances[1] <= 1


def test_the_same_seed_gives_the_same_draws_and_another_seed_others():
    source = Synthetic(map="power", strength=2.0)
    draws = [source.draw(50, np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert np.array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"a": 0}, "a must be a number above 0, but 0 was given"),
        ({"b": math.inf}, "b must be a number above 0, but inf was given"),
        ({"map": "sigmoid"}, f"map must be one of {', '.join(MAPS)}, but 'sigmoid' was given"),
        ({"map": "power"}, "strength must be a number above 0, but 0.0 was given"),
        ({"map": "power", "strength": math.nan}, "strength must be a number above 0, but nan was given"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(CalibError) as caught:
        Synthetic(**settings)
    assert caught.value.code == "C001"
    assert message in caught.value.message


def test_no_draws_are_refused():
    with pytest.raises(CalibError, match="n must be a whole number of at least 1"):
        Synthetic().draw(0, np.random.default_rng(0))
