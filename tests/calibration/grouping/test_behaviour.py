"""Groups by reliability curves: made-up tags whose scores are wrong in known ways, and what must not bear on the groups."""

from __future__ import annotations

import pickle
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.calibration.grouped import GroupedRecalibrator
from spacy_calib.calibration.grouping.behaviour import (
    BehaviourGrouping,
    behaviour_groups,
    cluster_curves,
    tag_curves,
)
from spacy_calib.calibration.grouping.fixed import shared_group
from spacy_calib.calibration.grouping.named import group_beside
from spacy_calib.calibration.grouping.tag_frequency import tag_frequency_groups
from spacy_calib.calibration.recalibrators import IsotonicRegression
from spacy_calib.calibration.recalibrators.logistic import log_odds, sigmoid
from spacy_calib.errors import CalibError
from spacy_calib.metrics import log_loss
from spacy_calib.pairs.bins import adaptive_edges
from spacy_calib.types import Groups, Pairs

from ...strategies import make_pairs, pairs_of_tokens

LABELS = list("ABCDEFGH")


def biased_pairs(offsets, n_each, seed=0):
    """Pairs of tags whose hits have the log-odds of the score plus an offset: one offset and one number of pairs per tag."""
    rng = np.random.default_rng(seed)
    tags = rng.permutation(np.repeat(np.arange(len(offsets)), n_each))
    scores = rng.uniform(0.02, 0.98, len(tags))
    hits = rng.random(len(tags)) < sigmoid(log_odds(scores) + np.array(offsets)[tags])
    return make_pairs(scores, hits, tags)


def members(groups, labels):
    return {frozenset(labels[tag] for tag in groups.tags_in(g)) for g in range(len(groups))}


# A to C promise too much, D and E are right, F to H promise too little.
OFFSETS = [-2.0, -2.0, -2.0, 0.0, 0.0, 2.0, 2.0, 2.0]
PAIRS = biased_pairs(OFFSETS, 400)


@cache
def groups_of_pairs(n_groups: int = 5) -> Groups:
    """Of PAIRS."""
    return behaviour_groups(LABELS, {}, PAIRS, n_groups=n_groups)


def test_tags_that_are_wrong_in_the_same_way_share_a_group():
    groups = BehaviourGrouping(n_groups=3).with_pairs(PAIRS)(LABELS, {"A": 7, "F": 2})
    # "1" hits most often for its scores.
    assert groups.names == ("1", "2", "3")
    assert groups.of_tag.tolist() == [2, 2, 2, 1, 1, 0, 0, 0]
    assert groups.counts.tolist() == [7, 0, 0, 0, 0, 2, 0, 0]


def test_curves_show_the_offsets():
    curves = tag_curves(PAIRS, 9)
    assert curves.shape == (9, 3)
    assert np.allclose(curves[:8].mean(axis=1), OFFSETS, atol=0.45)
    assert (curves[8] == 0).all(), "a tag without pairs has the curve of all"


def test_curves_show_where_in_the_score_a_tag_is_wrong():
    # A hits too seldom where it scores low and too often where it scores high, B the other way round; both are right on average.
    rng = np.random.default_rng(1)
    tags = rng.integers(0, 3, 6000)
    scores = rng.uniform(0.02, 0.98, 6000)
    bend = np.array([1.5, -1.5, 0.0])[tags] * np.sign(scores - 0.5)
    pairs = make_pairs(scores, rng.random(6000) < sigmoid(log_odds(scores) + bend), tags)
    curves = tag_curves(pairs, 3, n_bins=2)
    assert curves[0, 0] < -0.8
    assert curves[0, 1] > 0.8
    assert curves[1, 0] > 0.8
    assert curves[1, 1] < -0.8
    assert np.abs(curves[2]).max() < 0.4
    assert members(behaviour_groups("ABC", {}, pairs, n_groups=3, n_bins=2), "ABC") == {frozenset(t) for t in "ABC"}


def test_a_bin_without_pairs_has_the_offset_of_its_tag():
    # A never scores in the upper half.
    rng = np.random.default_rng(2)
    tags = rng.integers(0, 2, 4000)
    scores = np.where(tags == 0, rng.uniform(0.02, 0.45, 4000), rng.uniform(0.02, 0.98, 4000))
    pairs = make_pairs(scores, rng.random(4000) < sigmoid(log_odds(scores) + np.array([-1.0, 1.0])[tags]), tags)
    edges = adaptive_edges(pairs.scores, 4)
    assert edges[-1] > 0.45, "the last bin has no pair of A"
    curves = tag_curves(pairs, 2, n_bins=4)
    assert -1.5 < curves[0, 3] < -0.2
    assert np.isclose(curves[0, 3], curves[0, :3].mean(), atol=0.5)


def test_a_tag_with_few_pairs_joins_the_group_next_to_the_curve_of_all():
    # I's 19 pairs say what A's do, J has none: with min_pairs 20 neither counts, with 19 I does.
    pairs = biased_pairs([*OFFSETS, -6.0, 0.0], [*([400] * 8), 19, 0], seed=3)
    labels = [*LABELS, "I", "J"]
    few = behaviour_groups(labels, {}, pairs, n_groups=3, min_pairs=20)
    assert few.of_tag.tolist() == [2, 2, 2, 1, 1, 0, 0, 0, 1, 1]
    enough = behaviour_groups(labels, {}, pairs, n_groups=3, min_pairs=19)
    assert enough.of_tag.tolist() == [2, 2, 2, 1, 1, 0, 0, 0, 2, 1]


def test_groups_mend_what_tag_frequency_groups_cannot():
    # Frequencies that put a tag of each kind into every group.
    counts = dict(zip(LABELS, (30, 12, 9, 11, 8, 29, 13, 8), strict=True))
    fresh = biased_pairs(OFFSETS, 400, seed=9)

    def loss(groups):
        maps = GroupedRecalibrator(IsotonicRegression(), groups).fit(PAIRS)
        return log_loss(maps.predict(fresh.scores, fresh.tags), fresh.hits)

    by_behaviour = loss(BehaviourGrouping(3).with_pairs(PAIRS)(LABELS, counts))
    assert by_behaviour < loss(tag_frequency_groups(LABELS, counts, 3)) - 0.05
    assert by_behaviour < loss(shared_group(LABELS, counts)) - 0.05


def permuted(pairs: Pairs, column_of) -> Pairs:
    """The same pairs with other columns, sorted by row and column as pairs are."""
    tags = np.asarray(column_of)[pairs.tags]
    order = np.lexsort((tags, pairs.rows))
    return Pairs(pairs.rows[order], tags[order], pairs.scores[order], pairs.hits[order], pairs.n_units)


@given(st.permutations(range(8)), st.integers(1, 6))
def test_tags_permuted_groups_permuted(column_of, n_groups):
    plain = groups_of_pairs(n_groups)
    labels = [LABELS[column_of.index(i)] for i in range(8)]
    other = BehaviourGrouping(n_groups).with_pairs(permuted(PAIRS, column_of))(labels, {})
    assert other.names == plain.names
    assert other.of_tag[np.array(column_of)].tolist() == plain.of_tag.tolist()


@given(pairs_of_tokens(max_tokens=40), st.permutations(range(6)), st.integers(1, 5), st.integers(1, 8))
def test_tags_permuted_groups_permuted_however_few_pairs_there_are(pairs, column_of, n_groups, min_pairs):
    plain = behaviour_groups("abcdef", {}, pairs, n_groups=n_groups, min_pairs=min_pairs)
    other = behaviour_groups("abcdef", {}, permuted(pairs, column_of), n_groups=n_groups, min_pairs=min_pairs)
    assert other.of_tag[np.array(column_of)].tolist() == plain.of_tag.tolist()
    assert 1 <= len(plain) <= n_groups
    assert set(plain.of_tag) == set(range(len(plain))), "every tag has a group, no group is empty"


@given(st.integers(0, 1000), st.permutations(range(8)))
def test_order_of_the_pairs_and_names_of_the_tags_do_not_matter(seed, renamed):
    order = np.random.default_rng(seed).permutation(len(PAIRS))
    mixed = Pairs(np.arange(len(PAIRS)), PAIRS.tags[order], PAIRS.scores[order], PAIRS.hits[order], len(PAIRS))
    found = behaviour_groups([LABELS[i] for i in renamed], {}, mixed)
    assert found.of_tag.tolist() == groups_of_pairs().of_tag.tolist()


@given(st.dictionaries(st.sampled_from(LABELS), st.integers(0, 20_000)))
def test_frequencies_do_not_bear_on_the_groups(counts):
    plain, counted = groups_of_pairs(), behaviour_groups(LABELS, counts, PAIRS)
    assert counted.of_tag.tolist() == plain.of_tag.tolist()
    assert counted.names == plain.names
    assert counted.counts.tolist() == [counts.get(label, 0) for label in LABELS]


@given(pairs_of_tokens(), st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 20)))
def test_one_group_is_shared_class_wise_binning(pairs, counts):
    one, shared = behaviour_groups("abcdef", counts, pairs, n_groups=1), shared_group("abcdef", counts)
    assert one.names == shared.names
    assert one.of_tag.tolist() == shared.of_tag.tolist()
    assert one.counts.tolist() == shared.counts.tolist()


def test_without_enough_pairs_all_tags_share_a_group():
    for pairs in (make_pairs([], []), biased_pairs(OFFSETS, 19)):
        assert behaviour_groups(LABELS, {}, pairs).of_tag.tolist() == [0] * 8
    assert (tag_curves(make_pairs([], []), 2) == 0).all()


def test_tags_with_equal_curves_share_a_group_however_many_are_asked_for():
    # Two tags with the very same pairs, and one that differs: two curves, not five.
    scores = np.tile(np.linspace(0.05, 0.95, 50), 3)
    hits = np.concatenate([np.arange(50) % 2 == 0, np.arange(50) % 2 == 0, np.arange(50) % 10 > 0])
    groups = behaviour_groups("ABC", {}, make_pairs(scores, hits, np.repeat([0, 1, 2], 50)), n_groups=5)
    assert groups.of_tag.tolist() == [1, 1, 0]


def test_clusters_are_weighted_and_stand_from_the_highest_down():
    curves = np.array([[0.0], [1.0], [10.0], [10.0]])
    found, centers = cluster_curves(curves, np.array([3.0, 1.0, 1.0, 1.0]), 2)
    assert found.tolist() == [1, 1, 0, 0]
    assert np.allclose(centers, [[10.0], [0.25]])
    assert cluster_curves(curves, np.ones(4), 9)[0].tolist() == [2, 1, 0, 0]


@given(st.integers(0, 10**6), st.integers(1, 8))
def test_clusters_do_not_depend_on_the_order_of_the_curves(seed, k):
    # No clusters are there to be found: whichever end a start reaches, the order must not choose it.
    rng = np.random.default_rng(seed)
    curves, weights, order = rng.normal(size=(25, 3)), rng.pareto(1.0, 25) + 0.1, rng.permutation(25)
    found, means = cluster_curves(curves, weights, k)
    mixed, same = cluster_curves(curves[order], weights[order], k)
    assert mixed.tolist() == found[order].tolist()
    assert np.array_equal(same, means)


def test_clusters_are_as_good_as_those_of_scikit_learn():
    from sklearn.cluster import KMeans

    for seed in range(5):
        rng = np.random.default_rng(seed)
        curves, weights = rng.normal(size=(60, 3)), rng.pareto(1.0, 60) + 0.1
        found, means = cluster_curves(curves, weights, 6)
        ours = np.sum(weights * np.sum((curves - means[found]) ** 2, axis=1))
        theirs = KMeans(6, n_init=20, random_state=0).fit(curves, sample_weight=weights).inertia_
        assert ours <= 1.02 * theirs
        nearest = np.argmin(np.sum((curves[:, None] - means) ** 2, axis=2), axis=1)
        assert nearest.tolist() == found.tolist()


def test_curves_that_differ_by_a_rounding_error_are_equal():
    assert cluster_curves(np.array([[0.0], [1e-9], [1.0]]), np.ones(3), 3)[0].tolist() == [1, 1, 0]


def test_columns_are_found_by_name_where_tags_are_grouped_beside_others():
    # BILUO columns: "O" stands alone, the two of a type share a key. LOC promises too much, PER and ORG too little.
    columns = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "U-ORG"]
    pairs = biased_pairs([0.0, 1.5, 1.5, -1.5, -1.5, 1.5], 300, seed=5)
    keys = ["O", "PER", "PER", "LOC", "LOC", "ORG"]

    def key(label):
        return label if label == "O" else label[2:]

    grouping = BehaviourGrouping(2).with_pairs(pairs, keys)
    groups = group_beside(grouping, columns, {"O": 9, "B-PER": 2}, ("O",), key)
    assert groups.names == ("O", "1", "2")
    assert groups.of_tag.tolist() == [0, 1, 1, 2, 2, 1]
    # The pairs of "O" bear on nothing: with all of them misses the groups of the others are the same.
    hits = pairs.hits & (pairs.tags != 0)
    without = BehaviourGrouping(2).with_pairs(Pairs(pairs.rows, pairs.tags, pairs.scores, hits, pairs.n_units), keys)
    assert group_beside(without, columns, {}, ("O",), key).of_tag.tolist() == groups.of_tag.tolist()


def test_names_that_are_the_labels_change_nothing():
    by_name = behaviour_groups(LABELS[::-1], {}, PAIRS, names=LABELS)
    assert by_name.of_tag[::-1].tolist() == behaviour_groups(LABELS, {}, PAIRS).of_tag.tolist()


def test_pairs_of_other_labels_are_refused():
    with pytest.raises(
        CalibError, match=r"\[C001\] The tags of the pairs must be columns of the 7 labels.*, but column 7 was given"
    ):
        behaviour_groups(LABELS[:7], {}, PAIRS)
    with pytest.raises(CalibError, match="columns of the 3 labels"):
        behaviour_groups(LABELS, {}, PAIRS, names=LABELS[:3])


def test_without_pairs_it_says_what_is_missing():
    with pytest.raises(CalibError, match=r"\[C070\] The grouping spacy-calib.Behaviour.v1 .* call its with_pairs\(pairs\)"):
        BehaviourGrouping()(LABELS, {})


@pytest.mark.parametrize("setting", ["n_groups", "min_pairs", "n_bins"])
@pytest.mark.parametrize("value", [0, -1, 2.5, "5", None, True])
def test_settings_out_of_range_are_refused(setting, value):
    with pytest.raises(CalibError, match=rf"\[C001\] {setting} must be a whole number of at least 1"):
        BehaviourGrouping(**{setting: value})
    with pytest.raises(CalibError, match=rf"\[C001\] {setting}"):
        behaviour_groups(LABELS, {}, PAIRS, **{setting: value})


def test_it_pickles_with_and_without_pairs():
    grouping = BehaviourGrouping(3, 25, 4)
    assert pickle.loads(pickle.dumps(grouping)) == grouping == BehaviourGrouping(n_groups=3, min_pairs=25, n_bins=4)
    fitted = grouping.with_pairs(PAIRS)
    assert pickle.loads(pickle.dumps(fitted))(LABELS, {}).of_tag.tolist() == fitted(LABELS, {}).of_tag.tolist()


def test_labels_beyond_the_pairs_and_appended_later_keep_their_place():
    groups = behaviour_groups([*LABELS, "new"], {}, PAIRS, n_groups=3)
    assert isinstance(groups, Groups)
    assert groups.of_tag[:8].tolist() == [2, 2, 2, 1, 1, 0, 0, 0]
    assert groups.of_tag[8] == 1, "without pairs: the group next to the curve of all"
    assert groups.of(np.array([9])).tolist() == [-1]
