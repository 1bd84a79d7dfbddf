"""What a queue leaves out: what is too short, and what was in it already."""

import numpy as np
import pytest

from spacy_calib.corpus.review.queue import long_enough, without_repeats
from spacy_calib.corpus.review.units import units_of
from tests.corpora import corpus_of

DASHES = [("------", "X", {"X": 0.4})]
TALK = [("Fish", "N", {"N": 0.6}), ("swim", "V", {"V": 0.8}), (".", "P", {"P": 0.9})]
OTHER = [("Fish", "N", {"N": 0.7}), ("fly", "V", {"V": 0.8}), (".", "P", {"P": 0.9})]
CORPUS = corpus_of([[TALK, DASHES, OTHER], [TALK], [DASHES]], [(0, 0, 1, "B", 0.5), (1, 0, 1, "B", 0.4), (0, 4, 5, "B", 0.3)])


@pytest.mark.parametrize(("least", "kept"), [(0, [4, 3, 2, 1, 0]), (1, [3, 2, 0]), (2, [3, 2, 0]), (3, [])])
def test_dashes_and_stops_are_no_words(least, kept):
    units = units_of(CORPUS, "sentence")
    assert long_enough(CORPUS, units, np.arange(5)[::-1], least).tolist() == kept


def test_a_sentence_is_in_the_queue_once_where_it_comes_first():
    units = units_of(CORPUS, "sentence")
    assert without_repeats(CORPUS, units, np.array([4, 2, 3, 1, 0])).tolist() == [4, 2, 3]
    assert without_repeats(CORPUS, units, np.array([], dtype=np.intp)).tolist() == []


def test_a_token_is_where_the_same_place_of_the_same_sentence_is():
    # "Fish" of another sentence is another case.
    units = units_of(CORPUS, "token")
    assert without_repeats(CORPUS, units, np.arange(len(units))).tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert without_repeats(CORPUS, units, np.arange(len(units))[::-1]).tolist() == [10, 9, 8, 7, 6, 5, 4]


def test_so_is_an_entity():
    units = units_of(CORPUS, "entity")
    assert without_repeats(CORPUS, units, np.array([1, 0, 2])).tolist() == [1, 2]
