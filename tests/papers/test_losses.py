"""Losses of chains: by enumeration, by hand, and their gradients by differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from papers.chains.chains import Chains, Potentials
from papers.chains.losses import hinge, likelihood
from scipy.optimize import approx_fprime

from tests.papers.chains import enumerate_labellings, probabilities, small_chains


def gold_of(made, seed):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, made.potentials.n_labels, len(scores)) for scores in made.scores]


@settings(max_examples=40, deadline=None)
@given(made=small_chains(forbid=False), seed=st.integers(0, 1000))
def test_likelihood_is_that_of_all_labellings_and_its_gradient_is_right(made, seed):
    gold = gold_of(made, seed)
    found = likelihood(made.chains, gold)
    wanted = [
        -np.log(probabilities(scores, made.potentials)[tuple(own.tolist())])
        for scores, own in zip(made.scores, gold, strict=True)
    ]
    assert found.loss == pytest.approx(sum(wanted), abs=1e-8)
    n = made.potentials.n_labels

    def loss(values):
        scores = np.split(values[: -n * n - 2 * n].reshape(-1, n), np.cumsum([len(one) for one in made.scores])[:-1])
        steps, starts, ends = np.split(values[-n * n - 2 * n :], [n * n, n * n + n])
        return likelihood(Chains.from_scores(scores, Potentials(steps.reshape(n, n), starts, ends)), gold).loss

    weights = made.potentials
    flat = np.concatenate([*map(np.ravel, made.scores), weights.transitions.ravel(), weights.starts, weights.ends])
    slopes = found.d_potentials
    gradient = np.concatenate([*map(np.ravel, found.d_scores), slopes.transitions.ravel(), slopes.starts, slopes.ends])
    assert gradient == pytest.approx(approx_fprime(flat, loss, 1e-6), abs=1e-4)


@settings(max_examples=40, deadline=None)
@given(made=small_chains(forbid=False), seed=st.integers(0, 1000))
def test_hinge_is_the_lead_of_the_best_rival_with_a_point_for_each_wrong_label(made, seed):
    gold = gold_of(made, seed)
    wanted = 0.0
    for scores, own in zip(made.scores, gold, strict=True):
        every = enumerate_labellings(scores, made.potentials)
        costs = {labels: total + np.sum(np.array(labels) != own) for labels, total in every.items()}
        wanted += max(costs.values()) - every[tuple(own.tolist())]
    assert hinge(made.chains, gold).loss == pytest.approx(wanted, abs=1e-9)


def test_hinge_by_hand():
    # Labels 0, 0 are right and score 0; 1, 1 scores 1 + 1 + 3, and two points: the gradient moves from 0 to 1.
    chains = Chains.from_scores([np.array([[0.0, 1.0], [0.0, 1.0]])], Potentials(np.diag([0.0, 3.0]), np.zeros(2), np.zeros(2)))
    found = hinge(chains, [np.array([0, 0])])
    assert found.loss == 7
    assert found.d_scores[0].tolist() == [[-1, 1], [-1, 1]]
    assert found.d_potentials.transitions.tolist() == [[-1, 0], [0, 1]]
    assert (found.d_potentials.starts.tolist(), found.d_potentials.ends.tolist()) == ([-1, 1], [-1, 1])
