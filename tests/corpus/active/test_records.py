"""What a person sees of a chosen sentence."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_calib.corpus.active.pieces import pieces_of
from spacy_calib.corpus.active.priority import token_values
from spacy_calib.corpus.active.records import N_ALTERNATIVES, batch_rows, reason_of
from tests.corpora import SMALL, corpus_of


def rows_of(corpus, chosen, unit="sentence"):
    pieces = pieces_of(corpus, unit)
    values = token_values(corpus, "least-confident")
    return batch_rows(corpus, pieces, np.array(chosen), np.arange(len(pieces)) / 10, values, whole_docs=unit == "doc")


def test_a_record_says_where_and_why():
    first, second = rows_of(corpus_of(SMALL), [2, 1])
    assert first == {
        "rank": 1,
        "text": "w0 w1 \n x",
        "doc": 2,
        "origin": {},
        "sentence": 0,
        "start": 0,
        "end": 4,
        "words": 3,
        "score": 0.2,
        "expected_errors": pytest.approx(0.8),
        "reason": {
            "token": 0,
            "word": "w0",
            "label": "A",
            "tag": "A",
            "probability": 0.6,
            "raw": pytest.approx(0.36),
            "alternatives": {"B": pytest.approx(0.4)},
        },
    }
    assert (second["rank"], second["doc"], second["sentence"], second["start"], second["end"]) == (2, 0, 1, 2, 3)


def test_whole_docs_have_no_sentence():
    (row,) = rows_of(corpus_of(SMALL), [1], "doc")
    assert (row["doc"], row["sentence"], row["start"], row["end"]) == (2, None, 0, 5)


def test_the_entities_of_a_sentence():
    corpus = corpus_of(SMALL, spans=[(0, 0, 2, "B", 0.3), (0, 2, 3, "A", 0.9), (2, 1, 2, "B", 0.5)])
    second, third = rows_of(corpus, [1, 2])
    assert second["entities"] == [
        {"start": 0, "end": 1, "text": "w0", "label": "A", "probability": 0.9, "raw": pytest.approx(0.81)}
    ]
    assert [(one["start"], one["end"], one["text"]) for one in third["entities"]] == [(1, 2, "w1")]


def test_the_likeliest_tag_of_those_that_were_hunted():
    scores = {"A": 0.4, "B": 0.1, "C": 0.2, "D": 0.05, "E": 0.15}
    corpus = corpus_of([[[("x", "A", {"A": 1.0}), ("y", "A", scores)]]])
    reason = reason_of(corpus, 0, 2, np.array([0.1, 0.3]), ["B", "C"])
    assert (reason["token"], reason["word"], reason["label"], reason["tag"]) == (1, "y", "A", "C")
    assert (reason["probability"], reason["raw"]) == (0.2, pytest.approx(0.04))
    assert list(reason["alternatives"].items()) == [("A", 0.4), ("E", 0.15), ("B", 0.1)]
    assert len(reason["alternatives"]) == N_ALTERNATIVES
