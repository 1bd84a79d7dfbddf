import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import spacy_calib.pairs.scores
from spacy_calib.errors import CalibError
from spacy_calib.pairs.scores import check_threshold, from_dense, from_sparse

from ..strategies import tied_score


def entries(marginals):
    return list(zip(marginals.rows.tolist(), marginals.tags.tolist(), marginals.scores.tolist(), strict=True))


def test_dense_worked_by_hand():
    scores = np.array([[0.7, 0.009, 0.291], [0.01, np.nextafter(0.01, 0), 0.99], [0.005, 0.005, 0.0]])
    made = from_dense(scores, 0.01)
    # The threshold itself is kept, and nothing just below; the last token keeps nothing but counts as a token.
    assert entries(made) == [(0, 0, 0.7), (0, 2, 0.291), (1, 0, 0.01), (1, 2, 0.99)]
    assert made.n_tokens == 3
    assert (made.rows.dtype, made.tags.dtype, made.scores.dtype) == (np.intp, np.intp, np.float64)


def test_a_float32_score_just_below_the_threshold_is_dropped():
    # float32(0.01) is 0.00999999977...: below the threshold 0.01 in float64, equal to it where the threshold is rounded to float32.
    # Marginals are compared in float64, so the type of the array must not matter.
    scores = np.array([[0.01, 0.99]], dtype=np.float32)
    assert float(scores[0, 0]) < 0.01
    wanted = entries(from_dense(scores.astype(np.float64), 0.01))
    assert wanted == [(0, 1, float(np.float32(0.99)))]
    assert entries(from_dense(scores, 0.01)) == wanted
    assert entries(from_sparse(sparse.csr_array(scores), 0.01)) == wanted


def test_threshold_zero_keeps_everything():
    assert len(from_dense(np.array([[0.0, 1.0], [-0.0, 0.5]]), 0)) == 4


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0, 0)])
def test_documents_without_tokens_or_labels(shape):
    made = from_dense(np.zeros(shape))
    assert len(made) == 0
    assert made.n_tokens == shape[0]
    assert made.rows.dtype == np.intp


@pytest.mark.parametrize("shape", [(3,), (1, 2, 3), ()])
def test_arrays_that_are_not_two_dimensional_are_refused(shape):
    with pytest.raises(CalibError, match=r"\[C001\] marginals must be an array \(tokens, tags\)"):
        from_dense(np.zeros(shape))


@pytest.mark.parametrize("threshold", [-0.1, 1, 1.0, np.nan, "0.1", None, True])
def test_a_threshold_out_of_range_is_refused(threshold):
    for call in (
        lambda: check_threshold(threshold),
        lambda: from_dense(np.ones((1, 1)), threshold),
        lambda: from_sparse(sparse.csr_array(np.ones((1, 1))), threshold),
    ):
        with pytest.raises(CalibError, match=r"\[C001\] threshold must be a number in \[0, 1\)"):
            call()


def test_long_documents_are_read_in_blocks(monkeypatch):
    scores = np.random.default_rng(0).random((50, 7))
    whole = entries(from_dense(scores, 0.5))
    for cells in (1, 7, 20, 349, 350):
        monkeypatch.setattr(spacy_calib.pairs.scores, "_BLOCK_CELLS", cells)
        assert entries(from_dense(scores, 0.5)) == whole


def test_arrays_that_are_not_contiguous():
    scores = np.random.default_rng(0).random((6, 10))
    wanted = entries(from_dense(np.ascontiguousarray(scores[::2, ::3]), 0.3))
    assert entries(from_dense(scores[::2, ::3], 0.3)) == wanted
    assert entries(from_dense(np.asfortranarray(scores[::2, ::3]), 0.3)) == wanted


def test_entries_are_copies():
    scores = np.array([[0.5, 0.5]])
    made = from_dense(scores)
    scores[:] = 0
    assert made.scores.tolist() == [0.5, 0.5]


@given(st.integers(0, 6), st.integers(1, 5), st.sampled_from([0.01, 0.125, 0.3, 0.5]), st.data())
def test_dense_equals_sparse(n_tokens, n_tags, threshold, data):
    cells = data.draw(st.lists(tied_score, min_size=n_tokens * n_tags, max_size=n_tokens * n_tags))
    dense = np.array(cells, dtype=float).reshape(n_tokens, n_tags)
    wanted = from_dense(dense, threshold)
    literal = [(i, j, dense[i, j]) for i in range(n_tokens) for j in range(n_tags) if dense[i, j] >= threshold]
    assert entries(wanted) == literal
    for kind in (sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.lil_matrix):
        made = from_sparse(kind(dense), threshold)
        assert entries(made) == literal
        assert made.n_tokens == n_tokens
        np.testing.assert_array_equal(made.indptr, wanted.indptr)


def test_sparse_duplicates_are_summed_before_the_threshold():
    # Two edit trees that give one lemma: 0.3 + 0.25 reaches 0.5, neither alone does.
    matrix = sparse.coo_array(([0.3, 0.25, 0.45], ([1, 1, 0], [2, 2, 0])), shape=(2, 3))
    assert entries(from_sparse(matrix, 0.5)) == [(1, 2, 0.55)]
    assert matrix.nnz == 3, "the input was changed"


def test_unsorted_sparse_columns_are_sorted():
    matrix = sparse.csr_array((np.array([0.2, 0.5, 0.3]), np.array([2, 0, 1]), np.array([0, 3])), shape=(1, 3))
    assert entries(from_sparse(matrix, 0.1)) == [(0, 0, 0.5), (0, 1, 0.3), (0, 2, 0.2)]
    assert matrix.indices.tolist() == [2, 0, 1], "the input was changed"
