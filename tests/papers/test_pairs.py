"""Pair probabilities against the enumeration of all antecedents, and against samples."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from papers.coref import pairs as module
from papers.coref.antecedents import NEW, Antecedents, Candidates, first_mentions
from papers.coref.pairs import MentionPairs, nearest_sample, pair_probabilities


def antecedents(n: int, seed: int, window: int = 99, sharp: float = 1.0) -> Antecedents:
    rng = np.random.default_rng(seed)
    earlier = [np.arange(max(0, i - window), i) for i in range(n)]
    starts = np.cumsum([0, *map(len, earlier)])
    candidates = Candidates(starts, np.concatenate([np.zeros(0, dtype=int), *earlier]))
    return Antecedents.from_scores(sharp * rng.normal(size=len(candidates.earlier) + n), candidates)


def enumerated(given: Antecedents) -> np.ndarray:
    """P(i ~ j) from every assignment of antecedents."""
    n = len(given)
    options = []
    for mention in range(n):
        earlier, chances = given.get_options(mention)
        options.append([*zip(earlier.tolist(), chances.tolist(), strict=True), (NEW, 1 - chances.sum())])
    total = np.zeros((n, n))
    for chosen in product(*options):
        first = first_mentions(np.array([one for one, _ in chosen], dtype=int))
        total += np.prod([chance for _, chance in chosen]) * (first[:, None] == first)
    return total


@pytest.mark.parametrize("dense", [module.DENSE, 0])
@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 6), seed=st.integers(0, 10**6), window=st.integers(1, 6), sharp=st.floats(0, 4), block=st.integers(1, 4)
)
def test_pairs_are_those_of_all_assignments_of_antecedents(dense, n, seed, window, sharp, block):
    given = antecedents(n, seed, window, sharp)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "DENSE", dense)
        patch.setattr("papers.coref.pairs.BLOCK", block)
        assert pair_probabilities(given).matrix() == pytest.approx(enumerated(given), abs=1e-12)


def test_three_mentions_by_hand():
    # P(a_1 = 0) = .5; P(a_2 = 0) = .2, P(a_2 = 1) = .4: P(2 ~ 0) = .2 + .4 * .5, P(2 ~ 1) = .4 + .2 * .5.
    given = Antecedents(Candidates(np.array([0, 0, 1, 3]), np.array([0, 0, 1])), np.array([0.5, 0.2, 0.4]))
    found = pair_probabilities(given)
    assert found.later.tolist() == [1, 2, 2]
    assert found.earlier.tolist() == [0, 0, 1]
    assert found.probabilities == pytest.approx([0.5, 0.4, 0.5])
    assert found.index_of(0, 2) == found.index_of(2, 0) == 1
    assert found.possible == 3
    assert pair_probabilities(given, 0.45).index_of(0, 2) == -1


def test_pairs_are_those_of_samples():
    given = antecedents(50, 1, sharp=3.0)
    samples = given.sample(4000, seed=2)
    exact = pair_probabilities(given).matrix()
    seen = np.mean(samples[:, :, None] == samples[:, None, :], axis=0)
    # 1,225 pairs: five standard errors at most
    assert np.abs(seen - exact).max() < 5 * np.sqrt(0.25 / 4000)
    assert (given.sample(5, seed=3) == given.sample(5, seed=3)).all()


@pytest.mark.parametrize("window", [12, 40])
@pytest.mark.parametrize("threshold", [0.0, 0.05])
@pytest.mark.parametrize("block", [1, 7, 64])
def test_sparse_pairs_are_the_dense_ones(monkeypatch, threshold, window, block):
    given = antecedents(60, 4, window, sharp=3.0)
    dense = pair_probabilities(given, threshold)
    monkeypatch.setattr(module, "DENSE", 0)
    monkeypatch.setattr("papers.coref.pairs.BLOCK", block)
    sparse = pair_probabilities(given, threshold)
    if not threshold:
        assert sparse.matrix() == pytest.approx(dense.matrix(), abs=1e-12)
    # what stays out of the sums is a hundred times smaller than what is kept
    assert sparse.matrix() == pytest.approx(dense.matrix(), abs=threshold / 10 + 1e-12)


@pytest.mark.parametrize("block", [1, 5, 64])
def test_what_is_cut_does_not_depend_on_the_blocks(monkeypatch, block):
    given = antecedents(60, 4, window=40, sharp=3.0)
    monkeypatch.setattr(module, "DENSE", 0)
    # Mention by mention, with what is below .0005 taken for 0 at once, and candidates below .000005 without those that are with them.
    cut = np.eye(60)
    for late in range(1, 60):
        earlier, chances = given.get_options(late)
        sums = np.where(chances < 0.000005, 0, chances) @ (cut - np.eye(60))[earlier, :late]
        sums[earlier] += chances
        cut[late, :late] = cut[:late, late] = np.where(sums < 0.0005, 0, np.minimum(sums, 1))
    monkeypatch.setattr("papers.coref.pairs.BLOCK", block)
    assert pair_probabilities(given, 0.05).matrix() == pytest.approx(np.where(cut < 0.05, 0, cut), abs=1e-12)


def test_two_thousand_mentions_stay_sparse():
    # Each refers to the one before with .5: P(i ~ j) = .5 ** (j - i), 13 of them above .0001, 6 above .01.
    n = 2000
    starts = np.maximum(np.arange(n + 1) - 1, 0)
    chain = Antecedents(Candidates(starts, np.arange(n - 1)), np.full(n - 1, 0.5))
    found = pair_probabilities(chain, 0.01)
    assert len(found) == sum(n - d for d in range(1, 7))
    assert found.probabilities == pytest.approx(0.5 ** (found.later - found.earlier))


def test_one_mention_and_none():
    for n in (0, 1):
        given = antecedents(n, 0)
        assert len(pair_probabilities(given)) == 0
        assert given.sample(3, 0).shape == (3, n)
        assert given.best().tolist() == [NEW] * n


def test_the_nearest_sample_has_the_fewest_pairs_wrong():
    found = MentionPairs(np.array([1, 2, 2]), np.array([0, 0, 1]), np.array([0.9, 0.2, 0.3]), 3)
    samples = np.array([[0, 1, 2], [0, 0, 2], [0, 0, 0]])
    # expected wrong pairs: .9 + .2 + .3; .1 + .2 + .3; .1 + .8 + .7
    assert nearest_sample(samples, found).tolist() == [0, 0, 2]


def test_best_antecedents():
    given = Antecedents(Candidates(np.array([0, 0, 1, 3]), np.array([0, 0, 1])), np.array([0.6, 0.3, 0.3]))
    assert given.best().tolist() == [NEW, 0, NEW]  # .4 for NEW


@pytest.mark.parametrize(
    ("starts", "earlier", "chances", "why"),
    [
        ([0, 0, 1], [1], [0.5], "before its mention"),
        ([0, 0, 2], [0, 0], [0.1, 0.1], "have to rise"),
        ([0, 1, 0], [0], [0.1], "starts"),
        ([0, 0, 1], [0], [1.5], "more than 1"),
        ([0, 0, 1], [0], [np.nan], "more than 1"),
        ([0, 0, 1], [0], [0.1, 0.1], "1 candidates have 2"),
    ],
)
def test_what_is_no_distribution_is_refused(starts, earlier, chances, why):
    with pytest.raises(ValueError, match="not consistent"):
        Antecedents(Candidates(np.array(starts), np.array(earlier)), np.array(chances))
