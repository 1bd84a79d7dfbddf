import numpy as np
import pytest

from spacy_calib.calibration.solvers import CLIP, fit_logistic, log_odds, sigmoid


def test_newton_equals_scikit_learn_on_the_same_objective():
    # scikit-learn shrinks to zero, with 1 / C; so do we where the prior's mean is zero.
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    for prior in (0.01, 1.0, 30.0):
        features = rng.normal(size=(300, 3)) * [1.0, 3.0, 0.5]
        hits = np.random.default_rng(1).random(300) < sigmoid(features @ [1.0, -0.5, 2.0])
        weights = rng.uniform(0.2, 3, 300)
        theirs = LogisticRegression(C=1 / prior, fit_intercept=False, tol=1e-10, max_iter=1000, solver="newton-cholesky")
        theirs.fit(features, hits, sample_weight=weights)
        ours = fit_logistic(features, hits, weights, np.zeros(3), prior)
        np.testing.assert_allclose(ours, theirs.coef_[0], rtol=0, atol=1e-7)


def test_rows_looked_at_a_few_at_a_time_give_the_same_coefficients(monkeypatch):
    rng = np.random.default_rng(4)
    features, weights = rng.normal(size=(50, 3)), rng.integers(1, 5, 50).astype(float)
    hits = rng.random(50) < 0.3
    at_once = fit_logistic(features, hits, weights, np.zeros(3), 0.1)
    monkeypatch.setattr("spacy_calib.calibration.solvers._CHUNK_ROWS", 7)
    assert fit_logistic(features, hits, weights, np.zeros(3), 0.1) == pytest.approx(at_once, rel=1e-12)


def test_sigmoid_does_not_overflow_and_undoes_log_odds():
    assert sigmoid(np.array([-1e9, 0.0, 1e9])) == pytest.approx([0, 0.5, 1])
    inside = np.linspace(CLIP, 1 - CLIP, 1001)
    np.testing.assert_allclose(sigmoid(log_odds(inside)), inside, rtol=1e-12)
