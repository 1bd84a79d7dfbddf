import numpy as np
import pytest

from spacy_calib.errors import CalibError
from spacy_calib.metrics.calibration_errors import calibration_error
from spacy_calib.metrics.slices import find_discoveries, gap_of, judge_slices, slices_by
from tests.made import judged_pairs


def test_a_slice_for_each_value_holds_the_units_of_its_docs():
    # Docs a, b, none, b; units 0 and 5 of Doc 0, 7 of Doc 1, 9 of Doc 2, 2 of Doc 3.
    slices = slices_by(["a", "b", None, "b"], np.array([0, 0, 1, 2, 3]), np.array([0, 5, 7, 9, 2]))
    assert [(name, units.tolist()) for name, units in slices.items()] == [("a", [0, 5]), ("b", [7, 2])]


def test_figures_of_a_slice_are_those_of_its_units_alone():
    scores, hits = np.tile([0.6, 0.8], 40), np.tile([1, 1, 0, 1], 20)
    judged = judged_pairs(scores, hits, np.repeat(np.arange(4), 20), scores / 2)
    (row,) = judge_slices(judged, {"half": np.arange(40)}, np.arange(80))["rows"]
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
    slices = {f"from {start}": np.arange(50 * start, 50 * (start + 40)) for start in range(0, 240, 40)}
    slices |= {"three tokens": np.arange(3), "one document": np.arange(50), "none": np.arange(0)}
    report = judge_slices(judged, slices, np.arange(12_000))
    assert [row["slice"] for row in report["rows"] if row["off"]] == ["from 0"]
    assert report["rows"][0]["low"] < 0.15 < report["rows"][0]["high"]
    assert (len(report["rows"]), report["too_small"], report["rate"]) == (6, 3, 0.05)
    gaps = [abs(row["gap"]) for row in report["rows"][1:]]
    assert gaps == sorted(gaps, reverse=True)


def test_a_gap_by_hand():
    # Sums of score - hit by document: .5 + .5 - 1 = 0, then .9 - 1 = -.1, then .8 + .8 - 1 = .6; their sum is .5 of 5.
    gap = gap_of([0.5, 0.5, 0.9, 0.8, 0.8], [1, 0, 1, 1, 0], ["a", "a", "b", "c", "c"])
    assert (gap.n, gap.documents) == (5, 3)
    assert (gap.score, gap.right, gap.gap) == pytest.approx((0.7, 0.6, 0.1))
    # The spread of the sums, 3 / 2 x (.37 - .25 / 3) = .43, is less than .25 + .25 + .09 + .16 + .16 = .91, which counts.
    # t = .5 / sqrt(.91) = .5241 at 25 / 9 - 1 = 1.778 degrees of freedom: the incomplete beta function of (v / 2, 1 / 2) at v / (v + t^2).
    assert gap.p == pytest.approx(0.65812, abs=1e-5)
    assert gap.low < 0 < gap.high


def test_a_single_document_tells_nothing_of_chance():
    gap = gap_of([0.9] * 50, [0] * 50, [1] * 50)
    assert (gap.p, gap.low) == (1, None)


def test_true_scores_are_called_off_at_most_as_often_as_said_and_wrong_ones_nearly_always():
    rng, called, seen = np.random.default_rng(0), 0, 0
    documents = np.repeat(np.arange(20), 30)
    for _ in range(400):
        scores = rng.beta(8, 1, 600)
        called += gap_of(scores, rng.random(600) < scores, documents).p <= 0.05
        seen += gap_of(scores, rng.random(600) < scores - 0.1 * (scores > 0.2), documents).p <= 0.05
    assert (called <= 30, seen >= 380) == (True, True), (called, seen)


def test_of_many_findings_those_stand_that_benjamini_and_hochberg_keep():
    # .05 x 1/4, 2/4, 3/4, 4/4 = .0125, .025, .0375, .05: the third is below its own, and takes the first two with it.
    assert find_discoveries([0.036, 0.2, 0.03, 0.012]).tolist() == [True, False, True, True]
    assert find_discoveries([]).tolist() == []
    with pytest.raises(CalibError, match="numbers from 0 to 1"):
        find_discoveries([0.5, 1.5])
