"""Doubts, priorities and rare tags, worked by hand."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.errors import CalibError
from spacy_calib.plugins.review.queue.orders import (
    DOUBTS,
    LABEL,
    any_probability,
    doubts,
    entity_events,
    entropies,
    priorities,
    rare_tags,
    tag_probability,
    token_values,
    unit_doubts,
)  # fmt: skip
from spacy_calib.plugins.review.queue.units import units_of
from spacy_calib.types import Groups
from tests.made import SMALL_CORPUS, corpus_of, hand_tokens


def scores_of(corpus, order, tags=("B",), seed=0):
    return priorities(corpus, units_of(corpus, "sentence"), LABEL[order], token_values(corpus, LABEL[order], tags), seed)


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
def test_priorities(by):
    assert scores_of(corpus_of(SMALL_CORPUS), by) == pytest.approx(GOLDEN[by])


def test_random_depends_on_the_seed_alone():
    corpus = corpus_of([[hand_tokens(0.5) for _ in range(20)]])
    first, second = (scores_of(corpus, "random", seed=seed) for seed in (0, 1))
    assert sorted(first) == sorted(second)
    assert first.tolist() != second.tolist()
    assert first.tolist() == scores_of(corpus, "random", seed=0).tolist()


def test_a_sentence_without_any_of_the_tags_is_not_worth_it():
    assert scores_of(corpus_of([[hand_tokens(0.5), hand_tokens(1.0)]]), "rare-tag").tolist() == [pytest.approx(0.5), -np.inf]


@pytest.mark.parametrize("by", sorted(set(LABEL) - {"random"}))
def test_more_doubt_is_more_urgent(by):
    found = scores_of(corpus_of([[hand_tokens(p, 0.95) for p in (0.9, 0.8, 0.7, 0.55)]]), by)
    assert (np.diff(found) > 0).all()


# One sentence; the raw score is the square of the calibrated one. The last token carries nothing.
WORDS = [("a", "X", {"X": 0.7, "Y": 0.2}), ("b", "X", {"X": 0.4, "Y": 0.6}), ("c", "X", {"X": 0.9}), ("d", "", {"X": 0.5})]
CORPUS = corpus_of([[WORDS]])


@pytest.mark.parametrize(
    ("by", "wanted"),
    [
        ("calibrated", [0.3, 0.6, 0.1]),
        ("raw", [1 - 0.49, 1 - 0.16, 1 - 0.81]),
        ("margin", [0.2 - 0.7, 0.6 - 0.4, 0 - 0.9]),
        ("raw_margin", [0.04 - 0.49, 0.36 - 0.16, 0 - 0.81]),
        # -sum p log p; what the scores leave of 1 is one more outcome
        ("entropy", [0.80181856, 0.67301167, 0.32508297]),
        ("raw_entropy", [0.83315709, 1.01331269, 0.48622296]),
    ],
)
def test_by_hand(by, wanted):
    found = doubts(CORPUS, by)
    np.testing.assert_allclose(found[:3], wanted, atol=1e-8)
    assert np.isnan(found[3])


def test_scores_that_sum_to_more_than_one_are_divided_by_their_sum():
    corpus = corpus_of([[[("a", "X", {"X": 0.9, "Y": 0.9})]]])
    assert entropies(corpus, corpus.tag_calibrated).tolist() == pytest.approx([np.log(2)])


@pytest.mark.parametrize("by", DOUBTS)
def test_every_signal_is_about_the_counted_tokens(by):
    np.testing.assert_array_equal(~np.isnan(doubts(CORPUS, by)), CORPUS.is_counted)


def test_unknown_signals_orders_and_kinds_are_refused():
    with pytest.raises(CalibError, match="signal must be one of calibrated, raw"):
        doubts(CORPUS, "gut feeling")
    with pytest.raises(CalibError, match="order must be one of calibrated, .*, but 'length' was given"):
        unit_doubts(CORPUS, units_of(CORPUS, "token"), "length")
    with pytest.raises(CalibError, match="unit must be one of token, entity, sentence, document"):
        units_of(CORPUS, "paragraph")


LABELS = ("O", "A", "B", "C", "D", "new")
GROUPS = Groups(("O", "1", "2"), np.array([0, 1, 2, 2, 2]), np.array([900, 80, 15, 5, 0]), n_singletons=1)


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
    assert np.isnan(tag_probability(corpus, ["B"])[2])


def test_at_least_one_of_independent_tokens():
    corpus = corpus_of([[hand_tokens(0.5, 0.8), hand_tokens(1.0), hand_tokens(0.0, 0.5)]])
    found = any_probability(units_of(corpus, "sentence"), tag_probability(corpus, ["B"]), entity_events(corpus))
    assert found == pytest.approx([1 - 0.5 * 0.8, 0.0, 1.0])


def test_the_tokens_of_an_entity_count_once():
    corpus = corpus_of([[hand_tokens(0.9)], [hand_tokens(0.5, 0.8, 0.8)]], spans=[(1, 1, 3, "B", 0.2)])
    assert entity_events(corpus).tolist() == [0, 1, 2, 2]
    found = any_probability(units_of(corpus, "sentence"), tag_probability(corpus, ["B"]), entity_events(corpus))
    assert found == pytest.approx([0.1, 1 - 0.5 * 0.8])


@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=5), min_size=1, max_size=5))
def test_the_probability_of_a_sentence_lies_between_its_top_token_and_the_sum(scores):
    corpus = corpus_of([[hand_tokens(*sentence) for sentence in scores]])
    probability = tag_probability(corpus, ["B"])
    found = any_probability(units_of(corpus, "sentence"), probability, np.arange(len(corpus)))
    for value, sentence in zip(found, scores, strict=True):
        own = [1 - score for score in sentence]
        assert max(own) - 1e-9 <= value <= min(1.0, sum(own)) + 1e-9
