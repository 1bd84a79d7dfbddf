"""What every registered metric must do: (scores, hits) -> float, None without pairs, whatever the order of the rows."""

import numpy as np
import pytest
from hypothesis import given

from spacy_calib.errors import CalibError
from spacy_calib.registry import registry

from ..strategies import bernoulli, scored_hits_with_order

# (registered name, settings, value of the scores 0.25 (one of four hits) and 0.75 (three of four))
CASES = [
    # 0.25 * 0.75 is the variance of each.
    ("spacy-calib.Brier.v1", {}, 0.1875),
    # The entropy of a coin that shows its head once in four throws.
    ("spacy-calib.LogLoss.v1", {}, -0.25 * np.log(0.25) - 0.75 * np.log(0.75)),
    ("spacy-calib.SmoothCalibrationError.v1", {}, 0.0),
]
every_case = pytest.mark.parametrize("case", [pytest.param(c, id=f"{c[0]}{c[1] or ''}") for c in CASES])


def make(case):
    name, settings, _ = case
    return registry.resolve({"metric": {"@calib_metrics": name, **settings}})["metric"]


@every_case
def test_has_the_names_by_which_it_is_shown(case):
    metric = make(case)
    assert metric.registered == case[0]
    assert metric.short
    assert metric.short.isidentifier()
    assert metric.title


@every_case
def test_a_mean_of_losses_is_their_mean(case):
    metric = make(case)
    scores, hits = bernoulli(50, seed=9)
    if hasattr(metric, "losses"):
        assert metric(scores, hits) == np.mean(metric.losses(scores, hits))


@every_case
def test_worked_value_of_perfectly_calibrated_pairs(case):
    scores = np.repeat([0.25, 0.75], 4)
    hits = np.concatenate([np.arange(4) < 1, np.arange(4) < 3])
    assert make(case)(scores, hits) == pytest.approx(case[2], abs=1e-12)


@every_case
def test_no_pairs_give_none(case):
    assert make(case)([], []) is None
    assert make(case)(np.zeros(0), np.zeros(0, dtype=bool)) is None


@every_case
@given(drawn=scored_hits_with_order())
def test_is_a_finite_plain_float_of_at_least_0_in_any_order(case, drawn):
    scores, hits, order = drawn
    value = make(case)(scores, hits)
    assert type(value) is float
    assert np.isfinite(value)
    assert value >= 0
    assert make(case)(scores[order], hits[order]) == pytest.approx(value, abs=1e-7)


@every_case
def test_scores_that_are_true_beat_scores_that_are_too_sure(case):
    scores, hits = bernoulli(5000, seed=9)
    assert make(case)(scores, hits) < make(case)(np.where(scores > 0.5, 1 - (1 - scores) / 5, scores / 5), hits)


@every_case
def test_lists_and_arrays_give_the_same(case):
    scores, hits = bernoulli(50, seed=9)
    assert make(case)(scores.tolist(), hits.tolist()) == make(case)(scores, hits) == make(case)(scores, hits.astype(int))


@every_case
def test_bad_input_is_refused(case):
    with pytest.raises(CalibError, match=r"\[C001\] scores"):
        make(case)([0.5, np.nan], [0, 1])
    with pytest.raises(CalibError, match=r"\[C001\] scores"):
        make(case)([-0.5, 0.5], [0, 1])
    with pytest.raises(CalibError, match=r"\[C002\]"):
        make(case)([0.5, 0.5], [1])
