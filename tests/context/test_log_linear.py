"""The log-linear model of pairs: by hand, against scikit-learn, and at its ends."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from spacy_calib.calibration.solvers import sigmoid
from spacy_calib.context import log_linear
from spacy_calib.context.blocks import N_SCORES, PairInputs, WeightBlock
from spacy_calib.context.log_linear import BlockWeights, LogLinear, PairData, fit_pairs
from spacy_calib.schema import InvalidState


def inputs_of(blocks, codes, numbers=(), tag_codes=None) -> PairInputs:
    """Inputs of pairs of one tag whose rival's code, which stands for a word here, is given."""
    codes = np.atleast_2d(codes)
    rows = np.zeros((N_SCORES, codes.shape[1]))
    rows[: len(numbers)] = np.reshape(numbers, (-1, codes.shape[1]))
    return PairInputs(blocks, np.zeros(codes.shape[1], dtype=np.intp) if tag_codes is None else tag_codes, codes, rows)


def inputs_of_words(n_words: int, codes, log_odds=None) -> PairInputs:
    """Inputs of a model with a weight for each word and, with log-odds, a line."""
    rival = WeightBlock("rival", n_words)
    if log_odds is None:
        return inputs_of([rival], codes)
    return inputs_of([WeightBlock("line", 1, 2, 0.0), rival], codes, (np.ones(len(codes)), log_odds))


def test_a_prediction_by_hand():
    weights = {
        "line": BlockWeights(np.array([0]), np.array([[0.25, -1.0]]), 1),
        "tag": BlockWeights(np.array([1]), np.array([[0.0, 0.125, 0.0, 2.0]]), 2),
        "rival": BlockWeights(np.array([2]), np.array([[0.5]]), 4),
        "ending": BlockWeights(np.array([1]), np.array([[4.0]]), 2),
    }
    log_odds = np.array([0.0, 1.0, 2.0])
    # the second rival was not met in the fit; the block of endings says nothing about the first two pairs
    codes, tag_codes = np.array([[2, 3, 2], [-1, -4, 1]]), np.array([0, 0, 1])
    inputs = inputs_of((), codes, (np.ones(3), log_odds, np.zeros(3), np.full(3, 3.0)), tag_codes)
    margins = [0.0 - 1.0 + 0.5, 1.0 + 0.25 - 1.0, 2.0 + 2 * (0.25 + 0.125) - 1.0 + 3 * 2.0 + 0.5 + 4.0]
    expected = pytest.approx([1 / (1 + np.exp(-margin)) for margin in margins])
    assert LogLinear(1.0, weights).predict(log_odds, inputs) == expected


def test_weights_of_many_codes_are_looked_up_one_by_one(monkeypatch):
    weights = {
        "tag": BlockWeights(np.array([0]), np.zeros((1, 4)), 1),
        "rival": BlockWeights(np.array([1, 5, 900]), np.array([[1.0], [2.0], [3.0]]), 1000),
    }
    inputs = inputs_of((), np.array([-1, 0, 1, 5, 899, 900, 999]))
    expected = sigmoid(np.array([0.0, 0, 1, 2, 0, 3, 0]))
    assert LogLinear(1.0, weights).predict(np.zeros(7), inputs).tolist() == expected.tolist()
    monkeypatch.setattr(log_linear, "_MAX_CELLS", 10)
    model = LogLinear(1.0, weights)
    assert model._table is None
    assert model.predict(np.zeros(7), inputs).tolist() == expected.tolist()


def sample_pairs(n: int = 4000, seed: int = 0):
    """Pairs of 40 documents whose log-odds are off by what their word says."""
    rng = np.random.default_rng(seed)
    own, word = rng.normal(0, 2, n), rng.integers(0, 6, n)
    hits = rng.random(n) < sigmoid(own + np.array([-2.0, -1, 0, 0, 1, 2])[word])
    return own, word, hits, np.sort(rng.integers(0, 40, n))


def test_weights_are_those_of_scikit_learn(monkeypatch):
    monkeypatch.setattr(log_linear, "_TOLERANCE", 1e-4)
    _, word, hits, documents = sample_pairs()
    data = PairData(np.zeros(len(word)), inputs_of_words(6, word), hits, documents)
    found = log_linear._fit_model(data, 3.0)
    # The penalty on a weight is ridge / 2 times its square; that of scikit-learn 1 / (2 C) times.
    theirs = LogisticRegression(C=1 / 3, fit_intercept=False, tol=1e-10).fit(np.eye(6)[word], hits)
    assert found.weights["rival"].values[:, 0] == pytest.approx(theirs.coef_[0], abs=1e-4)


def test_what_words_say_is_learned_and_held_out_documents_say_so():
    log_odds, word, hits, documents = sample_pairs()
    model, held_out = fit_pairs(PairData(log_odds, inputs_of_words(6, word, log_odds), hits, documents))
    assert model.weights["rival"].values[:, 0] == pytest.approx([-2, -1, 0, 0, 1, 2], abs=0.4)
    assert _loss(held_out, hits) < _loss(sigmoid(log_odds), hits) - 0.05


def test_held_out_scores_forget_what_the_initial_weights_have_seen():
    log_odds, _, hits, documents = sample_pairs()
    rng = np.random.default_rng(3)
    blocks = [WeightBlock("line", 1, 2, 0.0), WeightBlock("rival", 900), WeightBlock("ending", 700)]
    codes = [rng.zipf(1.3, len(hits)) % block.size for block in blocks[1:]]
    inputs = inputs_of(blocks, codes, (np.ones(len(hits)), log_odds))
    data, folds = PairData(log_odds, inputs, hits, documents), documents % 3
    seen = log_linear._fit_model(data, 1.0)
    zeros = {name: BlockWeights(block.codes, 0 * block.values, block.size) for name, block in seen.weights.items()}
    held_out = [log_linear._score_out_of_fold(data, 1.0, folds, start) for start in (seen, LogLinear(1.0, zeros))]
    assert np.abs(held_out[0] - held_out[1]).max() < 0.002
    assert np.abs(held_out[0] - seen.predict(log_odds, inputs)).max() > 0.1


def test_words_that_say_nothing_are_held_back():
    log_odds, word, _, documents = sample_pairs()
    hits = np.random.default_rng(5).random(len(log_odds)) < sigmoid(0.5 * log_odds + 0.3)
    n = len(log_odds)
    blocks = [WeightBlock("line", 1, 2, 0.0), WeightBlock("rival", n), WeightBlock("ending", 6)]
    inputs = inputs_of(blocks, [np.arange(n) // 2, word], (np.ones(n), log_odds))
    model, _ = fit_pairs(PairData(log_odds, inputs, hits, documents))
    assert model.ridge >= 100
    # What is left is a line for all pairs: slope 1 + (-.5), and a constant of .3.
    assert model.weights["line"].values[0] == pytest.approx([-0.5, 0.3], abs=0.1)


def test_of_two_documents_little_more_than_a_line_is_learned():
    log_odds, word, hits, _ = sample_pairs(400)
    model, _ = fit_pairs(PairData(log_odds, inputs_of_words(6, word), hits, np.arange(400) // 200))
    assert model.ridge == log_linear.RIDGES[0]
    assert np.abs(model.weights["rival"].values).max() < 0.05


@pytest.mark.parametrize("wrong", [{"size": 2}, {"codes": np.array([1, 9])}, {"values": np.zeros((1, 1))}])
def test_saved_weights_that_do_not_fit_together_are_refused(wrong):
    held = {"codes": np.array([1, 3]), "values": np.zeros((2, 1)), "size": 4}
    log_linear.LogLinear.read({"ridge": 1.0, "weights": {"word": held}})
    with pytest.raises(InvalidState):
        log_linear.LogLinear.read({"ridge": 1.0, "weights": {"word": {**held, **wrong}}})


def _loss(scores: np.ndarray, hits: np.ndarray) -> float:
    return float(-np.log(np.where(hits, scores, 1 - scores)).mean())
