"""Offsets per tag, shrunk to the group: the two ends of the strength, brute force, symmetry, empirical Bayes, what is saved."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.calibration.solvers import log_odds, sigmoid
from spacy_calib.calibration.tag_offsets import Offsets, TagOffsets, _OffsetProblem, average_offsets, fit_offsets
from spacy_calib.pipe import saved

from ..strategies import score_arrays

GRID = np.linspace(0, 1, 301)
INF = float("inf")


@st.composite
def tagged_pairs(draw, n_tags: int = 5, n_groups: int = 2, max_size: int = 40):
    """(scores, hits, tags, groups): the group of a tag is its remainder."""
    scores = draw(score_arrays(max_size=max_size))
    n = len(scores)
    hits = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)), dtype=bool)
    tags = np.array(draw(st.lists(st.integers(0, n_tags - 1), min_size=n, max_size=n)), dtype=np.intp)
    return scores, hits, tags, tags % n_groups


def made_up(n: int, n_units: int, deviation: float, seed: int):
    """(margins, hits, units, offsets): hits that follow margin + offset, offsets normal with this standard deviation."""
    rng = np.random.default_rng(seed)
    offsets = rng.normal(0, deviation, n_units)
    units = rng.integers(0, n_units, n)
    margins = rng.normal(0, 2, n)
    return margins, rng.random(n) < sigmoid(margins + offsets[units]), units, offsets


def solved(margins, hits, units, n_units, strength) -> np.ndarray:
    """The offsets with an L2 penalty of this strength."""
    return _OffsetProblem(margins, hits, units, n_units).solve(strength)[0]


def penalized(offset, margins, hits, weights, strength):
    """The objective of one unit at one offset or several."""
    moved = margins + np.atleast_1d(offset)[:, None]
    return (weights * (np.logaddexp(0, moved) - hits * moved)).sum(axis=1) + 0.5 * strength * np.atleast_1d(offset) ** 2


def best_by_bisection(margins, hits, weights, strength) -> float:
    """Where the slope of the objective changes its sign, in [-15, 15]."""

    def slope(offset):
        return float((weights * (1 / (1 + np.exp(-(margins + offset))) - hits)).sum() + strength * offset)

    low, high = -15.0, 15.0
    if slope(low) >= 0:
        return low
    if slope(high) <= 0:
        return high
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return (low + high) / 2


def test_worked_by_hand():
    # One pair at even odds that hits: the offset o solves 1 - sigmoid(o) = strength * o, so that this strength makes it 1.
    strength = 1 - 1 / (1 + np.exp(-1.0))
    found = solved(np.zeros(1), np.array([True]), np.array([0]), 1, strength)
    assert found.tolist() == pytest.approx([1.0], abs=1e-12)
    # Three of four hit: the odds are 3 to 1, and without a penalty the offset is their logarithm.
    found = solved(np.zeros(4), np.array([1, 1, 0, 1], bool), np.zeros(4, np.intp), 1, 0.0)
    assert found.tolist() == pytest.approx([np.log(3)], abs=1e-12)


@pytest.mark.parametrize("strength", [0.0, 1e-3, 0.5, 4.0, 1000.0])
@given(drawn=tagged_pairs(), data=st.data())
def test_equals_brute_force_unit_by_unit(strength, drawn, data):
    scores, hits, tags, _ = drawn
    weights = np.array(data.draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=len(tags), max_size=len(tags))))
    margins = log_odds(scores)
    found, _ = _OffsetProblem(margins, hits, tags, 5, weights).solve(strength)
    for tag in range(5):
        own = tags == tag
        if not own.any():
            assert found[tag] == 0
            continue
        wanted = best_by_bisection(margins[own], hits[own], weights[own], strength)
        np.testing.assert_allclose(found[tag], wanted, rtol=0, atol=1e-5 if strength == 0 else 1e-8)


def test_offsets_of_zero_change_nothing_and_those_of_a_group_all_its_tags_alike():
    tags, none = np.arange(301) % 8, Offsets(np.zeros(5), INF)
    assert TagOffsets(none, Offsets(np.zeros(2), INF)).predict(GRID, tags, tags % 2).tobytes() == GRID.tobytes()
    made = TagOffsets(none, Offsets(np.array([0.5, -1.0]), 1.0))
    for tag in range(8):
        one = made.predict(GRID, np.full(301, tag), np.full(301, tag % 2))
        assert one.tobytes() == made.predict(GRID, np.full(301, tag % 2), np.full(301, tag % 2)).tobytes()


def test_a_growing_strength_leads_from_each_tag_alone_to_its_group():
    margins, hits, tags, _ = made_up(3000, 6, 1.5, seed=1)
    sizes = [np.abs(solved(margins, hits, tags, 6, s)) for s in (0, 0.1, 1, 10, 100, 1e4, 1e8, INF)]
    for weaker, stronger in zip(sizes[:-1], sizes[1:], strict=True):
        assert (stronger < weaker).all()
    assert sizes[-2].max() < 1e-5
    np.testing.assert_allclose(sizes[1], sizes[0], rtol=0.02)


def test_tags_permuted_offsets_permuted():
    margins, hits, tags, _ = made_up(2000, 9, 0.8, seed=3)
    order = np.random.default_rng(0).permutation(9)
    one = fit_offsets(margins, hits, tags, 9)
    other = fit_offsets(margins, hits, order[tags], 9)
    assert other.strength == one.strength
    np.testing.assert_allclose(other.values[order], one.values, rtol=0, atol=1e-12)


def test_the_order_of_rows_is_irrelevant_and_the_same_again_gives_the_same():
    margins, hits, tags, _ = made_up(2000, 9, 0.8, seed=4)
    one = fit_offsets(margins, hits, tags, 9)
    again = fit_offsets(margins.copy(), hits.copy(), tags.copy(), 9)
    assert again.values.tobytes() == one.values.tobytes()
    assert again.strength == one.strength
    order = np.random.default_rng(0).permutation(2000)
    other = fit_offsets(margins[order], hits[order], tags[order], 9)
    assert other.strength == one.strength
    np.testing.assert_allclose(other.values, one.values, rtol=0, atol=1e-10)


def test_hits_turned_round_turn_the_offsets_round():
    margins, hits, tags, _ = made_up(1000, 5, 1.0, seed=5)
    one = fit_offsets(margins, hits, tags, 5)
    other = fit_offsets(-margins, ~hits, tags, 5)
    assert other.strength == one.strength
    np.testing.assert_allclose(other.values, -one.values, rtol=0, atol=1e-10)


def test_units_without_pairs_and_pairs_without_a_unit_do_not_count():
    margins, hits, tags, _ = made_up(600, 4, 1.0, seed=6)
    alone = fit_offsets(margins, hits, tags, 4)
    spread = fit_offsets(
        np.append(margins, [9.0, -9.0]), np.append(hits, [False, True]), np.append(tags * 2 + 1, [-1, -1]), 12
    )  # fmt: skip
    assert spread.strength == alone.strength
    np.testing.assert_allclose(spread.values[[1, 3, 5, 7]], alone.values, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(spread.values[[0, 2, 4, 6, 8, 9, 10, 11]], 0)


def test_nothing_to_learn_from_gives_no_offsets():
    none = np.zeros(0)
    found = fit_offsets(none, none.astype(bool), none.astype(np.intp), 3)
    assert (found.values.tolist(), found.strength) == ([0, 0, 0], INF)
    for strength in (0.0, 2.0, INF):
        assert solved(none, none.astype(bool), none.astype(np.intp), 3, strength).tolist() == [0, 0, 0]
    found = fit_offsets(np.zeros(5), np.ones(5, bool), np.full(5, -1), 2)
    np.testing.assert_array_equal(found.values, np.zeros(2))
    assert found.strength == INF


def test_far_away_margins_do_not_lead_newton_astray():
    # Two heaps with a flat stretch in between: a whole step of Newton's method would leap far beyond.
    for n_low, n_high, hits_low, hits_high in ((50, 50, 1, 50), (50, 50, 0, 49), (1000, 3, 500, 3), (3, 1000, 0, 10)):
        margins = np.repeat([-13.8, 13.8], [n_low, n_high])
        hits = np.concatenate([np.arange(n_low) < hits_low, np.arange(n_high) < hits_high])
        for strength in (0.0, 1e-3, 1.0):
            found = solved(margins, hits, np.zeros(len(hits), np.intp), 1, strength)[0]
            wanted = best_by_bisection(margins, hits, np.ones(len(hits)), strength)
            np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)


def integrated(margins, hits, strength: float) -> float:
    """log of the likelihood of one unit's hits with the offset integrated out over N(0, 1 / strength), as a sum over a fine grid."""
    width = 1 / np.sqrt(strength)
    offsets = np.linspace(-12 * width, 12 * width, 1001)
    logs = -penalized(offsets, margins, hits, np.ones(len(margins)), strength) + 0.5 * np.log(strength / (2 * np.pi))
    top = logs.max()
    return float(top + np.log(np.exp(logs - top).sum() * (offsets[1] - offsets[0])))  # at both ends it is zero


def of_units(margins, hits, units):
    """(margins, hits) of each unit."""
    return [(margins[units == unit], hits[units == unit]) for unit in range(units.max() + 1)]


def test_the_evidence_is_that_of_numerical_integration():
    """Within what Laplace's approximation leaves: a tenth of a nat for a unit of a few pairs, less the more there are."""
    rng = np.random.default_rng(0)
    for n, within in ((1, 0.12), (3, 0.12), (20, 0.06), (400, 0.005)):
        for strength in (0.25, 1.0, 4.0, 64.0, 2048.0):
            for _ in range(4):
                margins = rng.normal(0, 2, n)
                hits = rng.random(n) < sigmoid(margins + rng.normal())
                problem = _OffsetProblem(margins, hits.astype(float), np.zeros(n, np.intp), 1, np.ones(n))
                assert abs(problem.solve(strength)[1][0] - integrated(margins, hits, strength)) < within
    # Units add up, and one without pairs adds nothing.
    margins, hits, units, _ = made_up(60, 4, 1.0, seed=1)
    whole = _OffsetProblem(margins, hits.astype(float), units, 7, np.ones(60)).solve(2.0)[1].sum()
    apart = [
        _OffsetProblem(m, h.astype(float), np.zeros(len(m), np.intp), 1, np.ones(len(m)))
        for m, h in of_units(margins, hits, units)
    ]
    assert whole == pytest.approx(sum(one.solve(2.0)[1].sum() for one in apart), rel=1e-12)
    assert _OffsetProblem(margins, hits.astype(float), units, 7, np.ones(60)).solve(INF)[1].sum() == pytest.approx(
        -penalized(0.0, margins, hits, np.ones(60), 0.0)[0], rel=1e-12
    )


def test_the_evidence_of_a_strong_penalty_is_that_of_no_offsets():
    margins, hits, units, _ = made_up(200, 5, 1.0, seed=2)
    problem = _OffsetProblem(margins, hits.astype(float), units, 5, np.ones(200))
    assert problem.solve(1e9)[1] == pytest.approx(problem.evidence_without(), abs=1e-4)


@pytest.mark.parametrize("deviation", [0.3, 0.7, 1.5, 3.0])
def test_the_strength_is_the_inverse_variance_of_the_offsets(deviation):
    found = []
    for seed in range(5):
        margins, hits, units, truth = made_up(40_000, 120, deviation, seed=10 + seed)
        offsets = fit_offsets(margins, hits, units, 120)
        found.append(offsets.strength)
        assert np.corrcoef(offsets.values, truth)[0, 1] > 0.8
    # Strengths are powers of 2; 120 units tell their variance well within that.
    middle = np.median(found)
    assert 0.5 <= middle * deviation**2 <= 2.0


def test_the_chosen_strength_has_the_highest_integrated_evidence():
    for seed, deviation in ((1, 0.5), (2, 1.0), (3, 2.0)):
        margins, hits, units, _ = made_up(1500, 30, deviation, seed)
        chosen = fit_offsets(margins, hits, units, 30).strength

        strengths = np.exp2(np.arange(-6.0, 12.0)).tolist()
        evidence = {s: sum(integrated(m, h, s) for m, h in of_units(margins, hits, units)) for s in strengths}
        assert evidence[chosen] > max(evidence.values()) - 0.3


def test_without_any_offsets_in_truth_the_penalty_is_strong():
    chosen = []
    for seed in range(8):
        margins, hits, units, _ = made_up(20_000, 50, 0.0, seed)
        offsets = fit_offsets(margins, hits, units, 50)
        chosen.append(offsets.strength)
        assert np.abs(offsets.values).max() < 0.15
    assert min(chosen) >= 64
    assert INF in chosen  # mostly the data want none at all


def test_learned_offsets_are_nearer_to_the_truth_than_either_end():
    for seed in range(3):
        margins, hits, units, truth = made_up(1500, 60, 0.8, seed)
        learned = fit_offsets(margins, hits, units, 60).values
        ends = [solved(margins, hits, units, 60, strength) for strength in (0.0, INF)]
        assert np.mean((learned - truth) ** 2) < 0.8 * min(np.mean((values - truth) ** 2) for values in ends)


def known(n: int = 20_000, seed: int = 0):
    """(scores, hits, tags, groups, truth): 40 tags in 2 groups; group and tag shift the log-odds; tag 39 has no pairs."""
    rng = np.random.default_rng(seed)
    tags = rng.integers(0, 39, n)
    of_tag = np.arange(40) // 20
    shift = np.array([-0.5, 0.5])[of_tag] + rng.normal(0, 0.7, 40)
    scores = rng.beta(0.7, 0.7, n)
    truth = sigmoid(log_odds(scores) + shift[tags])
    return scores, rng.random(n) < truth, tags, of_tag[tags], truth


def test_a_tag_without_pairs_has_exactly_the_map_of_its_group():
    scores, hits, tags, groups, _ = known(2000)
    made = TagOffsets.fit(scores, hits, tags, 40, groups, 2)
    # Tag 39 had no pairs, tag 40 was appended later; both stand in group 1.
    group_map = sigmoid(log_odds(GRID) + made.groups.values[1])
    for tag in (39, 40, 1000):
        assert made.predict(GRID, np.full(301, tag), np.ones(301, np.intp)).tobytes() == group_map.tobytes()
    # And without a group, what came in.
    assert made.predict(GRID, np.full(301, 40), np.full(301, -1)).tobytes() == GRID.tobytes()


def test_group_offsets_are_learned_before_those_of_tags():
    scores, hits, tags, groups, _ = known(3000)
    made = TagOffsets.fit(scores, hits, tags, 40, groups, 2)
    first = fit_offsets(log_odds(scores), hits, groups, 2)
    second = fit_offsets(log_odds(scores) + first.values[groups], hits, tags, 40)
    np.testing.assert_array_equal(made.groups.values, first.values)
    np.testing.assert_array_equal(made.tags.values, second.values)
    wanted = sigmoid(log_odds(scores) + first.values[groups] + second.values[tags])
    np.testing.assert_allclose(made.predict(scores, tags, groups), wanted, rtol=0, atol=1e-14)


@given(drawn=tagged_pairs())
def test_monotone_stays_monotone_and_probabilities_stay_probabilities(drawn):
    scores, hits, tags, groups = drawn
    extreme = TagOffsets(Offsets(np.array([15.0, -15.0, 0.0, 1.0, -1.0]), 0.0), Offsets(np.array([15.0, -15.0]), 0.0))
    for made in (TagOffsets.fit(scores, hits, tags, 5, groups, 2), extreme):
        for tag in range(7):
            moved = made.predict(GRID, np.full(301, tag), np.full(301, tag % 2))
            assert np.isfinite(moved).all()
            assert ((moved >= 0) & (moved <= 1)).all()
            assert (np.diff(moved) >= 0).all()


def test_predictions_depend_on_their_own_pair_only_and_leave_the_input_alone():
    scores, hits, tags, groups, _ = known(2000)
    copies = scores.tobytes(), hits.tobytes(), tags.tobytes(), groups.tobytes()
    made = TagOffsets.fit(scores, hits, tags, 40, groups, 2)
    whole = made.predict(scores, tags, groups)
    assert (scores.tobytes(), hits.tobytes(), tags.tobytes(), groups.tobytes()) == copies
    np.testing.assert_array_equal(made.predict(scores[::-1], tags[::-1], groups[::-1]), whole[::-1])
    assert [made.predict(scores[i : i + 1], tags[i : i + 1], groups[i : i + 1])[0] for i in range(50)] == whole[:50].tolist()
    none = np.zeros(0)
    assert made.predict(none, none.astype(np.intp), none.astype(np.intp)).shape == (0,)
    plain = TagOffsets(Offsets(np.zeros(40), INF), Offsets(np.zeros(2), INF))
    plain.predict(scores, tags, groups)[:] = 0  # not the input itself
    assert scores.tobytes() == copies[0]


def test_weights_are_repeated_pairs():
    scores, hits, tags, _, _ = known(500)
    margins, times = log_odds(scores), np.random.default_rng(0).integers(1, 4, 500)
    weighted = average_offsets(margins, hits, tags, 40, times.astype(float))
    repeated = average_offsets(*(np.repeat(a, times) for a in (margins, hits, tags)), 40, np.ones(times.sum()))
    assert weighted.strength == repeated.strength
    np.testing.assert_allclose(weighted.values, repeated.values, rtol=0, atol=1e-10)


def test_describe_names_the_strengths_and_none_for_infinity():
    made = TagOffsets(Offsets(np.ones(3), 2.5), Offsets(np.zeros(2), INF))
    assert made.describe() == {"strength": 2.5, "group_strength": None}


def test_a_saved_one_predicts_the_same_bits():
    scores, hits, tags, groups, _ = known(2000)
    made = TagOffsets.fit(scores, hits, tags, 40, groups, 2)
    data = saved.dump({"pooling": made.state()})
    back = TagOffsets.read(saved.read(data, dict, name="calib", path="memory")["pooling"], "offsets")
    assert back.predict(scores, tags, groups).tobytes() == made.predict(scores, tags, groups).tobytes()
    assert (back.describe(), back.sizes) == (made.describe(), (40, 2))
    assert saved.dump({"pooling": back.state()}) == data


def with_one_far_off(shift: float) -> Any:
    """(margins, hits, units): 30 units of 40 pairs, of which the first is off by so much in log-odds, half of it on each side of 0."""
    rng = np.random.default_rng(3)
    units = np.repeat(np.arange(30), 40)
    margins = np.where(units == 0, -shift / 2, rng.normal(2.0, 1.0, len(units)))
    return margins, rng.random(len(units)) < sigmoid(margins + shift * (units == 0)), units


@pytest.mark.parametrize("shift", [-5.0, 4.0])
def test_one_unit_that_is_far_off_is_not_held_back_by_the_others(shift):
    """The strength that 29 units set, none or 256, would leave the first where it is, as would a twentieth of its own evidence."""
    given_, ones = with_one_far_off(shift), np.ones(1200)
    values = average_offsets(*given_, 30, ones, ones).values
    assert values[0] == pytest.approx(shift, abs=1)
    assert np.abs(values[1:]).max() < 0.5
    assert abs(average_offsets(*given_, 30).values[0]) < abs(values[0]) - 0.5


def test_a_unit_is_far_off_by_its_wary_weights_alone():
    """Where the misses of the first unit are one and the same event, all together they weigh as one does, and the others' strength holds."""
    margins, hits, units = with_one_far_off(-5.0)
    wary = np.where(units == 0, 1 / 40, 1.0)
    sure, unsure = (average_offsets(margins, hits, units, 30, wary, one).values[0] for one in (np.ones(len(units)), wary))
    assert sure < -4 < -2 < unsure < 0


def test_mean_offsets_lie_between_none_and_those_of_the_weakest_strength():
    rng = np.random.default_rng(0)
    margins, units = rng.normal(1, 1, 400), rng.integers(0, 4, 400)
    shift = np.array([-1.5, 0.0, 0.0, 0.5])
    hits = rng.random(400) < sigmoid(margins + shift[units])
    found = average_offsets(margins, hits, units, 5)
    free = solved(margins, hits, units, 5, 1.0)
    assert found.values[4] == 0.0  # without pairs
    assert (np.abs(found.values[[0, 3]]) < np.abs(free[[0, 3]])).all()
    assert found.values[0] < -0.8


def test_mean_offsets_of_tags_that_are_alike_are_next_to_none():
    rng = np.random.default_rng(1)
    margins, units = rng.normal(1, 1, 4000), rng.integers(0, 4, 4000)
    found = average_offsets(margins, rng.random(4000) < sigmoid(margins), units, 4)
    assert np.abs(found.values).max() < 0.1
    assert found.strength == np.inf
