import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.errors import CalibError
from spacy_calib.pairs.pairing import concatenate, find_top, pair_up, top_pairs
from spacy_calib.pairs.scores import from_dense
from spacy_calib.types import Pairs

from ..strategies import make_pairs, pairs_of_tokens


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
