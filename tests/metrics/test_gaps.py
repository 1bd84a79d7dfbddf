"""Gaps of parts of the data: by hand, by simulation, and which of many stand."""

import numpy as np
import pytest

from spacy_calib.errors import CalibError
from spacy_calib.metrics.gaps import find_discoveries, gap_of


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
