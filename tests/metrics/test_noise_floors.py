import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.errors import CalibError
from spacy_calib.metrics import calibration_error, gmce, noise_floor
from spacy_calib.metrics.calibration_errors import mean_of
from spacy_calib.metrics.noise_floors import NoiseFloor, _sample_hits
from spacy_calib.types import Groups

from ..strategies import arrays, bernoulli, make_pairs

# Tags 0 and 1 in group a, tag 2 in b, tag 3 in c, tag 4 in none.
GROUPS = Groups(("a", "b", "c"), np.array([0, 0, 1, 2, -1]))


def simulated(scores, n_samples, seed, **settings):
    """The errors of hits drawn one by one: their definition, slowly."""
    rng = np.random.default_rng(seed)
    return np.array([calibration_error(scores, rng.random(len(scores)) < scores, **settings) for _ in range(n_samples)])


@pytest.mark.parametrize("settings", [{}, {"n_bins": 3}, {"bin_size": 60}], ids=str)
@pytest.mark.parametrize("decimals", [None, 1], ids=["all different", "tenths"])
def test_equals_a_direct_simulation_within_sampling_error(settings, decimals):
    scores, _ = bernoulli(300, seed=1, decimals=decimals)
    floor = noise_floor(scores, n_samples=2000, seed=0, **settings)
    errors = simulated(scores, 1000, seed=99, **settings)
    # Five standard errors of the difference of two means.
    tolerance = 5 * errors.std() * math.sqrt(1 / 1000 + 1 / 2000)
    assert floor.mean == pytest.approx(errors.mean(), abs=tolerance)
    # A quantile at p has the variance p (1 - p) / (n f^2); for a normal density at its 95 % point that is (2.11 std)^2 / n.
    assert floor.q95 == pytest.approx(np.quantile(errors, 0.95), abs=2.2 * tolerance)


def test_one_score_worked_by_hand():
    # One pair at p: the error is 1 - p with probability p and p with probability 1 - p; the mean is 2 p (1 - p).
    floor = noise_floor([0.2], n_samples=20_000)
    assert floor.mean == pytest.approx(2 * 0.2 * 0.8, abs=5 * 0.6 * 0.4 / math.sqrt(20_000))
    assert floor.q95 == pytest.approx(0.8)
    assert (type(floor.mean), type(floor.q95)) == (float, float)


def test_certain_scores_have_no_noise():
    assert noise_floor([0.0, 1.0, 1.0, 0.0, -0.0]) == NoiseFloor(0.0, 0.0)
    assert noise_floor(np.repeat([0.0, 1.0], 50), n_bins=3) == NoiseFloor(0.0, 0.0)


def test_the_same_seed_gives_the_same_bits_and_another_seed_others():
    scores, _ = bernoulli(200, seed=1)
    assert noise_floor(scores, seed=3) == noise_floor(scores, seed=3)
    assert noise_floor(scores, seed=3) != noise_floor(scores, seed=4)


def test_global_random_numbers_are_neither_used_nor_moved():
    scores, _ = bernoulli(200, seed=1)
    np.random.seed(0)
    first = noise_floor(scores)
    state = np.random.get_state()[1].tolist()
    np.random.seed(1)
    assert noise_floor(scores) == first
    np.random.seed(0)
    assert np.random.get_state()[1].tolist() == state


def test_more_pairs_have_less_noise():
    # Four times the pairs, half the noise.
    small, large = (noise_floor(bernoulli(n, seed=1)[0], n_samples=500).mean for n in (1000, 4000))
    assert small / large == pytest.approx(2, rel=0.15)


def test_true_scores_stay_below_the_95_percent_quantile_as_often_as_it_says():
    # 200 data sets whose scores are true: 5 % above q95 is 10; a binomial reaches more than 25 or fewer than 1 hardly ever.
    rng = np.random.default_rng(5)
    above = 0
    for _ in range(200):
        scores = rng.random(200)
        above += calibration_error(scores, rng.random(200) < scores) > noise_floor(scores, n_samples=100).q95
    assert 1 <= above <= 25


@given(arrays(st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=40), st.integers(1, 6))
def test_hits_are_drawn_for_every_pair_of_its_bin(scores, n_bins):
    # Drawn sums are whole, at most the pairs of the bin, at least those with score 1, and never those with score 0.
    order = np.sort(scores)
    bins = (order * 4).astype(int) * n_bins // 5
    drawn = _sample_hits(order, bins, 30, np.random.default_rng(0))
    for b in range(drawn.shape[1]):
        inside = order[bins == b]
        assert (drawn[:, b] >= np.count_nonzero(inside == 1)).all()
        assert (drawn[:, b] <= np.count_nonzero(inside > 0)).all()
        assert (drawn[:, b] == drawn[:, b].round()).all()


def test_large_draws_are_made_in_parts(monkeypatch):
    scores, _ = bernoulli(100, seed=1)
    monkeypatch.setattr(sys.modules[NoiseFloor.__module__], "_CELLS_AT_ONCE", 250)
    floor = noise_floor(scores, n_samples=2001)
    errors = simulated(scores, 1000, seed=7)
    assert floor.mean == pytest.approx(errors.mean(), abs=5 * errors.std() * math.sqrt(1 / 1000 + 1 / 2000))


def mean_gmce_floor(pairs, groups, scores=None, **settings):
    return noise_floor(pairs.scores if scores is None else scores, groups=groups.find(pairs.tags), **settings)


def grouped_pairs(n, seed):
    """Pairs of tags 0, 1, 2 and 4: group a has three of seven, b two; c has none."""
    scores, hits = bernoulli(n, seed)
    return make_pairs(scores, hits, tags=np.array([0, 2, 1, 4, 0, 2, 4])[np.arange(n) % 7])


@pytest.mark.parametrize("settings", [{}, {"n_bins": 3}], ids=str)
def test_mean_gmce_floor_equals_a_direct_simulation_within_sampling_error(settings):
    pairs = grouped_pairs(420, seed=1)
    judged = pairs.scores**2
    floor = mean_gmce_floor(pairs, GROUPS, judged, n_samples=2000, **settings)
    rng = np.random.default_rng(99)
    errors = np.array([
        mean_of(gmce(make_pairs(pairs.scores, rng.random(len(pairs)) < judged, tags=pairs.tags), GROUPS, judged, **settings))
        for _ in range(1000)
    ])  # fmt: skip
    tolerance = 5 * errors.std() * math.sqrt(1 / 1000 + 1 / 2000)
    assert floor.mean == pytest.approx(errors.mean(), abs=tolerance)
    assert floor.q95 == pytest.approx(np.quantile(errors, 0.95), abs=2.2 * tolerance)


def test_mean_gmce_floor_of_one_group_is_that_of_its_scores():
    pairs = grouped_pairs(140, seed=2)
    assert mean_gmce_floor(pairs, Groups(("all",), np.zeros(5, int)), seed=3) == noise_floor(pairs.scores, seed=3)
    own = pairs.tags < 2
    assert mean_gmce_floor(pairs, Groups(("a",), np.array([0, 0, -1, -1, -1]))) == noise_floor(pairs.scores[own])


def test_groups_are_seldom_unlucky_at_once():
    # Four groups of one kind: the mean stays, the spread halves. Were their hits drawn alike, it would not.
    scores, hits = bernoulli(2000, seed=4)
    pairs = make_pairs(scores, hits, tags=np.arange(2000) % 4)
    floor = mean_gmce_floor(pairs, Groups(tuple("abcd"), np.arange(4)), n_samples=1000)
    own = [noise_floor(scores[g::4], n_samples=1000) for g in range(4)]
    mean = np.mean([one.mean for one in own])
    assert floor.mean == pytest.approx(mean, rel=0.02)
    assert floor.q95 - floor.mean == pytest.approx(np.mean([one.q95 for one in own]) / 2 - mean / 2, rel=0.25)


def test_true_scores_stay_below_the_mean_gmce_floor_as_often_as_it_says():
    # 200 data sets whose scores are true: 5 % is 10; see above.
    above = 0
    for seed in range(200):
        pairs = grouped_pairs(210, seed)
        above += mean_of(gmce(pairs, GROUPS)) > mean_gmce_floor(pairs, GROUPS, n_samples=100).q95
    assert 1 <= above <= 25


def test_without_scores_or_without_pairs_in_groups_there_is_no_floor():
    assert noise_floor([]) is None
    assert mean_gmce_floor(make_pairs([], []), GROUPS) is None
    assert mean_gmce_floor(make_pairs([0.5], [1], tags=[4]), GROUPS) is None


@pytest.mark.parametrize(("call", "sentence"), [
    (lambda: noise_floor([0.5, np.nan]), r"\[C001\] scores"),
    (lambda: noise_floor([0.5], n_samples=0), r"\[C001\] n_samples must be a whole number of at least 1"),
    (lambda: noise_floor([0.5], n_bins=0), r"\[C001\] n_bins"),
    (lambda: mean_gmce_floor(grouped_pairs(10, seed=0), GROUPS, np.full(10, 1.5)), r"\[C001\] scores"),
    (lambda: mean_gmce_floor(grouped_pairs(10, seed=0), GROUPS, np.full(9, 0.5)), r"\[C002\]"),
    (lambda: mean_gmce_floor(grouped_pairs(10, seed=0), GROUPS, n_samples=0), r"\[C001\] n_samples must be a whole number"),
])  # fmt: skip
def test_bad_input_is_refused(call, sentence):
    with pytest.raises(CalibError, match=sentence):
        call()
