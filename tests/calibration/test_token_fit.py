"""A fit of tokens: what it holds out, and the pairs of a plan."""

import numpy as np

from spacy_calib.calibration.grouped import GroupedRecalibrator
from spacy_calib.calibration.recalibrators import IsotonicRegression
from spacy_calib.calibration.token_fit import CalibrationPlan, FitData, fit_tokens, score_held_out
from tests.made import TOKEN_GROUPS, fit_data, sample_tokens


def isotonic(data: FitData) -> CalibrationPlan:
    return CalibrationPlan(TOKEN_GROUPS, TOKEN_GROUPS, IsotonicRegression(), data.pairs.scores)


def all_and_held_out_scores(data: FitData) -> tuple[np.ndarray, np.ndarray]:
    """(scores of the maps of all tokens, scores of maps that did not see the token's fold)."""
    calibration, pairs = fit_tokens(data, isotonic(data)), data.kept_pairs
    return calibration.maps.predict(pairs.scores, pairs.tags), score_held_out(data, isotonic(data), calibration)


def test_five_folds_are_fitted_besides_the_maps(monkeypatch):
    fits = []
    fit = GroupedRecalibrator.fit
    monkeypatch.setattr(GroupedRecalibrator, "fit", lambda self, pairs: fits.append(len(pairs)) or fit(self, pairs))
    data = fit_data(sample_tokens(400, 1))
    all_and_held_out_scores(data)
    assert fits[0] == len(data.kept_indices)
    assert (len(fits), sum(fits[1:])) == (1 + 5, 4 * len(data.kept_indices))


def test_blocks_of_tokens_of_one_document_are_held_out():
    scores, held_out = all_and_held_out_scores(fit_data(sample_tokens(400, 1), per_document=400))
    assert np.abs(held_out - scores).max() > 0.01


def test_a_fold_that_leaves_too_few_pairs_keeps_the_raw_scores():
    data = fit_data(sample_tokens(1, 1))
    assert all_and_held_out_scores(data)[1].tolist() == data.kept_pairs.scores.tolist()


def test_the_pairs_of_a_plan_have_scaled_scores_and_reach_the_threshold_by_their_raw_ones():
    data = fit_data(sample_tokens(50, 1), 0.1, 0.01)
    pairs = CalibrationPlan(TOKEN_GROUPS, TOKEN_GROUPS, IsotonicRegression(), data.pairs.scores / 2).pairs_of(data)
    assert (pairs.scores * 2 == data.kept_pairs.scores).all()
    assert (data.kept_pairs.scores >= 0.1).all()
    assert data.kept_documents.tolist() == (pairs.rows // 20).tolist()
