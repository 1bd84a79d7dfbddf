"""Bins: the rule of this package, Algorithm 1 of Nguyen & O'Connor (2015), fixed width; checked against literal second versions."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spacy_calib.errors import CalibError
from spacy_calib.pairs.bins import assign, bin_table, check_count, equal_mass_edges, fixed_edges, make_binner

from ..strategies import SPECIAL, score, score_arrays, scored_hits


def bin_by_rule(value: float, scores: list[float], n_bins: int) -> int:
    """(2 * n_below + n_equal) * B // (2 * N), as docs/how-it-works.md has it. A value above all scores would get bin B: there is none, so the last."""
    below = sum(s < value for s in scores)
    equal = sum(s == value for s in scores)
    return min((2 * below + equal) * n_bins // (2 * len(scores)), n_bins - 1)


def algorithm_1(n: int, beta: int) -> list[int]:
    """Step 2 and 3 of Algorithm 1 for n sorted scores: b_k = floor((k - 1) / beta) + 1; a last bin smaller than beta is merged."""
    labels = [(k - 1) // beta + 1 for k in range(1, n + 1)]
    last = labels[-1]
    if labels.count(last) < beta and last > 1:
        labels = [min(label, last - 1) for label in labels]
    return [label - 1 for label in labels]


@pytest.mark.parametrize(("scores", "n_bins", "bins"), [
    # N = 4, B = 2. 0.1: (0 + 1) * 2 // 8 = 0. 0.2 (twice): (2 * 1 + 2) * 2 // 8 = 1. 0.3: (2 * 3 + 1) * 2 // 8 = 1.
    ([0.1, 0.2, 0.2, 0.3], 2, [0, 1, 1, 1]),
    # 0.1 (three times): 3 * 2 // 8 = 0. 0.4: (2 * 3 + 1) * 2 // 8 = 1.
    ([0.1, 0.1, 0.1, 0.4], 2, [0, 0, 0, 1]),
    # B = 3. 0.1: 3 * 3 // 8 = 1, bin 0 stays empty. 0.4: 7 * 3 // 8 = 2.
    ([0.1, 0.1, 0.1, 0.4], 3, [1, 1, 1, 2]),
    # All equal: (0 + 4) * 10 // 8 = 5.
    ([0.5, 0.5, 0.5, 0.5], 10, [5, 5, 5, 5]),
    # More bins than scores: (2 * i + 1) * 4 // 4 = 1, 3.
    ([0.2, 0.7], 4, [1, 3]),
    # Minus zero equals zero: (0 + 2) * 2 // 6 = 0, then (2 * 2 + 1) * 2 // 6 = 1.
    ([-0.0, 0.0, 1.0], 2, [0, 0, 1]),
    ([0.3], 1, [0]),
])  # fmt: skip
def test_adaptive_bins_worked_by_hand(scores, n_bins, bins):
    assert assign(np.array(scores), equal_mass_edges(np.array(scores), n_bins=n_bins)).tolist() == bins
    assert [bin_by_rule(s, scores, n_bins) for s in scores] == bins


def test_adaptive_bins_of_unseen_scores_worked_by_hand():
    edges = equal_mass_edges(np.array([0.1, 0.1, 0.1, 0.4]), n_bins=3)
    # 0.05: 0. Just above 0.1: (2 * 3) * 3 // 8 = 2, so 0.1 is alone in bin 1. Above 0.4: 8 * 3 // 8 = 3, past the last bin, so 2.
    wanted = {0.0: 0, 0.05: 0, 0.1: 1, float(np.nextafter(0.1, 1)): 2, 0.3: 2, 0.4: 2, 1.0: 2}
    assert assign(np.array(list(wanted)), edges).tolist() == list(wanted.values())


@given(score_arrays(), st.integers(1, 15))
def test_adaptive_bins_of_the_scores_follow_the_rule(scores, n_bins):
    edges = equal_mass_edges(scores, n_bins=n_bins)
    assert edges.shape == (n_bins - 1,)
    assert (edges[1:] >= edges[:-1]).all()
    assert assign(scores, edges).tolist() == [bin_by_rule(s, scores.tolist(), n_bins) for s in scores]


@given(score_arrays(max_size=25), st.integers(1, 15), st.lists(score, max_size=20))
@example(np.array([0.0, 1.0]), 4, [])
@example(np.array([0.5, float(np.nextafter(0.5, 1))]), 7, [])
def test_adaptive_bins_of_unseen_scores_follow_the_rule(scores, n_bins, others):
    # Besides any others: the neighbours of every score, and the middle between every two.
    near = np.concatenate([np.nextafter(scores, 0), np.nextafter(scores, 1), (scores[1:] + scores[:-1]) / 2, SPECIAL, others])
    edges = equal_mass_edges(scores, n_bins=n_bins)
    assert assign(near, edges).tolist() == [bin_by_rule(value, scores.tolist(), n_bins) for value in near]


@given(score_arrays(), st.integers(1, 12))
def test_equal_scores_share_a_bin_and_bins_ascend(scores, n):
    for edges in (equal_mass_edges(scores, n_bins=n), equal_mass_edges(scores, bin_size=n), fixed_edges(n)):
        ordered = np.sort(scores)
        bins = assign(ordered, edges)
        assert (np.diff(bins) >= 0).all()
        assert (np.diff(bins)[np.diff(ordered) == 0] == 0).all()


@given(score_arrays(max_size=25), st.integers(1, 12), st.data())
def test_weights_are_repetitions(scores, n, data):
    times = np.array(data.draw(st.lists(st.integers(1, 4), min_size=len(scores), max_size=len(scores))))
    repeated = np.repeat(scores, times)
    weights = times.astype(float)
    np.testing.assert_array_equal(equal_mass_edges(scores, n_bins=n, weights=weights), equal_mass_edges(repeated, n_bins=n))
    np.testing.assert_array_equal(equal_mass_edges(scores, bin_size=n, weights=weights), equal_mass_edges(repeated, bin_size=n))


def test_the_rule_is_computed_in_integers():
    # 10 * 0.3 in floats would put bin limits a rounding error off; with N = B every score has a bin of its own.
    for n in (3, 7, 10, 49, 100, 1000):
        scores = np.linspace(0, 1, n)
        assert assign(scores, equal_mass_edges(scores, n_bins=n)).tolist() == list(range(n))


@pytest.mark.parametrize(("n", "beta", "sizes"), [
    (10, 3, [3, 3, 4]),  # 3, 3, 3 and a last bin of 1, merged into the one before
    (9, 3, [3, 3, 3]),
    (11, 3, [3, 3, 5]),
    (2, 5, [2]),  # the first bin is too small, but there is none before it
    (5, 5, [5]),
    (7, 1, [1] * 7),
])  # fmt: skip
def test_sized_bins_worked_by_hand(n, beta, sizes):
    scores = (np.arange(n) + 1) / (n + 1)
    assert np.bincount(assign(scores, equal_mass_edges(scores, bin_size=beta))).tolist() == sizes


@given(st.sets(st.floats(0, 1), min_size=1, max_size=60), st.integers(1, 20))
def test_sized_bins_without_ties_are_those_of_algorithm_1(values, beta):
    scores = np.sort(np.array(list(values)) + 0.0)
    assert assign(scores, equal_mass_edges(scores, bin_size=beta)).tolist() == algorithm_1(len(scores), beta)


def test_tied_scores_go_into_the_sized_bin_of_their_middle():
    # beta = 2, six scores, three bins. Ranks (from 0) 1 to 3 are tied: their middle is 2 + 1/2 mass, so bin 1.
    scores = np.array([0.1, 0.5, 0.5, 0.5, 0.8, 0.9])
    # 0.1: 1 // 4 = 0. 0.5: (2 * 1 + 3) // 4 = 1. 0.8: (2 * 4 + 1) // 4 = 2. 0.9: 11 // 4 = 2.
    assert assign(scores, equal_mass_edges(scores, bin_size=2)).tolist() == [0, 1, 1, 1, 2, 2]


def test_no_scores_give_bins_without_scores():
    nothing = np.zeros(0)
    assert equal_mass_edges(nothing, n_bins=4).shape == (3,)
    assert equal_mass_edges(nothing, bin_size=4).shape == (0,)
    assert len(bin_table(nothing, nothing, equal_mass_edges(nothing, n_bins=4))) == 0


def test_fixed_bins_hold_their_lower_end_and_the_last_one_exactly_1():
    edges = fixed_edges(4)
    assert edges.tolist() == [0.25, 0.5, 0.75]
    values = np.array([0.0, -0.0, 0.2499, 0.25, 0.5, 0.75, np.nextafter(0.75, 0), 1.0])
    assert assign(values, edges).tolist() == [0, 0, 0, 1, 2, 3, 2, 3]


def test_fixed_bins_do_not_lose_edges_to_rounding():
    # int(0.29 * 100) is 28 and int(0.57 * 100) is 56: multiplying puts these edges one bin too low.
    assert math.floor(0.29 * 100) == 28
    hundredths = np.array([i / 100 for i in range(101)])
    assert assign(hundredths, fixed_edges(100)).tolist() == [*range(100), 99]


def test_bin_table_worked_by_hand():
    # Bin 0: 0.1 and 0.3, one hit. Bin 1 empty, left out. Bin 2: 0.9, a hit; 0.8, a miss.
    edges = np.array([0.4, 0.7])
    scores, hits = np.array([0.9, 0.1, 0.8, 0.3]), np.array([1.0, 1.0, 0.0, 0.0])
    table = bin_table(scores, hits, edges)
    np.testing.assert_allclose(table.counts, [2, 2])
    np.testing.assert_allclose(table.mean_score, [0.2, 0.85])
    np.testing.assert_allclose(table.mean_hit, [0.5, 0.5])


@given(scored_hits(), st.integers(1, 12))
def test_bin_table_keeps_every_pair(pair, n_bins):
    scores, hits = pair
    table = bin_table(scores, hits.astype(float), equal_mass_edges(scores, n_bins=n_bins))
    assert table.counts.sum() == len(scores)
    assert (table.counts > 0).all()
    np.testing.assert_allclose(np.dot(table.counts, table.mean_score), scores.sum(), atol=1e-9)
    np.testing.assert_allclose(np.dot(table.counts, table.mean_hit), hits.sum(), atol=1e-9)


def test_binner_takes_a_count_or_a_size():
    scores = np.arange(1, 13) / 13
    np.testing.assert_array_equal(make_binner(4)(scores), equal_mass_edges(scores, n_bins=4))
    np.testing.assert_array_equal(make_binner(4, bin_size=5)(scores), equal_mass_edges(scores, bin_size=5))
    weights = np.arange(1.0, 13.0)
    np.testing.assert_array_equal(make_binner(3)(scores, weights), equal_mass_edges(scores, n_bins=3, weights=weights))


@pytest.mark.parametrize("value", [0, -1, 2.0, "3", None, True, np.nan])
def test_a_count_is_a_whole_number_of_at_least_1(value):
    with pytest.raises(CalibError, match=r"\[C001\] n_bins must be a whole number of at least 1"):
        check_count("n_bins", value)
    with pytest.raises(CalibError, match=r"\[C001\] n_bins"):
        make_binner(value)
    with pytest.raises(CalibError, match=r"\[C001\] n_bins"):
        fixed_edges(value)
    if value is not None:
        with pytest.raises(CalibError, match=r"\[C001\] bin_size"):
            make_binner(bin_size=value)


def test_a_count_may_be_a_numpy_integer():
    made = check_count("n_bins", np.int64(3))
    assert (made, type(made)) == (3, int)
