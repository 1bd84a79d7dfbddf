"""Features of units from the scores of their tokens, and the forecaster that held-out documents choose."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_calib.calibration.span_features import logit
from spacy_calib.errors import CalibError
from spacy_calib.events.forecasters.logistic import Logistic
from spacy_calib.events.forecasters.trees import Tree
from spacy_calib.events.units import UNIT_FEATURES, candidates, described, fit_units, unit_features
from spacy_calib.types import Spans


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


def test_no_units():
    assert unit_features(units()).shape == (0, len(UNIT_FEATURES))


def test_a_token_more_changes_nothing_of_other_units():
    alone = unit_features(units([0.9, 0.3]))
    assert np.array_equal(unit_features(units([0.2], [0.9, 0.3], [0.7, 0.7]))[1:2], alone)


def test_the_forecaster_is_chosen_on_documents_held_out():
    rng = np.random.default_rng(0)
    scores = [rng.uniform(0.5, 1, rng.integers(1, 6)) for _ in range(400)]
    # Tokens of a unit go wrong together: the least score alone tells whether the unit is right.
    hits = np.array([rng.random() < one.min() for one in scores])
    best, trials = fit_units(unit_features(units(*scores)), hits, np.arange(400) // 4, (Logistic(10.0), Tree()))
    assert best.loss == min(trial.loss for trial in trials)
    product = np.array([one.prod() for one in scores])
    assert best.loss < np.mean((product - hits) ** 2)
    assert described(best.forecaster) in {trial.name for trial in trials}


def test_what_is_tried():
    assert len({described(one) for one in candidates()}) == len(candidates()) >= 4


def test_what_a_forecaster_is_called():
    assert [described(one) for one in (Tree(7), Logistic(10.0))] == ["tree (min_leaf 7)", "logistic (ridge 10)"]


def test_nothing_to_learn_from():
    with pytest.raises(CalibError, match="C373"):
        fit_units(np.zeros((0, 3)), np.zeros(0, bool), np.zeros(0, int), (Logistic(),))
