"""The HMM and the CRFs over words and over vectors: by hand, and on made-up sentences."""

import numpy as np
import pytest
import spacy
from papers.chains.features import batch_hashes, read_templates
from papers.chains.neural import NeuralCrf
from papers.chains.sums import sum_chains
from papers.chains.taggers import Crf, Hmm, bounds_of
from spacy.ml.models import build_hash_embed_cnn_tok2vec
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import fix_random_seed
from thinc.api import Adam

NLP = spacy.blank("en")
SENTENCES = (
    ("they fish", "PRON VERB"), ("they swim", "PRON VERB"), ("the fish", "DET NOUN"), ("the fish swim", "DET NOUN VERB"),
)  # fmt: skip


def docs():
    """Two Docs of two sentences."""
    return [
        Doc(
            NLP.vocab,
            words=[word for words, _ in pair for word in words.split()],
            tags=[tag for _, tags in pair for tag in tags.split()],
            sent_starts=[i == 0 for words, _ in pair for i in range(len(words.split()))],
        )
        for pair in (SENTENCES[:2], SENTENCES[2:])
    ]


def test_the_hmm_by_hand():
    hmm = Hmm(pseudocount=1.0, rare=0).fit(docs())
    assert hmm.labels == ("DET", "NOUN", "PRON", "VERB")
    # After DET: NOUN twice, of 2 + 4 labels and the end; first labels: DET and PRON twice each.
    assert np.exp(hmm.potentials().transitions[0]) == pytest.approx(np.array([1, 3, 1, 1]) / 7)
    assert np.exp(hmm.potentials().starts) == pytest.approx(np.array([3, 1, 3, 1]) / 8)
    # VERB: fish once, swim twice, of 3 + 4 words and the class of unknown ones.
    fish = hmm.label_scores([Doc(NLP.vocab, words=["fish"])])[0]
    assert np.exp(fish[0, 3]) == pytest.approx(2 / 8)


def test_a_sentence_has_the_same_features_alone_as_in_its_doc():
    """The CRF learns from sentences as Docs and labels Docs of several: SENT_START is read of both."""
    templates = read_templates("spelling")
    gold = docs()[0]
    whole = batch_hashes([gold], [bounds_of(gold)], templates)
    alone = [sent.as_doc() for sent in gold.sents]
    assert (whole == batch_hashes(alone, [bounds_of(doc) for doc in alone], templates)).all()


def test_the_crf_learns_what_words_and_tags_say():
    pytest.importorskip("pycrfsuite")
    for features in ("spelling", ["ORTH[0]"]):
        crf = Crf(features=features, c2=0.01, max_iterations=50).fit(docs())
        assert [crf.labels[i] for i in crf.predict(docs())] == [token.tag_ for doc in docs() for token in doc]
        assert sum_chains(crf.chains(docs())).marginals.sum(axis=1) == pytest.approx(np.ones(9))


def test_the_neural_crf_learns_and_keeps_the_step_that_is_best_on_dev():
    fix_random_seed(0)
    encoder = build_hash_embed_cnn_tok2vec(
        width=16, depth=1, embed_size=200, window_size=1, maxout_pieces=2, subword_features=True, pretrained_vectors=None
    )
    examples = [Example(Doc(NLP.vocab, words=[token.text for token in gold]), gold) for gold in docs()]
    crf = NeuralCrf(encoder, ("DET", "NOUN", "PRON", "VERB"), rate=2.0)
    settings = {
        "max_steps": 45, "eval_frequency": 20, "dropout": 0.0, "batcher": lambda own: iter([own]), "optimizer": Adam(0.02),
    }  # fmt: skip
    steps = list(crf.fit(examples, examples, settings))
    assert [step for step, _ in steps] == [20, 40, 45]
    assert crf.accuracy(examples) == max(accuracy for _, accuracy in steps) == 1
    assert np.abs(crf.potentials().transitions).max() > 0
    chances, best = crf.read([example.predicted for example in examples])
    assert chances.sum(axis=1) == pytest.approx(np.ones(9))
    assert best.tolist() == chances.argmax(axis=1).tolist()
