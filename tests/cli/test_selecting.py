"""A batch from a pool that comes in parts is the batch of the whole pool."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spacy_calib import CalibError
from spacy_calib.cli.select import SelectOptions
from spacy_calib.cli.selecting.choosing import choose_from, choose_from_all, choose_from_blocks
from spacy_calib.corpus.distinct import digest
from spacy_calib.corpus.parts import some_docs
from tests.corpora import corpus_of

WORDS = ("old", "dog", "sees", "red", "duck")


def made_up(rng):
    """Docs of a few sentences of a few words, so that texts recur in them and in others."""
    sentence = [[(str(rng.choice(WORDS)), "A") for _ in range(rng.integers(1, 4))] for _ in range(12)]
    docs = [[sentence[i] for i in rng.integers(12, size=rng.integers(1, 4))] for _ in range(20)]
    scored = [
        [[(word, tag, {"A": float(rng.random()), "B": 0.3}) for word, tag in one] for one in doc]
        for doc in docs
    ]  # fmt: skip
    return corpus_of(scored, [(3, 0, 1, "PER", 0.5)])


def parts_of(corpus, size):
    """The same in parts, each as if it were alone."""
    parts = (some_docs(corpus, np.arange(first, min(first + size, corpus.n_docs))) for first in range(0, corpus.n_docs, size))
    return [replace(part, numbers=None) for part in parts]


@pytest.mark.parametrize(
    "given",
    [
        {"max_words": 9},
        {"max_words": 6, "by": "margin"},
        {"n": 7, "per_doc": 1},
        {"n": 12, "per_doc": 2, "unit": "sentence", "by": "entropy"},
        {"n": 6},
        {"n": 4, "unit": "doc", "by": "expected-errors"},
        {"purpose": "adapt", "n": 5},
    ],
)
@pytest.mark.parametrize("excluded", [False, True])
def test_parts_of_a_pool_give_the_batch_of_the_whole(given, excluded):
    options = SelectOptions("model", Path("texts.txt"), min_words=1, **given)
    for seed in range(2):
        corpus = made_up(np.random.default_rng(seed))
        texts = [corpus.text(*corpus.doc_starts[[i, i + 1]]) for i in (0, 7, 13)]
        labelled = np.sort(np.array([digest(text) for text in texts], dtype=np.uint64)) if excluded else None
        wanted = choose_from(corpus, options, (), labelled).result
        for size in (2, 7, 20):
            batches = [choose_from_all(parts_of(corpus, size), options, (), labelled)]
            if not (options.needs_all or excluded):
                batches.append(choose_from_blocks(parts_of(corpus, size), options, ()))
            for found in (batch.result for batch in batches):
                assert found["pool"].pop("expected_errors") == pytest.approx(wanted["pool"]["expected_errors"])
                assert {**found, "pool": {**found["pool"], "expected_errors": wanted["pool"]["expected_errors"]}} == wanted


def test_random_parts_of_a_pool():
    corpus = made_up(np.random.default_rng(0))
    batches = {
        how: [
            [row["text"] for row in way(parts_of(corpus, size), options, (), *more).result["rows"]]
            for size in (2, 5)
        ]
        for how, way, more, options in (
            ("the best so far", choose_from_blocks, (), SelectOptions("m", Path("t"), by="random", n=6, min_words=1)),
            ("all", choose_from_all, (None,), SelectOptions("m", Path("t"), by="random", n=6, min_words=1)),
        )
    }  # fmt: skip
    first, *others = [texts for found in batches.values() for texts in found]
    assert others == [first] * 3


def test_parts_without_anything_to_choose():
    parts = parts_of(made_up(np.random.default_rng(0)), 4)
    with pytest.raises(CalibError, match="C091"):
        choose_from_all(parts, SelectOptions("m", Path("t"), max_words=20, min_words=500), (), None)
    with pytest.raises(CalibError, match="C094"):
        choose_from_all(parts, SelectOptions("m", Path("t"), max_words=1, min_words=2), (), None)
