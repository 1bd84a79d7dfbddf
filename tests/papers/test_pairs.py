"""Pair probabilities against the enumeration of all antecedents, and against samples."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from papers.coref.antecedents import NEW, Antecedents, Candidates, first_mentions
from papers.coref.pairs import pair_probabilities


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


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 6), seed=st.integers(0, 10**6), window=st.integers(1, 6), sharp=st.floats(0, 4))
def test_pairs_are_those_of_all_assignments_of_antecedents(n, seed, window, sharp):
    given = antecedents(n, seed, window, sharp)
    assert pair_probabilities(given).matrix() == pytest.approx(enumerated(given), abs=1e-12)


def test_three_mentions_by_hand():
    # P(a_1 = 0) = .5; P(a_2 = 0) = .2, P(a_2 = 1) = .4: P(2 ~ 0) = .2 + .4 * .5, P(2 ~ 1) = .4 + .2 * .5.
    given = Antecedents(Candidates(np.array([0, 0, 1, 3]), np.array([0, 0, 1])), np.array([0.5, 0.2, 0.4]))
    found = pair_probabilities(given)
    assert found.later.tolist() == [1, 2, 2]
    assert found.earlier.tolist() == [0, 0, 1]
    assert found.probabilities == pytest.approx([0.5, 0.4, 0.5])
    assert pair_probabilities(given, 0.45).earlier.tolist() == [0, 1]


def test_pairs_are_those_of_samples():
    given = antecedents(50, 1, sharp=3.0)
    samples = given.sample(4000, seed=2)
    exact = pair_probabilities(given).matrix()
    seen = np.mean(samples[:, :, None] == samples[:, None, :], axis=0)
    # 1,225 pairs: five standard errors at most
    assert np.abs(seen - exact).max() < 5 * np.sqrt(0.25 / 4000)
    assert (given.sample(5, seed=3) == given.sample(5, seed=3)).all()


def test_one_mention_and_none():
    for n in (0, 1):
        given = antecedents(n, 0)
        assert len(pair_probabilities(given)) == 0
        assert given.sample(3, 0).shape == (3, n)
        assert given.best().tolist() == [NEW] * n


def test_best_antecedents():
    given = Antecedents(Candidates(np.array([0, 0, 1, 3]), np.array([0, 0, 1])), np.array([0.6, 0.3, 0.3]))
    assert given.best().tolist() == [NEW, 0, NEW]  # .4 for NEW
