"""Studies of bins and sample sizes: their figures against a plain recomputation, and what the theory says of them."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from analysis.studies import Bins, best, bin_study, sample_size_study
from analysis.synthetic import Synthetic

from spacy_calib.errors import CalibError
from spacy_calib.metrics import calibration_error, calibration_error_interval, debiased_calibration_error

SOURCE = Synthetic(2.0, 1.0, "power", 1.5)


def test_the_figures_are_those_of_the_metrics_on_each_sample():
    (row,) = bin_study(SOURCE, 150, [Bins("size", 40)], repeats=4, n_samples=30, seed=9)
    true = SOURCE.error()
    errors, debiased, inside, widths = [], [], 0, []
    for repeat in range(4):
        drawn = SOURCE.draw(150, np.random.default_rng([9, 150, repeat]))
        errors.append(calibration_error(*drawn, bin_size=40))
        debiased.append(debiased_calibration_error(*drawn, bin_size=40))
        low, high = calibration_error_interval(*drawn, bin_size=40, n_samples=30, seed=9 + repeat)
        inside += low <= true <= high
        widths.append(high - low)
    assert (row.n, row.bins, row.value, row.pairs_a_bin, row.repeats) == (150, "size", 40, 40, 4)
    assert row.true == true
    assert row.mean == pytest.approx(sum(errors) / 4)
    assert row.bias == pytest.approx(sum(errors) / 4 - true)
    assert row.deviation == pytest.approx(np.std(errors))
    assert row.rmse == pytest.approx(np.sqrt(sum((error - true) ** 2 for error in errors) / 4))
    assert row.rmse**2 == pytest.approx(row.bias**2 + row.deviation**2)
    assert row.coverage == inside / 4
    assert row.width == pytest.approx(sum(widths) / 4)
    assert row.debiased_bias == pytest.approx(sum(debiased) / 4 - true)
    assert row.debiased_rmse == pytest.approx(np.sqrt(sum((error - true) ** 2 for error in debiased) / 4))
    assert (row.bootstrap_coverage, row.bootstrap_width) == (None, None)


@pytest.mark.parametrize(
    ("bins", "settings", "pairs_a_bin"),
    [
        (Bins(), {"n_bins": 10}, 90),
        (Bins("count", 7), {"n_bins": 7}, 129),
        (Bins("size", 200), {"bin_size": 200}, 200),
        (Bins("root", 2), {"bin_size": 60}, 60),
        (Bins("root", 0.001), {"bin_size": 1}, 1),
    ],
)
def test_bins_by_count_size_and_root(bins, settings, pairs_a_bin):
    assert bins.settings(900) == settings
    assert bin_study(SOURCE, 900, [bins], repeats=1, n_samples=2)[0].pairs_a_bin == pairs_a_bin


def test_true_scores_look_worse_the_smaller_the_bins():
    """A bin of size beta adds about q (1 - q) / beta to the squared error: by half at each doubling (the thesis, section 4.3.2)."""
    source = Synthetic(2.0, 2.0)
    rows = bin_study(source, 2000, [Bins("size", size) for size in (25, 50, 100, 200)], repeats=20, n_samples=2)
    for row in rows:
        # mean q (1 - q) of Beta(2, 2) is 0.2
        assert row.mean == pytest.approx(np.sqrt(0.2 / row.value), rel=0.1)
        assert row.bias == row.mean
    assert best(rows) is rows[-1]


def test_few_bins_hide_an_error_that_many_show():
    rows = bin_study(Synthetic(1.0, 1.0, "step", 0.3), 4000, [Bins("count", 1), Bins("count", 20)], repeats=5, n_samples=20)
    assert rows[0].mean < rows[0].true / 10
    assert rows[1].mean == pytest.approx(rows[1].true, rel=0.05)
    assert best(rows) is rows[1]


def test_more_pairs_find_the_truth():
    rows = sample_size_study(SOURCE, [300, 3000, 30_000], [Bins("root", 1), Bins("size", 100)], repeats=8, n_samples=20)
    assert [(row.n, row.bins) for row in rows] == [(n, kind) for n in (300, 3000, 30_000) for kind in ("root", "size")]
    roots = [row.rmse for row in rows if row.bins == "root"]
    assert roots[0] > roots[1] > roots[2]
    assert roots[2] < 0.02


def test_the_interval_by_bootstrap_takes_the_noise_off():
    """Of true scores the measured error is all noise: Algorithm 2's interval misses 0 always, the other one holds it."""
    (row,) = bin_study(Synthetic(2.0, 2.0), 600, [Bins("size", 30)], repeats=20, n_samples=60, bootstrap=True)
    assert row.coverage == 0
    assert row.bootstrap_coverage >= 0.8
    assert row.bootstrap_width > 0


def test_the_samples_do_not_depend_on_the_bins_or_on_other_sizes():
    alone = bin_study(SOURCE, 100, [Bins("size", 20)], repeats=3, n_samples=10)
    among = sample_size_study(SOURCE, [50, 100], [Bins(), Bins("size", 20)], repeats=3, n_samples=10)
    assert alone[0] == among[-1]
    assert alone != bin_study(SOURCE, 100, [Bins("size", 20)], repeats=3, n_samples=10, seed=1)


def test_progress_sees_every_sample():
    seen = []

    def watch(numbers):
        for number in numbers:
            seen.append(number)
            yield number

    rows = sample_size_study(SOURCE, [20, 30], [Bins("count", 2)], repeats=3, n_samples=2, progress=watch)
    assert seen == [0, 1, 2, 0, 1, 2]
    assert all(value is None or np.isfinite(value) for row in rows for value in list(asdict(row).values())[2:])


def test_bad_settings_are_refused():
    for kind, value, message in (
        ("width", 1, "kind must be one of count, size, root, but 'width' was given"),
        ("size", 0, "value must be a whole number of at least 1, but 0 was given"),
        ("count", 2.5, "value must be a whole number of at least 1, but 2.5 was given"),
        ("root", -1, "value must be a number above 0, but -1 was given"),
    ):
        with pytest.raises(CalibError, match=message):
            Bins(kind, value)
    with pytest.raises(CalibError, match="n must be a whole number"):
        bin_study(SOURCE, 0, [Bins()])
    with pytest.raises(CalibError, match="repeats must be a whole number"):
        bin_study(SOURCE, 10, [Bins()], repeats=0)
