"""The log-linear model of pairs: by hand, against scikit-learn, and at its ends."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from spacy_calib.calibration.recalibrators.logistic import sigmoid
from spacy_calib.context import log_linear
from spacy_calib.context.blocks import Block
from spacy_calib.context.log_linear import LogLinear, PairData, Weights, fit_pairs
from spacy_calib.schema import Misfit


def test_a_prediction_by_hand():
    weights = {
        "word": Weights(np.array([2]), np.array([[0.5]]), 4),
        "line": Weights(np.array([0]), np.array([[0.25, -1.0]]), 1),
    }
    own = np.array([0.0, 1.0, 2.0])
    blocks = [
        Block("word", np.array([2, 3, -1]), 4),  # the second was not met in the fit, the third says nothing
        Block("line", np.zeros(3, dtype=np.intp), 1, np.stack([own, np.ones(3)])),
        Block("unknown", np.array([0, 0, 0]), 1),
    ]
    margins = [0.0 + 0.5 - 1.0, 1.0 + 0.25 - 1.0, 2.0 + 0.5 - 1.0]
    assert LogLinear(1.0, weights).predict(own, blocks) == pytest.approx([1 / (1 + np.exp(-m)) for m in margins])


def test_weights_of_many_codes_are_looked_up_without_a_table(monkeypatch):
    few = Weights(np.array([1, 5, 900]), np.array([[1.0], [2.0], [3.0]]), 1000)
    asked = np.array([-1, 0, 1, 5, 899, 900, 999])
    expected = few.of(asked)
    monkeypatch.setattr(log_linear, "_CELLS", 10)
    many = Weights(few.codes, few.values, 1000)
    assert many.table is None
    assert many.of(asked).tolist() == expected.tolist() == [[0], [0], [1], [2], [0], [3], [0]]


def made_up(n: int = 4000, seed: int = 0):
    """Pairs of 40 documents whose log-odds are off by what their word says."""
    rng = np.random.default_rng(seed)
    own, word = rng.normal(0, 2, n), rng.integers(0, 6, n)
    hits = rng.random(n) < sigmoid(own + np.array([-2.0, -1, 0, 0, 1, 2])[word])
    return own, word, hits, np.sort(rng.integers(0, 40, n))


def test_weights_are_those_of_scikit_learn():
    _, word, hits, documents = made_up()
    data = PairData(np.zeros(len(word)), [Block("word", word, 6)], hits, documents)
    found = log_linear._fit(data, 3.0, 1e-12)
    # The penalty on a weight is ridge / 2 times its square; that of scikit-learn 1 / (2 C) times.
    theirs = LogisticRegression(C=1 / 3, fit_intercept=False, tol=1e-10).fit(np.eye(6)[word], hits)
    assert found.weights["word"].values[:, 0] == pytest.approx(theirs.coef_[0], abs=1e-4)


def test_what_words_say_is_learned_and_held_out_documents_say_so():
    own, word, hits, documents = made_up()
    line = Block("line", np.zeros(len(own), dtype=np.intp), 1, np.stack([own, np.ones(len(own))]), 0.0)
    model, held_out = fit_pairs(PairData(own, [line, Block("word", word, 6)], hits, documents))
    assert model.weights["word"].values[:, 0] == pytest.approx([-2, -1, 0, 0, 1, 2], abs=0.4)
    assert _loss(held_out, hits) < _loss(sigmoid(own), hits) - 0.05


def test_words_that_say_nothing_are_held_back():
    own, word, _, documents = made_up()
    hits = np.random.default_rng(5).random(len(own)) < sigmoid(0.5 * own + 0.3)
    line = Block("line", np.zeros(len(own), dtype=np.intp), 1, np.stack([own, np.ones(len(own))]), 0.0)
    every = Block("word", np.arange(len(own)) // 2, len(own))
    model, _ = fit_pairs(PairData(own, [line, every, Block("other", word, 6)], hits, documents))
    assert model.ridge >= 100
    # What is left is a line for all pairs: slope 1 + (-.5), and a constant of .3.
    assert model.weights["line"].values[0] == pytest.approx([-0.5, 0.3], abs=0.1)


def test_of_one_document_little_more_than_a_line_is_learned():
    own, word, hits, _ = made_up(400)
    data = PairData(own, [Block("word", word, 6)], hits, np.zeros(400, dtype=np.intp))
    model, scores = fit_pairs(data)
    assert model.ridge == log_linear.RIDGES[0]
    assert np.abs(model.weights["word"].values).max() < 0.05
    assert np.array_equal(scores, model.predict(own, data.blocks))


@pytest.mark.parametrize("wrong", [{"size": 2}, {"codes": np.array([1, 9])}, {"values": np.zeros((1, 1))}])
def test_saved_weights_that_do_not_fit_together_are_refused(wrong):
    held = {"codes": np.array([1, 3]), "values": np.zeros((2, 1)), "size": 4}
    log_linear.LogLinear.read({"ridge": 1.0, "weights": {"word": held}})
    with pytest.raises(Misfit):
        log_linear.LogLinear.read({"ridge": 1.0, "weights": {"word": {**held, **wrong}}})


def _loss(scores: np.ndarray, hits: np.ndarray) -> float:
    return float(-np.log(np.where(hits, scores, 1 - scores)).mean())
