"""Features of units from the scores of their tokens, and the forecaster that held-out documents choose."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given

from spacy_calib.calibration.spans import logit
from spacy_calib.errors import CalibError
from spacy_calib.plugins.events.forecasters.base import Logistic, NearestNeighbours
from spacy_calib.plugins.events.forecasters.trees import DecisionTree
from spacy_calib.plugins.events.forecasts import (
    UNIT_FEATURES,
    TunedForecaster,
    choose_best,
    default_forecasters,
    describe,
    fit_best,
    split_loss,
    tune,
    unit_features,
)
from spacy_calib.types import Spans

from ...strategies import scored_hits


def units(*scores) -> Spans:
    lengths = np.array([len(one) for one in scores], dtype=int)
    ends, n = np.cumsum(lengths), len(lengths)
    flat = np.concatenate([np.zeros(0), *map(np.array, scores)])
    return Spans(ends - lengths, ends, np.zeros(n, int), flat, np.zeros(n), np.ones(n, bool))


def column(name: str, *scores):
    return unit_features(units(*scores))[:, UNIT_FEATURES.index(name)]


def test_features_by_hand():
    given = ([0.8, 0.5, 0.95], [0.6])
    assert np.allclose(column("minimum", *given), logit(np.array([0.5, 0.6])))
    assert np.allclose(column("product", *given), np.log([0.38, 0.6]))
    assert np.allclose(column("1 - product", *given), np.log([0.62, 0.4]))
    assert np.allclose(column("mean", *given), logit(np.array([0.75, 0.6])))
    assert np.allclose(column("length", *given), np.log([3, 1]))
    assert np.allclose(column("second least", *given), logit(np.array([0.8, 0.6])))  # of one token again the least
    assert column("doubtful tokens", *given).tolist() == [2, 1]


def test_a_token_more_changes_nothing_of_other_units():
    alone = unit_features(units([0.9, 0.3]))
    assert np.array_equal(unit_features(units([0.2], [0.9, 0.3], [0.7, 0.7]))[1:2], alone)
    assert unit_features(units()).shape == (0, len(UNIT_FEATURES))


def test_the_forecaster_is_chosen_on_documents_held_out():
    rng = np.random.default_rng(0)
    scores = [rng.uniform(0.5, 1, rng.integers(1, 6)) for _ in range(400)]
    # Tokens of a unit go wrong together: the least score alone tells whether the unit is right.
    hits = np.array([rng.random() < one.min() for one in scores])
    best, trials = fit_best(unit_features(units(*scores)), hits, np.arange(400) // 4, (Logistic(10.0), DecisionTree()))
    assert best.loss == min(trial.loss for trial in trials)
    product = np.array([one.prod() for one in scores])
    assert best.loss < np.mean((product - hits) ** 2)
    assert describe(best.forecaster) in {trial.name for trial in trials}


def test_what_is_tried_and_what_it_is_called():
    assert len({describe(one) for one in default_forecasters()}) == len(default_forecasters()) >= 4
    assert [describe(one) for one in (DecisionTree(7), Logistic(10.0))] == ["tree (min_leaf 7)", "logistic (ridge 10)"]


def test_nothing_to_learn_from_and_no_bins():
    with pytest.raises(CalibError, match="C373"):
        fit_best(np.zeros((0, 3)), np.zeros(0, bool), np.zeros(0, int), (Logistic(),))
    with pytest.raises(CalibError, match="C001"):
        split_loss([0.5], [1], n_bins=0)


RNG = np.random.default_rng


def steps(n: int, seed: int = 0) -> SimpleNamespace:
    """P(yes) is .9 above 0 and .2 below; two rows a unit."""
    rng = RNG(seed)
    x = rng.uniform(-1, 1, n)
    hits = rng.random(n) < np.where(x > 0, 0.9, 0.2)
    return SimpleNamespace(features=x[:, None], hits=hits, units=np.arange(n) // 2)


@pytest.mark.parametrize("prototype", [NearestNeighbours(), DecisionTree()])
def test_the_size_of_least_loss_on_held_out_units(prototype):
    data = steps(400)
    sizes = (1, 20, 100)
    found = tune(prototype, data.features, data.hits, data.units, sizes)
    assert found.forecaster.settings()[prototype.size_name] > 1  # one row says 0 or 1, and is wrong too often
    assert found.loss == pytest.approx(np.mean((found.held_out - data.hits) ** 2))
    for size in sizes:  # by hand: the same folds, one forecaster after another
        one = tune(prototype.with_size(size), data.features, data.hits, data.units, (size,))
        assert found.loss <= one.loss + 1e-12


def test_held_out_forecasts_did_not_see_their_unit():
    # Both rows of a unit are alike and nothing else is: whoever saw the unit would know.
    rng = RNG(0)
    units = np.repeat(np.arange(60), 2)
    hits = rng.random(60)[units] < 0.5
    found = tune(NearestNeighbours(), units[:, None].astype(float), hits, units, (1,), n_folds=60)
    assert found.loss > 0.3
    assert np.mean((found.forecaster.predict(units[:, None]) - hits) ** 2) == 0


def test_few_rows_and_one_unit():
    data = steps(12)
    found = tune(NearestNeighbours(), data.features, data.hits, data.units)
    assert found.forecaster.k <= 10
    alone = tune(DecisionTree(), data.features, data.hits, np.zeros(12, int))
    assert alone.forecaster.min_leaf == 25
    assert np.allclose(alone.held_out, data.hits.mean())


def test_the_forecaster_of_least_loss():
    data = steps(300)
    tried = [tune(one, data.features, data.hits, data.units, (10, 40)) for one in (Logistic(), DecisionTree())]
    assert choose_best(tried) is min(tried, key=lambda one: one.loss)
    assert isinstance(choose_best(tried).forecaster, DecisionTree)  # a step is no slope
    equal = [TunedForecaster(one.forecaster, data.features, 0.1) for one in tried]
    assert choose_best(equal).forecaster is tried[0].forecaster


# x is 0, 1 or 2 equally often; y = x for 0 and 1, and of x = 2 a coin is tossed: six rows, two for each x.
HITS = [0, 0, 1, 1, 0, 1]


@pytest.mark.parametrize(
    ("forecasts", "calibration", "sharpness"),
    [
        ((0.0, 1.0, 0.5), 0.0, 0.167),
        ((0.5, 0.5, 0.5), 0.0, 0.0),
        ((0.2, 0.8, 0.4), 0.03, 0.167),
        ((0.0, 0.75, 0.75), 0.0, 0.125),
    ],
)
def test_the_example_of_the_paper(forecasts, calibration, sharpness):
    found = split_loss(np.repeat(forecasts, 2), HITS)
    assert found.calibration == pytest.approx(calibration, abs=5e-4)
    assert found.sharpness == pytest.approx(sharpness, abs=5e-4)
    assert found.loss == pytest.approx(found.uncertainty - found.sharpness + found.calibration)


@given(scored_hits())
def test_the_loss_is_the_mean_squared_difference(data):
    scores, hits = data
    found = split_loss(scores, hits)
    if not len(scores):
        assert found is None
    else:
        assert found.loss == pytest.approx(np.mean((scores - hits) ** 2), abs=1e-9)
        assert found.uncertainty >= found.sharpness - 1e-9
        assert found.calibration >= 0
