from __future__ import annotations

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_calib.errors import CalibError
from spacy_calib.sequence.inference.sums import sum_chains
from spacy_calib.sequence.joint_draws import sample_jointly
from tests.expect.test_draws import agree
from tests.sequence.test_joints import examples_of, sentences
from tests.sequence.trained import trained_labeller

N = 4000


@pytest.fixture(scope="module")
def nlp():
    """An HMM that is calibrated with texts in which other tags are frequent."""
    nlp = spacy.blank("en")
    nlp.add_pipe("calib_hmm", config={"pseudocount": 0.1})
    nlp.initialize(lambda: examples_of(nlp, sentences(nlp, 60)))
    source = {"@calib_sources": "spacy-calib.Chain.v1", "component": "calib_hmm"}
    calib = nlp.add_pipe("calib", config={"source": source, "recalibrator": {"@calib_recalibrators": "spacy-calib.Platt.v1"}})
    gold = sentences(nlp, 150, seed=3)
    for doc in gold:
        for token in doc:
            if token.i % 4 == 1:
                token.tag_ = {"NOUN": "VERB", "VERB": "NOUN"}.get(token.tag_, token.tag_)
    calib.fit(examples_of(nlp, gold))
    return nlp


def scored(nlp, seed=9) -> Doc:
    (doc,) = sentences(nlp, 1, seed=seed)
    bare = Doc(nlp.vocab, words=[t.text for t in doc], sent_starts=[bool(t.is_sent_start) for t in doc])
    return nlp(bare)


def test_tags_that_are_drawn_together_keep_their_calibrated_scores(nlp):
    doc, hmm = scored(nlp), nlp.get_pipe("calib_hmm")
    draws = sample_jointly(hmm, doc, N, seed=0)
    shares = np.array([(draws.codes == code).mean(axis=0) for code in range(len(draws.labels))]).T
    raw = np.concatenate(sum_chains(hmm.chains([doc])[0]).by_sequence())
    view = doc._.calib
    wanted = view.to_dense(list(draws.labels)) * draws.scale[:, None]
    kept = wanted > 0
    agree(shares[kept], wanted[kept])
    assert np.abs(wanted - raw)[kept].max() > 0.1  # the model says something else
    assert (draws.codes >= 0).all()
    assert draws.gap < 1e-6
    # The rest is shared among the other labels as the model has it.
    rest = shares.sum(axis=1, where=~kept)
    agree(rest, np.clip(1 - wanted.sum(axis=1), 0, 1))
    copy = draws[3].doc()
    assert [token.tag_ for token in copy] == [draws.labels[code] for code in draws.codes[3]]
    assert (draws.codes[:9] == sample_jointly(hmm, scored(nlp), 9, seed=0).codes).all()


def test_the_gap_is_that_of_the_score_that_is_missed_by_most(nlp, monkeypatch):
    doc, hmm = scored(nlp), nlp.get_pipe("calib_hmm")
    monkeypatch.setattr(
        "spacy_calib.sequence.inference.chains._ROUNDS", 0
    )  # nothing is brought to the scores but the first token
    assert sample_jointly(hmm, doc, 9).gap > 0.05


def test_a_doc_without_words_and_joined_docs(nlp):
    hmm = nlp.get_pipe("calib_hmm")
    empty = nlp(Doc(nlp.vocab))
    assert sample_jointly(hmm, empty, 3).codes.shape == (3, 0)
    one, other = scored(nlp, 1), scored(nlp, 2)
    bare = Doc(nlp.vocab, words=["they", "fish"], sent_starts=[True, False])
    joined = Doc.from_docs([one, bare, other])
    draws = sample_jointly(hmm, joined, N)
    raw = np.concatenate(sum_chains(hmm.chains([joined])[0]).by_sequence())
    without = slice(len(one), len(one) + 2)
    shares = np.array([(draws.codes == code).mean(axis=0) for code in range(len(draws.labels))]).T
    agree(shares[without], raw[without])
    agree(shares[-1], sample_jointly_shares(hmm, other)[-1], n=N / 4)


def sample_jointly_shares(hmm, doc):
    draws = sample_jointly(hmm, doc, N)
    return np.array([(draws.codes == code).mean(axis=0) for code in range(len(draws.labels))]).T


def test_what_cannot_be_drawn_is_said(nlp):
    hmm, doc = nlp.get_pipe("calib_hmm"), scored(nlp)
    with pytest.raises(CalibError, match="C413.*begins 'they' has no scores of 'calib'"):
        sample_jointly(hmm, Doc(nlp.vocab, words=["they"]))
    with pytest.raises(CalibError, match="C001"):
        sample_jointly(hmm, doc, -1)
    entities = trained_labeller("calib_hmm", "ents")
    with pytest.raises(CalibError, match="C416.*Doc._.calib.sample"):
        sample_jointly(entities.get_pipe("calib_hmm"), doc)
    with pytest.raises(CalibError, match="C342"):
        sample_jointly(trained_labeller("calib_online").get_pipe("calib_online"), doc)
    hmm.cfg["target"] = "pos"
    with pytest.raises(CalibError, match="C412.*from scores of 'tag': it gives 'pos'"):
        sample_jointly(hmm, doc)
    hmm.cfg["target"] = "tag"
