from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from spacy_calib.errors import CalibError
from spacy_calib.sequence.inference import sums
from spacy_calib.sequence.inference.chains import Chains, Potentials
from spacy_calib.sequence.inference.sums import sum_chains
from tests.sequence.inference.chains import enumerate_labellings, probabilities, small_chains


def marginals_of(chances, length, n_labels):
    table = np.zeros((length, n_labels))
    for labels, chance in chances.items():
        table[np.arange(length), labels] += chance
    return table


@pytest.mark.parametrize("way", ["_scaled", "_logarithmic"])
@settings(max_examples=60)
@given(made=small_chains())
def test_sums_are_those_of_all_labellings(way, made):
    with np.errstate(divide="ignore"):
        found = getattr(sums, way)(made.chains)
    expected = np.zeros_like(made.potentials.transitions)
    for i, scores in enumerate(made.scores):
        every, chances = enumerate_labellings(scores, made.potentials), probabilities(scores, made.potentials)
        assert found.log_z[i] == pytest.approx(logsumexp(list(every.values())), abs=1e-9)
        table = marginals_of(chances, len(scores), made.potentials.n_labels)
        assert found.by_sequence()[i] == pytest.approx(table, abs=1e-9)
        for labels, chance in chances.items():
            np.add.at(expected, (labels[:-1], labels[1:]), chance)
    assert found.expected_transitions == pytest.approx(expected, abs=1e-8)


@settings(max_examples=30)
@given(made=small_chains())
def test_pairs_of_neighbours_have_the_marginals_of_each(made):
    found = sum_chains(made.chains)
    befores, afters = made.chains.packing.followed
    for first, second in zip(befores.tolist(), afters.tolist(), strict=True):
        pair = found.joint(np.array([first]), np.array([second]))[0]
        assert pair.sum(axis=1) == pytest.approx(found.marginals[first], abs=1e-9)
        assert pair.sum(axis=0) == pytest.approx(found.marginals[second], abs=1e-9)


@pytest.mark.parametrize("way", ["_scaled", "_logarithmic"])
@settings(max_examples=30)
@given(made=small_chains(), seed=st.integers(0, 1000))
def test_paths_have_the_probability_of_the_labellings_that_take_them(way, made, seed):
    rng = np.random.default_rng(seed)
    with np.errstate(divide="ignore"):
        found = getattr(sums, way)(made.chains)
    packed, start = found.chains.packing.packed, 0
    places, labels, wanted = [], [], []
    for scores in made.scores:
        chances = probabilities(scores, made.potentials)
        for _ in range(2):
            first, last = np.sort(rng.integers(0, len(scores), 2))
            own = rng.integers(0, made.potentials.n_labels, last + 1 - first)
            wanted.append(sum(p for taken, p in chances.items() if list(taken[first : last + 1]) == own.tolist()))
            places.append(packed[start + first : start + last + 1])
            labels.append(own)
        start += len(scores)
    lengths = np.array([len(own) for own in labels])
    assert found.paths(np.concatenate(places), np.concatenate(labels), lengths) == pytest.approx(wanted, abs=1e-9)
    assert found.paths(np.zeros(0, dtype=int), np.zeros(0, dtype=int), lengths[:0]).tolist() == []


def test_scores_far_apart_are_summed_in_logarithms():
    # The likely labels of both positions may not follow one another, and the way through the others costs 2,000 nats.
    scores = [np.array([[0.0, -2000.0], [-2000.0, 0.0]])]
    potentials = Potentials(np.array([[0.0, -np.inf], [-np.inf, 0.0]]), np.zeros(2), np.zeros(2))
    found = sum_chains(Chains.of(scores, potentials))
    assert found.by_sequence()[0] == pytest.approx(np.full((2, 2), 0.5))
    assert found.log_z[0] == pytest.approx(-2000 + np.log(2))
    assert found.joint(np.array([0]), np.array([1]))[0] == pytest.approx(np.eye(2) / 2)


def test_a_sequence_without_an_allowed_labelling_is_named():
    shut = Potentials(np.full((2, 2), -np.inf), np.zeros(2), np.zeros(2))
    with pytest.raises(CalibError, match=r"Sequence 2 .* allowed"):
        sum_chains(Chains.of([np.zeros((1, 2)), np.zeros((2, 2))], shut))


def test_samples_agree_with_marginals():
    rng = np.random.default_rng(0)
    potentials = Potentials(rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=3))
    chains = Chains.of([rng.normal(size=(4, 3)), rng.normal(size=(2, 3))], potentials)
    found = sum_chains(chains)
    for drawn, table in zip(found.sample(40_000, seed=1), found.by_sequence(), strict=True):
        shares = np.stack([np.bincount(column, minlength=3) for column in drawn.T]) / len(drawn)
        assert shares == pytest.approx(table, abs=0.01)  # four standard errors
    pair = np.zeros((3, 3))
    np.add.at(pair, tuple(found.sample(40_000, seed=1)[1].T), 1 / 40_000)
    first, second = chains.packing.packed[4:5], chains.packing.packed[5:6]
    assert pair == pytest.approx(found.joint(first, second)[0], abs=0.01)


def test_marginals_of_many_labels_and_tokens_sum_to_one():
    rng = np.random.default_rng(0)
    potentials = Potentials(rng.normal(size=(600, 600)), rng.normal(size=600), rng.normal(size=600))
    found = sum_chains(Chains.of([rng.normal(scale=4, size=(200, 600))], potentials))
    assert np.abs(found.marginals.sum(axis=1) - 1).max() < 1e-12
    before, after = found.chains.packing.followed
    assert found.joint(before[-1:], after[-1:]).sum() == pytest.approx(1, abs=1e-6)


def test_no_sequences():
    found = sum_chains(Chains.of([], Potentials.none(3)))
    assert found.by_sequence() == []
    assert found.marginals.shape == (0, 3)


@pytest.mark.parametrize(
    ("scores", "potentials", "sentence"),
    [
        ([np.zeros((2, 3))], Potentials.none(2), "2 labels in the potentials, 3 in the scores"),
        ([np.zeros((2, 0))], Potentials.none(0), "at least one"),
        ([np.array([[np.nan, 0.0]])], Potentials.none(2), "NaN"),
    ],
)
def test_bad_scores(scores, potentials, sentence):
    with pytest.raises(CalibError, match=sentence):
        Chains.of(scores, potentials)
