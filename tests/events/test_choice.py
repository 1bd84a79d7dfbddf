"""Sizes and forecasters chosen on held-out units, and the curve over the size of the recalibration set."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_calib.errors import CalibError
from spacy_calib.events.choice import Tried, choose, tune
from spacy_calib.events.curve import Rows, size_curve
from spacy_calib.events.forecasters.logistic import Logistic
from spacy_calib.events.forecasters.neighbours import Neighbours
from spacy_calib.events.forecasters.trees import Tree

RNG = np.random.default_rng


def steps(n: int, seed: int = 0) -> Rows:
    """P(yes) is .9 above 0 and .2 below; two rows a unit."""
    rng = RNG(seed)
    x = rng.uniform(-1, 1, n)
    return Rows(x[:, None], rng.random(n) < np.where(x > 0, 0.9, 0.2), np.arange(n) // 2)


@pytest.mark.parametrize("prototype", [Neighbours(), Tree()])
def test_the_size_of_least_loss_on_held_out_units(prototype):
    data = steps(400)
    sizes = (1, 20, 100)
    found = tune(prototype, data.features, data.hits, data.units, sizes)
    assert found.forecaster.settings()[prototype.size_name] > 1  # one row says 0 or 1, and is wrong too often
    assert found.loss == pytest.approx(np.mean((found.held_out - data.hits) ** 2))
    for size in sizes:  # by hand: the same folds, one forecaster after another
        one = tune(prototype.sized(size), data.features, data.hits, data.units, (size,))
        assert found.loss <= one.loss + 1e-12


def test_held_out_forecasts_did_not_see_their_unit():
    # Both rows of a unit are alike and nothing else is: whoever saw the unit would know.
    rng = RNG(0)
    units = np.repeat(np.arange(60), 2)
    hits = rng.random(60)[units] < 0.5
    found = tune(Neighbours(), units[:, None].astype(float), hits, units, (1,), n_folds=60)
    assert found.loss > 0.3
    assert np.mean((found.forecaster.predict(units[:, None]) - hits) ** 2) == 0


def test_few_rows_and_one_unit():
    data = steps(12)
    found = tune(Neighbours(), data.features, data.hits, data.units)
    assert found.forecaster.k <= 10
    alone = tune(Tree(), data.features, data.hits, np.zeros(12, int))
    assert alone.forecaster.min_leaf == 25
    assert np.allclose(alone.held_out, data.hits.mean())


def test_the_forecaster_of_least_loss():
    data = steps(300)
    tried = [tune(one, data.features, data.hits, data.units, (10, 40)) for one in (Logistic(), Tree())]
    assert choose(tried) is min(tried, key=lambda one: one.loss)
    assert isinstance(choose(tried).forecaster, Tree)  # a step is no slope
    assert choose(
        [Tried(tried[0].forecaster, data.features, 0.1), Tried(tried[1].forecaster, data.features, 0.1)]
    ).forecaster is (tried[0].forecaster)


def test_calibration_error_falls_with_the_size_and_sharpness_stays():
    fit, test = steps(1200), steps(3000, seed=1)
    points = size_curve(Tree(), fit, test, (20, 500), 5, RNG(0), sizes=(5, 20, 80))
    small, large = ([one for one in points if one.units == n] for n in (20, 500))
    assert len(small) == len(large) == 5
    assert np.mean([one.parts.calibration for one in large]) < 0.3 * np.mean([one.parts.calibration for one in small])
    assert np.mean([one.parts.sharpness for one in large]) == pytest.approx(0.35**2, abs=0.02)
    assert {one.size for one in points} <= {5, 20, 80}


def test_more_units_than_there_are():
    with pytest.raises(CalibError, match="C375.*800 units.*there are 10"):
        size_curve(Tree(), steps(20), steps(20), (800,), 1, RNG(0))
