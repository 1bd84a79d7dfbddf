"""The conditional logit: sums, its loss and slope, and weights that are known."""

import numpy as np
import pytest
from scipy.optimize import check_grad

from spacy_calib.calibration.conditional_logit import choice_loss, fit_choices, log_sums, softmax

STARTS = np.array([0, 2, 5])
SCORES = np.log([1.0, 3.0, 1.0, 2.0, 5.0])


def test_the_softmax_of_each_stretch_by_hand():
    assert np.exp(log_sums(SCORES, STARTS)) == pytest.approx([4.0, 8.0])
    assert softmax(SCORES, STARTS) == pytest.approx([0.25, 0.75, 0.125, 0.25, 0.625])
    assert len(log_sums(np.zeros(0), np.zeros(1, dtype=np.intp))) == 0


def test_the_loss_by_hand_and_its_slope_by_differences():
    features, right = SCORES[:, None], np.array([False, True, True, False, False])
    loss, _ = choice_loss(features, STARTS, right, np.ones(1))
    assert loss == pytest.approx(-np.log(0.75 * 0.125))
    rng = np.random.default_rng(0)
    features = rng.normal(size=(5, 3))
    wrong = check_grad(*(lambda w, i=i: choice_loss(features, STARTS, right, w)[i] for i in (0, 1)), rng.normal(size=3))
    assert wrong < 1e-6


def test_weights_that_made_the_choices_are_found_again_and_few_choices_stay_near_the_start():
    rng, true = np.random.default_rng(1), np.array([1.5, -0.7])
    features, starts = rng.normal(size=(12_000, 2)), np.arange(0, 12_001, 4)
    best = (features @ true + rng.gumbel(size=12_000)).reshape(-1, 4).argmax(axis=1)
    right = (np.arange(4) == best[:, None]).reshape(-1)
    penalty = np.full(2, 0.1)
    assert fit_choices(features, starts, right, np.zeros(2), penalty) == pytest.approx(true, abs=0.1)
    few = fit_choices(features[:8], starts[:3], right[:8], true, np.full(2, 1e6))
    assert few == pytest.approx(true, abs=1e-3)


def test_choices_without_a_right_option_say_nothing():
    rng = np.random.default_rng(2)
    features, starts, right = rng.normal(size=(40, 2)), np.arange(0, 41, 4), np.tile([True, False, False, False], 10)
    with_others = np.concatenate([features, rng.normal(size=(3, 2))])
    more = np.append(right, np.zeros(3, dtype=bool))
    arguments = (np.zeros(2), np.ones(2))
    found = fit_choices(with_others, np.append(starts, 43), more, *arguments)
    assert found == pytest.approx(fit_choices(features, starts, right, *arguments))
    nothing = fit_choices(features, starts, np.zeros(40, dtype=bool), np.array([1.0, 2.0]), np.ones(2))
    assert nothing.tolist() == [1.0, 2.0]
