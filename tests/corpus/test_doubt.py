"""How doubtful a token's label is."""

import numpy as np
import pytest

from spacy_calib.corpus.doubt import DOUBTS, doubts, entropies
from spacy_calib.errors import CalibError
from tests.corpora import corpus_of

# One sentence; the raw score is the square of the calibrated one. The last token carries nothing.
WORDS = [
    ("a", "X", {"X": 0.7, "Y": 0.2}),
    ("b", "X", {"X": 0.4, "Y": 0.6}),
    ("c", "X", {"X": 0.9}),
    ("d", "", {"X": 0.5}),
]
CORPUS = corpus_of([[WORDS]])


@pytest.mark.parametrize(
    ("by", "wanted"),
    [
        ("calibrated", [0.3, 0.6, 0.1]),
        ("raw", [1 - 0.49, 1 - 0.16, 1 - 0.81]),
        ("margin", [0.2 - 0.7, 0.6 - 0.4, 0 - 0.9]),
        ("raw_margin", [0.04 - 0.49, 0.36 - 0.16, 0 - 0.81]),
        # -sum p log p; what the scores leave of 1 is one more outcome
        ("entropy", [0.80181856, 0.67301167, 0.32508297]),
        ("raw_entropy", [0.83315709, 1.01331269, 0.48622296]),
    ],
)
def test_by_hand(by, wanted):
    found = doubts(CORPUS, by)
    np.testing.assert_allclose(found[:3], wanted, atol=1e-8)
    assert np.isnan(found[3])


def test_scores_that_sum_to_more_than_one_are_divided_by_their_sum():
    corpus = corpus_of([[[("a", "X", {"X": 0.9, "Y": 0.9})]]])
    assert entropies(corpus, corpus.tag_calibrated).tolist() == pytest.approx([np.log(2)])


def test_random_is_seeded_and_without_ties():
    assert doubts(CORPUS, "random", 3)[:3].tolist() == doubts(CORPUS, "random", 3)[:3].tolist()
    assert len(set(doubts(CORPUS, "random", 3)[:3].tolist())) == 3
    many = corpus_of([[[("a", "X", {"X": 0.7})] * 50]])
    assert doubts(many, "random", 0).tolist() != doubts(many, "random", 1).tolist()


@pytest.mark.parametrize("by", DOUBTS)
def test_every_signal_is_about_the_counted_tokens(by):
    np.testing.assert_array_equal(~np.isnan(doubts(CORPUS, by)), CORPUS.counted)


def test_an_unknown_signal_is_refused():
    with pytest.raises(CalibError, match="by must be one of calibrated, raw"):
        doubts(CORPUS, "gut feeling")
