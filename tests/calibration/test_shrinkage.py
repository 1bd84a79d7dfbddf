"""Scores that shrink towards a straight line through the raw log-odds: the line, and the step."""

import numpy as np
import pytest

from spacy_calib.calibration.conventions import Convention, Shrinkage, fit_platt_on_agreeing_tokens
from spacy_calib.calibration.recalibrators import Platt
from spacy_calib.calibration.solvers import log_odds, sigmoid
from spacy_calib.calibration.steps import Predictions
from spacy_calib.types import Pairs

LINE = np.array([0.5, -1.0])


def pairs_of(scores, hits) -> Pairs:
    return Pairs(np.arange(len(scores)), np.zeros(len(scores), dtype=np.intp), np.array(scores), np.array(hits), len(scores))


def shrunk(shrink: float, scores, raw) -> list[float]:
    """The scores after the step, of entries with these raw scores."""
    given = Predictions.of_pairs(pairs_of(raw, [True] * len(raw)), 0.0).replace_unchecked(scores=np.array(scores))
    return Shrinkage(shrink, LINE).apply(given).scores.tolist()


def test_the_line_is_platts_without_the_tokens_of_conventions():
    rng = np.random.default_rng(0)
    margins = rng.normal(0, 2, 540)
    hits = rng.random(540) < sigmoid(0.7 * margins + 0.2)
    hits[500:] = False  # of these the gold says something else
    pairs = pairs_of(sigmoid(margins), hits)
    conventions = [Convention(0, 0, 1, np.arange(500, 520), 90), Convention(1, 0, 1, np.arange(520, 540), 90)]
    expected = Platt().fit(pairs.scores[:500], hits[:500])
    assert fit_platt_on_agreeing_tokens(pairs, conventions).tolist() == expected.coefficients_.tolist()
    assert fit_platt_on_agreeing_tokens(pairs, []).tolist() == Platt().fit(pairs.scores, hits).coefficients_.tolist()


def test_halfway_in_log_odds_by_hand():
    # Log-odds of the score 2, of the raw score 3; on the line 0.5 * 3 - 1 = 0.5. Halfway 1.25, a quarter of the way 1.625.
    score, raw = sigmoid(np.array([2.0])), sigmoid(np.array([3.0]))
    assert shrunk(0.5, score, raw) == pytest.approx([1 / (1 + np.exp(-1.25))])
    assert shrunk(0.25, score, raw) == pytest.approx([1 / (1 + np.exp(-1.625))])
    assert shrunk(1.0, score, raw) == pytest.approx([1 / (1 + np.exp(-0.5))])


def test_scores_of_0_and_1_shrink_as_those_that_are_nearly_so():
    ends, near = np.array([0.0, 1.0]), np.array([1e-6, 1 - 1e-6])
    assert shrunk(0.5, ends, ends) == pytest.approx(sigmoid((log_odds(near) + 0.5 * log_odds(near) - 1.0) / 2).tolist())
