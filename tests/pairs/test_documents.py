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
    count_in_words,
    cross_fit,
    folds_of,
    runs_of,
    thin_out,
)


def test_parts_of_one_document_have_one_number_wherever_they_stand():
    numbers = DocumentNumbers()
    parts = [SourceDocument(DOCUMENT, key) for key in ("a", "b", "a", "c", "b")]
    assert [numbers.number(part) for part in parts] == [0, 1, 0, 2, 1]
    assert (len(numbers), numbers.unit) == (3, DOCUMENT)
    assert numbers.number(SourceDocument(SENTENCE, "a")) == 3


@pytest.mark.parametrize(("units", "named"), [
    ([], DOC), ([SENTENCE, SENTENCE], SENTENCE), ([SENTENCE, DOC], DOC), ([DOCUMENT, SENTENCE], "document or sentence"),
    ([TEXT, DOCUMENT], "document or text"),
])  # fmt: skip
def test_the_unit_is_named_by_what_is_known(units, named):
    numbers = DocumentNumbers()
    for key, unit in enumerate(units):
        numbers.number(SourceDocument(unit, key))
    assert numbers.unit == named


def test_words_for_tables():
    assert by_unit(DOCUMENT, 2077) == "by document (2,077)"
    for unit, n, words in ((DOC, 1, "1 Doc of the file"), (DOC, 1208, "1,208 Docs of the file"), (SENTENCE, 2, "2 sentences")):
        assert count_in_words(unit, n) == words


def documents_of(*sizes: int) -> np.ndarray:
    return np.repeat(np.arange(len(sizes)), sizes)


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


@pytest.mark.parametrize(("sizes", "n_folds", "folds"), [
    ((2, 2, 2, 2), 2, [0, 0, 0, 0, 1, 1, 1, 1]),
    ((1, 1, 4), 2, [0, 0, 1, 1, 1, 1]),
    ((7,) * 100, 5, np.repeat(np.arange(5), 140).tolist()),
    ((2, 1, 1), 5, [0, 0, 1, 2]),  # no more folds than documents
    ((3,), 5, [0, 0, 0]),
    ((), 5, []),
])  # fmt: skip
def test_folds_worked_by_hand(sizes, n_folds, folds):
    assert folds_of(documents_of(*sizes), n_folds).tolist() == folds
    # Numbers of documents need not follow one another.
    assert folds_of(3 + 7 * documents_of(*sizes), n_folds).tolist() == folds


@given(sizes=st.lists(st.integers(1, 30), min_size=2, max_size=40), n_folds=st.integers(2, 8))
def test_folds_keep_documents_whole_follow_one_another_and_are_balanced(sizes, n_folds):
    documents = documents_of(*sizes)
    n_folds = min(n_folds, len(sizes))
    folds = folds_of(documents, n_folds)
    assert len(folds) == len(documents)
    for document in range(len(sizes)):
        assert len(set(folds[documents == document].tolist())) == 1
    assert (np.diff(folds) >= 0).all()
    held = np.bincount(folds)
    assert 2 <= len(held) <= n_folds  # so that every fold leaves something to learn from
    assert np.abs(held - len(documents) / n_folds).max() <= max(sizes) + len(documents) / n_folds * (len(held) < n_folds)


@given(sizes=st.lists(st.one_of(st.integers(1, 3), st.integers(50, 200)), min_size=2, max_size=12), n_folds=st.integers(2, 8))
def test_no_fold_is_empty(sizes, n_folds):
    """A document as long as several folds used to leave those folds empty: fitted for nothing, and count_in_words in the report."""
    folds = folds_of(documents_of(*sizes), min(n_folds, len(sizes)))
    assert np.bincount(folds).min() > 0


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


@pytest.mark.parametrize(("sizes", "most"), [((50, 50), 60), ((50,), 10)])
def test_thinning_leaves_two_documents_to_compare_or_the_only_one(sizes, most):
    """Of two documents longer than the limit only one used to be kept, and the choice was refused for want of documents."""
    assert thin_out(documents_of(*sizes), n_most=most).tolist() == list(range(sum(sizes)))


def sentences(n: int, every: int) -> np.ndarray:
    return np.arange(n) % every == 0


def test_runs_begin_where_a_sentence_does_and_end_with_their_document():
    documents = documents_of(1400, 1000)
    starts = sentences(2400, 35)
    starts[1400] = True
    runs = runs_of(documents, starts)
    first = np.flatnonzero(np.diff(runs, prepend=-1))
    # 1,400 tokens are seven runs of 200, at 200, 400 ...: the next sentences begin at 210, 420, 600 (no: 630), ...
    assert first[:8].tolist() == [0, 210, 420, 630, 805, 1015, 1225, 1400]
    assert starts[first].all()
    assert len(first) == 12
    assert runs.max() == 11


@pytest.mark.parametrize(("n", "found"), [(1999, None), (2000, 10), (50_000, 100)])
def test_runs_are_of_200_tokens_or_more_and_at_most_a_hundred(n, found):
    runs = runs_of(documents_of(n), sentences(n, 1))
    assert (None if runs is None else len(np.unique(runs))) == found


def test_enough_documents_stay_whole():
    assert runs_of(documents_of(*[1000] * 10), sentences(10_000, 20)) is None
    assert runs_of(documents_of(*[1000] * 9), sentences(9000, 20)) is not None


def test_a_document_without_known_sentences_is_cut_anywhere_and_a_short_one_not_at_all():
    starts = np.zeros(4100, dtype=bool)
    starts[[0, 4000]] = True
    runs = runs_of(documents_of(4000, 100), starts)
    assert np.bincount(runs).tolist() == [200] * 20 + [100]


def test_a_run_lies_in_one_document_even_if_its_parts_are_not_adjacent():
    documents = np.concatenate([documents_of(1000, 1000), documents_of(1000, 1000)])
    runs = runs_of(documents, sentences(4000, 10))
    documents_of_runs = [set(documents[runs == run].tolist()) for run in range(runs.max() + 1)]
    assert all(len(names) == 1 for names in documents_of_runs)
    assert len(documents_of_runs) == 20
