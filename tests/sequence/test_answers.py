"""What chains say of their best labellings, against all labellings written out."""

from __future__ import annotations

import itertools

import numpy as np

from spacy_calib.sequence.answers import best_answers
from spacy_calib.sequence.inference.chains import Chains, Potentials
from spacy_calib.sequence.inference.sums import sum_chains


def chains_of(lengths, width, seed=0):
    rng = np.random.default_rng(seed)
    potentials = Potentials(rng.normal(size=(width, width)), rng.normal(size=width), rng.normal(size=width))
    scores = [rng.normal(size=(n, width)) for n in lengths]
    return scores, potentials, Chains.of(scores, potentials)


def score(scores, potentials, labels):
    steps = sum(potentials.transitions[a, b] for a, b in itertools.pairwise(labels))
    own = sum(scores[i, label] for i, label in enumerate(labels))
    return own + steps + potentials.starts[labels[0]] + potentials.ends[labels[-1]]


def test_gaps_marginals_and_pseudomargins_equal_those_of_all_labellings():
    lengths = (3, 1, 4)
    scores, potentials, chains = chains_of(lengths, 3)
    found = best_answers(sum_chains(chains))
    offset = 0
    for number, n in enumerate(lengths):
        every = list(itertools.product(range(3), repeat=n))
        values = np.array([score(scores[number], potentials, one) for one in every])
        order = np.argsort(-values)
        answer = every[order[0]]
        assert found.each()[number] == answer
        assert np.isclose(found.gaps[number], values[order[0]] - values[order[1]])
        chance = np.exp(values - values.max())
        chance /= chance.sum()
        assert np.isclose(np.exp(found.log_chances[number]), chance.max())
        for place in range(n):
            marginal = [sum(c for c, one in zip(chance, every, strict=True) if one[place] == label) for label in range(3)]
            rest = [
                np.exp(score(scores[number], potentials, (*answer[:place], label, *answer[place + 1 :]))) for label in range(3)
            ]
            assert np.allclose(found.marginals[offset + place], marginal)
            assert np.allclose(found.conditionals[offset + place], np.array(rest) / sum(rest))
        offset += n


def test_a_single_labelling_has_no_second_best():
    _, _, chains = chains_of((2,), 1)
    assert best_answers(sum_chains(chains)).gaps.tolist() == [np.inf]


def test_no_chains():
    _, _, chains = chains_of((), 2)
    assert len(best_answers(sum_chains(chains))) == 0
