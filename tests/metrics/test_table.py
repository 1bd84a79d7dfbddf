import json

import numpy as np
import pytest

from spacy_calib.metrics import accuracy, brier, ece, gmce, log_loss, noise_floor, smce
from spacy_calib.metrics.by_document import error_interval
from spacy_calib.metrics.proper import PROPER
from spacy_calib.metrics.table import calibration_table
from spacy_calib.types import Groups

from ..strategies import make_pairs

# Tags 0 and 1 in group a, tag 2 in b, tag 3 in c (without pairs), tag 4 in none.
GROUPS = Groups(("a", "b", "c"), np.array([0, 0, 1, 2, -1]))


@pytest.fixture
def pairs():
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(200), 2)
    scores = rng.random(400)
    tags = np.tile([0, 2], 200) + (np.arange(400) % 4 == 0)  # 1, 2, 0, 2
    tags[-1] = 4
    return make_pairs(scores, rng.random(400) < scores**2, tags=tags, rows=rows, n_units=210)


def test_worked_by_hand():
    # Two tokens of one pair each. Raw 0.6 (hit, tag 0) and 0.8 (miss, tag 2); calibrated 0.9 and 0.3. One bin.
    table = calibration_table(make_pairs([0.6, 0.8], [1, 0], tags=[0, 2]), np.array([0.9, 0.3]), GROUPS, n_bins=1)
    assert (table["tokens"], table["pairs"], table["accuracy"]) == (2, 2, 0.5)
    rows = {row["group"]: row for row in table["errors"]}
    assert list(rows) == ["all", "a", "b", "c", "mean"]
    # Means 0.7 and 0.6 against one hit of two.
    assert rows["all"]["raw"] == pytest.approx(0.2)
    assert rows["all"]["calibrated"] == pytest.approx(0.1)
    assert (rows["a"]["raw"], rows["a"]["calibrated"]) == pytest.approx((0.4, 0.1))
    assert (rows["b"]["raw"], rows["b"]["calibrated"]) == pytest.approx((0.8, 0.3))
    # Unweighted over the groups that have pairs.
    assert (rows["mean"]["raw"], rows["mean"]["calibrated"]) == pytest.approx((0.6, 0.2))
    assert [(row["tags"], row["pairs"]) for row in table["errors"]] == [(5, 2), (2, 1), (1, 1), (1, 0), (4, 2)]
    assert table["scores"]["brier"] == pytest.approx({"raw": (0.16 + 0.64) / 2, "calibrated": (0.01 + 0.09) / 2})
    assert table["scores"]["ece"] == pytest.approx({"raw": 0.2, "calibrated": 0.1})


def test_rows_hold_the_metrics(pairs):
    calibrated = pairs.scores**2
    table = calibration_table(pairs, calibrated, GROUPS, n_bins=5, seed=3)
    whole, *groups, mean = table["errors"]
    assert whole["raw"] == smce(pairs, n_bins=5)
    assert whole["calibrated"] == smce(pairs, calibrated, n_bins=5)
    floor = noise_floor(calibrated, n_bins=5, seed=3)
    assert (whole["floor"], whole["floor95"]) == (floor.mean, floor.q95)
    assert [row["raw"] for row in groups] == gmce(pairs, GROUPS, n_bins=5)
    assert [row["calibrated"] for row in groups] == gmce(pairs, GROUPS, calibrated, n_bins=5)
    assert mean["raw"] == pytest.approx((groups[0]["raw"] + groups[1]["raw"]) / 2)
    assert mean["floor"] < mean["floor95"] < 1
    assert table["accuracy"] == accuracy(pairs)
    assert table["scores"] == {
        "ece": {"raw": ece(pairs, n_bins=5), "calibrated": ece(pairs, calibrated, n_bins=5)},
        "brier": {"raw": brier(pairs.scores, pairs.hits), "calibrated": brier(calibrated, pairs.hits)},
        "nll": {"raw": log_loss(pairs.scores, pairs.hits), "calibrated": log_loss(calibrated, pairs.hits)},
    }


def test_with_documents_the_rows_hold_the_intervals_of_the_true_error(pairs):
    calibrated, documents = pairs.scores**2, np.repeat(np.arange(40), 10)
    without = calibration_table(pairs, calibrated, GROUPS, n_bins=5, seed=3)["errors"]
    whole, *groups, mean = calibration_table(pairs, calibrated, GROUPS, n_bins=5, seed=3, documents=documents)["errors"]
    of_all = error_interval(calibrated, pairs.hits, documents, n_bins=5, seed=3)
    assert (whole["true_low"], whole["true_high"]) == (of_all.low, of_all.high)
    of_mean = error_interval(calibrated, pairs.hits, documents, n_bins=5, seed=3, groups=GROUPS.find(pairs.tags))
    assert (mean["true_low"], mean["true_high"]) == (of_mean.low, of_mean.high)
    in_a = GROUPS.find(pairs.tags) == 0
    of_a = error_interval(calibrated[in_a], pairs.hits[in_a], documents[in_a], n_bins=5, seed=3)
    assert (groups[0]["true_low"], groups[0]["true_high"]) == (of_a.low, of_a.high)
    # All else is the same with and without.
    drop = ("debiased", "true_low", "true_high")
    assert (whole["debiased"], mean["debiased"]) == (of_all.corrected, of_mean.corrected)
    for row, bare in zip([whole, *groups, mean], without, strict=True):
        assert {k: v for k, v in row.items() if k not in drop} == {k: v for k, v in bare.items() if k not in drop}
        assert (bare["true_low"], bare["true_high"]) == (None, None)


def test_the_interval_is_around_the_debiased_error():
    """True scores in few pairs of many groups: the measured mean error lies above its interval, the debiased one in it."""
    rng = np.random.default_rng(5)
    scores = rng.random(400)
    pairs = make_pairs(scores, rng.random(400) < scores, tags=np.arange(400) % 10)
    alone = Groups(tuple("abcdefghij"), np.arange(10))
    mean = calibration_table(pairs, scores, alone, documents=np.repeat(np.arange(40), 10))["errors"][-1]
    assert mean["true_low"] <= mean["debiased"] <= mean["true_high"] < mean["calibrated"]


@pytest.mark.parametrize(("change", "is_worse"), [(lambda scores: scores**2, True), (np.sqrt, False)])
def test_the_change_has_an_interval_by_document(change, is_worse):
    rng = np.random.default_rng(6)
    true = rng.random(2000)
    raw = true if is_worse else true**2
    pairs = make_pairs(raw, rng.random(2000) < true, tags=np.zeros(2000, dtype=int))
    documents = np.repeat(np.arange(100), 20)
    table = calibration_table(pairs, change(raw), GROUPS, documents=documents)
    for name, of in table["change"].items():
        assert of["value"] == pytest.approx(table["scores"][name]["calibrated"] - table["scores"][name]["raw"])
        assert (of["low"] > 0) if is_worse else (of["high"] < 0)
    alone = calibration_table(pairs, change(raw), GROUPS)["change"]["nll"]
    assert (alone["value"] > 0, alone["low"], alone["high"]) == (is_worse, None, None)


def test_a_single_document_says_nothing_of_the_true_error(pairs):
    whole, *_ = calibration_table(pairs, pairs.scores, GROUPS, documents=np.zeros(400, dtype=np.intp))["errors"]
    assert (whole["true_low"], whole["true_high"]) == (None, None)


def test_a_group_without_pairs_has_a_row_that_says_nothing(pairs):
    row = calibration_table(pairs, pairs.scores, GROUPS)["errors"][3]
    assert (row.pop("group"), row.pop("tags"), row.pop("pairs")) == ("c", 1, 0)
    assert set(row.values()) == {None}


def test_pairs_of_tags_without_a_group_count_in_the_whole_only(pairs):
    whole, *groups, mean = calibration_table(pairs, pairs.scores, GROUPS)["errors"]
    assert whole["pairs"] == 400
    assert sum(row["pairs"] for row in groups) == mean["pairs"] == 399


def test_no_pairs_at_all():
    table = calibration_table(make_pairs([], [], n_units=2), np.zeros(0), GROUPS)
    assert (table["tokens"], table["pairs"], table["accuracy"]) == (2, 0, 0.0)
    assert {value for row in table["errors"] for key, value in row.items() if key not in ("group", "tags", "pairs")} == {None}
    assert table["scores"] == {name: {"raw": None, "calibrated": None} for name in ("ece", "brier", "nll")}
    assert table["change"] == {name: dict.fromkeys(("value", "low", "high")) for name in ("nll", "brier")}


def is_plain(value) -> bool:
    """Whether srsly and json can write it: no numpy number, no NaN."""
    if isinstance(value, dict):
        return all(type(key) is str and is_plain(item) for key, item in value.items())
    return all(map(is_plain, value)) if isinstance(value, list) else type(value) in (str, int, float, type(None))


def test_the_table_is_plain_data(pairs):
    table = calibration_table(pairs, pairs.scores, GROUPS)
    assert is_plain(table)
    assert json.loads(json.dumps(table, allow_nan=False)) == table


def test_each_metric_that_is_handed_in_has_a_row(pairs):
    metrics = {**PROPER, "hits": lambda scores, hits: np.mean(hits) - np.mean(scores)}
    table = calibration_table(pairs, pairs.scores**2, GROUPS, metrics=metrics)
    plain = calibration_table(pairs, pairs.scores**2, GROUPS)
    gap = {"raw": pairs.hits.mean() - pairs.scores.mean(), "calibrated": pairs.hits.mean() - (pairs.scores**2).mean()}
    assert table["scores"] == {**plain["scores"], "hits": pytest.approx(gap)}
    assert list(table["scores"]) == ["ece", "brier", "nll", "hits"]
    # Only means of losses can be compared pair by pair.
    assert table["change"] == plain["change"]
    assert list(table["change"]) == ["nll", "brier"]
