import json
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given

from spacy_calib.errors import CalibError
from spacy_calib.metrics import calibration_error
from spacy_calib.metrics.calibration_errors import ece
from spacy_calib.plugins.report.plot_data import (
    HISTOGRAM_BINS,
    bins_for,
    coverage_curves,
    error_marks,
    group_note,
    group_panels,
    reliability_curve,
    reliability_panel,
    share_interval,
    tag_panels,
    top_panel,
    without_remnants,
)
from spacy_calib.types import BinTable, Groups, Pairs

from ...strategies import scored_hits

LABELS = ["NN", "VB", "UH", "ADD", "XX"]
GROUPS = Groups(("1", "2"), np.array([0, 1, 1, 1, -1]), np.array([900, 30, 20, 20, 0]))


def some_pairs() -> Pairs:
    tags = np.array([0, 0, 0, 1, 1, 2, 3])
    scores = np.array([0.9, 0.8, 0.1, 0.6, 0.4, 0.3, 0.2])
    hits = np.array([1, 1, 0, 1, 0, 0, 1], dtype=bool)
    return Pairs(np.arange(7), tags, scores, hits, 7)


def test_a_curve_worked_by_hand():
    curve = reliability_curve([0.1, 0.3, 0.6, 0.8], [0, 0, 1, 0], n_bins=2)
    assert curve.pairs == [2, 2]
    assert curve.scores == pytest.approx([0.2, 0.7])
    assert curve.right == pytest.approx([0.0, 0.5])
    assert curve.error == pytest.approx(0.2)  # both bins are off by 0.2
    # Twentieths that hold 0.1, 0.3, 0.6 and 0.8: each holds its lower end.
    assert [i for i, n in enumerate(curve.histogram) if n] == [2, 6, 12, 16]


def test_what_equal_scores_leave_over_goes_to_the_bin_below():
    # 200 pairs at 0.9, then one at 1.0: a bin of its own, which would stand for an even share of 100.5.
    scores, hits = [0.9] * 200 + [1.0], [1] * 180 + [0] * 20 + [1]
    curve = reliability_curve(scores, hits, n_bins=2)
    assert curve.pairs == [201]
    assert curve.scores == pytest.approx([181 / 201])
    assert curve.right == pytest.approx([181 / 201])
    assert curve.error == pytest.approx(0.0)  # 0.9 of 200, and 1 of 1


def test_the_lowest_bin_goes_to_the_one_above():
    table = BinTable(np.array([1.0, 50.0, 2.0, 3.0, 60.0]), np.linspace(0, 1, 5), np.array([1.0, 0.5, 0.0, 1.0, 1.0]))
    merged = without_remnants(table, 2)  # an even share: 58
    assert merged.counts.tolist() == [56.0, 60.0]
    assert merged.mean_hit.tolist() == pytest.approx([(1 + 25 + 0 + 3) / 56, 1.0])
    assert merged.mean_score.tolist() == pytest.approx([(0 + 12.5 + 1 + 2.25) / 56, 1.0])


def test_the_interval_worked_by_hand():
    # Wilson: (p + z²/2n ± z sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n). For 10 of 10 the low end is n / (n + z²) = 10 / 13.8416.
    low, high = share_interval(np.array([1.0, 0.0, 0.5]), np.array([10.0, 10.0, 4.0]))
    assert (low[0], high[0]) == (pytest.approx(0.7224598), 1.0)
    assert (low[1], high[1]) == (0.0, pytest.approx(1 - 0.7224598))
    # 2 of 4: 0.5 ± 0.5 z / sqrt(n + z²) = 0.5 ± 0.98 / 2.8000...
    assert (low[2], high[2]) == (pytest.approx(0.1500, abs=1e-4), pytest.approx(0.8500, abs=1e-4))


@given(scored_hits())
def test_curves_of_any_scores(pairs):
    scores, hits = pairs[0], pairs[1]
    curve = reliability_curve(scores, hits, n_bins=5)
    assert sum(curve.pairs) == sum(curve.histogram) == len(scores)
    assert len(curve.histogram) == HISTOGRAM_BINS
    assert curve.error == calibration_error(scores, hits, 5)
    for low, right, high in zip(curve.low, curve.right, curve.high, strict=True):
        assert 0 <= low <= right <= high <= 1
        assert high > low
    json.dumps(asdict(curve), allow_nan=False)


def test_no_scores_have_no_curve():
    curve = reliability_curve([], [])
    assert (curve.error, curve.pairs, sum(curve.histogram)) == (None, [], 0)


def test_wrong_numbers_of_bins():
    with pytest.raises(CalibError, match=r"\[C001\] n_bins"):
        reliability_curve([0.5], [1], n_bins=0)
    with pytest.raises(CalibError, match=r"\[C002\]"):
        reliability_panel([0.5], [0.5, 0.6], [1])


def test_groups_take_their_own_pairs():
    pairs = some_pairs()
    panels = group_panels(pairs, pairs.scores**2, GROUPS, LABELS, n_bins=2)
    assert [(one.title, one.pairs) for one in panels] == [("Group 1", 3), ("Group 2", 4)]
    assert panels[0].raw == reliability_curve([0.9, 0.8, 0.1], [1, 1, 0], 2)
    assert panels[1].calibrated == reliability_curve(np.array([0.6, 0.4, 0.3, 0.2]) ** 2, [1, 0, 0, 1], 2)


@pytest.mark.parametrize(("groups", "index", "note"), [
    (GROUPS, 0, "1 tag: NN\ncounted 900 times"),
    (GROUPS, 1, "3 tags: VB · UH · …\ncounted 20 to 30 times"),
    (Groups(("1",), np.array([0, 0, -1, -1, -1])), 0, "2 tags: NN · VB"),
    (Groups(("1", "2"), np.array([0, 0, 0, 0, 0])), 1, "no tags"),
])  # fmt: skip
def test_what_is_said_of_a_group(groups, index, note):
    assert group_note(groups, index, LABELS) == note


def test_tags_take_their_own_pairs():
    pairs = some_pairs()
    add, xx = tag_panels(pairs, pairs.scores, LABELS, ["ADD", "XX"])
    assert (add.title, add.note, add.pairs) == ("ADD", "1 pair", 1)
    assert (xx.note, xx.raw.error) == ("0 pairs", None)


def test_errors_are_named_and_empty_groups_left_out():
    rows = [{"group": name, "raw": raw} for name, raw in (("all", 0.1), ("1", 0.2), ("2", None), ("mean", 0.2))]
    assert [mark["name"] for mark in error_marks(rows)] == ["all (SMCE)", "group 1", "mean (GMCE)"]


@pytest.mark.parametrize(("pairs", "bins"), [(0, 1), (19, 1), (40, 2), (199, 9), (200, 10), (10_000, 10)])
def test_tags_with_few_pairs_get_few_bins(pairs, bins):
    assert bins_for(pairs, 10) == bins
    made = Pairs(np.arange(pairs), np.zeros(pairs, dtype=int), np.linspace(0, 1, pairs), np.arange(pairs) % 2 == 0, pairs)
    (panel,) = tag_panels(made, made.scores, ["A"], ["A"])
    assert len(panel.raw.pairs) <= bins
    assert sum(panel.raw.pairs) == pairs


def test_the_likeliest_label_has_the_ece():
    scores = np.array([0.9, 0.1, 0.6, 0.4])
    pairs = Pairs(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), scores, np.array([True, False, False, True]), 2)
    panel = top_panel(pairs, scores**2, n_bins=1)
    assert (panel.pairs, panel.raw.error, panel.calibrated.error) == (2, ece(pairs, n_bins=1), ece(pairs, scores**2, n_bins=1))


def test_accuracy_of_what_is_kept_is_of_the_likeliest_labels():
    scores = np.array([0.9, 0.1, 0.6, 0.4])
    pairs = Pairs(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), scores, np.array([True, False, False, True]), 2)
    made = coverage_curves(pairs, 1 - scores)
    assert (made["shares"][49], made["raw"][49], made["calibrated"][49]) == (0.5, 1.0, 0.0)
    assert made["raw"][-1] == made["calibrated"][-1] == 0.5
    nothing = Pairs(*(np.zeros(0, dtype=kind) for kind in (int, int, float, bool)), 0)
    assert coverage_curves(nothing, np.zeros(0)) == {"shares": [], "raw": [], "calibrated": []}
