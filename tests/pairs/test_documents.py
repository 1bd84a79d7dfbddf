"""Documents of the source as numbers, and how tables name them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.pairs.documents import (
    DOC,
    DOCUMENT,
    SENTENCE,
    TEXT,
    DocumentNumbers,
    SourceDocument,
    by_unit,
    contiguous_folds,
    counted,
    cross_fit,
    folds_of,
    thin_out,
)


def test_parts_of_one_document_have_one_number_wherever_they_stand():
    numbers = DocumentNumbers()
    parts = [SourceDocument(DOCUMENT, key) for key in ("a", "b", "a", "c", "b")]
    assert [numbers.number(part) for part in parts] == [0, 1, 0, 2, 1]
    assert (len(numbers), numbers.unit) == (3, DOCUMENT)
    assert numbers.number(SourceDocument(SENTENCE, "a")) == 3


@pytest.mark.parametrize(
    ("units", "named"),
    [
        ([], DOC),
        ([SENTENCE, SENTENCE], SENTENCE),
        ([SENTENCE, DOC], DOC),
        ([DOCUMENT, SENTENCE], "document or sentence"),
        ([TEXT, DOCUMENT], "document or text"),
    ],
)
def test_the_unit_is_named_by_what_is_known(units, named):
    numbers = DocumentNumbers()
    for key, unit in enumerate(units):
        numbers.number(SourceDocument(unit, key))
    assert numbers.unit == named


def test_words_for_tables():
    assert by_unit(DOCUMENT, 2077) == "by document (2,077)"
    assert [counted(DOC, 1), counted(DOC, 1208), counted(SENTENCE, 2)] == [
        "1 Doc of the file",
        "1,208 Docs of the file",
        "2 sentences",
    ]


def documents_of(*sizes: int) -> np.ndarray:
    return np.repeat(np.arange(len(sizes)), sizes)


# Folds


def test_no_more_folds_than_documents():
    assert folds_of(documents_of(2, 1, 1), 5).tolist() == [0, 0, 1, 2]
    assert folds_of(documents_of(3), 5).tolist() == [0, 0, 0]


def test_every_pair_is_scored_once_by_what_was_learned_outside_of_its_fold():
    folds = np.array([0, 1, 0, 2, 1, 2])

    def score(outside, inside):
        assert sorted([*outside, *inside]) == list(range(6))
        assert not set(folds[outside]) & set(folds[inside])
        return np.stack([inside + 0.5, np.full(len(inside), float(len(outside)))])

    both = cross_fit(folds, score)
    assert both[0].tolist() == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]
    assert both[1].tolist() == [4.0] * 6
    assert cross_fit(folds, lambda outside, inside: outside[:1] + 0.0).shape == (6,)


def test_folds_worked_by_hand():
    assert contiguous_folds(documents_of(2, 2, 2, 2), 2).tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert contiguous_folds(documents_of(1, 1, 4), 2).tolist() == [0, 0, 1, 1, 1, 1]
    # Numbers of documents need not follow one another.
    assert contiguous_folds(np.array([3, 3, 9, 9, 40, 40]), 3).tolist() == [0, 0, 1, 1, 2, 2]


@given(sizes=st.lists(st.integers(1, 30), min_size=2, max_size=40), n_folds=st.integers(2, 8))
def test_folds_keep_documents_whole_follow_one_another_and_are_balanced(sizes, n_folds):
    documents = documents_of(*sizes)
    n_folds = min(n_folds, len(sizes))
    folds = contiguous_folds(documents, n_folds)
    assert len(folds) == len(documents)
    for document in range(len(sizes)):
        assert len(set(folds[documents == document].tolist())) == 1
    assert (np.diff(folds) >= 0).all()
    held = np.bincount(folds)
    assert 2 <= len(held) <= n_folds  # so that every fold leaves something to learn from
    assert np.abs(held - len(documents) / n_folds).max() <= max(sizes) + len(documents) / n_folds * (len(held) < n_folds)


@given(sizes=st.lists(st.one_of(st.integers(1, 3), st.integers(50, 200)), min_size=2, max_size=12), n_folds=st.integers(2, 8))
def test_no_fold_is_empty(sizes, n_folds):
    """A document as long as several folds used to leave those folds empty: fitted for nothing, and counted in the report."""
    folds = contiguous_folds(documents_of(*sizes), min(n_folds, len(sizes)))
    assert np.bincount(folds).min() > 0


def test_many_equal_documents_make_equal_folds():
    held = np.bincount(contiguous_folds(documents_of(*[7] * 100), 5))
    assert held.tolist() == [140] * 5


def test_one_document_or_none():
    assert contiguous_folds(documents_of(4), 5).tolist() == [0, 0, 0, 0]
    assert contiguous_folds(documents_of(), 5).tolist() == []


# Thinning


@pytest.mark.parametrize("n", [0, 1, 299, 300])
def test_few_pairs_are_left_as_they_are(n):
    documents = np.sort(np.random.default_rng(0).integers(0, 60, n))
    assert thin_out(documents, n_most=300).tolist() == list(range(n))


@pytest.mark.parametrize("most", [100, 500, 999])
def test_thinning_keeps_whole_documents_at_equal_distances(most):
    documents = np.sort(np.random.default_rng(1).integers(0, 200, 2000))
    index = thin_out(documents, most)
    kept = np.unique(documents[index])
    assert index.tolist() == np.flatnonzero(np.isin(documents, kept)).tolist()
    assert abs(len(index) - most) < 0.3 * most
    assert set(np.diff(kept).tolist()) <= {200 // len(kept), 200 // len(kept) + 1}


@given(sizes=st.lists(st.integers(1, 30), min_size=1, max_size=40), most=st.integers(1, 300))
def test_the_index_ascends_and_the_numbers_of_documents_do_not_matter(sizes, most):
    documents = documents_of(*sizes)
    index = thin_out(documents, most)
    assert (np.diff(index) > 0).all()
    assert len(np.unique(documents[index])) >= min(2, len(sizes))
    np.testing.assert_array_equal(thin_out(documents * 7 + 1000, most), index)


def test_thinning_leaves_two_documents_to_compare():
    """Of two documents longer than the limit only one used to be kept, and the choice was refused for want of documents."""
    assert thin_out(documents_of(50, 50), n_most=60).tolist() == list(range(100))


def test_one_document_longer_than_the_limit_is_kept():
    assert thin_out(documents_of(50), n_most=10).tolist() == list(range(50))
