"""Forms and endings that a context knows, by salted digests."""

import numpy as np
import pytest

from spacy_calib.context.words import KnownWords
from spacy_calib.pairs.keyed import salt_digests
from tests.context.made_up import words_of


@pytest.mark.parametrize("salt", ["", "a salt"])
def test_what_stands_there_three_times_is_known(salt):
    words = words_of([[5, 5, 3, 3, 3], [9, 9, 9, 9, 1]])
    found, places = KnownWords.from_words(words).with_salt(salt)
    assert sorted(found.forms) == sorted(salt_digests(np.array([3, 9], dtype=np.uint64), salt))
    forms, endings = found.find_indices(words_of([[1, 3, 5, 9, 77]]))
    assert (forms >= 0).tolist() == [False, True, False, True, False]
    assert (endings >= 0).tolist() == [False, True, False, True, False]  # 77 ends as 0 does: endings are numbers modulo 7
    assert found.forms[forms[1]] == salt_digests(np.array([3], dtype=np.uint64), salt)[0]
    assert places["form"].tolist() == [forms[1], forms[3]]


def test_white_space_is_not_counted():
    assert not len(KnownWords.from_words(words_of([[-4, -4, -4]])).forms)


def test_places_are_remembered_and_forgotten(monkeypatch):
    monkeypatch.setattr("spacy_calib.context.words._MAX_CACHED", 4)
    found = KnownWords.from_words(words_of([[1, 1, 1, 2, 2, 2]])).with_salt("x")[0]
    rng = np.random.default_rng(0)
    expected = {1: found.find_indices(words_of([[1]]))[0][0], 2: found.find_indices(words_of([[2]]))[0][0]}
    for _ in range(20):
        asked = rng.integers(1, 30, 3)
        places = found.find_indices(words_of([asked.tolist()]))[0]
        assert places.tolist() == [expected.get(int(one), -1) for one in asked]


def test_nothing_is_known_without_words():
    assert KnownWords().find_indices(words_of([[1, 2]]))[0].tolist() == [-1, -1]
    assert KnownWords.from_words(words_of([])).with_salt("x")[0].find_indices(words_of([]))[0].tolist() == []


def test_it_survives_saving():
    found = KnownWords.from_words(words_of([[1, 1, 1, 2]])).with_salt("x")[0]
    again = KnownWords.read(found.state())
    asked = words_of([[1, 2, 3]])
    assert [one.tolist() for one in again.find_indices(asked)] == [one.tolist() for one in found.find_indices(asked)]
