"""The study of bins and sample sizes: its figures against a plain recomputation, and what the theory says of them."""

from __future__ import annotations

import numpy as np
import pytest
from study_bins import Synthetic, best, bin_study, by_count, by_size

from spacy_calib.errors import CalibError
from spacy_calib.metrics import calibration_error, calibration_error_interval

SOURCE = Synthetic(2.0, 1.0, "power", 1.5)


def test_the_figures_are_those_of_the_metrics_on_each_sample():
    (row,) = bin_study(SOURCE, 150, [by_size(40)], repeats=4, n_samples=30, seed=9)
    true = SOURCE.error()
    errors, inside, widths = [], 0, []
    for repeat in range(4):
        drawn = SOURCE.draw(150, np.random.default_rng([9, 150, repeat]))
        errors.append(calibration_error(*drawn, bin_size=40))
        low, high = calibration_error_interval(*drawn, bin_size=40, n_samples=30, seed=9 + repeat)
        inside += low <= true <= high
        widths.append(high - low)
    assert (row["n"], row["bins"], row["pairs_a_bin"]) == (150, "bins of 40", 40)
    assert row["true"] == true
    assert row["mean"] == pytest.approx(sum(errors) / 4)
    assert row["bias"] == pytest.approx(sum(errors) / 4 - true)
    assert row["deviation"] == pytest.approx(np.std(errors))
    assert row["rmse"] == pytest.approx(np.sqrt(sum((error - true) ** 2 for error in errors) / 4))
    assert row["rmse"] ** 2 == pytest.approx(row["bias"] ** 2 + row["deviation"] ** 2)
    assert row["coverage"] == inside / 4
    assert row["width"] == pytest.approx(sum(widths) / 4)


@pytest.mark.parametrize(
    ("bins", "settings", "pairs_a_bin"),
    [
        (by_count(10), {"n_bins": 10}, 90),
        (by_count(7), {"n_bins": 7}, 129),
        (by_size(200), {"bin_size": 200}, 200),
    ],
)
def test_bins_by_count_and_size(bins, settings, pairs_a_bin):
    assert bins.settings(900) == settings
    assert bin_study(SOURCE, 900, [bins], repeats=1, n_samples=2)[0]["pairs_a_bin"] == pairs_a_bin


def test_true_scores_look_worse_the_smaller_the_bins():
    """A bin of size beta adds about q (1 - q) / beta to the squared error: by half at each doubling (the thesis, section 4.3.2)."""
    source = Synthetic(2.0, 2.0)
    sizes = (25, 50, 100, 200)
    rows = bin_study(source, 2000, [by_size(size) for size in sizes], repeats=20, n_samples=2)
    for row, size in zip(rows, sizes, strict=True):
        # mean q (1 - q) of Beta(2, 2) is 0.2
        assert row["mean"] == pytest.approx(np.sqrt(0.2 / size), rel=0.1)
        assert row["bias"] == row["mean"]
    assert best(rows) is rows[-1]


def test_few_bins_hide_an_error_that_many_show():
    rows = bin_study(Synthetic(1.0, 1.0, "step", 0.3), 4000, [by_count(1), by_count(20)], repeats=5, n_samples=20)
    assert rows[0]["mean"] < rows[0]["true"] / 10
    assert rows[1]["mean"] == pytest.approx(rows[1]["true"], rel=0.05)
    assert best(rows) is rows[1]


def test_more_pairs_find_the_truth():
    errors = [bin_study(SOURCE, n, [by_size(round(n**0.5))], repeats=8, n_samples=20)[0]["rmse"] for n in (300, 3000, 30_000)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.02


def test_the_samples_do_not_depend_on_the_bins():
    alone = bin_study(SOURCE, 100, [by_size(20)], repeats=3, n_samples=60)
    among = bin_study(SOURCE, 100, [by_count(10), by_size(20)], repeats=3, n_samples=60)
    assert alone[0] == among[-1]
    assert alone != bin_study(SOURCE, 100, [by_size(20)], repeats=3, n_samples=60, seed=1)


def test_bad_settings_are_refused():
    with pytest.raises(CalibError, match="bin_size must be"):
        bin_study(SOURCE, 10, [by_size(0)])
    with pytest.raises(CalibError, match="n must be a whole number"):
        bin_study(SOURCE, 0, [by_count(10)])
    with pytest.raises(CalibError, match="repeats must be a whole number"):
        bin_study(SOURCE, 10, [by_count(10)], repeats=0)
