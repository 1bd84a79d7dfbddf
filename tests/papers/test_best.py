from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from papers.chains import best
from papers.chains.best import (
    BestTransitions,
    best_through,
    k_best,
    order_from_best,
    parts_of,
    viterbi,
)
from papers.chains.chains import Chains, Potentials

from tests.papers.chains import enumerate_labellings, small_chains


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
    for scores, found in zip(made.scores, chains.unpack(best_through(chains)), strict=True):
        every = enumerate_labellings(scores, made.potentials)
        for position in range(len(scores)):
            for label in range(made.potentials.n_labels):
                assert found[position, label] == pytest.approx(
                    max(total for labels, total in every.items() if labels[position] == label)
                )


def test_fewer_than_one_labelling_cannot_be_asked_for():
    with pytest.raises(ValueError, match="out of range"):
        k_best(Chains.from_scores([np.zeros((1, 2))], Potentials.zeros(2)), 0)


@pytest.mark.parametrize("cells", [1 << 17, 1])
@pytest.mark.parametrize("spread", [0.1, 2.0, 50.0])
@pytest.mark.parametrize("n_labels", [1, 40, 65, 100])
def test_trying_a_few_labels_first_changes_nothing(monkeypatch, n_labels, spread, cells):
    monkeypatch.setattr("papers.chains.best._CELLS", cells)
    rng = np.random.default_rng(n_labels)
    scores, transitions = rng.normal(scale=spread, size=(20, n_labels)), rng.normal(size=(n_labels, n_labels))
    transitions[rng.random((n_labels, n_labels)) < 0.3] = -np.inf
    scores[rng.random((20, n_labels)) < 0.3] = -np.inf
    scores[:2], transitions[:, 0] = -np.inf, -np.inf  # nothing leads to label 0, and from the first two nothing does
    wanted = (scores[:, :, None] + transitions).max(axis=1)
    assert (BestTransitions(transitions).best_sums(scores) == wanted).all()


def test_what_neither_side_tries_is_looked_at_where_it_may_be_best(monkeypatch):
    # Of 100 labels the 16 with the best scores lead to label 0 by -9, the 16 with the best transitions to it score -9: label 50 has neither, and wins.
    scores, into = np.zeros(100), np.zeros(100)
    scores[:16], into[:16] = 1.0, -9.0
    scores[-16:], into[-16:] = -9.0, 1.0
    scores[50] = into[50] = 0.9
    found = BestTransitions(np.repeat(into[:, None], 100, axis=1)).best_sums(scores[None])
    assert (found == 1.8).all()


def test_greatest_first():
    values = np.array([[3.0, 1.0, 4.0, 1.0], [-np.inf, 2.0, -np.inf, 5.0]])
    assert order_from_best(values, 2, np).tolist() == [[2, 0], [3, 1]]
    assert order_from_best(values, 4, np).tolist() == [[2, 0, 1, 3], [3, 1, 0, 2]]


def test_parts_are_all_of_it_and_no_greater_than_said():
    size = best._CELLS // 1000
    assert list(parts_of(2 * size + 1, 1000, np)) == [slice(i * size, (i + 1) * size) for i in range(3)]
    assert len(list(parts_of(3, 10 * best._CELLS, np))) == 3
    assert list(parts_of(0, 5, np)) == []
