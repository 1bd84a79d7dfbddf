"""CRFsuite's weights under our inference give what CRFsuite says."""

from __future__ import annotations

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example

from spacy_calib.plugins.sequence.crfsuite import crfsuite_items, read_weights, train_crfsuite
from spacy_calib.plugins.sequence.features import SparseFeatures
from spacy_calib.plugins.sequence.inference.chains import Chains, Potentials
from spacy_calib.plugins.sequence.inference.sums import sum_chains
from tests.plugins.sequence.trained import TAGS, WORDS

pycrfsuite = pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
N_FEATURES, N_LABELS = 12, 3


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    rng = np.random.default_rng(0)
    data = []
    for length in (5, 7, 1, 4, 6, 3):
        starts = np.concatenate([[0], np.cumsum(rng.integers(1, 4, length))])
        data.append((SparseFeatures(rng.integers(0, N_FEATURES, starts[-1]), starts), rng.integers(0, N_LABELS, length)))
    model = tmp_path_factory.mktemp("crfsuite") / "model"
    train_crfsuite(data, model, 0.1, 50)
    tagger = pycrfsuite.Tagger()
    tagger.open(str(model))
    return data, read_weights(model, N_FEATURES, N_LABELS), tagger


def test_marginals_and_likelihood_are_those_of_crfsuite(made):
    data, weights, tagger = made
    table, none = weights[: N_FEATURES * N_LABELS].reshape(-1, N_LABELS), np.zeros(N_LABELS)
    potentials = Potentials(weights[N_FEATURES * N_LABELS :].reshape(N_LABELS, N_LABELS), none, none)
    scores = [np.add.reduceat(table[tokens.rows], tokens.starts[:-1], axis=0) for tokens, _ in data]
    chains = Chains.from_scores(scores, potentials)
    found = sum_chains(chains)
    logs = chains.scores_of([gold for _, gold in data]) - found.log_z
    for (tokens, gold), own, log in zip(data, found.by_sequence(), logs, strict=True):
        tagger.set(crfsuite_items(tokens))
        wanted = [[tagger.marginal(str(label), i) for label in range(N_LABELS)] for i in range(len(gold))]
        assert own == pytest.approx(np.array(wanted), abs=1e-5)
        assert log == pytest.approx(np.log(tagger.probability([str(label) for label in gold.tolist()])), abs=1e-5)


def test_the_component(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("calib_crfsuite", config={"features": ["ORTH[0]", "ORTH[-1] ORTH[0]"], "c2": 0.01})
    nlp.initialize(lambda: [Example(Doc(nlp.vocab, words=WORDS), Doc(nlp.vocab, words=WORDS, tags=TAGS))])
    assert [token.tag_ for token in nlp(Doc(nlp.vocab, words=WORDS))] == TAGS
    nlp.to_disk(tmp_path)
    assert [token.tag_ for token in spacy.load(tmp_path)(Doc(nlp.vocab, words=WORDS))] == TAGS
