"""One map per group, the pooled map as fallback, and the state that is saved."""

import numpy as np
import pytest
from hypothesis import assume, given

from spacy_calib.calibration.grouped import GROUPED, GroupedRecalibrator, GroupFit
from spacy_calib.calibration.recalibrators import (
    Beta,
    HistogramBinning,
    Identity,
    IsotonicRegression,
    Platt,
    Recalibrator,
    ScalingBinning,
    Temperature,
)
from spacy_calib.calibration.tag_offsets import TagOffsets
from spacy_calib.errors import CalibError
from spacy_calib.pipe import saved
from spacy_calib.types import Groups
from tests.sentences import says

from ..strategies import make_pairs, pairs_of_tokens

GRID = np.linspace(0, 1, 101)
PROTOTYPES = [
    Identity(), HistogramBinning(n_bins=4), HistogramBinning(bin_size=3), IsotonicRegression(), ScalingBinning(n_bins=4),
    Temperature(), Platt(), Beta(),
]  # fmt: skip
every_prototype = pytest.mark.parametrize("prototype", PROTOTYPES, ids=lambda p: f"{type(p).__name__}{p.settings() or ''}")


def groups_of(*of_tag: int) -> Groups:
    """Groups "1", "2", ... from the group of each tag."""
    return Groups(tuple(str(i + 1) for i in range(max(of_tag) + 1)), np.array(of_tag))


def random_pairs(n: int = 300, n_tags: int = 4, seed: int = 0):
    """Tag t hits with probability score ** (t + 1): each tag has a map of its own."""
    rng = np.random.default_rng(seed)
    scores, tags = rng.random(n).round(3), rng.integers(0, n_tags, n)
    return make_pairs(scores, rng.random(n) < scores ** (tags + 1), tags=tags)


def alone(prototype: Recalibrator, pairs, where) -> Recalibrator:
    return prototype.clone().fit(pairs.scores[where], pairs.hits[where])


def back_from_bytes(grouped: GroupedRecalibrator) -> GroupedRecalibrator:
    state = saved.read(saved.dump(grouped.state()), dict, name="calib", path="memory")
    return GroupedRecalibrator.from_state(GROUPED(state, "maps"), lambda one: saved.load_part(one, name="calib"))


@every_prototype
def test_one_group_equals_no_grouping(prototype):
    pairs = random_pairs()
    grouped = GroupedRecalibrator(prototype, groups_of(0, 0, 0, 0)).fit(pairs)
    plain = alone(prototype, pairs, slice(None))
    tags = np.arange(len(GRID)) % 4
    np.testing.assert_allclose(grouped.predict(GRID, tags), plain.predict(GRID), rtol=0, atol=1e-12)


@every_prototype
def test_each_group_has_the_map_of_its_own_pairs(prototype):
    pairs = random_pairs()
    groups = groups_of(1, 0, 1, 2)
    grouped = GroupedRecalibrator(prototype, groups).fit(pairs)
    assert [fit.fallback for fit in grouped.fits_] == ["", "", ""]
    for tag in range(4):
        own = alone(prototype, pairs, groups.find(pairs.tags) == groups.of_tag[tag])
        np.testing.assert_allclose(grouped.predict(GRID, np.full(101, tag)), own.predict(GRID), rtol=0, atol=1e-12)
    assert sum(fit.pairs for fit in grouped.fits_) == grouped.pooled_fit_.pairs == len(pairs)
    assert sum(fit.hits for fit in grouped.fits_) == grouped.pooled_fit_.hits == np.count_nonzero(pairs.hits)


def test_worked_by_hand():
    # Group 1 (tag 0): 0.2 missed, 0.8 hit. Group 2 (tag 1): 0.2 hit, 0.8 missed. Histogram of two bins each.
    pairs = make_pairs([0.2, 0.2, 0.8, 0.8], [0, 1, 1, 0], tags=[0, 1, 0, 1])
    grouped = GroupedRecalibrator(HistogramBinning(n_bins=2), groups_of(0, 1)).fit(pairs)
    assert grouped.predict(np.array([0.1, 0.1, 0.9, 0.9]), np.array([0, 1, 0, 1])).tolist() == [0, 1, 1, 0]
    # The pooled map serves a tag appended after the fit: one of two hits in either bin.
    assert grouped.predict(np.array([0.1, 0.9]), np.array([2, 77])).tolist() == [0.5, 0.5]
    assert grouped.fits_ == [GroupFit(2, 1), GroupFit(2, 1)]


@every_prototype
def test_tags_without_a_group_and_tags_past_the_end_use_the_pooled_map(prototype):
    pairs = random_pairs()
    grouped = GroupedRecalibrator(prototype, groups_of(0, 0, 1, -1)).fit(pairs)
    pooled = alone(prototype, pairs, slice(None))  # the pairs of tag 3 count in the pooled map
    for tag in (3, 4, 1000):
        np.testing.assert_allclose(grouped.predict(GRID, np.full(101, tag)), pooled.predict(GRID), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("scores", "hits", "fallback"), [
    ([], [], "pooled map: no pairs"),
    ([0.3], [1], "pooled map: one pair"),
    ([0.3, 0.6], [0, 1], "pooled map: 2 pairs, 3 needed"),
    ([0.3, 0.4, 0.6], [0, 0, 0], "pooled map: no pair hits"),
    ([0.3, 0.4, 0.6, 0.7], [1, 1, 1, 1], "pooled map: every pair hits"),
    ([0.3, 0.4, 0.6], [0, 0, 1], ""),
])  # fmt: skip
def test_a_group_that_cannot_be_fitted_alone_falls_back_and_says_so(scores, hits, fallback):
    others = random_pairs(50, n_tags=1)
    pairs = make_pairs(
        [*others.scores, *scores], [*others.hits, *hits], tags=[0] * len(others) + [1] * len(scores)
    )  # fmt: skip
    grouped = GroupedRecalibrator(HistogramBinning(n_bins=3), groups_of(0, 1)).fit(pairs)
    assert grouped.fits_[0].fallback == ""
    assert grouped.fits_[1] == GroupFit(len(scores), sum(hits), fallback)
    assert (grouped.maps_[1] is None) == bool(fallback)
    served = alone(HistogramBinning(n_bins=3), pairs, slice(None) if fallback else pairs.tags == 1)
    np.testing.assert_allclose(grouped.predict(GRID, np.ones(101, dtype=int)), served.predict(GRID), rtol=0, atol=1e-12)


def test_isotonic_needs_two_pairs():
    pairs = make_pairs([0.1, 0.9, 0.5, 0.2, 0.3], [0, 1, 1, 0, 1], tags=[0, 0, 1, 2, 2])
    grouped = GroupedRecalibrator(IsotonicRegression(), groups_of(0, 1, 2)).fit(pairs)
    assert [fit.fallback for fit in grouped.fits_] == ["", "pooled map: one pair", ""]


@pytest.mark.parametrize(("hit", "why"), [(0, "identity: no pair hits"), (1, "identity: every pair hits")])
def test_hits_all_alike_in_total_leave_the_raw_scores(hit, why):
    # "Never right" learned from a handful of pairs would be a certainty that nobody has.
    pairs = make_pairs([0.2, 0.5, 0.9], [hit] * 3, tags=[0, 1, 1])
    grouped = GroupedRecalibrator(IsotonicRegression(), groups_of(0, 1)).fit(pairs)
    assert grouped.pooled_fit_ == GroupFit(3, 3 * hit, why)
    assert isinstance(grouped.pooled_, Identity)
    for tag in (0, 1, 5):
        np.testing.assert_array_equal(grouped.predict(GRID, np.full(101, tag)), GRID)


def test_the_identity_of_a_group_with_pairs_never_falls_back():
    # One pair is enough, and one that hits, too.
    grouped = GroupedRecalibrator(Identity(), groups_of(0, 1)).fit(make_pairs([0.2, 0.3, 0.4], [1, 0, 0], tags=[0, 1, 1]))
    assert [fit.fallback for fit in (*grouped.fits_, grouped.pooled_fit_)] == ["", "", ""]


@pytest.mark.parametrize(("prototype", "pooling"), [(IsotonicRegression(), False), (Platt(), True)])
def test_fitting_again_forgets_and_leaves_the_prototypes_unfitted(prototype, pooling):
    first, second, groups = random_pairs(seed=1), random_pairs(seed=2), groups_of(0, 0, 1, 1)
    made, fresh = (GroupedRecalibrator(prototype, groups, pooling) for _ in range(2))
    assert made.fit(first).fit(second) is made
    assert made.fits_ == fresh.fit(second).fits_
    tags = np.arange(101) % 4
    assert made.predict(GRID, tags).tobytes() == fresh.predict(GRID, tags).tobytes()
    assert not prototype.fitted


def test_no_pairs_at_all_are_refused():
    with pytest.raises(CalibError, match=says("C003", what="IsotonicRegression")):
        GroupedRecalibrator(IsotonicRegression(), groups_of(0)).fit(make_pairs([], []))


def test_fewer_pairs_in_all_than_bins_are_refused():
    with pytest.raises(CalibError, match=says("C006", n_pairs=3, what="HistogramBinning", wanted=10)):
        GroupedRecalibrator(HistogramBinning(), groups_of(0)).fit(make_pairs([0.1, 0.2, 0.3], [0, 1, 0]))


def test_an_unfitted_one_says_so():
    with pytest.raises(CalibError, match=r"\[C004\] GroupedRecalibrator is not fitted yet"):
        GroupedRecalibrator(IsotonicRegression(), groups_of(0)).predict(np.array([0.5]), np.array([0]))


def test_scores_and_tags_of_unequal_lengths_are_refused():
    # With fewer tags than scores the rest of the result would be whatever stood in memory.
    grouped = GroupedRecalibrator(IsotonicRegression(), groups_of(0, 1)).fit(random_pairs(n_tags=2))
    for scores, tags in (
        (np.full(3, 0.5), np.zeros(2, int)),
        (np.full(3, 0.5), np.zeros(0, int)),
        (np.full(2, 0.5), np.zeros(3, int)),
    ):
        with pytest.raises(CalibError, match=r"\[C002\]"):
            grouped.predict(scores, tags)


@pytest.mark.parametrize("steps", [(IsotonicRegression(), False), (Beta(), True)], ids=["maps", "pooling"])
@given(pairs=pairs_of_tokens())
def test_predictions_are_probabilities_that_depend_on_their_own_pair_only(steps, pairs):
    assume(len(pairs) >= 2)
    grouped = GroupedRecalibrator(steps[0], groups_of(0, 0, 1, -1, 2), steps[1]).fit(pairs)  # tag 5 is past the end
    predicted = grouped.predict(pairs.scores, pairs.tags)
    assert np.isfinite(predicted).all()
    assert ((predicted >= 0) & (predicted <= 1)).all()
    np.testing.assert_array_equal(grouped.predict(pairs.scores[::-1], pairs.tags[::-1]), predicted[::-1])
    one_by_one = [grouped.predict(pairs.scores[i : i + 1], pairs.tags[i : i + 1])[0] for i in range(len(pairs))]
    np.testing.assert_array_equal(one_by_one, predicted)


@pytest.mark.parametrize(
    ("prototype", "offsets", "atol"),
    [(IsotonicRegression(), False, 1e-12), (Platt(), True, 1e-9)],
    ids=["maps", "pooling"],
)
@given(pairs=pairs_of_tokens())
def test_the_order_of_rows_is_irrelevant(prototype, offsets, atol, pairs):
    assume(len(pairs) >= 2)
    turned = make_pairs(pairs.scores[::-1], pairs.hits[::-1], tags=pairs.tags[::-1], n_units=pairs.n_units)
    one, other = (GroupedRecalibrator(prototype, groups_of(0, 1, 1, 0, 2, 2), offsets).fit(p) for p in (pairs, turned))
    assert one.fits_ == other.fits_
    tags = np.arange(101) % 7
    np.testing.assert_allclose(one.predict(GRID, tags), other.predict(GRID, tags), rtol=0, atol=atol)


@every_prototype
def test_a_saved_one_predicts_the_same_bits(prototype):
    # Group 3 has one pair (falls back), group 4 none, tag 5 no group.
    whole = random_pairs(200, n_tags=2)
    pairs = make_pairs([*whole.scores, 0.5], [*whole.hits, True], tags=[*whole.tags, 2])
    groups = Groups(("a", "b", "c", "d"), np.array([0, 1, 2, 3, 3, -1]), np.array([9, 8, 7, 0, 0, 3]))
    grouped = GroupedRecalibrator(prototype, groups).fit(pairs)
    back = back_from_bytes(grouped)
    tags = np.arange(101) % 8
    assert back.predict(GRID, tags).tobytes() == grouped.predict(GRID, tags).tobytes()
    assert back.fits_ == grouped.fits_
    assert back.pooled_fit_ == grouped.pooled_fit_
    assert back.groups.names == groups.names
    assert back.groups.of_tag.tolist() == groups.of_tag.tolist()
    assert back.groups.counts.tolist() == groups.counts.tolist()
    assert back.prototype.state() == prototype.clone().state()
    assert saved.dump(back.state()) == saved.dump(grouped.state())


def test_a_saved_identity_fallback_comes_back():
    back = back_from_bytes(GroupedRecalibrator(IsotonicRegression(), groups_of(0)).fit(make_pairs([0.2, 0.7], [1, 1])))
    np.testing.assert_array_equal(back.predict(GRID, np.zeros(101, int)), GRID)
    assert back.pooled_fit_.fallback == "identity: every pair hits"
    assert isinstance(back.prototype, IsotonicRegression)


def test_a_state_that_names_an_unknown_part_is_refused():
    state = {"@calib_recalibrators": "elsewhere.Spline.v1", "settings": {}, "learned": {}}
    with pytest.raises(CalibError, match=says("C012", given="elsewhere.Spline.v1")):
        saved.load_part(state, name="calib")


@every_prototype
def test_pooling_corrects_what_the_maps_of_the_groups_give(prototype):
    pairs = random_pairs(600)
    groups = groups_of(1, 0, 1, 0)
    plain = GroupedRecalibrator(prototype, groups).fit(pairs)
    pooled = GroupedRecalibrator(prototype, groups, True).fit(pairs)
    assert pooled.fits_ == plain.fits_
    of_pair = groups.of_tag[pairs.tags]
    mapped = plain.predict(pairs.scores, pairs.tags)
    alone = TagOffsets.fit(mapped, pairs.hits, pairs.tags, 4, of_pair, 2)
    tags = np.arange(101) % 4
    wanted = alone.predict(plain.predict(GRID, tags), tags, groups.of_tag[tags])
    np.testing.assert_allclose(pooled.predict(GRID, tags), wanted, rtol=0, atol=1e-12)
    assert not np.allclose(pooled.predict(GRID, tags), plain.predict(GRID, tags), atol=0.02)


def test_a_tag_without_pairs_has_the_map_of_its_group_and_one_without_a_group_the_pooled_map():
    # Tags 0 and 1 in group 1, 2 and 3 in group 2 (3 without pairs), 4 without a group, 5 past the end.
    pairs = random_pairs(600, n_tags=3)
    groups = groups_of(0, 0, 1, 1, -1)
    plain = GroupedRecalibrator(IsotonicRegression(), groups).fit(pairs)
    made = GroupedRecalibrator(IsotonicRegression(), groups, True).fit(pairs)
    assert made.offsets_.groups.values.tolist() == [0, 0]  # the maps have learned what the groups have in common
    for tag in (3, 4, 5, 1000):
        tags = np.full(101, tag)
        assert made.predict(GRID, tags).tobytes() == plain.predict(GRID, tags).tobytes()
    assert not np.array_equal(made.predict(GRID, np.zeros(101, int)), plain.predict(GRID, np.zeros(101, int)))


def test_a_tag_without_a_group_still_has_its_own_offset():
    # Its hits are of no group, but they are its own.
    pairs = random_pairs(900, n_tags=3)
    groups = groups_of(0, 0, -1)
    plain = GroupedRecalibrator(IsotonicRegression(), groups).fit(pairs)
    made = GroupedRecalibrator(IsotonicRegression(), groups, True).fit(pairs)
    own = pairs.tags == 2
    assert made.offsets_.tags.values[2] < 0  # its truth, score ** 3, lies below what all tags have together
    before, after = (maps.predict(pairs.scores[own], pairs.tags[own]) for maps in (plain, made))
    assert abs(after.mean() - pairs.hits[own].mean()) < abs(before.mean() - pairs.hits[own].mean())


@pytest.mark.parametrize("prototype", [Temperature(), Platt(), Beta()], ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("pooling", [False, True], ids=["plain", "tag offsets"])
def test_logistic_maps_in_one_pass_give_what_each_gives_alone(prototype, pooling):
    """Steep maps and far offsets, scores of exactly 0 and 1: the offsets were fitted on log-odds clipped as those of the log loss."""
    rng = np.random.default_rng(0)
    scores, tags = rng.random(3000), rng.integers(0, 6, 3000)
    hits = np.where(tags == 4, scores > 0.02, np.where(tags == 5, False, scores > 0.4 + 0.2 * rng.random(3000)))
    groups = groups_of(0, 1, 0, 1, 0, 1, -1)
    made = GroupedRecalibrator(prototype, groups, pooling).fit(make_pairs(scores, hits, tags=tags))
    for tag in range(9):
        group = groups.of_tag[tag] if tag < 7 else -1
        own = (made.maps_[group] if group >= 0 else None) or made.pooled_
        wanted = own.predict(GRID)
        at = np.full(101, tag)
        if pooling:
            wanted = made.offsets_.predict(wanted, at, np.full(101, group))
        np.testing.assert_allclose(made.predict(GRID, at), wanted, rtol=0, atol=1e-12)
        assert [made.predict(GRID[i : i + 1], at[:1])[0] for i in range(101)] == made.predict(GRID, at).tolist()


@every_prototype
def test_a_saved_one_with_pooling_predicts_the_same_bits(prototype):
    pairs = random_pairs(300, n_tags=3)
    made = GroupedRecalibrator(prototype, groups_of(0, 0, 1, 1, -1), True).fit(pairs)
    back = back_from_bytes(made)
    tags = np.arange(101) % 7
    assert back.predict(GRID, tags).tobytes() == made.predict(GRID, tags).tobytes()
    assert saved.dump(back.state()) == saved.dump(made.state())
    assert back.fit(pairs).predict(GRID, tags).tobytes() == made.predict(GRID, tags).tobytes()
