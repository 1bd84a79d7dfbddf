"""The component `calib_hmm`: its counts, worked out by hand, and what it does with words that it never met."""

from __future__ import annotations

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example

from spacy_calib.plugins.sequence.hmm import word_class

SENTENCES = [(["the", "dog", "runs"], ["D", "N", "V"]), (["the", "cat"], ["D", "N"]), (["runs", "the", "dog"], ["V", "D", "N"])]


def counted(sentences=SENTENCES, **config):
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("calib_hmm", config=config)
    starts = [[True] + [False] * (len(words) - 1) for words, _ in sentences]
    examples = [
        Example(Doc(nlp.vocab, words=words), Doc(nlp.vocab, words=words, tags=tags, sent_starts=own))
        for (words, tags), own in zip(sentences, starts, strict=True)
    ]
    nlp.initialize(lambda: examples)
    return nlp, pipe, examples


def test_probabilities_are_counts_and_one_pseudocount():
    _, pipe, _ = counted()
    held = pipe.weights()
    at = {label: i for i, label in enumerate(pipe.labels)}
    # D is met three times, each time an N follows; of 3 labels and the end each has a pseudocount: (3 + 1) / (3 + 4).
    assert np.exp(held.transitions[at["D"], at["N"]]) == pytest.approx(4 / 7)
    # N ends two sentences and is followed by a V once.
    assert np.exp(held.ends[at["N"]]) == pytest.approx(3 / 7)
    assert np.exp(held.transitions[at["N"], at["V"]]) == pytest.approx(2 / 7)
    # Two of three sentences begin with D.
    assert np.exp(held.starts[at["D"]]) == pytest.approx(3 / 6)
    # "the", "dog", "runs" are met twice or more, "cat" once: counted as its class; with words never met there are 5 columns.
    scores = pipe.label_scores([Doc(pipe.vocab, words=["dog", "the"])])[0]
    assert np.exp(scores[0, at["N"]]) == pytest.approx(3 / 8)
    assert np.exp(scores[1, at["D"]]) == pytest.approx(4 / 8)


def test_unknown_words_are_known_by_their_class():
    _, pipe, _ = counted()
    at = pipe.labels.index("N")
    scores = pipe.label_scores([Doc(pipe.vocab, words=["cat", "cow", "1999"])])[0]
    assert np.exp(scores[0, at]) == np.exp(scores[1, at]) == pytest.approx(2 / 8)  # both short words of small letters
    assert np.exp(scores[2, at]) == pytest.approx(1 / 8)


@pytest.mark.parametrize(
    ("word", "wanted"), [("Running", "<A|ing>"), ("cat", "<a|>"), ("B-52", "<9A-|>"), ("!?", "<.|>"), ("walked", "<a|ked>")]
)
def test_classes(word, wanted):
    assert word_class(word) == wanted


def test_the_tags_of_the_gold_are_learned():
    nlp, _, examples = counted()
    assert nlp.evaluate(examples)["tag_acc"] == 1


def test_counting_again_forgets_what_was_counted_before():
    nlp, pipe, _ = counted()
    doc = Doc(nlp.vocab, words=["the", "dog"])
    before = pipe.label_scores([doc])[0]
    _, other, examples = counted([*SENTENCES, (["dog", "the"], ["V", "N"])])
    pipe.initialize(lambda: examples)
    assert (pipe.label_scores([doc])[0] == other.label_scores([doc])[0]).all()
    assert (pipe.label_scores([doc])[0] != before).any()
    pipe.from_bytes(counted()[1].to_bytes())
    assert (pipe.label_scores([doc])[0] == before).all()


def test_gaps_in_the_gold_cut_a_sequence():
    _, pipe, _ = counted([(["the", "dog", "?", "the", "dog"], ["D", "N", "", "D", "N"])])
    at = {label: i for i, label in enumerate(pipe.labels)}
    assert pipe._first[at["D"]] == 2
    assert pipe._follow.sum() == 2
