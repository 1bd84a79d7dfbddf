from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_calib.plugins.events.draws import make_rng
from spacy_calib.plugins.sequence.inference.chains import Potentials, fit_joints
from spacy_calib.plugins.sequence.inference.sums import sum_chains
from spacy_calib.plugins.sequence.joints import draw_chain
from tests.plugins.sequence.inference.chains import Given, probabilities, small_chains


def nearest_by_hand(labellings: dict[tuple[int, ...], float], wanted: np.ndarray) -> dict[tuple[int, ...], float]:
    """Iterative proportional fitting over all labellings of a sequence, one position after the other."""
    keys = np.array(list(labellings))
    shares = np.array(list(labellings.values()))
    for _ in range(3000):
        for position in range(len(wanted)):
            reached = np.bincount(keys[:, position], weights=shares, minlength=wanted.shape[1])
            shares = (
                shares * np.divide(wanted[position], reached, out=np.zeros_like(reached), where=reached > 0)[keys[:, position]]
            )
    return dict(zip(labellings, shares, strict=True))


@settings(max_examples=15, deadline=None, derandomize=True)
@given(made=small_chains(spread=1.0, forbid=False), seed=st.integers(0, 1000))
def test_the_fitted_chain_is_the_nearest_of_all_distributions_with_these_marginals(made, seed):
    scores = made.scores[0]
    alone = Given([scores], made.potentials)
    wanted = np.random.default_rng(seed).dirichlet(np.ones(made.potentials.n_labels) + 1, size=len(scores))
    sums = sum_chains(alone.chains)
    places = np.arange(len(scores) - 1)
    kernels = fit_joints(sums.joint(places, places + 1), wanted[:-1], wanted[1:])
    by_hand = nearest_by_hand(probabilities(scores, made.potentials), wanted)
    for labels, chance in by_hand.items():
        steps = [kernels[i][pair] for i, pair in enumerate(itertools.pairwise(labels))]
        assert wanted[0, labels[0]] * np.prod(steps) == pytest.approx(chance, abs=1e-5)


def test_a_pair_by_hand():
    """Odds ratio 16, margins a half each: .4 and .1 (.4 * .4 / (.1 * .1) = 16)."""
    joint = np.array([[[16.0, 1.0], [1.0, 1.0]]]) / 19
    half = np.array([[0.5, 0.5]])
    assert fit_joints(joint, half, half)[0] == pytest.approx(np.array([[0.8, 0.2], [0.2, 0.8]]))


def test_what_is_forbidden_stays_so_and_what_cannot_be_is_come_near_to():
    joint = np.array([[[0.5, 0.0], [0.0, 0.5]]])
    same, other = np.array([[0.3, 0.7]]), np.array([[0.6, 0.4]])
    assert fit_joints(joint, same, same)[0] == pytest.approx(np.eye(2))
    assert fit_joints(joint, same, other)[0] == pytest.approx(np.eye(2))  # the marginals of the second place cannot be had
    assert fit_joints(joint, same, np.array([[1.0, 0.0]]))[0] == pytest.approx(np.eye(2))
    assert fit_joints(np.zeros((0, 2, 2)), same[:0], same[:0]).shape == (0, 2, 2)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(made=small_chains(forbid=False), seed=st.integers(0, 1000))
def test_chains_of_any_lengths_reach_their_marginals(made, seed):
    n_tokens = sum(map(len, made.scores))
    wanted = np.random.default_rng(seed).dirichlet(np.ones(made.potentials.n_labels) + 1, size=n_tokens)
    drawn = draw_chain(sum_chains(made.chains), wanted, make_rng(5, seed, 0).random((5, n_tokens)))
    assert drawn.marginals == pytest.approx(wanted, abs=1e-4)
    assert drawn.codes.shape == (5, n_tokens)


def test_draws_of_a_chain_are_its_labellings():
    made = Given([np.array([[0.0, 0.5], [0.3, 0.0], [0.0, 0.0]])], small_potentials())
    sums = sum_chains(made.chains)
    n = 4000
    drawn = draw_chain(sums, np.concatenate(sums.by_sequence()), make_rng(n, 0, 0).random((n, 3)))
    for labels, chance in probabilities(made.scores[0], made.potentials).items():
        share = (drawn.codes == labels).all(axis=1).mean()
        assert abs(share - chance) < 5 * np.sqrt(chance * (1 - chance) / n)


def small_potentials() -> Potentials:
    return Potentials(np.array([[1.0, -1.0], [-0.5, 0.8]]), np.array([0.2, 0.0]), np.array([0.0, 0.4]))
