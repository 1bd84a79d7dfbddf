from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_calib.errors import CalibError
from spacy_calib.sequence.inference.best import best_through, k_best, viterbi
from spacy_calib.sequence.inference.chains import Chains, Potentials
from tests.sequence.inference.chains import enumerate_labellings, small_chains


@settings(max_examples=60)
@given(made=small_chains())
def test_viterbi_finds_the_best_of_all_labellings(made):
    chains = made.chains
    found = viterbi(chains)
    totals = chains.scores_of(found)
    for scores, labels, total in zip(made.scores, found, totals, strict=True):
        every = enumerate_labellings(scores, made.potentials)
        assert every[tuple(labels.tolist())] == max(every.values())
        assert total == pytest.approx(max(every.values()))


@settings(max_examples=60)
@given(made=small_chains(), k=st.integers(1, 30))
def test_k_best_are_the_first_of_all_labellings_in_order(made, k):
    for scores, found in zip(made.scores, k_best(made.chains, k), strict=True):
        every = enumerate_labellings(scores, made.potentials)
        wanted = sorted((total for total in every.values() if np.isfinite(total)), reverse=True)[:k]
        assert found.scores == pytest.approx(wanted)
        given_labels = [tuple(row) for row in found.labels.tolist()]
        assert len(set(given_labels)) == len(given_labels)
        assert [every[labels] for labels in given_labels] == pytest.approx(wanted)


@settings(max_examples=40)
@given(made=small_chains())
def test_best_through_each_label(made):
    chains = made.chains
    for scores, found in zip(made.scores, chains.unpacked(best_through(chains)), strict=True):
        every = enumerate_labellings(scores, made.potentials)
        for position in range(len(scores)):
            for label in range(made.potentials.n_labels):
                assert found[position, label] == pytest.approx(
                    max(total for labels, total in every.items() if labels[position] == label)
                )


def test_more_labellings_than_there_are():
    found = k_best(Chains.of([np.zeros((2, 2))], Potentials.none(2)), 100)[0]
    assert found.labels.shape == (4, 2)


def test_faults():
    shut = Chains.of([np.zeros((1, 2)), np.zeros((2, 2))], Potentials(np.full((2, 2), -np.inf), np.zeros(2), np.zeros(2)))
    for ask in (viterbi, lambda chains: k_best(chains, 2)):
        with pytest.raises(CalibError, match="Sequence 2"):
            ask(shut)
    with pytest.raises(CalibError, match="k must be at least 1"):
        k_best(shut, 0)
