"""The order of review and how soon it finds the errors."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.errors import CalibError
from spacy_calib.plugins.review.queue.findings import (
    average_precision,
    compare_orders,
    dense_ranks,
    expected_recall,
    recall_at,
    review_order,
)
from spacy_calib.plugins.review.queue.orders import REVIEW
from spacy_calib.plugins.review.queue.units import units_of
from tests.made import corpus_of
from tests.plugins.review.queue.corpora import DOCS, small

ERRORS = st.lists(st.booleans(), min_size=1, max_size=40)


def test_most_doubtful_first_then_ties_then_the_order_given():
    doubt = np.array([0.1, 0.5, 0.5, 0.9, 0.5])
    assert review_order(doubt).tolist() == [3, 1, 2, 4, 0]
    assert review_order(doubt, np.array([0, 0.1, 0.3, 0, 0.1])).tolist() == [3, 2, 1, 4, 0]


def test_average_precision_is_the_mean_over_the_errors_of_the_precision_at_their_rank():
    # reviewed in this order: wrong, right, wrong, wrong -> (1/1 + 2/3 + 3/4) / 3
    assert average_precision([4, 3, 2, 1], [True, False, True, True]) == pytest.approx((1 + 2 / 3 + 3 / 4) / 3)
    assert average_precision([1, 2], [False, False]) is None


@given(ERRORS)
def test_a_perfect_order_has_a_precision_of_one_and_no_order_the_share_of_errors(wrong):
    if any(wrong):
        assert average_precision(np.array(wrong, dtype=float), wrong) == pytest.approx(1)
        assert average_precision(np.zeros(len(wrong)), wrong) == pytest.approx(np.mean(wrong))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_dense_ranks_agree_with_the_order(pairs):
    doubt, ties = np.array(pairs, dtype=float).T
    ranks = dense_ranks(doubt, ties)
    in_order = ranks[review_order(doubt, ties)]
    assert (np.diff(in_order) <= 0).all()
    for i, one in enumerate(pairs):
        for j, other in enumerate(pairs):
            assert (ranks[i] == ranks[j]) == (one == other)


def test_recall_by_hand():
    wrong = np.array([0, 1, 0, 1])
    assert recall_at(np.array([1, 0, 3, 2]), wrong, [0, 0.25, 0.5, 0.75, 1]) == [0, 0.5, 0.5, 1, 1]
    assert recall_at(np.arange(4), np.zeros(4), [0.5]) == [None]


@given(ERRORS, st.integers(0, 5))
def test_recall_rises_from_none_to_all(wrong, seed):
    order = np.random.default_rng(seed).permutation(len(wrong))
    found = recall_at(order, np.array(wrong), [i / 10 for i in range(11)])
    if any(wrong):
        assert found[0] == 0
        assert found[-1] == 1
        assert all(a <= b for a, b in zip(found, found[1:], strict=False))


def test_every_signal_is_compared_on_the_units_with_gold():
    corpus = small()
    rows = compare_orders(corpus, units_of(corpus, "token"))
    assert [row.order for row in rows] == list(REVIEW)
    assert rows[0].found[-1] == 1  # half of the tokens
    # calibrated: can (.7, wrong), fish (.4, wrong), fish (.3), swim (.2), My (.1), Ann (.05); raw is in the same order here
    assert rows[0].average_precision == 1
    assert rows[1].average_precision == 1


def test_equal_calibrated_scores_are_ordered_by_the_raw_ones():
    corpus = small()
    flat = replace(corpus, calibrated=np.full(len(corpus), 0.9))
    rows = {row.order: row for row in compare_orders(flat, units_of(flat, "token"))}
    assert rows["calibrated"] == replace(rows["raw"], order="calibrated")


def test_without_gold_there_is_nothing_to_compare():
    corpus = corpus_of(DOCS)
    with pytest.raises(CalibError, match="No token in the data has gold"):
        compare_orders(corpus, units_of(corpus, "token"))


def test_expected_shares_weigh_by_the_probability_of_an_error():
    corpus = corpus_of([[[("a", "X", {"X": 0.9}), ("b", "X", {"X": 0.5}), ("c", "X", {"X": 0.6}), ("d", "X", {"X": 1.0})]]])
    assert expected_recall(units_of(corpus, "token"))[-2:] == pytest.approx([0.5, 0.9])  # one and two of four
