from __future__ import annotations

import numpy as np
import pytest
import spacy
from hypothesis import given, settings
from scipy.stats import kstest
from spacy.tokens import Doc
from spacy.training import Example

from spacy_calib.sequence.confidence import gaps, k_best_shares, normals, shares_of
from spacy_calib.sequence.confidence_source import ConfidenceSource
from spacy_calib.sequence.draws import Draws, draws_of_learner
from spacy_calib.sequence.features.templates import Sparse
from spacy_calib.sequence.inference.best import viterbi
from spacy_calib.sequence.inference.chains import Chains, Potentials
from tests.sequence.inference.chains import enumerate_labellings, small_chains
from tests.sequence.trained import TAGS, WORDS, trained_labeller


def test_shares_by_hand():
    found = shares_of([[0, 1], [0, 0], [1, 1]], [2.0, 1.0, 1.0], 2)
    assert found.tolist() == [[0.75, 0.25], [0.25, 0.75]]
    assert shares_of([[0], [1]], [0.0, 0.0], 2).tolist() == [[0.5, 0.5]]


@settings(max_examples=30)
@given(made=small_chains(forbid=False))
def test_k_best_shares_are_those_of_the_first_labellings(made):
    for scores, plain, weighted in zip(
        made.scores, k_best_shares(made.chains, 3, False), k_best_shares(made.chains, 3, True), strict=True
    ):
        every = sorted(enumerate_labellings(scores, made.potentials).items(), key=lambda one: -one[1])[:3]
        weights = np.maximum(0.0, [total for _, total in every])
        for found, by in ((plain, np.ones(len(every))), (weighted, weights if weights.sum() else np.ones(len(every)))):
            wanted = sum(w * np.eye(made.potentials.n_labels)[list(labels)] for (labels, _), w in zip(every, by, strict=True))
            assert found == pytest.approx(wanted / by.sum(), abs=1e-9)


@settings(max_examples=30)
@given(made=small_chains(forbid=False))
def test_gaps_are_largest_for_the_predicted_label(made):
    chains = made.chains
    for labels, found in zip(viterbi(chains), gaps(chains), strict=True):
        own = found[np.arange(len(labels)), labels]
        assert (own >= 0.5).all()
        assert (own == found.max(axis=1)).all()


def test_gap_by_hand():
    # The best labelling scores 3, the best with another label at the first token 1: a gap of 2.
    found = gaps(Chains.of([np.array([[2.0, 0.0], [0.0, 1.0]])], Potentials.none(2)))[0]
    assert found[0] == pytest.approx([1 / (1 + np.exp(-2)), 1 / (1 + np.exp(2))])


def test_draws_count_agreement():
    learned, other = (Chains.of([np.array([scores])], Potentials.none(2)) for scores in ([1.0, 0.0], [-3.0, 0.0]))
    stays = Chains.of([np.zeros((1, 2))], Potentials.none(2))
    draws = Draws(learned, lambda number: other if number == 2 else stays)
    assert draws.shares(4, 1.0)[0].tolist() == [[0.75, 0.25]]
    assert draws.shares(4, 0.1)[0].tolist() == [[1.0, 0.0]]  # at a tenth of the variance it moves by a third, not by all
    assert [labels.tolist() for labels in draws.labels(3, [0.1, 1.0])] == [[[0], [0]], [[0], [0]], [[0], [1]]]


@pytest.mark.parametrize("way", ["kd_pc", "kd_fixed"])
def test_all_scales_at_once_are_each_by_itself(way):
    """The labels that count are the best ones of one draw at one scale after the other."""
    nlp = trained_labeller("calib_online", "ents")
    texts = [Doc(nlp.vocab, words=words) for words in (["in", "New", "York"], ["Ann"], [], ["ran", "in", "new", "Ann", "York"])]
    draws = ConfidenceSource(way=way).draws(nlp.get_pipe("calib_online"), texts)
    for number, labels in enumerate(draws.labels(5, [0.01, 0.3, 4.0])):
        for own, scores, transitions in zip(labels, *draws.at(number, [0.01, 0.3, 4.0]), strict=True):
            alone = viterbi(Chains(scores, transitions, draws.learned.packing))
            assert own.tolist() == np.concatenate(alone).tolist()


def test_normals_are_normal_independent_and_stay():
    codes = np.arange(20_000)
    first, second = normals(codes, 0, 0), normals(codes, 1, 0)
    assert kstest(first, "norm").pvalue > 0.001
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.03
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 0.03
    assert (normals(codes[500:510], 0, 0) == first[500:510]).all()
    assert (normals(codes, 0, 1) != first).all()


def learned():
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("calib_online", config={"features": ["ORTH[0]", "ORTH[-1] ORTH[0]"]})
    examples = [Example(Doc(nlp.vocab, words=WORDS), Doc(nlp.vocab, words=WORDS, tags=TAGS)) for _ in range(3)]
    nlp.initialize(lambda: examples)
    for _ in range(5):
        nlp.update(examples)
    return nlp, pipe


@pytest.mark.parametrize("way", ["kd_pc", "kd_fixed"])
def test_a_word_that_was_never_seen_is_less_sure(way):
    """Its features have mean 0 and the variance that all began with; without them it would be as sure as the transitions are."""
    nlp, pipe = learned()
    doc = nlp(Doc(nlp.vocab, words=[WORDS[0], "unheard"]))
    source = ConfidenceSource(way=way, scale=0.05, k=400)
    [shares] = source.confidences(pipe, [doc])
    [without] = draws_of_learner(pipe.learner, pipe.features_of(doc), way == "kd_pc", 0).shares(400, 0.05)
    assert shares[1].max() < without[1].max()
    assert shares[0].max() == pytest.approx(without[0].max(), abs=0.1)
    # Another text beside it changes nothing.
    both = source.confidences(pipe, [nlp(Doc(nlp.vocab, words=["other", "words"])), doc])
    assert (both[1] == shares).all()


def test_draws_have_the_mean_and_variance_of_the_weights():
    _, pipe = learned()
    learner, tokens = pipe.learner, Sparse(np.array([1, 1 << 45]), np.array([0, 1, 2]))
    width = learner.n_labels
    made = draws_of_learner(learner, [tokens], True, 0)
    draws = np.concatenate([made.at(number, [0.5])[0] for number in range(3000)])[:, made.learned.packing.packed]
    variance = np.stack([learner.sigma.reshape(-1, width)[1], np.ones(width)])
    assert draws.mean(axis=0) == pytest.approx(np.stack([learner.mean.reshape(-1, width)[1], np.zeros(width)]), abs=0.08)
    assert draws.var(axis=0) == pytest.approx(0.5 * variance, rel=0.15)
