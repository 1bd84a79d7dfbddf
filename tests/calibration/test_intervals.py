"""Venn-Abers intervals by group of tags: each group has a predictor of its own, and what has none that of all pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from spacy_calib.calibration.grouped import GROUPED
from spacy_calib.calibration.intervals import GroupedVennAbers
from spacy_calib.calibration.recalibrators.venn_abers import VennAbers
from spacy_calib.errors import CalibError
from spacy_calib.pipe import saved
from spacy_calib.types import Groups

from ..strategies import (
    bernoulli,
    make_pairs,
    pairs_of_tokens,
)

GRID = np.linspace(0, 1, 101)


def groups_of(*of_tag: int) -> Groups:
    return Groups(tuple(f"g{i}" for i in range(max(of_tag) + 1)), np.array(of_tag))


@given(pairs_of_tokens())
def test_each_group_has_the_predictor_of_its_own_pairs(pairs):
    if not len(pairs):
        return
    groups = groups_of(0, 0, 1, -1, 2)  # tag 5 is past the end
    grouped = GroupedVennAbers(groups).fit(pairs)
    for tag in range(6):
        group = int(groups.of(np.array([tag]))[0])
        own = groups.of(pairs.tags) == group
        part = np.flatnonzero(own) if group >= 0 and own.any() else np.arange(len(pairs))
        alone = VennAbers().fit(pairs.scores[part], pairs.hits[part])
        tags = np.full(len(GRID), tag)
        np.testing.assert_array_equal(grouped.interval(GRID, tags), alone.interval(GRID))
        np.testing.assert_array_equal(grouped.predict(GRID, tags), alone.predict(GRID))


def test_each_pair_depends_on_its_own_score_and_tag_only():
    scores, hits = bernoulli(200, seed=10)
    tags = np.arange(200) % 5
    grouped = GroupedVennAbers(groups_of(0, 1, 1, 2, -1)).fit(make_pairs(scores, hits, tags=tags))
    low, high = grouped.interval(scores, tags)
    for i in range(0, 200, 13):
        np.testing.assert_array_equal(grouped.interval(scores[i : i + 1], tags[i : i + 1]), [low[i : i + 1], high[i : i + 1]])


def test_a_group_whose_pairs_all_hit_keeps_its_own_wide_interval():
    pairs = make_pairs([0.5, 0.1, 0.2, 0.8, 0.9], [1, 0, 0, 0, 1], tags=[0, 1, 1, 1, 1])
    grouped = GroupedVennAbers(groups_of(0, 1)).fit(pairs)
    low, high = grouped.interval(np.array([0.5, 0.5]), np.array([0, 1]))
    assert (low[0], high[0]) == (0.5, 1.0)
    assert (low[1], high[1]) == (0.0, 0.5)
    assert [fit.fallback for fit in grouped.fits_] == ["", ""]


def test_a_group_without_pairs_says_so():
    grouped = GroupedVennAbers(groups_of(0, 1)).fit(make_pairs([0.2, 0.7], [0, 1]))
    assert [fit.fallback for fit in grouped.fits_] == ["", "pooled map: no pairs"]


def test_the_intervals_of_every_group_hold_its_share_of_hits():
    # Scores that are right in one group and far too high in the other: together they could hold only the mean of both.
    scores, hits = bernoulli(4000, seed=11)
    tags = np.arange(4000) % 2
    hits = np.where(tags == 1, hits & (np.random.default_rng(12).random(4000) < 0.4), hits)
    fit = np.arange(4000) < 2000
    grouped = GroupedVennAbers(groups_of(0, 1)).fit(make_pairs(scores[fit], hits[fit], tags=tags[fit]))
    low, high = grouped.interval(scores, tags)
    pooled_low, _ = (
        GroupedVennAbers(groups_of(0, 0)).fit(make_pairs(scores[fit], hits[fit], tags=tags[fit])).interval(scores, tags)
    )
    for tag in (0, 1):
        held_out = ~fit & (tags == tag)
        error = 4 * np.sqrt(0.25 / held_out.sum())
        assert low[held_out].mean() - error < hits[held_out].mean() < high[held_out].mean() + error
    assert hits[~fit & (tags == 1)].mean() < pooled_low[~fit & (tags == 1)].mean() - 0.1


def test_a_saved_grouped_one_predicts_the_same_bits():
    scores, hits = bernoulli(200, seed=13)
    groups = Groups(("a", "b", "c"), np.array([0, 1, 1, 2, -1]), np.array([9, 8, 7, 0, 3]))
    grouped = GroupedVennAbers(groups).fit(make_pairs(scores, hits, tags=np.arange(200) % 3))
    data = saved.dump(grouped.state())
    back = GroupedVennAbers.from_state(GROUPED(saved.load(data, name="calib", path="memory"), "maps"))
    tags = np.arange(101) % 7
    assert np.array(back.interval(GRID, tags)).tobytes() == np.array(grouped.interval(GRID, tags)).tobytes()
    assert back.groups.of_tag.tolist() == [0, 1, 1, 2, -1]
    assert back.fits_ == grouped.fits_
    assert saved.dump(back.state()) == data


def test_nothing_asked_gives_nothing():
    grouped = GroupedVennAbers(groups_of(0)).fit(make_pairs([0.2, 0.7], [0, 1]))
    low, high = grouped.interval(np.zeros(0), np.zeros(0, dtype=np.intp))
    assert (low.shape, high.shape) == ((0,), (0,))


def test_bad_input_to_a_grouped_one_is_refused():
    with pytest.raises(CalibError, match=r"\[C003\] Cannot fit a VennAbers on no pairs"):
        GroupedVennAbers(groups_of(0)).fit(make_pairs([], []))
    with pytest.raises(CalibError, match=r"\[C004\] GroupedVennAbers is not fitted yet"):
        GroupedVennAbers(groups_of(0)).interval(np.array([0.5]), np.array([0]))
    fitted = GroupedVennAbers(groups_of(0)).fit(make_pairs([0.2, 0.7], [0, 1]))
    with pytest.raises(CalibError, match=r"\[C002\]"):
        fitted.predict(np.array([0.5, 0.6]), np.array([0]))
    with pytest.raises(CalibError, match=r"\[C001\]"):
        fitted.interval(np.array([1.5]), np.array([0]))
