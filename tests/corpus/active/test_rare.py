"""P(rare tag)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.corpus.active.pieces import pieces_of
from spacy_calib.corpus.active.rare import any_probability, entity_events, rare_tags, tag_probability
from spacy_calib.types import Groups
from tests.corpora import corpus_of, tokens

LABELS = ("O", "A", "B", "C", "D", "new")
GROUPS = Groups(("O", "1", "2"), np.array([0, 1, 2, 2, 2]), np.array([900, 80, 15, 5, 0]), alone=1)


@pytest.mark.parametrize(
    ("share", "rare"), [(0.04, ["D"]), (0.05, ["D", "C"]), (0.19, ["D", "C"]), (0.2, ["D", "C", "B"]), (0.99, ["D", "C", "B"])]
)
def test_the_rarest_tags_hold_at_most_a_share(share, rare):
    # 100 gold tokens with a tag that is not O; a label without a group takes no part
    assert rare_tags(LABELS, GROUPS, share) == rare


def test_equally_rare_tags_come_by_name():
    assert rare_tags(["z", "a", "m"], Groups(("1",), np.zeros(3), np.array([1, 1, 98])), 0.02) == ["a", "z"]


def test_no_tag_is_rare():
    assert rare_tags(["A", "B"], Groups(("1",), np.zeros(2), np.array([50, 50])), 0.4) == []
    assert rare_tags(["A", "B"], Groups(("1",), np.zeros(2)), 0.4) == []


def test_the_tags_of_a_token_add_up():
    corpus = corpus_of(
        [[[("a", "A", {"A": 0.5, "B": 0.2, "C": 0.25}), ("b", "A", {"A": 0.5, "B": 0.7, "C": 0.6}), (" ", "B", {"B": 1.0})]]]
    )
    assert tag_probability(corpus, ["B", "C"])[:2] == pytest.approx([0.45, 1.0])
    assert tag_probability(corpus, ["B", "C"], raw=True)[:2] == pytest.approx([0.04 + 0.0625, 0.49 + 0.36])
    assert np.isnan(tag_probability(corpus, ["B"])[2])


def test_at_least_one_of_independent_tokens():
    corpus = corpus_of([[tokens(0.5, 0.8), tokens(1.0), tokens(0.0, 0.5)]])
    found = any_probability(pieces_of(corpus), tag_probability(corpus, ["B"]), entity_events(corpus))
    assert found == pytest.approx([1 - 0.5 * 0.8, 0.0, 1.0])


def test_the_tokens_of_an_entity_count_once():
    corpus = corpus_of([[tokens(0.9)], [tokens(0.5, 0.8, 0.8)]], spans=[(1, 1, 3, "B", 0.2)])
    assert entity_events(corpus).tolist() == [0, 1, 2, 2]
    found = any_probability(pieces_of(corpus), tag_probability(corpus, ["B"]), entity_events(corpus))
    assert found == pytest.approx([0.1, 1 - 0.5 * 0.8])


@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=5), min_size=1, max_size=5))
def test_it_lies_between_the_likeliest_token_and_the_sum(scores):
    corpus = corpus_of([[tokens(*sentence) for sentence in scores]])
    probability = tag_probability(corpus, ["B"])
    found = any_probability(pieces_of(corpus), probability, np.arange(len(corpus)))
    for value, sentence in zip(found, scores, strict=True):
        own = [1 - score for score in sentence]
        assert max(own) - 1e-9 <= value <= min(1.0, sum(own)) + 1e-9
