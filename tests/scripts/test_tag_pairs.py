"""Pairs of tags: products against every product, a joint against a toy HMM whose joint is known to be true."""

from __future__ import annotations

import numpy as np
import pytest
from analysis import tag_pairs
from analysis.tag_pairs import frequent_errors, joint_pairs, pair_gold, product_pairs
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.errors import CalibError
from spacy_calib.metrics import noise_floor, smce
from spacy_calib.pairs.build import concatenate, from_dense, pair_up
from spacy_calib.types import Marginals, Pairs

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
    assert found.of([0.5, 0.1, 1.0, 0.2, 0.0]) == pytest.approx([0.5, 0.1])


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
    monkeypatch.setattr(tag_pairs, "_PRODUCTS", 10)
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


class Hmm:
    """A hidden Markov model with K tags and M words, and its exact posteriors by forward-backward."""

    def __init__(self, n_tags: int, n_words: int, rng: np.random.Generator):
        self.start = rng.dirichlet(np.ones(n_tags))
        # Sticky, so that neighbouring tags are far from independent.
        self.move = 0.2 * rng.dirichlet(np.ones(n_tags), n_tags) + 0.8 * np.eye(n_tags)
        self.emit = rng.dirichlet(np.full(n_words, 0.7), n_tags)

    def draw(self, n: int, rng: np.random.Generator):
        """(tags, words) of a sentence of n tokens."""
        tags = [rng.choice(len(self.start), p=self.start)]
        for _ in range(n - 1):
            tags.append(rng.choice(len(self.start), p=self.move[tags[-1]]))
        return np.array(tags), np.array([rng.choice(self.emit.shape[1], p=self.emit[tag]) for tag in tags])

    def posteriors(self, words: np.ndarray):
        """(marginals (n, K), joint of neighbours (n - 1, K, K))."""
        seen = self.emit[:, words].T
        forward, backward = np.zeros_like(seen), np.ones_like(seen)
        forward[0] = self.start * seen[0]
        for i in range(1, len(words)):
            forward[i] = forward[i - 1] @ self.move * seen[i]
        for i in range(len(words) - 2, -1, -1):
            backward[i] = self.move @ (seen[i + 1] * backward[i + 1])
        total = forward[-1].sum()
        joint = forward[:-1, :, None] * self.move * (seen[1:] * backward[1:])[:, None, :]
        return forward * backward / total, joint / total


def test_the_toy_hmm_is_right_about_itself():
    """Forward-backward against the sum over all sequences."""
    model = Hmm(2, 3, np.random.default_rng(3))
    words = np.array([0, 2, 1])
    sequences = np.array(np.meshgrid([0, 1], [0, 1], [0, 1], indexing="ij")).reshape(3, -1).T
    weights = np.array([
        model.start[a] * model.move[a, b] * model.move[b, c] * np.prod(model.emit[[a, b, c], words]) for a, b, c in sequences
    ])  # fmt: skip
    marginals, joint = model.posteriors(words)
    of_one = weights[sequences[:, 1] == 1].sum() / weights.sum()
    of_two = weights[(sequences[:, 1] == 0) & (sequences[:, 2] == 1)].sum() / weights.sum()
    assert marginals[1, 1] == pytest.approx(of_one)
    assert joint[1, 0, 1] == pytest.approx(of_two)
    assert joint.sum(axis=2) == pytest.approx(marginals[:-1])
    assert joint.sum(axis=1) == pytest.approx(marginals[1:])


def test_the_joint_of_a_true_model_is_calibrated_and_the_product_is_not():
    rng = np.random.default_rng(4)
    model = Hmm(3, 5, rng)
    singles, products, joints = [], [], []
    for _ in range(200):
        tags, words = model.draw(12, rng)
        marginals, joint = model.posteriors(words)
        own = pair_up(from_dense(marginals), tags)
        singles.append(own)
        products.append(product_pairs(own, np.ones(11, dtype=bool), 3).pairs)
        joints.append(joint_pairs(joint, tags, 3))
    for pairs in (concatenate(singles), concatenate(joints)):
        assert smce(pairs) < 2 * noise_floor(pairs.scores).q95
    product = concatenate(products)
    assert smce(product) > 3 * noise_floor(product.scores).q95


def test_a_joint_worked_by_hand():
    joint = np.array([[[0.5, 0.005], [0.2, 0.295]], [[0.1, 0.2], [0.3, 0.4]], [[1.0, 0], [0, 0]]])
    found = joint_pairs(joint, [1, 0, -1, -2], 2)
    # The place of an unknown gold tag has misses only; that of a missing one is left out.
    assert found.rows.tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert found.tags.tolist() == [0, 2, 3, 0, 1, 2, 3]
    assert found.scores.tolist() == [0.5, 0.2, 0.295, 0.1, 0.2, 0.3, 0.4]
    assert found.hits.tolist() == [False, True, False, False, False, False, False]
    assert found.n_units == 2
    assert len(joint_pairs(joint, [1, 0, -1, -2], 2, joined=[True, False, True])) == 3


def test_a_joint_may_be_dense_sparse_or_marginals():
    from scipy.sparse import coo_matrix

    rng = np.random.default_rng(2)
    joint = rng.dirichlet(np.full(16, 0.3), 40).reshape(40, 4, 4)
    gold = rng.integers(0, 4, 41)
    dense = joint_pairs(joint, gold, 4, threshold=0.05)
    flat = joint.reshape(40, 16)
    rows, codes = np.nonzero(flat >= 0.05)
    others = [coo_matrix(flat), Marginals(rows, codes, flat[rows, codes], 40)]
    for other in others:
        found = joint_pairs(other, gold, 4, threshold=0.05)
        for name in ("rows", "tags", "scores", "hits"):
            assert np.array_equal(getattr(found, name), getattr(dense, name))


def test_gold_codes():
    assert pair_gold([0, 2, -1, 1, -2, -1], 3).tolist() == [2, -1, -1, -2, -2]
    assert pair_gold([1], 3).tolist() == []


def test_errors_of_the_most_frequent():
    # Tag 3 is right three times, 1 and 5 once each (the lower first), 0 never.
    pairs = make_pairs([0.5, 0.5, 0.5, 0.9, 0.2, 0.6], [1, 1, 1, 1, 0, 1], tags=[3, 3, 3, 1, 0, 5])
    assert frequent_errors(pairs, most=2) == pytest.approx({3: 0.5, 1: 0.1})
    assert list(frequent_errors(pairs, most=9)) == [3, 1, 5]
    assert frequent_errors(pairs, np.ones(6), most=1) == {3: 0.0}
    assert frequent_errors(make_pairs([0.5], [0])) == {}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: product_pairs(make_pairs([0.5], [1]), [], 1, 1.0), r"\[C001\] threshold"),
        (lambda: product_pairs(make_pairs([0.5], [1], tags=[2]), [], 2), r"\[C001\] tags must be columns in 0 .. 1"),
        (lambda: product_pairs(make_pairs([0.5], [1]), [], 0), r"\[C001\] n_tags"),
        (lambda: product_pairs(make_pairs([0.5, 0.5], [1, 1], rows=[1, 0]), [True], 1), r"\[C001\] rows must be ascending"),
        (lambda: product_pairs(make_pairs([0.5] * 3, [1] * 3), [True], 1), r"\[C002\] The list of places .* got 1 and 2"),
        (lambda: joint_pairs(np.zeros((2, 3, 4)), [0, 0, 0], 3), r"\[C001\] joint must be an array \(places, 3, 3\)"),
        (lambda: joint_pairs(np.zeros((2, 3, 3)), [0, 0], 3), r"\[C002\] A joint of n - 1 places .* got 2 and 3"),
        (lambda: joint_pairs(np.zeros((2, 3, 3)), [0, 0, 0], 3, [True]), r"\[C002\] The list of places .* got 1 and 2"),
        (lambda: frequent_errors(make_pairs([0.5], [1]), most=0), r"\[C001\] most"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(call, message):
    with pytest.raises(CalibError, match=message):
        call()


def test_nothing_gives_nothing():
    empty = product_pairs(make_pairs([], [], n_units=0), [], 3)
    assert (len(empty.pairs), empty.pairs.n_units) == (0, 0)
    assert len(product_pairs(make_pairs([0.9], [1]), [], 1).pairs) == 0
    assert len(joint_pairs(np.zeros((0, 2, 2)), [1], 2)) == 0
