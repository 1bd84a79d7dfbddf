"""Differences of two pipelines on the same gold: figures worked by hand, which of them is better, and properties."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_calib.metrics.paired import error_row, found_rows, part_row, unit_rows
from spacy_calib.metrics.proper import log_losses
from spacy_calib.pairs.build import JudgedPairs
from spacy_calib.types import Pairs


def judged(scores, hits, documents) -> JudgedPairs:
    n = len(scores)
    pairs = Pairs(np.arange(n), np.zeros(n, dtype=np.intp), np.full(n, 0.5), np.array(hits, dtype=bool), n)
    return JudgedPairs(pairs, np.array(scores, dtype=np.float64), np.array(documents))


def drawn(n, right, seed, documents=40) -> JudgedPairs:
    rng = np.random.default_rng(seed)
    return judged(np.full(n, right), rng.random(n) < right, np.sort(rng.integers(documents, size=n)))


def test_accuracy_and_log_loss_are_those_of_the_labels():
    model = judged([0.5, 0.5, 0.8, 0.8], [1, 0, 1, 0], [0, 0, 1, 1])
    other = judged([0.9, 0.9, 0.9, 0.9], [1, 1, 1, 0], [0, 0, 1, 1])
    accuracy, loss = unit_rows(model, other)
    assert (accuracy["model"], accuracy["other"], accuracy["difference"]) == (0.5, 0.75, 0.25)
    assert loss["model"] == pytest.approx(-np.log([0.5, 0.5, 0.8, 0.2]).mean())
    assert loss["difference"] == pytest.approx(log_losses([0.9] * 4, [1, 1, 1, 0]).mean() - loss["model"])
    alone = unit_rows(judged([0.5, 0.6], [1, 0], [3, 3]), judged([0.5, 0.6], [1, 1], [3, 3]))
    assert [(row["low"], row["high"], row["better"]) for row in alone] == [(None, None, None)] * 2
    assert unit_rows(judged([], [], []), judged([], [], [])) == []


def test_the_better_one_is_named_and_turns_round_with_the_sides():
    model = drawn(4000, 0.7, 1)
    hits = model.pairs.hits | (np.random.default_rng(2).random(4000) < 0.3)
    other = judged(np.full(4000, hits.mean()), hits, model.documents)
    for one, two, better in ((model, other, "other"), (other, model, "model"), (model, model, None)):
        for row in unit_rows(one, two):
            assert row["better"] == better
            assert row["low"] <= row["difference"] <= row["high"]
    too_sure = judged(np.full(4000, 0.95), model.pairs.hits, model.documents)
    row = error_row(too_sure, model, 10)
    assert row["model"] == pytest.approx(0.95 - model.pairs.hits.mean())
    assert row["better"] == "other"
    assert row["high"] < 0


def test_an_error_needs_no_pairs_in_each_document():
    model = drawn(2000, 0.7, 3)
    kept = np.flatnonzero(model.documents > 4)
    other = judged(model.calibrated[kept], model.pairs.hits[kept], model.documents[kept])
    row = error_row(model, other)
    assert row["low"] < row["difference"] < row["high"]
    assert error_row(model, judged([], [], [])) is None


def test_precision_recall_and_f_by_hand():
    # right, found, in the gold: of two documents
    model, other = np.array([[2.0, 1], [4, 1], [3, 3]]), np.array([[3.0, 3], [3, 3], [3, 3]])
    rows = {row["figure"]: row for row in found_rows(model, other)}
    assert rows["precision"]["model"] == 3 / 5
    assert rows["recall"]["model"] == 3 / 6
    assert rows["f"]["model"] == 6 / 11
    assert [rows[name]["other"] for name in rows] == [1, 1, 1]
    assert rows["f"]["difference"] == pytest.approx(5 / 11)
    assert [row["low"] for row in found_rows(model[:, :1], other[:, :1])] == [None] * 3
    assert found_rows(model, np.array([[0.0, 0], [0, 0], [3, 3]])) == []


def test_a_part_is_tested_by_document():
    right = np.ones(200)
    worse = np.where(np.arange(200) % 4 == 0, 0.0, 1.0)
    row = part_row(right, worse, np.arange(200) // 10)
    assert (row["n"], row["documents"], row["model"], row["other"], row["difference"]) == (200, 20, 1.0, 0.75, -0.25)
    assert row["p"] < 1e-6
    assert part_row(right, right, np.arange(200) // 10)["p"] == 1.0
    # Two documents that agree to a token do not prove anything.
    assert part_row(right, worse, np.arange(200) // 100)["p"] > 0.01
