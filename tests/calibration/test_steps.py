"""The walk through the steps: what goes how far, and what bears on what."""

import numpy as np

from spacy_calib.calibration.steps import INPUT_ONLY, KEPT, OUTPUT_ONLY, Cut, Predictions, apply_steps
from spacy_calib.calibration.tokens import Normalization
from tests.made import ScoreTable, fit_data, labels_of_columns, sample_tokens

from .test_tokens import fitted_on


def predictions(*entries: tuple[int, float, int]) -> Predictions:
    """Of (row, score, level), each with a tag of its own."""
    rows, scores, levels = (np.array(column) for column in zip(*entries, strict=True))
    return Predictions(rows, np.arange(len(rows)), scores, scores, levels)


def test_what_is_asked_for_stands_with_its_token_and_leads_nowhere():
    given = predictions((0, 0.6, KEPT), (0, 0.3, KEPT), (2, 0.9, KEPT)).with_output_only(
        np.array([0, 1]), np.array([7, 8]), np.array([0.001, 0.0])
    )
    assert given.rows.tolist() == [0, 0, 0, 1, 2]
    assert given.tags.tolist() == [0, 1, 7, 8, 2]
    assert given.levels.tolist() == [KEPT, KEPT, OUTPUT_ONLY, OUTPUT_ONLY, KEPT]
    assert given.is_top.tolist() == [True, False, False, False, True]


def test_the_threshold_cuts_off_what_was_looked_at_alone():
    given = predictions((0, 0.6, KEPT), (0, 0.002, INPUT_ONLY), (1, 0.003, OUTPUT_ONLY))
    assert apply_steps([Cut()], given).raw.tolist() == [0.6, 0.003]
    assert Cut().apply(given.take(np.array([0, 2]))).raw.tolist() == [0.6, 0.003]
    assert Cut().apply(given.take(np.array([0, 1]))).levels is None


def test_what_is_below_the_threshold_counts_in_no_sum():
    given = predictions((0, 0.6, KEPT), (0, 0.2, KEPT), (0, 0.004, OUTPUT_ONLY))
    np.testing.assert_allclose(Normalization().apply(given).scores, [0.75, 0.25, 0.004])


def test_a_label_that_is_asked_for_changes_no_score_of_others():
    calibration, table = (
        fitted_on(name="matrix", normalize=True, threshold=0.2),
        ScoreTable(sample_tokens(40, 5).probabilities),
    )
    plain = calibration.calibrate(table, 0.2)
    asked = calibration.calibrate(table, 0.2, predicted_labels=labels_of_columns(table, np.argmin(table.probabilities, axis=1)))
    assert asked.scores.tolist() == plain.scores.tolist()
    assert len(asked.below_threshold.scores) == 40


def test_a_step_of_ones_own_is_walked_like_the_others():
    class Halve:
        def apply(self, given):
            return given.replace_unchecked(scores=given.scores / 2)

    given = Predictions.of_pairs(fit_data(sample_tokens(20, 1)).pairs, 0.01)
    assert apply_steps([Halve(), Halve()], given).scores.tolist() == (given.scores / 4).tolist()


def test_normalization_is_the_last_step():
    calibration = fitted_on(normalize=True, threshold=0.1)
    (last,) = calibration.steps_after(calibration.maps)
    assert isinstance(last, Normalization)


def test_scores_that_are_all_zero_stay_zero():
    given = predictions((0, 0.0, KEPT), (0, 0.0, KEPT), (1, 0.2, KEPT), (1, 0.2, KEPT))
    assert Normalization().apply(given).scores.tolist() == [0.0, 0.0, 0.5, 0.5]
