import numpy as np
import pytest

from spacy_calib.metrics.calibration_errors import calibration_error
from spacy_calib.metrics.slices import Slice, judge_slices, slices_by
from tests.made import judged_pairs


def test_a_slice_for_each_value_holds_the_units_of_its_docs():
    # Docs a, b, none, b; units 0 and 5 of Doc 0, 7 of Doc 1, 9 of Doc 2, 2 of Doc 3.
    slices = slices_by(["a", "b", None, "b"], np.array([0, 0, 1, 2, 3]), np.array([0, 5, 7, 9, 2]))
    assert [(one.name, one.units.tolist()) for one in slices] == [("a", [0, 5]), ("b", [7, 2])]


def test_figures_of_a_slice_are_those_of_its_units_alone():
    scores, hits = np.tile([0.6, 0.8], 40), np.tile([1, 1, 0, 1], 20)
    judged = judged_pairs(scores, hits, np.repeat(np.arange(4), 20), scores / 2)
    (row,) = judge_slices(judged, [Slice("half", np.arange(40))], np.arange(80))["rows"]
    # Forty units: mean score .7, three in four right; bins of twenty: .6 with half right and .8 with all right.
    assert (row["n"], row["documents"], row["pairs"]) == (40, 2, 40)
    assert (row["score"], row["right"], row["gap"]) == pytest.approx((0.7, 0.75, -0.05))
    assert row["calibrated"] == pytest.approx(np.sqrt((0.1**2 + 0.2**2) / 2))
    assert row["raw"] == pytest.approx(calibration_error(scores[:40] / 2, hits[:40], 2))


def test_a_slice_that_is_off_is_told_from_those_that_are_not_and_small_ones_are_not_judged():
    rng = np.random.default_rng(0)
    scores = rng.beta(8, 2, 12_000)
    documents = np.repeat(np.arange(240), 50)
    true = np.where(documents < 40, np.maximum(scores - 0.15, 0), scores)
    judged = judged_pairs(scores, rng.random(12_000) < true, documents, scores)
    slices = [Slice(f"from {start}", np.arange(50 * start, 50 * (start + 40))) for start in range(0, 240, 40)]
    slices += [Slice("three tokens", np.arange(3)), Slice("one document", np.arange(50)), Slice("none", np.arange(0))]
    report = judge_slices(judged, slices, np.arange(12_000))
    assert [row["slice"] for row in report["rows"] if row["off"]] == ["from 0"]
    assert report["rows"][0]["low"] < 0.15 < report["rows"][0]["high"]
    assert (len(report["rows"]), report["too_small"], report["rate"]) == (6, 3, 0.05)
    gaps = [abs(row["gap"]) for row in report["rows"][1:]]
    assert gaps == sorted(gaps, reverse=True)
