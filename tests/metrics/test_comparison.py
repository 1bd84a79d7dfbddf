"""Two scored corpora of the same documents: which of their units are the same, and what is compared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spacy_calib.metrics.comparison import compare_slices, compare_spans, compare_units, same_units
from spacy_calib.pairs.scored_corpus import ScoredCorpus, ScoredSpans


def corpus_with(
    texts: list[list[str]], right: list[int], score: float = 0.8, spans: list[tuple[int, int]] = ()
) -> ScoredCorpus:
    """Tokens with a space behind each; right: of each token, -1 without gold. spans: (Doc, right) of each."""
    n = sum(map(len, texts))
    docs = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    of_spans = np.array(spans, dtype=np.intp).reshape(-1, 2)
    zeros, m = np.zeros(n, dtype=np.intp), len(of_spans)
    rows = np.flatnonzero(np.array(right) >= 0)
    return ScoredCorpus(
        names=("A", "B"), docs=docs, n_docs=len(texts), words=np.array([word for text in texts for word in text], dtype=object),
        spaces=np.ones(n, dtype=bool), starts=np.append(True, docs[1:] != docs[:-1]), labels=zeros, raw=np.full(n, score),
        calibrated=np.full(n, score), gold=np.where(np.array(right) == 1, 0, 1), right=np.array(right, dtype=np.int8), rows=rows,
        tags=zeros[rows], columns=zeros[rows], tag_raw=np.full(len(rows), score), tag_calibrated=np.full(len(rows), score),
        hits=np.array(right, dtype=np.int8)[rows],
        spans=ScoredSpans(
            docs=of_spans[:, 0], starts=np.zeros(m, dtype=np.intp), ends=np.ones(m, dtype=np.intp), labels=np.zeros(m, dtype=np.intp),
            raw=np.full(m, score), calibrated=np.full(m, score), right=of_spans[:, 1].astype(np.int8), accept=np.full(m, -1, dtype=np.int8),
        ),
    )  # fmt: skip


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
