"""Which calibration is taken: losses and standard errors worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_calib.calibration.replacement import (
    ADAPTED,
    FIT,
    PRESENT,
    Replacement,
    align_scores,
    compare_losses,
    compare_scores,
    fewest_of,
    is_enough,
)
from spacy_calib.schema import Misfit

DOCUMENTS = np.arange(20)
# Mean .5; a fit whose difference to it alternates by .04 around -.02 has a standard error of .04 / sqrt(20) = .00894.
LEVEL, WAVE = np.full(20, 0.5), np.tile([0.04, -0.04], 10)


def losses(adapted: float | None, fit: float) -> dict[str, np.ndarray]:
    of_adapted = {} if adapted is None else {ADAPTED: LEVEL + adapted}
    return {PRESENT: LEVEL, **of_adapted, FIT: LEVEL + fit + WAVE}


@pytest.mark.parametrize(
    ("adapted", "fit", "winner"),
    [
        (-0.01, -0.02, FIT),  # .01 better than adapted, error .00894
        (-0.0111, -0.02, ADAPTED),  # .0089 better
        (0.01, -0.02, FIT),
        (0.01, -0.0089, PRESENT),  # compared with the better of the two
        (0.0, 0.1, PRESENT),  # an adaptation that gains nothing is not taken
        (-0.001, 0.1, ADAPTED),
        (None, -0.01, FIT),
        (None, -0.0089, PRESENT),
    ],
)
def test_a_fit_is_taken_if_its_gain_exceeds_its_standard_error(adapted, fit, winner):
    result = compare_losses(losses(adapted, fit), DOCUMENTS)
    assert result.winner == winner
    assert result.error == pytest.approx(0.04 / np.sqrt(20))
    assert (result.present, result.fit) == (pytest.approx(0.5), pytest.approx(0.5 + fit))
    assert result.adapted == (None if adapted is None else pytest.approx(0.5 + adapted))
    assert (result.units, result.unit, result.gains) == (20, "entity", winner != PRESENT)


def test_the_standard_error_is_over_documents():
    # Ten documents of two alike units: .04 / sqrt(10) = .0126, more than the gain.
    wave = np.repeat(np.tile([0.04, -0.04], 5), 2)
    paired = {PRESENT: LEVEL, FIT: LEVEL - 0.0120 + wave}
    assert compare_losses(paired, np.repeat(np.arange(10), 2)).error == pytest.approx(0.04 / np.sqrt(10))
    assert compare_losses(paired, np.repeat(np.arange(10), 2)).winner == PRESENT
    assert compare_losses(paired, DOCUMENTS).winner == FIT


@pytest.mark.parametrize("adapted", [None, -0.01])
def test_of_few_units_no_fit_is_taken(adapted):
    # 19 entities: what is learned of so few is left to an adaptation.
    few = {name: values[:19] for name, values in losses(adapted, -0.4).items()}
    result = compare_losses(few, DOCUMENTS[:19])
    assert result.winner == (PRESENT if adapted is None else ADAPTED)
    assert not result.gains


def test_units_that_all_can_score_are_compared():
    nan = np.nan
    scores = {PRESENT: np.array([0.5, nan, 0.5, 0.5]), ADAPTED: np.array([0.8, 0.8, 0.8, nan]), FIT: np.full(4, 0.9)}
    result = compare_scores(scores, np.array([True, False, False, True]), np.arange(4))
    # The first and the third: -log .5; (-log .8 - log .2) / 2; (-log .9 - log .1) / 2.
    assert result is not None
    assert result.units == 2
    assert (result.present, result.adapted, result.fit) == (
        pytest.approx(0.693147), pytest.approx(0.916291), pytest.approx(1.203973),
    )  # fmt: skip
    assert compare_scores({PRESENT: np.array([nan]), FIT: np.array([0.5])}, np.array([True]), np.arange(1)) is None


def test_scores_are_found_by_their_keys():
    keys, others = np.array([[0, 2], [5, 6], [9, 1]]), np.array([[9, 1], [0, 2], [5, 7]])
    np.testing.assert_array_equal(align_scores(keys, others, np.array([0.1, 0.2, 0.3])), [0.2, np.nan, 0.1])
    assert np.isnan(align_scores(keys, others[:0], np.zeros(0))).all()


@pytest.mark.parametrize(("unit", "fewest"), [("entity", 20), ("document", 20), ("token", 200)])
def test_how_many_units_are_enough(unit, fewest):
    assert fewest_of(unit) == fewest
    assert is_enough(unit, fewest)
    assert not is_enough(unit, fewest - 1)


def test_it_is_plain_data():
    result = compare_losses(losses(-0.01, -0.02), DOCUMENTS)
    state = result.state()
    assert Replacement.read(state, "comparison") == result
    with pytest.raises(Misfit):
        Replacement.read({**state, "winner": "card"}, "comparison")
