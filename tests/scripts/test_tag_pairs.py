"""Pairs of tags: products against every product."""

from __future__ import annotations

import numpy as np
import pytest
import study_tag_pairs
from hypothesis import given
from hypothesis import strategies as st
from study_tag_pairs import product_pairs

from spacy_calib.pairs.build import from_dense, pair_up
from spacy_calib.types import Pairs

from ..strategies import make_pairs, pairs_of_tokens

N_TAGS = 6


def test_products_worked_by_hand():
    # Tokens 0 to 3; no place between 1 and 2; token 2 has no tags.
    singles = make_pairs(
        [0.7, 0.3, 0.6, 0.4, 1.0], [1, 0, 0, 1, 1], tags=[0, 2, 1, 2, 0], rows=[0, 0, 1, 1, 3], n_units=4
    )  # fmt: skip
    found = product_pairs(singles, [True, False, True], 3, threshold=0.2)
    # 0.3 * 0.6 = 0.18 and 0.3 * 0.4 = 0.12 stay below.
    assert found.pairs.scores == pytest.approx([0.42, 0.28])
    assert found.pairs.rows.tolist() == [0, 0]
    assert found.pairs.tags.tolist() == [0 * 3 + 1, 0 * 3 + 2]
    assert found.pairs.hits.tolist() == [False, True]
    assert found.pairs.n_units == 2
    assert found.of(np.array([0.5, 0.1, 1.0, 0.2, 0.0])) == pytest.approx([0.5, 0.1])


@given(pairs_of_tokens(N_TAGS), st.floats(0, 0.9), st.lists(st.booleans(), min_size=19, max_size=19))
def test_no_product_is_missed_and_none_is_made_up(singles, threshold, joined):
    expected = [
        (singles.rows[i], singles.tags[i] * N_TAGS + singles.tags[j], singles.scores[i] * singles.scores[j],
         singles.hits[i] and singles.hits[j])
        for i in range(len(singles))
        for j in range(len(singles))
        if singles.rows[j] == singles.rows[i] + 1 and joined[singles.rows[i]]
        and singles.scores[i] * singles.scores[j] >= threshold
    ]  # fmt: skip
    found = product_pairs(singles, joined, N_TAGS, threshold)
    pairs = found.pairs
    assert list(zip(pairs.rows, pairs.tags, pairs.scores, pairs.hits, strict=True)) == expected
    assert found.of(singles.scores).tolist() == pairs.scores.tolist()
    assert pairs.n_units == sum(joined)


def test_a_few_products_at_a_time_are_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    singles = pair_up(from_dense(rng.dirichlet(np.full(N_TAGS, 0.5), 300)), rng.integers(0, N_TAGS, 300))
    joined = rng.random(299) < 0.8
    whole = product_pairs(singles, joined, N_TAGS)
    monkeypatch.setattr(study_tag_pairs, "_PRODUCTS", 10)
    parts = product_pairs(singles, joined, N_TAGS)
    for name in ("rows", "tags", "scores", "hits"):
        assert np.array_equal(getattr(parts.pairs, name), getattr(whole.pairs, name))


def test_six_hundred_tags_need_little_memory():
    import tracemalloc

    n, n_tags = 5000, 600
    rng = np.random.default_rng(1)
    # Two tags a token, of 0.6 and 0.4: a dense array of pairs would be 14 GB.
    tags = np.sort(rng.permuted(np.tile(np.arange(n_tags), (n, 1)), axis=1)[:, :2], axis=1).ravel()
    singles = Pairs(np.repeat(np.arange(n), 2), tags, np.tile([0.6, 0.4], n), np.tile([True, False], n), n)
    joined = np.ones(n - 1, dtype=bool)
    tracemalloc.start()
    found = product_pairs(singles, joined, n_tags)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found.pairs) == 4 * (n - 1)
    assert int(found.pairs.tags.max()) < n_tags**2
    assert peak < 20 << 20


def test_nothing_gives_nothing():
    empty = product_pairs(make_pairs([], [], n_units=0), [], 3)
    assert (len(empty.pairs), empty.pairs.n_units) == (0, 0)
    assert len(product_pairs(make_pairs([0.9], [1]), [], 1).pairs) == 0
