"""Histogram binning, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_calib.calibration.recalibrators import HistogramBinning
from spacy_calib.calibration.recalibrators.binning import fill_empty_bins
from spacy_calib.errors import CalibError


def test_worked_by_hand():
    # N = 4, B = 2: 0.1 and 0.2 in bin 0 (one of two hits), 0.6 and 0.9 in bin 1 (both hit).
    made = HistogramBinning(n_bins=2).fit([0.1, 0.6, 0.2, 0.9], [0, 1, 1, 1])
    assert made.edges_.tolist() == [float(np.nextafter(0.2, 1))]
    np.testing.assert_array_equal(made.predict([0.0, 0.1, 0.2, 0.5, 0.6, 1.0]), [0.5, 0.5, 0.5, 1.0, 1.0, 1.0])


def test_every_score_is_mapped_once():
    # STYLE section 4: a program that overwrites the scores while it computes the next bin maps 0.10 to 0. It should become 0.25.
    # Bin 0: 0.05 to 0.20, one of four hits. Bin 1: 0.22 to 0.30, none. So 0.10 -> 0.25, which lies in bin 1's range.
    scores = [0.05, 0.10, 0.15, 0.20, 0.22, 0.25, 0.28, 0.30]
    made = HistogramBinning(n_bins=2).fit(scores, [0, 1, 0, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(made.predict(scores), [0.25] * 4 + [0.0] * 4)


def test_empty_bins_take_the_value_of_the_nearest_bin():
    # 0.1 (three times): bin (0 + 3) * 4 // 8 = 1. 0.4: bin 7 * 4 // 8 = 3. Just above 0.1: 6 * 4 // 8 = 3. Bins 0 and 2 stay empty.
    made = HistogramBinning(n_bins=4).fit([0.1, 0.1, 0.1, 0.4], [0, 0, 1, 1])
    np.testing.assert_allclose(made.values_, [1 / 3, 1 / 3, 1 / 3, 1.0])
    np.testing.assert_allclose(made.predict([0.0, 0.05, 0.1, 0.2, 0.4, 1.0]), [1 / 3, 1 / 3, 1 / 3, 1, 1, 1])


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
