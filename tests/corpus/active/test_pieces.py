"""Sentences and documents as what is labelled."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_calib.corpus.active.pieces import Pieces, pieces_of
from spacy_calib.errors import CalibError
from tests.corpora import SMALL, corpus_of


def test_sentences():
    pieces = pieces_of(corpus_of(SMALL))
    assert pieces.docs.tolist() == [0, 0, 2, 2]
    assert pieces.first.tolist() == [0, 2, 3, 7]
    assert pieces.last.tolist() == [2, 3, 7, 8]
    assert pieces.words.tolist() == [2, 1, 3, 0]
    assert pieces.counted.tolist() == [2, 1, 2, 0]


def test_docs_without_tokens_are_no_units():
    pieces = pieces_of(corpus_of(SMALL), "doc")
    assert pieces.docs.tolist() == [0, 2]
    assert (pieces.first.tolist(), pieces.last.tolist()) == ([0, 3], [3, 8])
    assert pieces.words.tolist() == [3, 3]


def test_an_empty_doc_at_the_end():
    pieces = pieces_of(corpus_of([*SMALL, []]), "doc")
    assert pieces.docs.tolist() == [0, 2]


def test_sums_and_maxima_count_nan_as_nothing():
    pieces = pieces_of(corpus_of(SMALL))
    values = np.array([1.0, np.nan, 3, 4, np.nan, 5, np.nan, np.nan])
    assert pieces.sums(values).tolist() == [1, 3, 9, 0]
    assert pieces.maxima(values).tolist() == [1, 3, 5, -np.inf]


def test_no_units():
    none = np.zeros(0, dtype=np.intp)
    pieces = Pieces(none, none, none, none, none)
    assert pieces.sums(np.zeros(0)).shape == pieces.maxima(np.zeros(0)).shape == (0,)


def test_another_unit_is_refused():
    with pytest.raises(CalibError, match="unit must be one of sentence, doc, but 'word' was given"):
        pieces_of(corpus_of(SMALL), "word")
