"""Venn-Abers intervals: against isotonic regressions fitted anew for every score, and their validity by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import isotonic_regression

from spacy_calib.calibration.recalibrators.venn_abers import VennAbers, minimax
from spacy_calib.errors import CalibError
from spacy_calib.pipe import saved

from ...strategies import (
    any_score,
    bernoulli,
    scored_hits,
    scored_hits_with_order,
    tied_score,
)

GRID = np.linspace(0, 1, 101)


def by_refitting(scores, hits, weights, asked: float) -> tuple[float, float]:
    """Isotonic regression of the pairs and (asked, miss), and of the pairs and (asked, hit), each at `asked`."""
    found = []
    for added in (0.0, 1.0):
        x, place = np.unique(np.append(scores, asked), return_inverse=True)
        mass = np.bincount(place, weights=np.append(weights, 1.0))
        hit_mass = np.bincount(place, weights=np.append(weights * hits, added))
        found.append(float(isotonic_regression(hit_mass / mass, sample_weight=mass)[place[-1]]))
    return found[0], found[1]


def neighbourhood(scores) -> np.ndarray:
    """The scores, the numbers next to them, what lies between them, and the ends."""
    distinct = np.unique(scores)
    around = [distinct, np.nextafter(distinct, 0), np.nextafter(distinct, 1), (distinct[1:] + distinct[:-1]) / 2, [0.0, 1.0]]
    return np.concatenate(around)


def assert_equals_refitting(scores, hits, weights, asked):
    given_weights = np.ones(len(scores)) if weights is None else weights
    low, high = VennAbers().fit(scores, hits, weights).interval(asked)
    wanted = np.array([by_refitting(scores, hits, given_weights, one) for one in asked])
    np.testing.assert_allclose(low, wanted[:, 0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(high, wanted[:, 1], rtol=0, atol=1e-12)


def test_worked_by_hand():
    # A miss at .2 and a hit at .6. A hit at .2 shares the mean 1/2 with the miss there; a miss at .6 shares 1/2 with the hit.
    low, high = VennAbers().fit([0.2, 0.6], [0, 1]).interval([0.1, 0.2, 0.4, 0.6, 0.9])
    assert low.tolist() == [0.0, 0.0, 0.0, 0.5, 0.5]
    assert high.tolist() == [0.5, 0.5, 1.0, 1.0, 1.0]


def test_one_pair_is_enough():
    low, high = VennAbers().fit([0.5], [1]).interval([0.4, 0.5, 0.6])
    assert low.tolist() == [0.0, 0.5, 0.5]
    assert high.tolist() == [1.0, 1.0, 1.0]


@given(scored_hits(max_size=30))
def test_it_is_isotonic_regression_with_the_pair_added(pairs):
    scores, hits = pairs
    assert_equals_refitting(scores, hits, None, neighbourhood(scores))


@given(scored_hits(max_size=20), st.data())
def test_so_it_is_with_weights(pairs, data):
    scores, hits = pairs
    weight = st.floats(0.05, 20.0)
    weights = np.array(data.draw(st.lists(weight, min_size=len(scores), max_size=len(scores))))
    assert_equals_refitting(scores, hits, weights, neighbourhood(scores))


@pytest.mark.parametrize("decimals", [None, 2])
@pytest.mark.parametrize("power", [1.0, 3.0])
def test_so_it_is_with_many_pairs(power, decimals):
    # Long hulls: in a few pairs no bridge passes over many corners.
    scores, hits = bernoulli(4000, seed=5, power=power, decimals=decimals)
    asked = np.concatenate([np.random.default_rng(6).choice(scores, 40), np.linspace(0, 1, 21)])
    assert_equals_refitting(scores, hits, None, asked)


def test_so_it_is_where_hits_grow_rarer_as_the_score_rises():
    scores, hits = bernoulli(2000, seed=7)
    assert_equals_refitting(1 - scores, hits, None, np.linspace(0, 1, 41))


@given(scored_hits(max_size=20), st.data())
def test_a_weight_is_so_many_equal_pairs(pairs, data):
    scores, hits = pairs
    weights = np.array(data.draw(st.lists(st.integers(1, 4), min_size=len(scores), max_size=len(scores))))
    asked = neighbourhood(scores)
    weighted = VennAbers().fit(scores, hits, weights).interval(asked)
    repeated = VennAbers().fit(np.repeat(scores, weights), np.repeat(hits, weights)).interval(asked)
    np.testing.assert_array_equal(weighted, repeated)


@given(scored_hits_with_order())
def test_the_order_of_rows_is_irrelevant(drawn):
    scores, hits, order = drawn
    asked = neighbourhood(scores)
    one = VennAbers().fit(scores, hits).interval(asked)
    np.testing.assert_array_equal(one, VennAbers().fit(scores[order], hits[order]).interval(asked))


@given(scored_hits())
def test_the_ends_are_in_order_and_never_fall(pairs):
    fitted = VennAbers().fit(*pairs)
    asked = np.sort(neighbourhood(pairs[0]))
    low, high = fitted.interval(asked)
    single = fitted.predict(asked)
    assert ((low >= 0) & (low < high) & (high <= 1)).all()
    assert ((low <= single) & (single <= high)).all()
    assert (np.diff(low) >= 0).all()
    assert (np.diff(high) >= 0).all()
    assert (np.diff(single) >= -1e-15).all()


@given(st.lists(st.tuples(tied_score, st.booleans()), min_size=1, max_size=40))
def test_hits_for_misses_and_scores_turned_round_give_the_interval_turned_round(pairs):
    scores, hits = np.array([s for s, _ in pairs]), np.array([h for _, h in pairs])
    asked = np.arange(17) / 16
    low, high = VennAbers().fit(scores, hits).interval(asked)
    low_turned, high_turned = VennAbers().fit(1 - scores, ~hits).interval(1 - asked)
    np.testing.assert_allclose(low_turned, 1 - high, rtol=0, atol=1e-15)
    np.testing.assert_allclose(high_turned, 1 - low, rtol=0, atol=1e-15)


def test_more_pairs_give_narrower_intervals_around_the_truth():
    widths = []
    for n in (100, 1000, 10_000):
        low, high = VennAbers().fit(*bernoulli(n, seed=8, power=2.0)).interval(GRID[10:91])
        widths.append((high - low).mean())
        assert np.abs((low + high) / 2 - GRID[10:91] ** 2).mean() < 2 / n ** (1 / 3)
    assert widths[0] > 2 * widths[1] > 4 * widths[2]


@given(any_score, any_score)
def test_the_single_probability_has_equal_regret_either_way(one, other):
    low, high = np.array([min(one, other)]), np.array([max(one, other)])
    single = minimax(low, high)
    assert low <= single <= high
    # log(high / p) after a hit, log((1 - low) / (1 - p)) after a miss: both are log(1 - low + high).
    np.testing.assert_allclose(single * (1 - low + high), high, rtol=1e-12)
    np.testing.assert_allclose((1 - single) * (1 - low + high), 1 - low, rtol=0, atol=1e-12)


def selected(n_sets: int, n_pairs: int, seed: int):
    """(outcomes, the end that belongs to the outcome, the other end) at a score drawn with each of n_sets sets of pairs."""
    outcomes, right, wrong = np.empty(n_sets), np.empty(n_sets), np.empty(n_sets)
    for i in range(n_sets):
        scores, hits = bernoulli(n_pairs + 1, seed=seed + i, power=2.0)
        ends = np.concatenate(VennAbers().fit(scores[1:], hits[1:]).interval(scores[:1]))
        outcomes[i], right[i], wrong[i] = hits[0], ends[int(hits[0])], ends[int(not hits[0])]
    return outcomes, right, wrong


def deviations(outcomes, chances) -> np.ndarray:
    """Outcomes minus chances, summed in five bins of the chance, in standard errors."""
    bins = np.digitize(chances, [0.1, 0.25, 0.5, 0.75])
    assert np.bincount(bins, minlength=5).min() > 100
    errors = np.sqrt(np.bincount(bins, weights=chances * (1 - chances)))
    return np.bincount(bins, weights=outcomes - chances) / errors


def test_the_end_that_belongs_to_the_outcome_is_calibrated():
    # Vovk, Petej and Fedorova (2015), Proposition 1: also on 30 pairs, and with scores that are far from calibrated themselves.
    outcomes, right, wrong = selected(3000, 30, seed=1000)
    assert np.abs(deviations(outcomes, right)).max() < 4
    # The other end is far from it: the simulation would notice ends that were mistaken for each other.
    assert np.abs(deviations(outcomes, wrong)).max() > 8


def test_a_saved_one_predicts_the_same_bits():
    fitted = VennAbers().fit(*bernoulli(300, seed=9, decimals=2))
    state = saved.load(saved.dump(fitted.state()), name="calib", path="memory")
    back = VennAbers().load_learned(state["learned"])
    assert state["@calib_recalibrators"] == "spacy-calib.VennAbers.v1"
    assert np.array(back.interval(GRID)).tobytes() == np.array(fitted.interval(GRID)).tobytes()
    assert back.predict(GRID).tobytes() == fitted.predict(GRID).tobytes()


def test_the_saved_steps_are_no_more_than_needed():
    # 1,000 scores but, on each side, only as many steps as the values differ.
    fitted = VennAbers().fit(GRID.repeat(10), GRID.repeat(10) > 0.5)
    assert len(np.unique(fitted.low_)) == len(fitted.low_)
    assert len(np.unique(fitted.high_)) == len(fitted.high_)


def test_bad_input_is_refused():
    with pytest.raises(CalibError, match=r"\[C003\] Cannot fit a VennAbers on no pairs"):
        VennAbers().fit([], [])
    with pytest.raises(CalibError, match=r"\[C001\] scores must be numbers in \[0, 1\]"):
        VennAbers().fit([1.5], [1])
    with pytest.raises(CalibError, match=r"\[C001\] weights must be positive"):
        VennAbers().fit([0.5], [1], [0.0])
    with pytest.raises(CalibError, match=r"\[C002\]"):
        VennAbers().fit([0.5, 0.6], [1])
    for ask in (VennAbers().interval, VennAbers().predict):
        with pytest.raises(CalibError, match=r"\[C004\] VennAbers is not fitted yet"):
            ask([0.5])
    with pytest.raises(CalibError, match=r"\[C001\] scores must be numbers in \[0, 1\]"):
        VennAbers().fit([0.5], [1]).interval([float("nan")])
