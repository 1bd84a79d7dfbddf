from __future__ import annotations

import numpy as np
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc
from spacy.training import Example

from spacy_calib import TagCalibrator
from spacy_calib.errors import CalibError
from spacy_calib.pairs.build import pair_up
from spacy_calib.plugins.events.component import HeldOutScores
from spacy_calib.plugins.sequence.inference.sums import sum_chains
from spacy_calib.plugins.sequence.joints import gold_pairs, joint_marginals, pair_names, pair_scores, sample_jointly
from tests.conftest import run_upstream
from tests.docstrings import run_examples
from tests.plugins.events.test_draws import agree
from tests.plugins.sequence.inference.chains import probabilities, small_chains
from tests.plugins.sequence.trained import TAGS, WORDS, tagged, trained_labeller
from tests.sentences import says


def test_the_example_of_the_reference_runs():
    run_examples(pair_scores, pair_names=pair_names)


@settings(max_examples=40)
@given(made=small_chains(), seed=st.integers(0, 1000))
def test_joints_are_those_of_all_labellings(made, seed):
    width = made.potentials.n_labels
    lengths = np.array([len(scores) for scores in made.scores])
    wanted = np.zeros((lengths.sum(), width * width))
    for start, scores in zip(np.cumsum(lengths) - lengths, made.scores, strict=True):
        for labels, chance in probabilities(scores, made.potentials).items():
            for i in range(len(labels) - 1):
                wanted[start + i, labels[i] * width + labels[i + 1]] += chance
    found = joint_marginals(sum_chains(made.chains), threshold=1e-9)
    dense = np.zeros((max(0, lengths.sum() - 1), width * width))
    dense[found.rows, found.tags] = found.scores
    assert dense == pytest.approx(wanted[: len(dense)], abs=1e-8)
    assert (np.diff(found.rows) >= 0).all()
    gold = np.random.default_rng(seed).integers(0, width, lengths.sum())
    inside = np.ones(int(lengths.sum()) - 1, dtype=bool)  # the last token of a chain and the first of the next are no pair
    inside[np.cumsum(lengths)[:-1] - 1] = False
    pairs = pair_up(found, np.where(inside, gold[:-1] * width + gold[1:], -2))
    assert pairs.n_units == sum(lengths - 1)
    assert pairs.hits.sum() <= pairs.n_units


def sentences(nlp, n, seed=0):
    """Gold Docs of "they fish" and "the fish", of one or two sentences; what follows "the" is a NOUN, mostly."""
    rng = np.random.default_rng(seed)
    docs = []
    for _ in range(n):
        words, tags, starts = [], [], []
        for _ in range(rng.integers(1, 3)):
            the = rng.random() < 0.5
            verb = rng.random() < (0.2 if the else 0.7)
            words += ["the" if the else "they", "fish"]
            tags += ["DET" if the else "PRON", "VERB" if verb else "NOUN"]
            starts += [True, False]
        docs.append(Doc(nlp.vocab, words=words, tags=tags, sent_starts=starts))
    return docs


def examples_of(nlp, docs):
    return [Example(Doc(nlp.vocab, words=[t.text for t in d], sent_starts=[bool(t.is_sent_start) for t in d]), d) for d in docs]


def trained_hmm():
    nlp = spacy.blank("en")
    nlp.add_pipe("calib_hmm", config={"pseudocount": 0.1})
    nlp.initialize(lambda: examples_of(nlp, sentences(nlp, 60)))
    return nlp


hmm = pytest.fixture(scope="module")(trained_hmm)


def test_the_pairs_of_a_token_sum_to_its_marginal(hmm):
    labeller = hmm.get_pipe("calib_hmm")
    docs = [*sentences(hmm, 70), Doc(hmm.vocab), *sentences(hmm, 3, seed=1)]  # more than one batch, and a Doc without tokens
    scores, n = pair_scores(labeller, docs, threshold=1e-12), len(labeller.labels)
    assert scores.shape == (sum(map(len, docs)), n * n)
    assert pair_names(labeller)[n + 2] == f"{labeller.labels[1]} {labeller.labels[2]}"
    marginals = np.concatenate(sum_chains(labeller.chains(docs)[0]).by_sequence())
    last = np.array([token.i + 1 == token.sent.end for doc in docs for token in doc])
    assert np.asarray(scores.sum(axis=1)).ravel() == pytest.approx(np.where(last, 0.0, 1.0))
    of_first = scores.toarray().reshape(-1, n, n).sum(axis=2)
    assert of_first[~last] == pytest.approx(marginals[~last])
    kept = pair_scores(labeller, docs, threshold=0.2)
    assert kept.nnz == (scores.data >= 0.2).sum() > 0


def test_gold_pairs_stand_at_their_first_token(hmm):
    labeller = hmm.get_pipe("calib_hmm")
    gold = Doc(hmm.vocab, words=["the", "fish", "they", "fish", "fish"], tags=["DET", "NOUN", "PRON", "VERB", ""],
               sent_starts=[True, False, True, False, False])  # fmt: skip
    assert gold_pairs(labeller, examples_of(hmm, [gold, Doc(hmm.vocab)])) == ["DET NOUN", None, "PRON VERB", None, None]


def test_pairs_are_calibrated_as_events_and_saved(hmm, tmp_path):
    labeller = hmm.get_pipe("calib_hmm")
    dev, test = (examples_of(hmm, sentences(hmm, 150, seed)) for seed in (3, 4))
    scores = {name: pair_scores(labeller, [eg.predicted for eg in part]) for name, part in (("dev", dev), ("test", test))}
    documents = [number for number, eg in enumerate(dev) for _ in eg.predicted]
    made = TagCalibrator(method="isotonic", classes=pair_names(labeller))
    made.fit(scores["dev"], gold_pairs(labeller, dev), groups=documents)
    judged = made.judge(scores["test"], gold_pairs(labeller, test))
    assert judged.pairs.n_units == sum(len(list(eg.reference.sents)) for eg in test)  # a place in each sentence of two words
    the_noun = judged.pairs.tags == pair_names(labeller).index("DET NOUN")
    # 80 % of what follows "the" is a NOUN; the HMM, which reads "fish" on its own, may say something else.
    assert judged.calibrated[the_noun].mean() == pytest.approx(0.8, abs=0.08)
    made.to_disk(tmp_path / "pairs")
    again = TagCalibrator.from_disk(tmp_path / "pairs").transform(scores["test"])
    assert (again != made.transform(scores["test"])).nnz == 0


@pytest.mark.filterwarnings("ignore:.*CW0")
def test_sentences_of_a_chain(hmm):
    fit, test = (examples_of(hmm, sentences(hmm, 120, seed)) for seed in (3, 4))
    calib = hmm.add_pipe("calib", config={"source": {"@calib_sources": "spacy-calib.Chain.v1", "component": "calib_hmm"}})
    logistic = {"@calib_forecasters": "spacy-calib.Logistic.v1"}
    pipe = hmm.add_pipe("calib_event", last=True, config={"forecaster": logistic})
    with hmm.select_pipes(disable=["calib", "calib_event"]):
        calib.fit(run_upstream(hmm, fit))
    with hmm.select_pipes(disable=["calib_event"]):
        pipe.fit(run_upstream(hmm, fit), HeldOutScores(calib))
    table = pipe.event_table(run_upstream(hmm, test))
    said = [sent._.calib_right for example in test for sent in example.predicted.sents]
    assert np.mean(said) == pytest.approx(table["right"], abs=0.1)
    for name in ("calib", "calib_event"):
        hmm.remove_pipe(name)


@pytest.mark.parametrize("factory", ["calib_crf", "calib_crfsuite"])
def test_every_labeller_with_probabilities_gives_pairs(factory):
    nlp = trained_labeller(factory)
    labeller = nlp.get_pipe(factory)
    example = tagged(nlp)
    scores = pair_scores(labeller, [example.predicted])
    names = np.array(pair_names(labeller))
    likeliest = names[scores[:-1].toarray().argmax(axis=1)].tolist()
    assert likeliest == [f"{first} {second}" for first, second in zip(TAGS, TAGS[1:], strict=False)]
    assert gold_pairs(labeller, [example]) == [*likeliest, None]
    assert len(WORDS) == scores.shape[0]


def test_scores_that_are_no_probabilities_are_refused():
    nlp = trained_labeller("calib_online")
    with pytest.raises(CalibError, match=says("C342", name="calib_online", kind="OnlineLabeller")):
        pair_scores(nlp.get_pipe("calib_online"), [nlp.make_doc("x a")])


N = 4000


@pytest.fixture(scope="module")
def nlp():
    """An HMM that is calibrated with texts in which other tags are frequent."""
    nlp = trained_hmm()
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
    shares = label_shares(draws)
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
    # Nothing is brought to the scores but the first token.
    monkeypatch.setattr("spacy_calib.plugins.sequence.inference.chains._ROUNDS", 0)
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
    agree(label_shares(draws)[without], raw[without])
    agree(label_shares(draws)[-1], label_shares(sample_jointly(hmm, other, N))[-1], n=N / 4)


def label_shares(draws):
    """How often each token has each label."""
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
    with pytest.raises(CalibError, match=says("C412", layer="tag", own="pos")):
        sample_jointly(hmm, doc)
    hmm.cfg["target"] = "tag"
