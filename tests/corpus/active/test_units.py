"""Sentences and documents as what is labelled."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_calib.corpus.active.units import Units, units_of
from spacy_calib.errors import CalibError
from tests.corpora import SMALL, corpus_of


def test_sentences():
    units = units_of(corpus_of(SMALL))
    assert units.docs.tolist() == [0, 0, 2, 2]
    assert units.first.tolist() == [0, 2, 3, 7]
    assert units.last.tolist() == [2, 3, 7, 8]
    assert units.words.tolist() == [2, 1, 3, 0]
    assert units.counted.tolist() == [2, 1, 2, 0]


def test_docs_without_tokens_are_no_units():
    units = units_of(corpus_of(SMALL), "doc")
    assert units.docs.tolist() == [0, 2]
    assert (units.first.tolist(), units.last.tolist()) == ([0, 3], [3, 8])
    assert units.words.tolist() == [3, 3]


def test_an_empty_doc_at_the_end():
    units = units_of(corpus_of([*SMALL, []]), "doc")
    assert units.docs.tolist() == [0, 2]


def test_sums_and_maxima_count_nan_as_nothing():
    units = units_of(corpus_of(SMALL))
    values = np.array([1.0, np.nan, 3, 4, np.nan, 5, np.nan, np.nan])
    assert units.sums(values).tolist() == [1, 3, 9, 0]
    assert units.maxima(values).tolist() == [1, 3, 5, -np.inf]


def test_no_units():
    none = np.zeros(0, dtype=np.intp)
    units = Units(none, none, none, none, none)
    assert units.sums(np.zeros(0)).shape == units.maxima(np.zeros(0)).shape == (0,)


def test_another_unit_is_refused():
    with pytest.raises(CalibError, match="unit must be one of sentence, doc, but 'word' was given"):
        units_of(corpus_of(SMALL), "word")
