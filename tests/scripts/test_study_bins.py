"""The study of bins and sample sizes: figures against a plain recomputation, true errors against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from study_bins import Synthetic, best, bin_study, by_size

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


TRUTHS = [Synthetic(), Synthetic(2.0, 3.0, "power", 1.7), Synthetic(0.5, 0.5, "step", 0.1)]


def moment(a: float, b: float, power: float) -> float:
    """The mean of q ** power over Beta(a, b), by gamma functions."""
    return math.exp(math.lgamma(a + power) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(a + b + power))


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.3, 0.1), (0.05, 0.05), (5.0, 2.0), (40.0, 3.0)])
@pytest.mark.parametrize("power", [0.5, 1.3, 3.0])
def test_the_error_of_a_power_is_that_of_its_moments(a, b, power):
    squared = moment(a, b, 2) - 2 * moment(a, b, 1 + power) + moment(a, b, 2 * power)
    source = Synthetic(a, b, "power", power)
    assert source.error() == pytest.approx(math.sqrt(squared), rel=1e-4)


def test_the_step_of_the_thesis_worked_by_hand():
    # Uniform scores, k = 0.2: the gap is q up to 0.2, 0.2 up to 0.8, and 1 - q above.
    squared = 2 * 0.2**3 / 3 + 0.6 * 0.2**2
    source = Synthetic(1.0, 1.0, "step", 0.2)
    assert source.error() == pytest.approx(math.sqrt(squared), rel=1e-5)
    assert source.chance(np.array([0.1, 0.3, 0.5, 0.6, 0.9])) == pytest.approx([0, 0.1, 0.3, 0.8, 1])


@pytest.mark.parametrize("source", TRUTHS, ids=lambda source: source.map)
def test_draws_follow_the_truth(source):
    n = 100_000
    scores, hits = source.draw(n, np.random.default_rng(5))
    total = source.a + source.b
    deviation = math.sqrt(source.a * source.b / total**2 / (total + 1))
    assert scores.mean() == pytest.approx(source.a / total, abs=5 * deviation / math.sqrt(n))
    assert hits.mean() == pytest.approx(source.chance(scores).mean(), abs=2.5 / math.sqrt(n))
    squared = np.mean((scores - source.chance(scores)) ** 2)
    assert math.sqrt(squared) == pytest.approx(source.error(), abs=0.005)
