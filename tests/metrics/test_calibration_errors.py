"""SMCE, GMCE, MCE, ECE and the debiased estimate: worked values, and an independent second version."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.errors import CalibError
from spacy_calib.metrics import calibration_error, debiased_calibration_error, ece, gmce, mce, smce
from spacy_calib.metrics.calibration_errors import group_slices, mean_of
from spacy_calib.types import Groups

from ..strategies import make_pairs, pairs_of_tokens, scored_hits

GROUPS = Groups(("1", "2", "3"), np.array([0, 1, 1, 2, -1, 0]))


def reference(scores, hits, n_bins=10):
    """SMCE in ten lines, from its definition alone."""
    scores, hits = list(map(float, scores)), list(map(float, hits))
    bins = {}
    for score, hit in zip(scores, hits, strict=True):
        below, equal = sum(s < score for s in scores), scores.count(score)
        bins.setdefault((2 * below + equal) * n_bins // (2 * len(scores)), []).append((score, hit))
    error = 0.0
    for inside in bins.values():
        gap = sum(s for s, _ in inside) / len(inside) - sum(h for _, h in inside) / len(inside)
        error += len(inside) / len(scores) * gap**2
    return math.sqrt(error)


@given(scored_hits(), st.integers(1, 12))
def test_smce_equals_the_reference(pair, n_bins):
    scores, hits = pair
    assert smce(make_pairs(scores, hits), n_bins=n_bins) == pytest.approx(reference(scores, hits, n_bins), abs=1e-9)


@given(pairs_of_tokens(), st.integers(1, 12))
def test_gmce_equals_the_reference(pairs, n_bins):
    for error, tags in zip(gmce(pairs, GROUPS, n_bins=n_bins), ([0, 5], [1, 2], [3]), strict=True):
        mask = np.isin(pairs.tags, tags)
        expected = pytest.approx(reference(pairs.scores[mask], pairs.hits[mask], n_bins), abs=1e-9) if mask.any() else None
        assert error == expected


@given(pairs_of_tokens(), st.data())
def test_calibrated_scores_replace_the_raw_ones(pairs, data):
    # The pairs stay those that the raw score chose; bins are those of the scores that are judged.
    calibrated = np.array(data.draw(st.lists(st.floats(0, 1), min_size=len(pairs), max_size=len(pairs))))
    other = make_pairs(calibrated, pairs.hits, tags=pairs.tags, rows=pairs.rows, n_units=pairs.n_units)
    assert smce(pairs, calibrated) == smce(other)
    assert gmce(pairs, GROUPS, calibrated) == gmce(other, GROUPS)
    assert mce(pairs, calibrated, min_pairs=1) == mce(other, min_pairs=1)


@given(pairs_of_tokens(), st.randoms(use_true_random=False))
def test_permuting_pairs_changes_no_group_tag_or_token(pairs, random):
    order = np.array(random.sample(range(len(pairs)), len(pairs)), dtype=np.intp)
    turned = make_pairs(
        pairs.scores[order], pairs.hits[order], tags=pairs.tags[order], rows=pairs.rows[order], n_units=pairs.n_units
    )  # fmt: skip
    near = lambda value: None if value is None else pytest.approx(value, abs=1e-7)  # noqa: E731
    assert gmce(turned, GROUPS) == [near(value) for value in gmce(pairs, GROUPS)]
    one, per_tag = mce(pairs, min_pairs=1)
    other, other_per_tag = mce(turned, min_pairs=1)
    assert other == near(one)
    assert other_per_tag == pytest.approx(per_tag, abs=1e-7)
    # A token's best pair is its best pair in any order, ties included.
    assert ece(turned) == near(ece(pairs))


@pytest.mark.parametrize(("scores", "hits", "settings", "error"), [
    # Two bins: {0.1, 0.1}, mean 0.1, no hit: gap 0.1. {0.5, 0.9}, mean 0.7, one hit of two: gap 0.2.
    ([0.1, 0.1, 0.5, 0.9], [0, 0, 0, 1], {"n_bins": 2}, math.sqrt((0.01 + 0.04) / 2)),
    ([0.1, 0.1, 0.5, 0.9], [0, 0, 0, 1], {"n_bins": 2, "norm": "l1"}, 0.15),
    # One bin: mean 0.4, one hit of four.
    ([0.1, 0.1, 0.5, 0.9], [0, 0, 0, 1], {"n_bins": 1}, 0.15),
    # beta = 2, five pairs: {0.1, 0.3} and {0.6, 0.8, 1.0}. Gaps 0.2 - 0 and 0.8 - 1/3.
    ([0.1, 0.3, 0.6, 0.8, 1.0], [0, 0, 1, 0, 0], {"bin_size": 2}, math.sqrt(0.4 * 0.04 + 0.6 * (7 / 15) ** 2)),
    # Ties are one bin without a gap, in any order of the rows. Cut in half as they stand, the error would be 0.5.
    ([0.5] * 4, [1, 1, 0, 0], {"n_bins": 2}, 0),
    ([0.5] * 4, [1, 1, 0, 0], {"bin_size": 2}, 0),
    ([0.0, 1.0], [0, 1], {}, 0),
    ([0.0, 1.0], [1, 0], {}, 1),
    ([1.0], [1], {}, 0),
])  # fmt: skip
def test_worked_by_hand(scores, hits, settings, error):
    assert calibration_error(scores, hits, **settings) == pytest.approx(error, abs=1e-15)


def perfect():
    """1 of 4 hits at 0.25, 3 of 4 at 0.75, none of 4 at 0, four of 4 at 1; for two tags each."""
    scores = np.repeat([0.25, 0.75, 0.0, 1.0], 4)
    hits = np.concatenate([np.arange(4) < n for n in (1, 3, 0, 4)])
    return make_pairs(np.tile(scores, 2), np.tile(hits, 2), tags=np.repeat([0, 1], 16))


def test_perfectly_calibrated_pairs_have_no_error():
    pairs = perfect()
    for n_bins in (4, 10, 100):
        assert smce(pairs, n_bins=n_bins) == 0
        assert gmce(pairs, GROUPS, n_bins=n_bins) == [0, 0, None]
        assert mce(pairs, n_bins=n_bins, min_pairs=16) == (0, {0: 0, 1: 0})
        assert ece(pairs, n_bins=n_bins) == 0
        assert debiased_calibration_error(pairs.scores, pairs.hits, n_bins=n_bins) == 0


def test_errors_of_two_groups_can_cancel_in_smce_but_not_in_gmce():
    # Tag 0 hits always, tag 1 never; at 0.5 the two together look perfect (section 4.2 of the paper).
    pairs = make_pairs([0.5] * 4, [1, 1, 0, 0], tags=[0, 0, 1, 1])
    assert smce(pairs) == 0
    assert gmce(pairs, GROUPS) == [0.5, 0.5, None]
    assert mce(pairs, min_pairs=2) == (0.5, {0: 0.5, 1: 0.5})


def test_tags_without_a_group_are_in_no_gmce():
    pairs = make_pairs([0.5, 0.5, 0.9], [1, 1, 0], tags=[3, 4, 9])
    assert gmce(pairs, GROUPS) == [None, None, 0.5]
    assert [where.tolist() for where in group_slices(pairs, GROUPS)] == [[], [], [0]]


def test_no_pairs_say_nothing():
    none = make_pairs([], [], n_units=3)
    assert smce(none) is None
    assert gmce(none, GROUPS) == [None, None, None]
    assert mce(none) == (None, {})
    assert ece(none) is None


def test_mean_over_the_groups_that_have_pairs():
    assert mean_of([0.1, None, 0.3]) == pytest.approx(0.2)
    assert mean_of([None, None]) is None
    assert mean_of([]) is None


def test_mce_worked_by_hand():
    # Tag 2: 0.4 twice, no hit: 0.4. Tag 7: 0.7 twice, both hit: 0.3. Tag 1 has one pair, too few.
    pairs = make_pairs([0.4, 0.9, 0.7, 0.4, 0.7], [0, 0, 1, 0, 1], tags=[2, 1, 7, 2, 7])
    error, per_tag = mce(pairs, min_pairs=2)
    assert per_tag == pytest.approx({2: 0.4, 7: 0.3})
    assert error == pytest.approx(math.sqrt((0.16 + 0.09) / 2))
    error, per_tag = mce(pairs, min_pairs=1)
    assert per_tag == pytest.approx({1: 0.9, 2: 0.4, 7: 0.3})
    assert error == pytest.approx(math.sqrt((0.81 + 0.16 + 0.09) / 3))
    assert mce(pairs, min_pairs=3) == (None, {})
    assert mce(pairs) == (None, {}), "the default asks for 200 pairs"


@pytest.mark.parametrize("value", [0, -5, 1.5, None])
def test_mce_refuses_a_minimum_out_of_range(value):
    with pytest.raises(CalibError, match=r"\[C001\] min_pairs must be a whole number of at least 1"):
        mce(perfect(), min_pairs=value)


def test_ece_worked_by_hand():
    # Four tokens; only the highest pair of each counts: 0.6 (hit), 0.6 (miss), 0.8 (hit), 0.9 (hit).
    scores = [0.6, 0.4, 0.2, 0.6, 0.8, 0.9, 0.1]
    hits = [1, 0, 1, 0, 1, 1, 0]
    pairs = make_pairs(scores, hits, tags=[0, 1, 0, 1, 2, 0, 1], rows=[0, 0, 1, 1, 2, 3, 3], n_units=5)
    # Two bins: {0.6, 0.6} with 1 of 2: gap 0.1. {0.8, 0.9} with 2 of 2: gap 0.15.
    assert ece(pairs, n_bins=2) == pytest.approx(0.125)


def test_ece_of_two_arrays_worked_by_hand():
    # Two scores are a bin each: (.1 + .2) / 2.
    assert ece(np.array([0.9, 0.2]), np.array([1, 0])) == pytest.approx(0.15)
    assert ece([0.9, 0.2], hits := [True, False], n_bins=1) == calibration_error([0.9, 0.2], hits, 1, norm="l1")
    assert ece([], []) is None
    for hits in (None, [1]):
        with pytest.raises(CalibError, match="C002"):
            ece([0.9, 0.2], hits)


def test_ece_keeps_the_top_labels_of_the_raw_scores():
    # Calibration turns the order of token 0 round; its top label stays the raw one (tag 0, a miss), now at 0.3.
    pairs = make_pairs([0.6, 0.4], [0, 1], tags=[0, 1], rows=[0, 0])
    assert ece(pairs, np.array([0.3, 0.7])) == pytest.approx(0.3)


@pytest.mark.parametrize(("scores", "hits", "settings", "error"), [
    # One bin of four at 0.1 with three hits: (0.1 - 0.75)^2 - 0.75 * 0.25 / 3 = 0.4225 - 0.0625 = 0.36.
    ([0.1] * 4, [1, 1, 1, 0], {"n_bins": 1}, 0.6),
    # Two bins of two. {0.2, 0.2}, both hit: 0.64 - 0. {0.9, 0.9}, one hit: 0.16 - 0.25. Mean 0.275: the second is not cut on its own.
    ([0.2, 0.2, 0.9, 0.9], [1, 1, 1, 0], {"n_bins": 2}, math.sqrt(0.275)),
    # (0.5 - 0.5)^2 - 0.25 / 1 is negative: cut at zero.
    ([0.5, 0.5], [0, 1], {"n_bins": 1}, 0),
    # A bin of one pair counts nothing; beta = 1 has nothing but such bins.
    ([0.2, 0.8], [1, 0], {"n_bins": 2}, 0),
    ([0.2, 0.4, 0.8], [1, 1, 0], {"bin_size": 1}, 0),
])  # fmt: skip
def test_debiased_worked_by_hand(scores, hits, settings, error):
    assert debiased_calibration_error(scores, hits, **settings) == pytest.approx(error, abs=1e-15)


def test_debiased_is_nearer_to_the_truth_than_the_plain_estimate():
    # The true error is 0.05 everywhere; squared errors over 200 data sets of 300 pairs.
    rng = np.random.default_rng(11)
    plain, debiased = [], []
    for _ in range(200):
        scores = rng.uniform(0.2, 0.8, 300)
        hits = rng.random(300) < scores + 0.05
        plain.append(calibration_error(scores, hits) ** 2)
        debiased.append(debiased_calibration_error(scores, hits) ** 2)
    assert abs(np.mean(debiased) - 0.05**2) < 0.0015
    assert np.mean(plain) - 0.05**2 > 0.004


@pytest.mark.parametrize("metric", [calibration_error, debiased_calibration_error])
@pytest.mark.parametrize(("hits", "settings", "sentence"), [
    ([0, 3], {}, r"\[C001\] hits"), ([0], {}, r"\[C002\]"), ([0, 1], {"n_bins": 0}, r"\[C001\] n_bins"),
    ([0, 1], {"bin_size": 0}, r"\[C001\] bin_size"),
])  # fmt: skip
def test_bad_input_is_refused(metric, hits, settings, sentence):
    with pytest.raises(CalibError, match=sentence):
        metric([0.5, 0.5], hits, **settings)


@pytest.mark.parametrize(("setting", "value"), [("n_bins", 0), ("bin_size", -1), ("norm", "l3")])
def test_settings_out_of_range_are_refused(setting, value):
    with pytest.raises(CalibError, match=rf"\[C001\] {setting} must be"):
        calibration_error([0.5], [1], **{setting: value})
