"""What a fit of tokens works out once, whoever asks for it."""

from __future__ import annotations

import numpy as np

from spacy_calib.calibration.grouped import GroupedRecalibrator
from spacy_calib.calibration.grouping.fixed import shared_group
from spacy_calib.calibration.recalibrators import IsotonicRegression
from spacy_calib.calibration.sets import ConformalSets
from spacy_calib.calibration.token_fit import Chosen, TokenData, fit_tokens

from ..tokens import GROUPS, draw_tokens, fit_data


def chosen(data: TokenData) -> Chosen:
    return Chosen(shared_group, IsotonicRegression(), None, None, data.pairs.scores)


def test_held_out_scores_are_made_once_for_sets_and_for_those_who_judge(monkeypatch):
    """The cross-fit of five folds used to run twice where sets were on."""
    fits = []
    fit = GroupedRecalibrator.fit
    monkeypatch.setattr(GroupedRecalibrator, "fit", lambda self, pairs: fits.append(len(pairs)) or fit(self, pairs))
    data = fit_data(draw_tokens(400, 1))
    fitted = fit_tokens(data, chosen(data), GROUPS, sets=ConformalSets(0.2))
    assert len(fitted.held_out) == len(data.kept)
    assert fitted.held_out is fitted.held_out
    assert len(fits) == 1 + 5
    assert sum(fits[1:]) == 4 * len(data.kept)


def test_held_out_scores_are_made_only_where_they_are_asked_for(monkeypatch):
    data = fit_data(draw_tokens(400, 1))
    fitted = fit_tokens(data, chosen(data), GROUPS)
    monkeypatch.setattr(GroupedRecalibrator, "fit", lambda *_: 1 / 0)
    assert fitted.calibration.maps is fitted.maps


def test_of_one_document_blocks_of_tokens_are_held_out():
    data = fit_data(draw_tokens(400, 1), per_document=400)
    fitted = fit_tokens(data, chosen(data), GROUPS)
    own = fitted.maps.predict(fitted.pairs.scores, fitted.pairs.tags)
    assert np.abs(fitted.held_out - own).max() > 0.01


def test_what_cannot_be_fitted_without_a_fold_has_the_maps_of_all():
    data = fit_data(draw_tokens(1, 1))
    fitted = fit_tokens(data, chosen(data), GROUPS)
    assert fitted.held_out.tolist() == fitted.maps.predict(fitted.pairs.scores, fitted.pairs.tags).tolist()


def test_the_pairs_of_a_choice_have_scaled_scores_and_reach_the_threshold_by_their_raw_ones():
    data = fit_data(draw_tokens(50, 1), 0.1, 0.01)
    halved = Chosen(shared_group, IsotonicRegression(), None, None, data.pairs.scores / 2)
    pairs = halved.pairs_of(data)
    assert (pairs.scores * 2 == data.kept_pairs.scores).all()
    assert (data.kept_pairs.scores >= 0.1).all()
    assert data.kept_documents.tolist() == (pairs.rows // 20).tolist()
