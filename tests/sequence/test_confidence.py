from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.stats import kstest

from spacy_calib.sequence.confidence import draw_shares, gaps, k_best_shares, normals, shares_of
from spacy_calib.sequence.inference.best import viterbi
from spacy_calib.sequence.inference.chains import Chains, Potentials
from tests.sequence.inference.chains import enumerate_labellings, small_chains


def test_shares_by_hand():
    found = shares_of([[0, 1], [0, 0], [1, 1]], [2.0, 1.0, 1.0], 2)
    assert found.tolist() == [[0.75, 0.25], [0.25, 0.75]]
    assert shares_of([[0], [1]], [0.0, 0.0], 2).tolist() == [[0.5, 0.5]]


@settings(max_examples=30)
@given(made=small_chains(forbid=False))
def test_k_best_shares_are_those_of_the_first_labellings(made):
    for scores, plain, weighted in zip(
        made.scores, k_best_shares(made.chains, 3, False), k_best_shares(made.chains, 3, True), strict=True
    ):
        every = sorted(enumerate_labellings(scores, made.potentials).items(), key=lambda one: -one[1])[:3]
        weights = np.maximum(0.0, [total for _, total in every])
        for found, by in ((plain, np.ones(len(every))), (weighted, weights if weights.sum() else np.ones(len(every)))):
            wanted = sum(w * np.eye(made.potentials.n_labels)[list(labels)] for (labels, _), w in zip(every, by, strict=True))
            assert found == pytest.approx(wanted / by.sum(), abs=1e-9)


@settings(max_examples=30)
@given(made=small_chains(forbid=False))
def test_gaps_are_largest_for_the_predicted_label(made):
    chains = made.chains
    for labels, found in zip(viterbi(chains), gaps(chains), strict=True):
        own = found[np.arange(len(labels)), labels]
        assert (own >= 0.5).all()
        assert (own == found.max(axis=1)).all()


def test_gap_by_hand():
    # The best labelling scores 3, the best with another label at the first token 1: a gap of 2.
    found = gaps(Chains.of([np.array([[2.0, 0.0], [0.0, 1.0]])], Potentials.none(2)))[0]
    assert found[0] == pytest.approx([1 / (1 + np.exp(-2)), 1 / (1 + np.exp(2))])


def test_draws_count_agreement():
    sure, other = [np.array([[1.0, 0.0]])], [np.array([[0.0, 1.0]])]
    found = draw_shares([(sure, Potentials.none(2))] * 3 + [(other, Potentials.none(2))], 2)
    assert found[0].tolist() == [[0.75, 0.25]]


def test_normals_are_normal_independent_and_stay():
    codes = np.arange(20_000)
    first, second = normals(codes, 0, 0), normals(codes, 1, 0)
    assert kstest(first, "norm").pvalue > 0.001
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.03
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 0.03
    assert (normals(codes[500:510], 0, 0) == first[500:510]).all()
    assert (normals(codes, 0, 1) != first).all()
