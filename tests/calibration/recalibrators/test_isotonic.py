"""Isotonic regression: by hand, against exact arithmetic, and against scikit-learn."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression as SklearnIsotonic
from sklearn.isotonic import isotonic_regression as sklearn_pava

from spacy_calib.calibration.recalibrators import IsotonicRegression
from spacy_calib.calibration.recalibrators.isotonic import sum_by_score
from spacy_calib.pairs.bins import collapse, collapse_groups

from ...strategies import bernoulli, scored_hits

GRID = np.linspace(0, 1, 301)


def exact_values(scores, hits, weights=None) -> dict[float, Fraction]:
    """y_i = max over j <= i of min over k >= i of the mean of j..k, in fractions (the min-max formula of isotonic regression)."""
    weights = [1] * len(scores) if weights is None else weights
    mass: dict[float, Fraction] = {}
    hit_mass: dict[float, Fraction] = {}
    for score, hit, weight in zip(scores, hits, weights, strict=True):
        key = float(score) + 0.0
        mass[key] = mass.get(key, Fraction(0)) + Fraction(weight)
        hit_mass[key] = hit_mass.get(key, Fraction(0)) + Fraction(weight) * bool(hit)
    xs = sorted(mass)

    def mean(j, k):
        return sum(hit_mass[x] for x in xs[j : k + 1]) / sum(mass[x] for x in xs[j : k + 1])

    n = len(xs)
    return {xs[i]: max(min(mean(j, k) for k in range(i, n)) for j in range(i + 1)) for i in range(n)}


def assert_equals_sklearn(scores, hits, weights=None):
    """At the scores; in a gap between two scores the map lies between its values at both, as scikit-learn's does."""
    reference = SklearnIsotonic(out_of_bounds="clip", y_min=0, y_max=1).fit(scores, hits, weights)
    made = IsotonicRegression().fit(scores, hits, weights)
    np.testing.assert_allclose(made.predict(scores), reference.predict(scores), rtol=0, atol=1e-9)
    distinct = np.unique(scores)
    at = np.clip(np.searchsorted(distinct, GRID), 1, len(distinct) - 1) if len(distinct) > 1 else np.zeros(len(GRID), dtype=int)
    lowest, highest = reference.predict(distinct[at - 1]), reference.predict(distinct[at])
    inside = (distinct[0] <= GRID) & (distinct[-1] >= GRID)
    assert ((lowest - 1e-9 <= made.predict(GRID)) & (made.predict(GRID) <= highest + 1e-9))[inside].all()


def test_worked_by_hand():
    # 0.1: miss. 0.2 (twice): one of two hits. 0.3: miss, pooled with 0.2: 1 of 3. 0.6: hit.
    made = IsotonicRegression().fit([0.3, 0.2, 0.6, 0.1, 0.2], [0, 1, 1, 0, 0])
    np.testing.assert_allclose(made.predict([0.1, 0.2, 0.3, 0.6]), [0, 1 / 3, 1 / 3, 1])
    # Slopes lie between the outer quarters of a gap: from a multiple of 1/64 in (.1, .125] to one in (.175, .2), and from one of
    # 1/16 in (.3, .375] to one in (.525, .6).
    np.testing.assert_allclose(made.x_, [8 / 64, 12 / 64, 6 / 16, 9 / 16])
    np.testing.assert_allclose(made.predict([10 / 64, 0.25, 7.5 / 16]), [1 / 6, 1 / 3, 2 / 3])
    # Flat beyond them.
    np.testing.assert_allclose(made.predict([0.0, 0.05, 0.7, 1.0]), [0, 0, 1, 1])


def test_level_stretches_have_no_points_inside():
    # Ten scores in turn miss and hit, pooled: all at 1/2 but the first (0) and the last (1).
    made = IsotonicRegression().fit(np.arange(1, 11) / 10, np.arange(10) % 2)
    np.testing.assert_allclose(made.x_, [8 / 64, 12 / 64, 59 / 64, 63 / 64])
    np.testing.assert_allclose(made.y_, [0, 0.5, 0.5, 1])


@given(scored_hits())
def test_no_point_is_a_score_where_there_are_numbers_between_the_scores(pair):
    distinct = np.unique(pair[0] + 0.0)
    assume(len(distinct) == 1 or np.diff(distinct).min() > 2**-40)
    made = IsotonicRegression().fit(*pair)
    assert len(made.x_) == 1 or not np.isin(made.x_, distinct).any()


def test_one_pair_and_hits_all_alike_give_a_constant():
    assert IsotonicRegression().fit([0.4], [1]).predict([0, 0.4, 1]).tolist() == [1, 1, 1]
    assert IsotonicRegression().fit([0.4, 0.9, 0.1], [0, 0, 0]).predict([0, 0.4, 1]).tolist() == [0, 0, 0]


def test_falling_hits_give_the_share_of_hits():
    np.testing.assert_allclose(IsotonicRegression().fit([0.1, 0.5, 0.9, 0.95], [1, 0, 0, 0]).predict(GRID), 0.25)


@pytest.mark.parametrize("weighted", [False, True])
@given(pair=scored_hits(max_size=14), data=st.data())
def test_equals_exact_arithmetic(weighted, pair, data):
    # Any scores: ties, neighbours one ulp apart, denormals, minus zero. Fractions know no rounding.
    scores, hits = pair
    of_each = st.lists(st.sampled_from([0.25, 1.0, 3.0, 7.5]), min_size=len(scores), max_size=len(scores))
    weights = data.draw(of_each) if weighted else None
    wanted = exact_values(scores, hits, weights)
    made = IsotonicRegression().fit(scores, hits, weights)
    np.testing.assert_allclose(made.predict(list(wanted)), [float(y) for y in wanted.values()], rtol=0, atol=1e-12)


@pytest.mark.parametrize("decimals", [None, 2, 1], ids=["no ties", "hundredths", "tenths"])
@pytest.mark.parametrize("narrow", [True, False], ids=["float32-valued", "float64-valued"])
@pytest.mark.parametrize("power", [1.0, 3.0, -0.2], ids=["calibrated", "too sure", "falling"])
def test_equals_scikit_learn_on_many_pairs(narrow, decimals, power):
    rng = np.random.default_rng(5)
    scores = 0.01 + 0.99 * rng.random(20_000)
    if decimals is not None:
        scores = scores.round(decimals)
    if narrow:
        scores = scores.astype(np.float32).astype(np.float64)
    hits = rng.random(len(scores)) < (scores**power if power > 0 else 1 - scores)
    assert_equals_sklearn(scores, hits)
    assert_equals_sklearn(scores, hits, rng.integers(1, 5, len(scores)).astype(float))


@given(st.lists(st.tuples(st.integers(0, 2**20), st.booleans()), min_size=1, max_size=60), st.booleans())
def test_equals_scikit_learn(rows, narrow):
    # Multiples of 2^-20 are float32 numbers; a third of one is not, and no two of them are nearer than 1e-15 (see the next test).
    scores = np.array([at for at, _ in rows]) / 2**20 / (1 if narrow else 3)
    assert_equals_sklearn(scores, np.array([hit for _, hit in rows]))


def test_neighbouring_doubles_are_kept_apart_where_scikit_learn_merges_them():
    # sklearn.isotonic.IsotonicRegression takes scores nearer than 1e-15 for equal; its isotonic_regression, and ours, do not.
    low, high = 0.5, float(np.nextafter(0.5, 1))
    assert SklearnIsotonic().fit([low, high], [0, 1]).predict([low, high]).tolist() == [0.5, 0.5]
    assert IsotonicRegression().fit([low, high], [0, 1]).predict([low, high]).tolist() == [0, 1]
    assert np.diff(IsotonicRegression().fit(low + np.repeat([0, 2**-53, 2**-52], 2), [0, 0, 0, 1, 1, 1]).x_).min() > 0


@pytest.mark.parametrize("start", [0.25, 0.5, 0.7, float(np.nextafter(1, 0)) - 2**-46], ids=str)
def test_runs_of_neighbouring_doubles_equal_the_pooling_of_scikit_learn(start):
    scores = start + np.arange(40) * np.spacing(start)
    assert len(np.unique(scores)) == 40
    hits = np.random.default_rng(3).random(40) < np.linspace(0.1, 0.9, 40)
    made = IsotonicRegression().fit(scores, hits)
    np.testing.assert_allclose(made.predict(scores), sklearn_pava(hits.astype(float)), rtol=0, atol=1e-9)


def test_neighbouring_floats_of_half_the_width_are_kept_apart():
    low = np.float32(0.3)
    high = np.nextafter(low, np.float32(1))
    assert IsotonicRegression().fit([low, high], [0, 1]).predict([low, high]).tolist() == [0, 1]


def test_denormals_and_minus_zero():
    tiny = float(np.nextafter(0, 1))
    made = IsotonicRegression().fit([-0.0, 0.0, tiny, 2 * tiny, 1e-310], [0, 0, 0, 1, 1])
    # Minus zero is zero: one point with two misses.
    np.testing.assert_array_equal(made.predict([-0.0, 0.0, tiny, 2 * tiny, 1e-310, 1]), [0, 0, 0, 1, 1, 1])
    assert sum_by_score(np.array([-0.0, 0.0]), np.array([True, False]))[0].tolist() == [0.0]


@given(scored_hits())
def test_masses_count_every_pair_once(pair):
    scores, hits = pair
    for weights in (None, np.ones(len(scores))):
        distinct, mass, hit_mass = sum_by_score(scores, hits, weights)
        values, counts = np.unique(scores, return_counts=True)
        np.testing.assert_array_equal(distinct, values)
        np.testing.assert_array_equal(mass, counts)
        np.testing.assert_array_equal(hit_mass, [np.count_nonzero(hits[scores == value]) for value in values])
        assert {distinct.dtype, mass.dtype, hit_mass.dtype} == {np.dtype(np.float64)}


@given(scored_hits())
def test_collapsing_counts_equal_pairs(pair):
    scores, hits = pair
    counted = Counter(zip((scores + 0.0).tolist(), hits.tolist(), strict=True))
    values, are_hits, weights = collapse(scores, hits)
    keys = list(zip(values.tolist(), are_hits.tolist(), strict=True))
    assert keys == sorted(counted)
    assert weights.tolist() == [counted[key] for key in keys]
    assert (values.dtype, are_hits.dtype, weights.dtype) == (np.float64, np.bool_, np.float64)


def test_one_score_that_is_no_float32_number_makes_all_keys_wide():
    scores = np.append(np.full(10, 0.5), 0.1)  # 0.1 is no float32 number
    columns = collapse(scores, np.arange(11) % 2 == 0)
    assert [column.tolist() for column in columns] == [[0.1, 0.5, 0.5], [True, False, True], [1, 5, 5]]


def test_collapsing_nothing():
    assert [len(column) for column in collapse(np.zeros(0), np.zeros(0, dtype=bool))] == [0, 0, 0]


@pytest.mark.parametrize("decimals", [2, 17])
def test_each_group_is_collapsed_for_itself(decimals):
    scores, hits = bernoulli(400, seed=2, power=2, decimals=decimals)
    groups = np.arange(400) % 4 - 1  # a quarter of the pairs belongs to no group
    groups[groups == 1] = 3  # and one group has no pairs
    whole, parts = collapse_groups(scores, hits, groups.astype(np.int16), 4)
    assert [int(weights.sum()) for _, _, weights in parts] == [100, 0, 100, 100]
    for group, part in enumerate(parts):
        alone = collapse(scores[groups == group], hits[groups == group])
        for column, expected in zip(part, alone, strict=True):
            np.testing.assert_array_equal(column, expected)
    without = collapse(scores[groups == -1], hits[groups == -1])
    np.testing.assert_array_equal(whole[0][: len(without[0])], without[0])


def test_the_counts_of_all_groups_fit_like_the_pairs_themselves():
    # What the pooled map is fitted on: equal scores of two groups are not merged.
    scores, hits = bernoulli(400, seed=2, power=2, decimals=2)
    whole, _ = collapse_groups(scores, hits, np.arange(400) % 3, 3)
    assert whole[2].sum() == 400
    assert len(whole[0]) > len(collapse(scores, hits)[0])
    one, other = IsotonicRegression().fit(scores, hits), IsotonicRegression().fit(*whole)
    np.testing.assert_array_equal(one.predict(GRID), other.predict(GRID))
