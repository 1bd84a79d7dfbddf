"""Order, ties, duplicates, diversity and budget."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.pairs.keyed import digest
from spacy_calib.plugins.review.queue.choosing import (
    QueuePlan,
    queue_of,
    sample_documents,
    sample_entities,
    select_units,
    stratified_sample,
)
from spacy_calib.plugins.review.queue.units import units_of
from tests.made import corpus_of
from tests.strategies import arrays, tied_score

PLAN = QueuePlan("sentence", "calibrated")


def select(scores, words=None, docs=None, keys=None, left_out=None, excluded=(), **limits):
    n = len(scores)
    sizes = np.array([1] * n if words is None else words)
    texts = digests(map(str, range(n)) if keys is None else keys)
    reasons = {
        key: np.array([reason == key for reason in left_out or [None] * n]) for key in ("accepted", "below", "too_short")
    }
    reasons["excluded"] = np.isin(texts, digests(excluded))
    documents = np.zeros(n, np.intp) if docs is None else np.array(docs)
    return select_units(replace(PLAN, **limits), np.array(scores, dtype=float), sizes, documents, sizes, texts, reasons)


def chosen(*arguments, **options):
    return select(*arguments, **options)[0].tolist()


def digests(texts):
    return np.array([digest(text) for text in texts], dtype=np.uint64)


# Doc 0 has the three best; the best of each Doc come first, by their score, then the second ones.
ROUNDS = {"scores": [9, 8, 7, 3, 6, 1], "docs": [0, 0, 0, 1, 2, 2]}


@pytest.mark.parametrize(("units", "order"), [
    (
        {"scores": [0.5, 0.9, 0.5, 0.5, 0.1], "words": [4, 9, 2, 2, 1]},
        [1, 2, 3, 0, 4],
    ),  # of equal ones the shorter, then the first
    ({"scores": [1, 2, 3, 4], "n": 2}, [3, 2]),
    ({"scores": [1, 2, 3, 2], "keys": "abab"}, [2, 1]),  # one text once
    ({"scores": [1, 2, 3], "keys": "abc", "excluded": {"b", "z"}}, [2, 0]),
    ({**ROUNDS, "per_doc": 2}, [0, 4, 3, 1, 5]),
    ({**ROUNDS, "per_doc": 1}, [0, 4, 3]),
    ({**ROUNDS, "per_doc": 9}, [0, 4, 3, 1, 5, 2]),
    (
        {"scores": [9, 8, 7], "docs": [0, 1, 1], "keys": "aab", "per_doc": 1},
        [0, 2],
    ),  # asked again for a text of another Doc
])  # fmt: skip
def test_which_units_are_chosen_in_which_order(units, order):
    assert chosen(**units) == order


def test_left_out_units_are_counted_and_not_chosen():
    # a is labelled, b is too short and labelled, c accepted, and the second d a repeat: each counts once.
    units = {
        "scores": [0.4, 0.9, 0.7, 0.1, 0.1],
        "keys": "abcdd",
        "left_out": [None, "too_short", "accepted", None, None],
        "excluded": "ab",
    }
    order, _, left_out = select(**units)
    assert (order.tolist(), left_out) == ([3], {"accepted": 1, "below": 0, "too_short": 1, "excluded": 1, "repeats": 1})
    order, _, left_out = select(**units, repeats=True)
    assert (order.tolist(), left_out) == ([3, 4], {"accepted": 1, "below": 0, "too_short": 1, "excluded": 1, "repeats": 0})


def test_a_random_order_of_doubtful_ones_is_no_random_sample():
    random = replace(PLAN, order="random")
    assert [plan.sampling for plan in (PLAN, random, replace(random, accepted=False), replace(PLAN, is_stratified=True))] == [
        *("doubt", "random"), *("doubt", "random"),
    ]  # fmt: skip


def test_tokenizers_differ_in_white_space_only():
    assert digest("can not\n go .") == digest("cannot go.") != digest("cannot go!")


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 6), st.integers(0, 2), st.integers(0, 4)), min_size=1, max_size=15),
    st.integers(1, 8),
    st.integers(1, 3),
)
def test_every_bound_holds(rows, n, per_doc):
    scores, words, docs, texts = (list(column) for column in zip(*rows, strict=True))
    keys = [str(text) for text in texts]
    found = chosen(scores, words, docs, keys, n=n, per_doc=per_doc, excluded={"4"})
    assert len(found) <= n
    assert all([docs[i] for i in found].count(doc) <= per_doc for doc in docs)
    assert len({keys[i] for i in found} - {"4"}) == len(found)
    # Without bounds every text is there, whatever the order.
    assert {keys[i] for i in chosen(scores, words, docs, keys)} == set(keys)


def test_one_from_each_part():
    # Places 0 to 9 have the lowest values, and so on; which one of the ten is luck.
    values = np.random.default_rng(0).permutation(100)
    drawn = [np.sort(values[stratified_sample(values, 10, seed)]) for seed in range(5)]
    for found in drawn:
        assert (found // 10).tolist() == list(range(10))
    assert len({tuple(found) for found in drawn}) == 5


def test_the_order_says_nothing_of_the_values():
    # Of ten parts each leads about one draw in ten: 200 of 2,000, with a standard deviation of 13.
    values = np.arange(30.0)
    leads = np.bincount([stratified_sample(values, 10, seed)[0] // 3 for seed in range(2000)], minlength=10)
    assert 140 < leads.min() <= leads.max() < 260


@pytest.mark.parametrize("values", [np.arange(7.0), np.array([0.0, 0, 0, 0, 1, 1, 1])])
def test_each_is_as_likely_as_any_other_where_the_parts_are_no_whole_numbers(values):
    # 4,000 draws, each place in 3/7 of them, with a standard deviation of .008.
    counts = np.bincount(np.concatenate([stratified_sample(values, 3, seed) for seed in range(4000)]), minlength=7)
    assert counts / 4000 == pytest.approx(np.full(7, 3 / 7), abs=0.035)


@given(arrays(tied_score, min_size=0, max_size=20), st.integers(1, 25), st.integers(0, 99))
def test_as_many_as_there_are_and_none_twice(values, n, seed):
    found = stratified_sample(values, n, seed)
    assert found.dtype == np.intp
    assert len(set(found.tolist())) == len(found) == min(n, len(values))
    assert set(found.tolist()) <= set(range(len(values)))
    assert stratified_sample(values, n, seed).tolist() == found.tolist()


def test_the_shortest_documents_are_left_out():
    # 100 words in all: those of 1, 2, 3 and 3 words hold 9 of them; with one of 6 they would hold 15.
    words = np.array([1, 20, 3, 6, 2, 30, 3, 35])
    drawn = [set(sample_documents(np.zeros(8), words, 3, seed).tolist()) for seed in range(30)]
    assert set.union(*drawn) == {1, 3, 5, 7}


def test_documents_of_one_length_are_all_kept_or_none():
    drawn = [set(sample_documents(np.zeros(20), np.full(20, 5), 5, seed).tolist()) for seed in range(40)]
    assert set.union(*drawn) == set(range(20))


def test_short_ones_are_drawn_where_there_are_no_others():
    assert set(sample_documents(np.zeros(3), np.array([1, 1, 98]), 2).tolist()) < {0, 1, 2}
    assert set(sample_documents(np.zeros(3), np.array([1, 1, 98]), 1).tolist()) == {2}
    assert sample_documents(np.zeros(0), np.zeros(0, dtype=int), 5).tolist() == []


def test_the_long_ones_are_spread_over_their_doubt():
    doubt, words = np.linspace(0, 0.5, 60), np.tile([1, 50, 50], 20)
    found = np.sort(sample_documents(doubt, words, 4, seed=3))
    assert (words[found] == 50).all()
    assert (found // 15).tolist() == [0, 1, 2, 3]


DASHES = [("------", "X", {"X": 0.4})]
TALK = [("Fish", "N", {"N": 0.6}), ("swim", "V", {"V": 0.8}), (".", "P", {"P": 0.9})]
MIXED = corpus_of([[TALK, DASHES], [TALK], [DASHES]])


@pytest.mark.parametrize(("least", "short"), [(0, 0), (1, 2), (2, 2), (3, 4)])
def test_dashes_and_stops_are_no_words(least, short):
    queue = queue_of(MIXED, replace(PLAN, min_words=least, repeats=True))
    assert (queue.left_out["too_short"], len(queue.order)) == (short, 4 - short)


def test_documents_to_adapt_to_are_sorted_by_their_expected_share_of_errors():
    queue = queue_of(MIXED, QueuePlan("document", "calibrated", n=3, is_stratified=True))
    assert queue.priorities == pytest.approx([1.3 / 4, 0.7 / 3, 0.6])


def test_equal_ones_are_ordered_by_the_raw_scores():
    corpus = corpus_of([[[("a", "A", {"A": 0.5}), ("b", "A", {"A": 0.5}), ("c", "A", {"A": 0.5})]]])
    corpus = replace(corpus, raw=np.array([0.4, 0.2, 0.3]))
    assert queue_of(corpus, QueuePlan("token", "calibrated")).order.tolist() == [1, 2, 0]


def test_entities_that_reach_their_cut_off_are_left_out():
    corpus = corpus_of([[TALK]], [(0, 0, 1, "B", 0.5), (0, 1, 2, "B", 0.8), (0, 2, 3, "B", 0.6)])
    corpus = replace(corpus, spans=replace(corpus.spans, accept=np.array([0, 1, -1], dtype=np.int8)))
    queue = queue_of(corpus, QueuePlan("entity", "calibrated", accepted=False))
    assert (queue.order.tolist(), queue.left_out["accepted"]) == ([0], 2)
    assert len(queue.units) == len(units_of(corpus, "entity")) == 3


def test_every_entity_has_the_same_chance():
    """Documents of 1 to 5 entities, and one of 20; 15 of 50 are drawn, so the large one gives 6, and no other more than two."""
    documents = np.repeat(np.arange(12), [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 20, 0])
    drawn = np.zeros(len(documents))
    for seed in range(3000):
        index = sample_entities(documents, 15, seed)
        assert len(set(index.tolist())) == 15
        counts = np.bincount(documents[index], minlength=11)
        assert counts[10] == 6
        assert counts[:10].max() <= 2
        drawn[index] += 1
    chance = drawn / 3000
    assert np.abs(chance - 0.3).max() < 4 * np.sqrt(0.3 * 0.7 / 3000)


def test_a_document_gives_one_entity_unless_it_has_a_larger_share():
    documents = np.repeat(np.arange(500), np.arange(500) % 4 + 1)
    for seed in range(20):
        index = sample_entities(documents, 250, seed)
        assert len(set(documents[index].tolist())) == 250
    assert sorted(sample_entities(documents, 10**6).tolist()) == list(range(len(documents)))
    assert len(sample_entities(np.zeros(0, dtype=int), 5)) == 0


def test_the_first_part_of_a_sample_is_a_sample():
    documents = np.repeat(np.arange(100), 3)
    first = np.concatenate([sample_entities(documents, 60, seed)[:10] for seed in range(2000)])
    chance = np.bincount(first, minlength=300) / 2000
    assert np.abs(chance - 1 / 30).max() < 4.5 * np.sqrt(1 / 30 / 2000)
