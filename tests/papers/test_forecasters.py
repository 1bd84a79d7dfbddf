"""Forecasters and their choice."""

from __future__ import annotations

import numpy as np
import pytest
from papers.forecasts.forecasters import DecisionTree, Logistic, NearestNeighbours
from papers.forecasts.tuning import choose_best, split_loss, tune


def rows(n: int, seed: int = 0):
    """P(yes) is .9 above 0 and .2 below; a second feature says nothing, a third is constant."""
    rng = np.random.default_rng(seed)
    features = np.column_stack([rng.uniform(-1, 1, (n, 2)), np.ones(n)])
    return features, rng.random(n) < np.where(features[:, 0] > 0, 0.9, 0.2)


@pytest.mark.parametrize(
    ("prototype", "sizes"), [(NearestNeighbours(), (1, 7, 500)), (DecisionTree(), (5, 20)), (Logistic(), (1.0, 0.01))]
)
def test_several_sizes_are_those_of_several_fits(prototype, sizes):
    features, hits = rows(100)
    asked, _ = rows(30, seed=1)
    found = prototype.predict_sizes(features, hits, asked, sizes)
    for own, size in zip(found, sizes, strict=True):
        assert own == pytest.approx(prototype.with_size(size).fit(features, hits).predict(asked))
    assert ((found >= 0) & (found <= 1)).all()


def test_the_best_size_of_the_best_forecaster_is_taken():
    features, hits = rows(600)
    trees = tune(DecisionTree(), features, hits, np.arange(600) // 2, (2, 60))
    lines = tune(Logistic(), features, hits, np.arange(600) // 2, (1.0, 1e-9))
    assert (trees.forecaster.size, lines.forecaster.size) == (60, 1.0)
    assert choose_best([lines, trees]) is trees
    assert trees.loss < 0.15  # .9 * .1 and .2 * .8, half of the rows each: .125 at least


def test_parts_of_the_loss_by_hand():
    # Forecasts .8 of 1, 1, 0, 1 and .2 of 0, 0: loss (3 * .04 + .64 + 2 * .04) / 6, shares .75 and 0.
    parts = split_loss([0.8, 0.8, 0.8, 0.8, 0.2, 0.2], [1, 1, 0, 1, 0, 0])
    assert parts.loss == pytest.approx(0.14)
    assert parts.calibration == pytest.approx((4 * 0.05**2 + 2 * 0.2**2) / 6)
    assert parts.uncertainty == pytest.approx(0.25)
    assert parts.sharpness == pytest.approx((4 * 0.25**2 + 2 * 0.5**2) / 6)
