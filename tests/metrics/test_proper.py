"""Brier, log loss and accuracy, worked by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given

from spacy_calib.metrics import accuracy, brier, log_loss

from ..strategies import make_pairs, pairs_of_tokens, scored_hits


def test_brier_worked_by_hand():
    # (0.2^2 + (0.9 - 1)^2 + (0.5 - 0)^2) / 3
    assert brier([0.2, 0.9, 0.5], [0, 1, 0]) == pytest.approx((0.04 + 0.01 + 0.25) / 3)
    assert brier([0.0, 1.0], [0, 1]) == 0
    assert brier([1.0, 0.0], [0, 1]) == 1


def test_log_loss_worked_by_hand():
    assert log_loss([0.2, 0.9], [0, 1]) == pytest.approx(-(math.log(0.8) + math.log(0.9)) / 2)
    assert log_loss([0.5], [1]) == pytest.approx(math.log(2))


def test_log_loss_clips_to_a_millionth():
    # A score of 0 that hits, and of 1 that misses, cost -log(1e-6) and not infinity.
    assert log_loss([0.0], [1]) == pytest.approx(-math.log(1e-6), abs=1e-9)
    assert log_loss([1.0], [0]) == pytest.approx(-math.log(1e-6), abs=1e-9)
    assert log_loss([1e-9], [1]) == pytest.approx(-math.log(1e-6), abs=1e-9)
    # Right and sure costs a millionth, not nothing.
    assert log_loss([1.0, 0.0], [1, 0]) == pytest.approx(1e-6, rel=1e-3)
    # Just inside the limits nothing is clipped.
    assert log_loss([2e-6], [1]) == pytest.approx(-math.log(2e-6))


def test_no_pairs_say_nothing():
    assert brier([], []) is None
    assert log_loss([], []) is None
    assert accuracy(make_pairs([], [], n_units=0)) is None


def test_accuracy_worked_by_hand():
    # Token 0: highest pair hits. 1: highest misses (the second hits). 2: no pair above the threshold. 3: its only pair hits.
    pairs = make_pairs([0.7, 0.3, 0.5, 0.4, 0.2], [1, 0, 0, 1, 1], tags=[0, 1, 0, 1, 0], rows=[0, 0, 1, 1, 3], n_units=4)
    assert accuracy(pairs) == 0.5


def test_tokens_without_a_pair_are_wrong():
    assert accuracy(make_pairs([], [], n_units=3)) == 0
    assert accuracy(make_pairs([0.9], [1], n_units=4)) == 0.25


def test_of_two_equal_scores_the_first_is_the_tag():
    assert accuracy(make_pairs([0.5, 0.5], [1, 0], tags=[0, 1], rows=[0, 0])) == 1
    assert accuracy(make_pairs([0.5, 0.5], [0, 1], tags=[0, 1], rows=[0, 0])) == 0


@given(pairs_of_tokens())
def test_accuracy_equals_counting(pairs):
    right = 0
    for row in range(pairs.n_units):
        inside = [i for i in range(len(pairs)) if pairs.rows[i] == row]
        right += bool(inside) and bool(pairs.hits[max(inside, key=lambda i: (pairs.scores[i], -i))])
    assert accuracy(pairs) == right / pairs.n_units
    assert type(accuracy(pairs)) is float


@given(scored_hits())
def test_the_share_of_hits_is_the_best_constant(pair):
    # What "proper" means, for constants: no other constant scores better than the share of hits.
    _, hits = pair
    share = hits.mean()
    for other in (0.0, 0.1, 0.5, 0.9, 1.0):
        assert brier([share] * len(hits), hits) <= brier([other] * len(hits), hits) + 1e-12
        assert log_loss([share] * len(hits), hits) <= log_loss([other] * len(hits), hits) + 1e-12
