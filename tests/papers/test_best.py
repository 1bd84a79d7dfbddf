import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from papers.chains.best import best_sums, best_through, k_best, order_from_best, viterbi

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


@pytest.mark.parametrize("cells", [1 << 17, 1])
@pytest.mark.parametrize("spread", [0.1, 2.0, 50.0])
@pytest.mark.parametrize(("n_labels", "n_rows"), [(1, 20), (40, 20), (40, 100), (100, 64)])
def test_best_sums_in_parts_of_any_size(monkeypatch, n_labels, n_rows, spread, cells):
    monkeypatch.setattr("papers.chains.best._CELLS", cells)
    rng = np.random.default_rng(n_labels)
    scores, transitions = rng.normal(scale=spread, size=(n_rows, n_labels)), rng.normal(size=(n_labels, n_labels))
    transitions[rng.random((n_labels, n_labels)) < 0.3] = -np.inf
    scores[rng.random((n_rows, n_labels)) < 0.3] = -np.inf
    scores[:2], transitions[:, 0] = -np.inf, -np.inf  # nothing leads to label 0, and from the first two nothing does
    wanted = (scores[:, :, None] + transitions).max(axis=1)
    assert (best_sums(scores, transitions) == wanted).all()


def test_greatest_first():
    values = np.array([[3.0, 1.0, 4.0, 1.0], [-np.inf, 2.0, -np.inf, 5.0]])
    assert order_from_best(values, 2).tolist() == [[2, 0], [3, 1]]
    assert order_from_best(values, 4).tolist() == [[2, 0, 1, 3], [3, 1, 0, 2]]
