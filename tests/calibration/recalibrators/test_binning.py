"""Histogram binning, alone and after a scaling, worked by hand."""

import numpy as np
import pytest

from spacy_calib.calibration.recalibrators import HistogramBinning, Identity, IsotonicRegression, ScalingBinning
from spacy_calib.calibration.recalibrators.binning import fill_empty_bins
from spacy_calib.errors import CalibError

from ...strategies import bernoulli


def test_worked_by_hand():
    # N = 4, B = 2: 0.1 and 0.2 in bin 0 (one of two hits), 0.6 and 0.9 in bin 1 (both hit).
    made = HistogramBinning(n_bins=2).fit([0.1, 0.6, 0.2, 0.9], [0, 1, 1, 1])
    assert made.edges_.tolist() == [0.5]  # the only multiple of 1/4 from 0.3 to 0.5, the middle half of the gap
    np.testing.assert_array_equal(made.predict([0.0, 0.1, 0.2, 0.5, 0.6, 1.0]), [0.5, 0.5, 0.5, 1.0, 1.0, 1.0])


def test_every_score_is_mapped_once():
    # STYLE section 4: a program that overwrites the scores while it computes the next bin maps 0.10 to 0. It should become 0.25.
    # Bin 0: 0.05 to 0.20, one of four hits. Bin 1: 0.22 to 0.30, none. So 0.10 -> 0.25, which lies in bin 1's range.
    scores = [0.05, 0.10, 0.15, 0.20, 0.22, 0.25, 0.28, 0.30]
    made = HistogramBinning(n_bins=2).fit(scores, [0, 1, 0, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(made.predict(scores), [0.25] * 4 + [0.0] * 4)


def test_empty_bins_take_the_value_of_the_nearest_bin():
    # 0.1 (three times): bin (0 + 3) * 4 // 8 = 1. 0.4: bin 7 * 4 // 8 = 3. Just above 0.1: 6 * 4 // 8 = 3. Bins 0 and 2 stay empty. The upper edge is 1/4.
    made = HistogramBinning(n_bins=4).fit([0.1, 0.1, 0.1, 0.4], [0, 0, 1, 1])
    np.testing.assert_allclose(made.values_, [1 / 3, 1 / 3, 1 / 3, 1.0])
    np.testing.assert_allclose(made.predict([0.0, 0.05, 0.1, 0.2, 0.25, 0.4, 1.0]), [1 / 3, 1 / 3, 1 / 3, 1 / 3, 1, 1, 1])


def test_of_two_equally_near_bins_the_lower_fills():
    filled = fill_empty_bins(np.array([0.0, 0.3, 0.0, 0.7, 0.0, 0.0]), np.array([0, 2, 0, 1, 0, 0]))
    assert filled.tolist() == [0.3, 0.3, 0.3, 0.7, 0.7, 0.7]


def test_more_bins_than_pairs():
    made = HistogramBinning(n_bins=10).fit([0.2, 0.7], [0, 1])
    np.testing.assert_array_equal(made.predict([0.2, 0.7]), [0, 1])


def test_bins_by_size_worked_by_hand():
    # beta = 2 and five scores: {0.1, 0.2}, {0.3, 0.4, 0.5}, the last bin of one merged.
    made = HistogramBinning(bin_size=2).fit([0.1, 0.2, 0.3, 0.4, 0.5], [1, 0, 1, 1, 0])
    np.testing.assert_allclose(made.values_, [1 / 2, 2 / 3])
    assert made.min_pairs == 2


def test_weights_worked_by_hand():
    # One bin: hits weigh 3 of 4.
    assert HistogramBinning(n_bins=1).fit([0.2, 0.3], [1, 0], [3, 1]).predict([0.5]).tolist() == [0.75]


def test_it_may_fall():
    made = HistogramBinning(n_bins=2).fit([0.1, 0.9], [1, 0])
    assert made.predict([0.1, 0.9]).tolist() == [1, 0]
    assert not made.monotone


@pytest.mark.parametrize("settings", [{"n_bins": 0}, {"n_bins": 2.5}, {"bin_size": 0}, {"bin_size": -1}])
def test_settings_out_of_range_are_refused_when_it_is_made(settings):
    with pytest.raises(CalibError, match=r"\[C001\] (n_bins|bin_size) must be a whole number of at least 1"):
        HistogramBinning(**settings)


def test_worked_by_hand_with_isotonic_scaling():
    # Isotonic: 0.1 -> 0; 0.2 hits and 0.3 misses, pooled to 1/2; 0.6 -> 1. Two bins: {0.1, 0.2}: mean 1/4; {0.3, 0.6}: mean 3/4.
    made = ScalingBinning(n_bins=2).fit([0.6, 0.1, 0.3, 0.2], [1, 0, 0, 1])
    np.testing.assert_allclose(made.values_, [0.25, 0.75])
    np.testing.assert_allclose(made.predict([0.0, 0.2, 0.3, 0.6, 1.0]), [0.25, 0.25, 0.75, 0.75, 0.75])


@pytest.mark.parametrize(("n_bins", "scores", "hits", "weights", "values"), [
    (2, [0.1, 0.3, 0.6, 0.8], [1, 1, 0, 0], None, [0.2, 0.7]),  # whatever the hits
    (1, [0.2, 0.6], [0, 1], [3, 1], [0.3]),  # (3 * 0.2 + 1 * 0.6) / 4
    # As in the histogram's test: 0.1 (three times) lies in bin 1 and 0.4 in bin 3; empty bins take the nearest value.
    (4, [0.1, 0.1, 0.1, 0.4], [0, 0, 1, 1], None, [0.1, 0.1, 0.1, 0.4]),
])  # fmt: skip
def test_after_identity_each_bin_has_its_mean_score(n_bins, scores, hits, weights, values):
    made = ScalingBinning(n_bins=n_bins, scaling=Identity()).fit(scores, hits, weights)
    np.testing.assert_allclose(made.values_, values)


def test_bins_by_size_worked_by_hand_after_a_scaling():
    # beta = 2, five scores: {0.1, 0.2} and {0.3, 0.4, 0.5}.
    made = ScalingBinning(bin_size=2, scaling=Identity()).fit([0.1, 0.2, 0.3, 0.4, 0.5], [0, 0, 1, 1, 1])
    np.testing.assert_allclose(made.values_, [0.15, 0.4])
    assert made.min_pairs == 2


def test_bin_means_come_from_the_fit_scores():
    # STYLE section 4: a program that averages over the scores being transformed gives a token another value in other company.
    fit_scores, hits = bernoulli(500, seed=1, power=2)
    made = ScalingBinning(n_bins=5).fit(fit_scores, hits)
    means = [
        IsotonicRegression().fit(fit_scores, hits).predict(np.sort(fit_scores)[at : at + 100]).mean()
        for at in range(0, 500, 100)
    ]
    np.testing.assert_allclose(made.values_, means)
    probe = 0.5
    alone = made.predict([probe])[0]
    for seed in range(5):
        company = np.random.default_rng(seed).beta(5, 1, 200)
        assert made.predict(np.append(company, probe))[-1] == alone
    assert alone in made.values_


def test_gives_at_most_as_many_values_as_bins():
    scores, hits = bernoulli(500, seed=1)
    assert len(np.unique(ScalingBinning(n_bins=7).fit(scores, hits).predict(np.linspace(0, 1, 999)))) <= 7


def test_the_prototype_of_the_scaling_is_left_unfitted():
    scaling = IsotonicRegression()
    ScalingBinning(scaling=scaling).fit([0.1, 0.9], [0, 1])
    assert not scaling.fitted


def test_it_is_monotone_only_if_its_scaling_is():
    made = ScalingBinning(n_bins=2, scaling=HistogramBinning(n_bins=2)).fit([0.1, 0.9], [1, 0])
    assert made.predict([0.1, 0.9]).tolist() == [1, 0]
    assert not made.monotone
    assert ScalingBinning().monotone


def test_it_needs_as_many_pairs_as_its_scaling():
    assert ScalingBinning(n_bins=3).min_pairs == 3
    assert ScalingBinning(n_bins=3, scaling=HistogramBinning(n_bins=20)).min_pairs == 20
    assert ScalingBinning(n_bins=1).min_pairs == 2


@pytest.mark.parametrize("settings", [{"n_bins": 0}, {"n_bins": True}, {"bin_size": 0}, {"bin_size": 1.5}])
def test_settings_out_of_range_are_refused_when_it_is_made_after_a_scaling(settings):
    with pytest.raises(CalibError, match=r"\[C001\] (n_bins|bin_size) must be a whole number of at least 1"):
        ScalingBinning(**settings)
