"""Documents that stand for all: one from each part, each as likely as any other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.corpus.active.spread import spread, stand_for_all

from ...strategies import arrays, tied_score


def test_one_from_each_part():
    # Places 0 to 9 have the lowest values, and so on; which one of the ten is luck.
    values = np.random.default_rng(0).permutation(100)
    drawn = [np.sort(values[spread(values, 10, seed)]) for seed in range(5)]
    for found in drawn:
        assert (found // 10).tolist() == list(range(10))
    assert len({tuple(found) for found in drawn}) == 5


def test_the_order_says_nothing_of_the_values():
    # Of ten parts each leads about one draw in ten: 200 of 2,000, with a standard deviation of 13.
    values = np.arange(30.0)
    leads = np.bincount([spread(values, 10, seed)[0] // 3 for seed in range(2000)], minlength=10)
    assert 140 < leads.min() <= leads.max() < 260


@pytest.mark.parametrize("values", [np.arange(7.0), np.array([0.0, 0, 0, 0, 1, 1, 1])])
def test_each_is_as_likely_as_any_other_where_the_parts_are_no_whole_numbers(values):
    # 4,000 draws, each place in 3/7 of them, with a standard deviation of .008.
    counts = np.bincount(np.concatenate([spread(values, 3, seed) for seed in range(4000)]), minlength=7)
    assert counts / 4000 == pytest.approx(np.full(7, 3 / 7), abs=0.035)


@given(arrays(tied_score, min_size=0, max_size=20), st.integers(1, 25), st.integers(0, 99))
def test_as_many_as_there_are_and_none_twice(values, n, seed):
    found = spread(values, n, seed)
    assert found.dtype == np.intp
    assert len(set(found.tolist())) == len(found) == min(n, len(values))
    assert set(found.tolist()) <= set(range(len(values)))
    assert spread(values, n, seed).tolist() == found.tolist()


def test_the_shortest_documents_are_left_out():
    # 100 words in all: those of 1, 2, 3 and 3 words hold 9 of them; with one of 6 they would hold 15.
    words = np.array([1, 20, 3, 6, 2, 30, 3, 35])
    drawn = [set(stand_for_all(np.zeros(8), words, 3, seed).tolist()) for seed in range(30)]
    assert set.union(*drawn) == {1, 3, 5, 7}


def test_documents_of_one_length_are_all_kept_or_none():
    drawn = [set(stand_for_all(np.zeros(20), np.full(20, 5), 5, seed).tolist()) for seed in range(40)]
    assert set.union(*drawn) == set(range(20))


def test_short_ones_are_drawn_where_there_are_no_others():
    assert set(stand_for_all(np.zeros(3), np.array([1, 1, 98]), 2).tolist()) < {0, 1, 2}
    assert set(stand_for_all(np.zeros(3), np.array([1, 1, 98]), 1).tolist()) == {2}
    assert stand_for_all(np.zeros(0), np.zeros(0, dtype=int), 5).tolist() == []


def test_the_long_ones_are_spread_over_their_doubt():
    doubt, words = np.linspace(0, 0.5, 60), np.tile([1, 50, 50], 20)
    found = np.sort(stand_for_all(doubt, words, 4, seed=3))
    assert (words[found] == 50).all()
    assert (found // 15).tolist() == [0, 1, 2, 3]
