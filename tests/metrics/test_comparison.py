"""Two pipelines on the same gold: figures worked by hand, which of them is better, and which of their units are the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from spacy_calib.metrics.comparison import (
    compare_slices,
    compare_spans,
    compare_units,
    error_row,
    part_row,
    same_units,
    span_rows,
    unit_rows,
)
from spacy_calib.metrics.proper import log_losses
from spacy_calib.pairs.build import JudgedPairs
from spacy_calib.pairs.scored_corpus import ScoredCorpus
from tests.made import corpus_of, judged_pairs


def corpus_with(
    texts: list[list[str]], right: list[int], score: float = 0.8, spans: Sequence[tuple[int, int]] = ()
) -> ScoredCorpus:
    """Tokens with a space behind each and the label A; right: of each token, -1 without gold. spans: (Doc, right) of each."""
    docs = [[[(word, "A", {"A": score}) for word in text]] for text in texts]
    corpus = corpus_of(docs, [(doc, 0, 1, "A", score) for doc, _ in spans])
    hits, hits_of_spans = (np.array(column, dtype=np.int8) for column in (right, [hit for _, hit in spans]))
    scored_spans = replace(corpus.spans, right=hits_of_spans)
    return replace(corpus, names=("A", "B"), gold=np.where(hits == 1, 0, 1), right=hits, hits=hits, spans=scored_spans)


def test_units_are_the_same_at_the_same_characters_of_the_same_text():
    texts = [["can", "not", "go"], ["a", "b"]]
    model = corpus_with(texts, [1, 1, 1, 1, 0])
    split = corpus_with([["can", "n", "t", "go"], ["a", "b"]], [1, 1, 1, 1, 1, 1])
    # "not" and "n" begin at the same character and end elsewhere.
    assert [rows.tolist() for rows in same_units(model, split)] == [[0, 2, 3, 4], [0, 3, 4, 5]]
    assert [rows.tolist() for rows in same_units(model, model)] == [list(range(5))] * 2
    unknown = corpus_with(texts, [1, -1, 1, 1, 0])
    assert same_units(model, unknown)[0].tolist() == [0, 2, 3, 4]
    silent = replace(model, calibrated=np.array([0.8, np.nan, 0.8, 0.8, np.nan]))
    assert same_units(silent, unknown)[1].tolist() == [0, 2, 3]


def test_figures_of_units_are_of_those_that_are_the_same():
    texts = [["a", "b"], ["c", "d"], ["e", "f"]]
    model, other = corpus_with(texts, [1, 1, 1, 1, 0, -1]), corpus_with(texts, [0, 0, 1, 0, 0, 1], 0.5)
    accuracy, loss, error = compare_units(model, other, same_units(model, other))
    assert (accuracy["figure"], accuracy["model"], accuracy["other"]) == ("accuracy", 0.8, 0.2)
    assert loss["other"] == pytest.approx(-np.log(0.5))
    assert (error["figure"], error["model"], error["other"]) == ("smce", pytest.approx(0.0), pytest.approx(0.3))


def test_entities_are_compared_by_what_is_in_the_gold():
    texts = [["a"], ["b"], ["c"]]
    model = corpus_with(texts, [1, 1, 1], spans=[(0, 1), (1, 0), (1, 1), (2, -1)])
    other = corpus_with(texts, [1, 1, 1], spans=[(0, 1), (1, 1), (2, 1)])
    rows = {row["figure"]: row for row in compare_spans(model, other, np.array([1, 2, 1]))}
    assert (rows["precision"]["model"], rows["recall"]["model"], rows["f"]["model"]) == (2 / 3, 2 / 4, 4 / 7)
    assert (rows["precision"]["other"], rows["recall"]["other"]) == (1, 3 / 4)
    assert set(rows) == {"precision", "recall", "f", "smce"}


def test_parts_where_the_other_is_surely_worse_come_first_and_small_ones_are_counted():
    texts, n = [["a", "b", "c", "d"]] * 61, 61 * 4
    model = corpus_with(texts, [1] * n)
    wrong = np.array([1] * n)
    wrong[:80:2] = 0
    wrong[80:160:40] = 0
    values = ["bad"] * 20 + ["fine"] * 20 + ["same"] * 20 + ["one"]
    other = corpus_with(texts, wrong.tolist())
    told = compare_slices(model, other, same_units(model, other), values)
    assert [(row["slice"], row["surely"]) for row in told["rows"]] == [("bad", True), ("fine", False), ("same", False)]
    assert told["rows"][0]["difference"] == -0.5
    assert told["too_small"] == 1
    turned = compare_slices(other, model, same_units(other, model), values)
    assert [(row["slice"], row["surely"]) for row in turned["rows"]] == [("same", False), ("fine", False), ("bad", True)]


def sampled_pairs(n, right, seed, documents=40) -> JudgedPairs:
    rng = np.random.default_rng(seed)
    return judged_pairs(np.full(n, right), rng.random(n) < right, np.sort(rng.integers(documents, size=n)))


def test_accuracy_and_log_loss_are_those_of_the_labels():
    model = judged_pairs([0.5, 0.5, 0.8, 0.8], [1, 0, 1, 0], [0, 0, 1, 1])
    other = judged_pairs([0.9, 0.9, 0.9, 0.9], [1, 1, 1, 0], [0, 0, 1, 1])
    accuracy, loss = unit_rows(model, other)
    assert (accuracy["model"], accuracy["other"], accuracy["difference"]) == (0.5, 0.75, 0.25)
    assert loss["model"] == pytest.approx(-np.log([0.5, 0.5, 0.8, 0.2]).mean())
    assert loss["difference"] == pytest.approx(log_losses([0.9] * 4, [1, 1, 1, 0]).mean() - loss["model"])
    alone = unit_rows(judged_pairs([0.5, 0.6], [1, 0], [3, 3]), judged_pairs([0.5, 0.6], [1, 1], [3, 3]))
    assert [(row["low"], row["high"], row["better"]) for row in alone] == [(None, None, None)] * 2
    assert unit_rows(judged_pairs([], [], []), judged_pairs([], [], [])) == []


def test_the_better_one_is_named_and_turns_round_with_the_sides():
    model = sampled_pairs(4000, 0.7, 1)
    hits = model.pairs.hits | (np.random.default_rng(2).random(4000) < 0.3)
    other = judged_pairs(np.full(4000, hits.mean()), hits, model.documents)
    for one, two, better in ((model, other, "other"), (other, model, "model"), (model, model, None)):
        for row in unit_rows(one, two):
            assert row["better"] == better
            assert row["low"] <= row["difference"] <= row["high"]
    too_sure = judged_pairs(np.full(4000, 0.95), model.pairs.hits, model.documents)
    row = error_row(too_sure, model, 10)
    assert row["model"] == pytest.approx(0.95 - model.pairs.hits.mean())
    assert row["better"] == "other"
    assert row["high"] < 0


def test_an_error_needs_no_pairs_in_each_document():
    model = sampled_pairs(2000, 0.7, 3)
    kept = np.flatnonzero(model.documents > 4)
    other = judged_pairs(model.calibrated[kept], model.pairs.hits[kept], model.documents[kept])
    row = error_row(model, other)
    assert row["low"] < row["difference"] < row["high"]
    assert error_row(model, judged_pairs([], [], [])) is None


def test_precision_recall_and_f_by_hand():
    # right, found, in the gold: of two documents
    model, other = np.array([[2.0, 1], [4, 1], [3, 3]]), np.array([[3.0, 3], [3, 3], [3, 3]])
    rows = {row["figure"]: row for row in span_rows(model, other)}
    assert rows["precision"]["model"] == 3 / 5
    assert rows["recall"]["model"] == 3 / 6
    assert rows["f"]["model"] == 6 / 11
    assert [rows[name]["other"] for name in rows] == [1, 1, 1]
    assert rows["f"]["difference"] == pytest.approx(5 / 11)
    assert [row["low"] for row in span_rows(model[:, :1], other[:, :1])] == [None] * 3
    assert span_rows(model, np.array([[0.0, 0], [0, 0], [3, 3]])) == []


def test_a_part_is_tested_by_document():
    right = np.ones(200)
    worse = np.where(np.arange(200) % 4 == 0, 0.0, 1.0)
    row = part_row(right, worse, np.arange(200) // 10)
    assert (row["n"], row["documents"], row["model"], row["other"], row["difference"]) == (200, 20, 1.0, 0.75, -0.25)
    assert row["p"] < 1e-6
    assert part_row(right, right, np.arange(200) // 10)["p"] == 1.0
    # Two documents that agree to a token do not prove anything.
    assert part_row(right, worse, np.arange(200) // 100)["p"] > 0.01
