"""The priority of sentences, worked by hand."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from spacy_calib.corpus.active.pieces import pieces_of
from spacy_calib.corpus.active.priority import BY, priorities, token_values
from spacy_calib.errors import CalibError
from tests.corpora import SMALL, corpus_of, tokens


def scores_of(corpus, by, signal="calibrated", tags=("B",), seed=0):
    pieces = pieces_of(corpus)
    return priorities(corpus, pieces, token_values(corpus, by, signal, tags), by, seed)


def entropy(p):
    return -p * log(p) - (1 - p) * log(1 - p)


GOLDEN = {
    "least-confident": [0.4, 0.25, 0.4],
    "expected-errors": [0.1 + 0.4, 0.25, 0.8],
    "margin": [((0.1 - 0.9) + (0.4 - 0.6)) / 2, 0.25 - 0.75, 0.4 - 0.6],
    "entropy": [(entropy(0.9) + entropy(0.6)) / 2, entropy(0.75), entropy(0.6)],
    "rare-tag": [1 - 0.9 * 0.6, 0.25, 1 - 0.6 * 0.6],
}


@pytest.mark.parametrize("by", GOLDEN)
def test_calibrated(by):
    found = scores_of(corpus_of(SMALL), by)
    assert found[:3] == pytest.approx(GOLDEN[by])
    assert found[3] == -np.inf


RAW = {
    "least-confident": [1 - 0.36, 1 - 0.5625],
    "expected-errors": [(1 - 0.81) + (1 - 0.36), 1 - 0.5625],
    "margin": [((0.01 - 0.81) + (0.16 - 0.36)) / 2, 0.0625 - 0.5625],
    "rare-tag": [1 - (1 - 0.01) * (1 - 0.16), 0.0625],
}


@pytest.mark.parametrize("by", RAW)
def test_raw(by):
    assert scores_of(corpus_of(SMALL), by, "raw")[:2] == pytest.approx(RAW[by])


def test_random_depends_on_the_seed_alone():
    corpus = corpus_of([[tokens(0.5) for _ in range(20)]])
    first, second = (scores_of(corpus, "random", seed=seed) for seed in (0, 1))
    assert sorted(first) == sorted(second)
    assert first.tolist() != second.tolist()
    assert first.tolist() == scores_of(corpus, "random", seed=0).tolist()


def test_a_sentence_without_any_of_the_tags_is_not_worth_it():
    assert scores_of(corpus_of([[tokens(0.5), tokens(1.0)]]), "rare-tag").tolist() == [pytest.approx(0.5), -np.inf]


@pytest.mark.parametrize("by", sorted(set(BY) - {"random"}))
def test_more_doubt_is_more_urgent(by):
    found = scores_of(corpus_of([[tokens(p, 0.95) for p in (0.9, 0.8, 0.7, 0.55)]]), by)
    assert (np.diff(found) > 0).all()


def test_another_order_is_refused():
    corpus = corpus_of(SMALL)
    with pytest.raises(CalibError, match="by must be one of least-confident, .*, but 'length' was given"):
        token_values(corpus, "length")
    with pytest.raises(CalibError, match="signal must be one of calibrated, raw, but 'logits' was given"):
        token_values(corpus, "margin", "logits")
