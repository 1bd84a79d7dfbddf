"""The component `calib_online`: it trains as any component does, and is saved."""

from __future__ import annotations

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example

from tests.plugins.sequence.trained import TAGS, WORDS, online_learner


def test_saved_and_trained_further(tmp_path):
    nlp, pipe, _ = online_learner(rounds=1)
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    doc = Doc(nlp.vocab, words=[*WORDS, "new"])
    assert (again.get_pipe("calib_online").label_scores([doc])[0] == pipe.label_scores([doc])[0]).all()
    for each in (nlp, again):
        each.update([Example(Doc(each.vocab, words=WORDS), Doc(each.vocab, words=WORDS, tags=TAGS))])
    assert (again.get_pipe("calib_online").learner.mean == pipe.learner.mean).all()


def test_sequences_with_gaps_teach_nothing():
    _, pipe, losses = online_learner(tags=["", *TAGS[1:]])
    assert losses[0] == 0
    assert pipe.learner.n_seen == 0


def test_sequences_that_are_passed_over_count_in_the_average():
    """Passive-aggressive passes over what beats every rival by far; with twice as many sequences seen what the average lacks is half."""
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("calib_online", config={"rule": "pa", "features": ["ORTH[0]", "PREFIX[0]"]})
    words = {"ax": "A", "ay": "A", "b": "B", "bz": "B", "a": "A"}  # a word of two letters learns more than one of one needs
    examples = [Example(Doc(nlp.vocab, words=[word]), Doc(nlp.vocab, words=[word], tags=[tag])) for word, tag in words.items()]
    nlp.initialize(lambda: examples)
    for _ in range(6):
        nlp.update(examples)
    scores = [pipe.label_scores([examples[0].predicted])[0]]
    for more in (30, 60):  # after 30 sequences
        nlp.update(examples[:1] * more)
        scores.append(pipe.label_scores([examples[0].predicted])[0])
    first, second = np.diff(scores, axis=0)
    assert abs(first).max() > 1e-3
    assert first == pytest.approx(2 * second)


def test_a_batch_has_the_scores_of_its_docs():
    nlp, pipe, _ = online_learner()
    docs = [Doc(nlp.vocab, words=words) for words in (["x", "a"], [], ["never", "a", "y"], ["a"])]
    table = pipe.learner.mean.reshape(-1, len(pipe.labels))
    for doc, together in zip(docs, pipe.label_scores(docs), strict=True):
        assert together.shape == (len(doc), len(pipe.labels))
        if len(doc):
            (tokens,) = pipe.features_of(doc)
            assert (together == pipe.label_scores([doc])[0]).all()
            assert together == pytest.approx(np.add.reduceat(table[tokens.rows], tokens.starts[:-1], axis=0))
    assert pipe.weights().transitions == pytest.approx(table[len(pipe.index) :])


def test_settings_of_the_rule():
    _, pipe, _ = online_learner(rule="arow", settings={"r": 10.0, "variance": 0.5})
    assert pipe.rule.r == 10
    assert pipe.learner.sigma.max() == 0.5
