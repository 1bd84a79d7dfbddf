"""The order of review and how soon it finds the errors."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.plugins.review.queue.findings import average_precision, recall_at, review_order, summarize_order
from spacy_calib.plugins.review.queue.units import units_of
from tests.made import corpus_of
from tests.plugins.review.queue.corpora import small

ERRORS = st.lists(st.booleans(), min_size=1, max_size=40)


def test_most_doubtful_first_then_ties_then_the_order_given():
    doubt = np.array([0.1, 0.5, 0.5, 0.9, 0.5])
    assert review_order(doubt, np.zeros(5)).tolist() == [3, 1, 2, 4, 0]
    assert review_order(doubt, np.array([0, 0.1, 0.3, 0, 0.1])).tolist() == [3, 2, 1, 4, 0]


def precision(doubts, wrong):
    return average_precision(np.array(doubts, dtype=float), np.zeros(len(wrong)), np.array(wrong))


def test_average_precision_is_the_mean_over_the_errors_of_the_precision_at_their_rank():
    # reviewed in this order: wrong, right, wrong, wrong -> (1/1 + 2/3 + 3/4) / 3
    assert precision([4, 3, 2, 1], [True, False, True, True]) == pytest.approx((1 + 2 / 3 + 3 / 4) / 3)
    assert precision([1, 2], [False, False]) is None


@given(ERRORS)
def test_a_perfect_order_has_a_precision_of_one_and_no_order_the_share_of_errors(wrong):
    if any(wrong):
        assert precision(wrong, wrong) == pytest.approx(1)
        assert precision([0] * len(wrong), wrong) == pytest.approx(np.mean(wrong))


def test_ties_are_reviewed_together_only_if_doubts_and_ties_are_equal():
    doubts, wrong = np.array([0.5, 0.5, 0.2]), np.array([True, False, False])
    assert average_precision(doubts, np.array([0.3, 0.1, 0.0]), wrong) == 1
    assert average_precision(doubts, np.array([0.3, 0.3, 0.0]), wrong) == pytest.approx(0.5)


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


@pytest.mark.parametrize("order", ["calibrated", "raw"])
def test_an_order_is_judged_on_the_units_with_gold(order):
    corpus = small()
    summary = summarize_order(corpus, units_of(corpus, "token"), order)
    assert summary["found"][-1] == 1  # half of the tokens
    # calibrated: can (.7, wrong), fish (.4, wrong), fish (.3), swim (.2), My (.1), Ann (.05); raw is in the same order here
    assert summary["average_precision"] == 1


def test_equal_calibrated_scores_are_ordered_by_the_raw_ones():
    corpus = small()
    flat = replace(corpus, calibrated=np.full(len(corpus), 0.9))
    units = units_of(flat, "token")
    assert summarize_order(flat, units, "calibrated") == summarize_order(flat, units, "raw")


def test_expected_shares_weigh_by_the_probability_of_an_error():
    corpus = corpus_of([[[("a", "X", {"X": 0.9}), ("b", "X", {"X": 0.5}), ("c", "X", {"X": 0.6}), ("d", "X", {"X": 1.0})]]])
    assert summarize_order(corpus, units_of(corpus, "token"), "calibrated")["expected"][-2:] == pytest.approx(
        [0.5, 0.9]
    )  # one and two of four
