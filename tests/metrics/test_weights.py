"""Weighted figures: those of the same pairs repeated."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_calib.errors import CalibError
from spacy_calib.metrics.bootstrap import calibration_error_interval
from spacy_calib.metrics.calibration_error import (
    DebiasedCalibrationError,
    calibration_error,
    debiased_calibration_error,
    gmce,
    smce,
)
from spacy_calib.metrics.error_interval import error_interval, mean_gmce_interval
from spacy_calib.metrics.metric import figure_of, why_not_weighted
from spacy_calib.metrics.noise_floor import mean_gmce_floor, noise_floor
from spacy_calib.metrics.proper import brier, decompose, log_loss
from spacy_calib.metrics.resampling import resample_mean
from spacy_calib.metrics.smooth_error import smooth_calibration_error
from spacy_calib.pairs.bins import make_binner
from spacy_calib.types import Groups, Pairs

ROWS = st.lists(
    st.tuples(st.integers(0, 40).map(lambda i: i / 40), st.booleans(), st.integers(1, 9), st.integers(0, 4)),
    min_size=1,
    max_size=40,
)
GROUPS = Groups(("a", "b"), np.array([0, 1]))


def numbers_of(figure) -> np.ndarray:
    if figure is None or isinstance(figure, (float, tuple, list)):
        return np.array(figure, dtype=float)
    return np.array([np.nan if value is None or isinstance(value, str) else value for value in vars(figure).values()], float)


@pytest.mark.parametrize("bins", [{"n_bins": 3}, {"bin_size": 4}])
@given(ROWS)
@settings(max_examples=25, deadline=None)
def test_a_weight_is_as_many_pairs(bins, rows):
    scores, hits, weights, documents = (np.array(column) for column in zip(*rows, strict=True))
    tags = documents % 2

    def figures(scores, hits, documents, tags, **weights):
        pairs = Pairs(np.zeros(len(scores), int), tags, scores, hits, 1)
        return [
            calibration_error(scores, hits, **bins, **weights),
            calibration_error(scores, hits, **bins, norm="l1", **weights),
            smce(pairs, **bins, **weights),
            gmce(pairs, GROUPS, **bins, **weights),
            debiased_calibration_error(scores, hits, **bins, **weights),
            calibration_error_interval(scores, hits, **bins, **weights),
            noise_floor(scores, **bins, **weights),
            mean_gmce_floor(pairs, GROUPS, **bins, **weights),
            brier(scores, hits, **weights),
            log_loss(scores, hits, **weights),
            smooth_calibration_error(scores, hits, **weights),
            decompose(scores, hits, make_binner(**bins), **weights),
            error_interval(scores, hits, documents, **bins, n_samples=40, **weights),
            mean_gmce_interval(pairs, GROUPS, documents, **bins, n_samples=40, **weights),
            resample_mean(scores, documents, 40, **weights).interval(0.9),
        ]

    repeated = (np.repeat(column, weights) for column in (scores, hits, documents, tags))
    for ours, theirs in zip(figures(scores, hits, documents, tags, weights=weights), figures(*repeated), strict=True):
        # a difference of rounding errors alone has a root of about 1e-8
        assert np.allclose(numbers_of(ours), numbers_of(theirs), rtol=1e-12, atol=1e-7, equal_nan=True)


@pytest.mark.parametrize(("weights", "shown"), [([0.25] * 8, "0.25"), ([2.0, 2.0, 1.5, 1.5] * 2, "1.5")])
def test_what_chance_does_takes_counts_alone(weights, shown):
    """It depends on how many pairs there are, and fractions do not say that."""
    scores, hits = [0.9] * 8, [True, False] * 4
    assert debiased_calibration_error(scores, hits, n_bins=1, weights=[2.0] * 8) == pytest.approx(math.sqrt(0.16 - 0.25 / 15))
    sentence = rf"\[C001\] weights must be whole numbers \(a weight of 2 is a pair twice\), but {shown} was given"
    for metric in (debiased_calibration_error, DebiasedCalibrationError(n_bins=1)):
        with pytest.raises(CalibError, match=sentence):
            metric(scores, hits, weights=weights)
    with pytest.raises(CalibError, match=sentence):
        noise_floor(scores, weights=weights)
    assert calibration_error(scores, hits, n_bins=1, weights=weights) == pytest.approx(0.4)


def test_golden_values_of_weighted_pairs():
    scores, hits, weights = [0.2, 0.8, 0.8], [False, True, False], [2, 3, 1]
    # two bins: the two pairs of .2 without a hit, and the four of .8 with three: gaps .2 and .05
    assert calibration_error(scores, hits, 2, weights=weights) == pytest.approx(np.sqrt((2 * 0.04 + 4 * 0.0025) / 6))
    assert brier(scores, hits, weights) == pytest.approx((2 * 0.04 + 3 * 0.04 + 0.64) / 6)
    assert log_loss(scores, hits, weights) == pytest.approx(-(2 * np.log(0.8) + 3 * np.log(0.8) + np.log(0.2)) / 6)


def test_a_metric_without_weights_is_asked_about_repeated_pairs_up_to_a_number(monkeypatch):
    def number_of_pairs(scores, hits):
        return len(scores)

    assert figure_of(number_of_pairs, [0.2, 0.8], [False, True], [2, 3]) == 5
    monkeypatch.setattr("spacy_calib.metrics.metric.MOST_REPEATED", 4)
    assert figure_of(number_of_pairs, [0.2, 0.8], [False, True], [2, 3]) is None
    assert "5 pairs are too many" in why_not_weighted(number_of_pairs, [2, 3])
