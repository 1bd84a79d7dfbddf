"""What is said of a unit without its gold, in words."""

from __future__ import annotations

import dataclasses

import numpy as np

from spacy_calib.plugins.report.properties import SearchUnits, properties_of
from tests.made import corpus_of


def said(properties, unit):
    return [one.levels[one.codes[unit]] for one in properties if one.codes[unit] >= 0]


def tagged(*words):
    return [(word, "A", {"A": 0.8}) for word in words]


def test_each_token_is_described():
    corpus = corpus_of(
        [[tagged("The", "USA", "sells", "3rd-hand", "extraordinary", "cars", "."), tagged("Cars", "!")], [tagged("sells")]]
    )
    units = SearchUnits(np.array([0, 1, 5, 3, 4, 6, 9]), np.array([1, 2, 6, 4, 5, 7, 10]), np.array([0, 1, 0, 0, 0, 0, 0]), ["NN", "VB"],
                   np.array([0.4, 0.5, 0.69, 0.97, 0.9, 1.0, 0.8]))  # fmt: skip
    found = properties_of(corpus, units, {"genre": ["blog", None], "one": ["a", "a"], "many": [str(n) for n in range(2)]})
    assert said(found, 0) == [
        "labelled NN", "scored 0 to 0.5", "with many 0", "with a capital at its begin", "of 3 characters", "occurring 1x in this data",
        "in a sentence of 6 to 10 tokens", "at the begin of a sentence", "in the first quarter of the document",
    ]  # fmt: skip
    assert said(found, 1)[:2] == ["labelled VB", "scored 0.5 to 0.7"]
    assert [said(found, unit)[3] for unit in (1, 2, 3, 5)] == [
        "in capitals",
        "in lower case",
        "with a digit",
        "without a letter or a digit",
    ]
    assert said(found, 4)[4] == "of 11 or more characters"
    assert said(found, 3)[1] == "scored 0.97 to 1"
    assert said(found, 5)[-2:] == ["at the end of a sentence", "in the third quarter of the document"]
    assert said(found, 6)[-3] == "in a sentence of 1 to 5 tokens"


def test_fields_tell_kinds_of_documents():
    corpus = corpus_of([[tagged("a")], [tagged("b")], [tagged("c")]])
    units = SearchUnits(np.arange(3), np.arange(1, 4), np.zeros(3, dtype=int), ["NN"], np.full(3, 0.8))
    with_field = [said(properties_of(corpus, units, {"genre": ["blog", None, "news"]}), unit) for unit in range(3)]
    assert ["with genre blog" in one for one in with_field] == [True, False, False]
    assert ["with genre news" in one for one in with_field] == [False, False, True]


def test_entities_have_lengths_in_words_and_documents_have_no_place():
    corpus = corpus_of([[tagged("New", "York", "is", "big")]])
    units = SearchUnits(np.array([0, 3]), np.array([2, 4]), np.zeros(2, dtype=int), ["GPE"], np.full(2, 0.8))
    assert [said(properties_of(corpus, units, {}), unit)[3] for unit in (0, 1)] == ["of 2 words", "of 1 words"]
    whole = dataclasses.replace(corpus, row_unit="document")
    units = SearchUnits(np.array([0]), np.array([1]), np.zeros(1, dtype=int), ["spam"], np.array([0.95]))
    assert said(properties_of(whole, units, {}), 0) == ["labelled spam", "scored 0.9 to 0.97", "of 1 to 19 words"]
