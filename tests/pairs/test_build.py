import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import spacy_calib.pairs.build
from spacy_calib.errors import CalibError
from spacy_calib.pairs.build import check_threshold, concatenate, find_top, from_dense, from_sparse, pair_up, top_pairs
from spacy_calib.types import Pairs

from ..strategies import make_pairs, pairs_of_tokens, tied_score


def test_pairing_worked_by_hand():
    scores = np.array([[0.6, 0.4, 0.0], [0.2, 0.7, 0.1], [0.5, 0.5, 0.0], [0.0, 0.1, 0.9]])
    # Token 0: gold is column 1. Token 1: gold unknown to the model (-1): all misses, it stays. Token 2: no gold (-2): left out.
    pairs = pair_up(from_dense(scores, 0.05), [1, -1, -2, 2])
    assert pairs.rows.tolist() == [0, 0, 1, 1, 1, 3, 3]
    assert pairs.tags.tolist() == [0, 1, 0, 1, 2, 1, 2]
    assert pairs.scores.tolist() == [0.6, 0.4, 0.2, 0.7, 0.1, 0.1, 0.9]
    assert pairs.hits.tolist() == [False, True, False, False, False, False, True]
    assert pairs.n_units == 3


def test_a_token_without_a_pair_counts_as_a_unit():
    pairs = pair_up(from_dense(np.array([[0.4, 0.6], [0.001, 0.002]])), [0, 0])
    assert pairs.rows.tolist() == [0, 0]
    assert pairs.n_units == 2


def test_gold_of_another_length_is_refused():
    with pytest.raises(CalibError, match=r"\[C002\] Pairing needs one token for every gold tag, but got 2 and 1"):
        pair_up(from_dense(np.ones((2, 1))), [0])


def test_concatenate_renumbers_tokens():
    first = make_pairs([0.1, 0.2, 0.3], [0, 1, 0], tags=[0, 1, 0], rows=[0, 0, 2], n_units=4)
    none = make_pairs([], [], n_units=5)
    second = make_pairs([0.4, 0.5], [1, 0], tags=[2, 2], rows=[0, 1], n_units=2)
    whole = concatenate([first, none, second])
    assert whole.scores.tolist() == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert whole.tags.tolist() == [0, 1, 0, 2, 2]
    assert whole.hits.tolist() == [False, True, False, True, False]
    assert whole.n_units == 11
    # Rows 0, 0, 2 of the first; two more tokens, shared with no other document, in the second.
    assert whole.rows[:3].tolist() == [0, 0, 2]
    assert len(set(whole.rows.tolist())) == 4
    assert (np.diff(whole.rows) >= 0).all()


def test_concatenate_nothing():
    assert (len(concatenate([])), concatenate([]).n_units) == (0, 0)
    assert len(top_pairs(concatenate([]))) == 0


@given(st.lists(pairs_of_tokens(max_tokens=5), max_size=5))
def test_concatenating_adds_up(parts):
    whole = concatenate(parts)
    assert len(whole) == sum(len(p) for p in parts)
    assert whole.n_units == sum(p.n_units for p in parts)
    assert len(set(whole.rows.tolist())) == sum(len(set(p.rows.tolist())) for p in parts)
    assert len(top_pairs(whole)) == sum(len(top_pairs(p)) for p in parts)
    for p, at in zip(parts, np.cumsum([0, *(len(p) for p in parts)]), strict=False):
        np.testing.assert_array_equal(whole.scores[at : at + len(p)], p.scores)


def test_the_highest_raw_score_is_the_top_pair_and_the_first_of_equal_ones():
    pairs = Pairs(np.array([0, 0, 2, 2]), np.array([0, 1, 0, 1]), np.array([0.3, 0.6, 0.5, 0.5]), np.ones(4), 3)
    np.testing.assert_array_equal(np.sort(top_pairs(pairs)), [1, 2])


def test_top_pairs_worked_by_hand():
    # Token 0: the first of two equal scores. Token 1: its only pair. Token 2: the last of three.
    pairs = make_pairs([0.4, 0.4, 0.3, 0.1, 0.2, 0.7], [0] * 6, tags=[0, 1, 5, 0, 1, 2], rows=[0, 0, 1, 2, 2, 2])
    assert top_pairs(pairs).tolist() == [0, 2, 5]


def test_a_token_without_pairs_has_no_top_pair():
    pairs = Pairs(np.array([0, 0, 2, 2]), np.array([0, 1, 0, 1]), np.array([0.3, 0.6, 0.5, 0.5]), np.ones(4), 3)
    assert np.sort(top_pairs(pairs)).tolist() == [1, 2]


@given(pairs_of_tokens())
def test_top_pairs_are_those_of_argmax(pairs):
    wanted = []
    for row in sorted(set(pairs.rows.tolist())):
        inside = np.flatnonzero(pairs.rows == row)
        wanted.append(int(inside[np.argmax(pairs.scores[inside])]))
    assert top_pairs(pairs).tolist() == wanted


def test_of_tied_tags_the_lowest_column_is_on_top_whatever_the_order_of_the_rows():
    # argmax over a row of marginals chooses the lowest column; that must not depend on how a token's pairs are ordered.
    pairs = make_pairs([0.4, 0.4], [0, 1], tags=[7, 2], rows=[0, 0])
    assert pairs.tags[top_pairs(pairs)].tolist() == [2]


@given(pairs_of_tokens())
def test_the_leading_entries_are_the_top_pairs_where_columns_ascend(pairs):
    order = np.lexsort((pairs.tags, pairs.rows))
    pairs = pairs.take(order)
    assert np.flatnonzero(find_top(pairs.rows, pairs.scores)).tolist() == sorted(top_pairs(pairs).tolist())


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
        monkeypatch.setattr(spacy_calib.pairs.build, "_BLOCK_CELLS", cells)
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
