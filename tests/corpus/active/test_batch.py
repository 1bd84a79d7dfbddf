"""Order, ties, duplicates, diversity and budget."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.corpus.active.batch import choose
from spacy_calib.corpus.active.pieces import Pieces
from spacy_calib.corpus.distinct import digest
from tests import strategies  # noqa: F401  (loads the settings of hypothesis)


def pieces(words, docs=None):
    words = np.array(words, dtype=np.intp)
    last = np.cumsum(words)
    return Pieces(np.zeros(len(words), np.intp) if docs is None else np.array(docs), last - words, last, words, words)


def chosen(scores, words=None, docs=None, keys=None, **limits):
    words = [1] * len(scores) if words is None else words
    keys = digests(map(str, range(len(scores))) if keys is None else keys)
    if "excluded" in limits:
        limits["excluded"] = digests(limits["excluded"])
    return choose(pieces(words, docs), np.array(scores, dtype=float), keys, **limits).tolist()


def digests(texts):
    return np.array([digest(text) for text in texts], dtype=np.uint64)


def test_the_highest_first_and_equal_ones_shorter_first_then_in_order():
    assert chosen([0.5, 0.9, 0.5, 0.5, 0.1], words=[4, 9, 2, 2, 1]) == [1, 2, 3, 0, 4]


def test_what_cannot_be_scored_is_never_chosen():
    assert chosen([-np.inf, 0.0, -1.0]) == [1, 2]


def test_at_most_n():
    assert chosen([1, 2, 3, 4], n=2) == [3, 2]


def test_a_budget_in_words_passes_over_what_does_not_fit():
    assert chosen([4, 3, 2, 1], words=[5, 6, 4, 1], max_words=10) == [0, 2, 3]
    assert chosen([4, 3, 2, 1], words=[5, 6, 4, 1], max_words=10, n=2) == [0, 2]
    assert chosen([4, 3], words=[5, 6], max_words=4) == []


def test_one_text_is_chosen_once():
    assert chosen([1, 2, 3, 2], keys=["a", "b", "a", "b"]) == [2, 1]


def test_labelled_texts_are_left_out():
    assert chosen([1, 2, 3], keys=["a", "b", "c"], excluded={"b", "z"}) == [2, 0]


def test_round_robin_over_documents():
    # Doc 0 has the three best; the best of each Doc come first, by their score, then the second ones.
    scores, docs = [9, 8, 7, 3, 6, 1], [0, 0, 0, 1, 2, 2]
    assert chosen(scores, docs=docs, per_doc=2) == [0, 4, 3, 1, 5]
    assert chosen(scores, docs=docs, per_doc=1) == [0, 4, 3]
    assert chosen(scores, docs=docs, per_doc=9) == [0, 4, 3, 1, 5, 2]


def test_a_document_is_asked_again_for_a_text_that_another_has_too():
    assert chosen([9, 8, 7], docs=[0, 1, 1], keys=["a", "a", "b"], per_doc=1) == [0, 2]


def test_tokenizers_differ_in_white_space_only():
    assert digest("can not\n go .") == digest("cannot go.") != digest("cannot go!")


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 6), st.integers(0, 2), st.integers(0, 4)), min_size=1, max_size=15),
    st.integers(1, 8),
    st.integers(1, 20),
    st.integers(1, 3),
)
def test_every_bound_holds(rows, n, max_words, per_doc):
    scores, words, docs, texts = (list(column) for column in zip(*rows, strict=True))
    keys = [str(text) for text in texts]
    found = chosen(scores, words, docs, keys, n=n, max_words=max_words, per_doc=per_doc, excluded={"4"})
    assert len(found) <= n
    assert sum(words[i] for i in found) <= max_words
    assert all([docs[i] for i in found].count(doc) <= per_doc for doc in docs)
    assert len({keys[i] for i in found} - {"4"}) == len(found)
    # Without bounds every text is there, whatever the order.
    assert {keys[i] for i in chosen(scores, words, docs, keys)} == set(keys)
