"""Which calibration is taken: losses and standard errors worked out by hand."""

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
from spacy_calib.schema import InvalidState

DOCUMENTS = np.arange(64)
# Mean .5; a fit whose difference to it alternates by .04 around -.02 has a standard error of .04 / sqrt(64) = .005.
LEVEL, WAVE = np.full(64, 0.5), np.tile([0.04, -0.04], 32)


def losses(adapted: float | None, fit: float) -> dict[str, np.ndarray]:
    of_adapted = {} if adapted is None else {ADAPTED: LEVEL + adapted}
    return {PRESENT: LEVEL, **of_adapted, FIT: LEVEL + fit + WAVE}


@pytest.mark.parametrize(("adapted", "fit", "winner"), [
    (-0.01, -0.0151, FIT),  # .0051 better than adapted, error .005
    (-0.01, -0.0149, ADAPTED),
    (0.01, -0.0051, FIT),
    (0.01, -0.0049, PRESENT),  # compared with the better of the two
    (0.0, 0.1, PRESENT),  # an adaptation that gains nothing is not taken
    (-0.001, 0.1, ADAPTED),
    (None, -0.0051, FIT),
    (None, -0.0049, PRESENT),
])  # fmt: skip
def test_a_fit_is_taken_if_its_gain_exceeds_its_standard_error(adapted, fit, winner):
    result = compare_losses(losses(adapted, fit), DOCUMENTS)
    assert result.winner == winner
    assert result.error == pytest.approx(0.005)
    assert (result.present, result.fit) == (pytest.approx(0.5), pytest.approx(0.5 + fit))
    assert result.adapted == (None if adapted is None else pytest.approx(0.5 + adapted))
    assert (result.units, result.unit, result.gains) == (64, "entity", winner != PRESENT)


def test_the_standard_error_is_over_documents():
    # Sixteen documents of four alike units: .04 / sqrt(16) = .01, more than the gain.
    paired = {PRESENT: LEVEL, FIT: LEVEL - 0.008 + np.repeat(np.tile([0.04, -0.04], 8), 4)}
    by_four = compare_losses(paired, np.repeat(np.arange(16), 4))
    assert (by_four.error, by_four.winner) == (pytest.approx(0.01), PRESENT)
    assert compare_losses(paired, DOCUMENTS).winner == FIT


@pytest.mark.parametrize(("n", "winner"), [(50, FIT), (49, ADAPTED), (20, ADAPTED), (19, ADAPTED)])
def test_of_few_units_no_fit_is_taken_and_nothing_is_shown(n, winner):
    result = compare_losses({name: values[:n] for name, values in losses(-0.01, -0.4).items()}, DOCUMENTS[:n])
    assert (result.winner, result.gains) == (winner, n >= 20)
    assert compare_losses({PRESENT: LEVEL[:n], FIT: LEVEL[:n] / 2}, DOCUMENTS[:n]).winner == (FIT if n >= 50 else PRESENT)


@pytest.mark.parametrize(("n", "winner"), [(500, FIT), (499, PRESENT)])
def test_tokens_are_more_alike(n, winner):
    assert compare_losses({PRESENT: np.full(n, 0.5), FIT: np.full(n, 0.4)}, np.arange(n), "token").winner == winner


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
    with pytest.raises(InvalidState):
        Replacement.read({**state, "winner": "card"}, "comparison")
