"""Small chains, and what enumeration of all their labellings says of them."""

import itertools
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from papers.chains.chains import Chains, Potentials


class Given(NamedTuple):
    """The scores of some sequences, and the potentials of their chain."""

    scores: list[np.ndarray]
    potentials: Potentials

    @property
    def chains(self) -> Chains:
        return Chains.from_scores(self.scores, self.potentials)


@st.composite
def small_chains(draw, spread: float = 3.0, forbid: bool = True) -> Given:
    """One to four sequences of one to four positions over one to three labels; some transitions, ends and labels of positions may be forbidden,
    never label 0 and what leads to it."""
    n_labels = draw(st.integers(1, 3))
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    transitions = rng.normal(scale=spread, size=(n_labels, n_labels))
    starts, ends = rng.normal(scale=spread, size=(2, n_labels))
    scores = [rng.normal(scale=spread, size=(length, n_labels)) for length in lengths]
    if forbid:
        share = draw(st.sampled_from([0.0, 0.4]))
        for one in (transitions, starts, ends, *scores):
            shut = rng.random(one.shape) < share
            shut[..., 0] = False
            one[shut] = -np.inf
    return Given(scores, Potentials(transitions, starts, ends))


def enumerate_labellings(scores: np.ndarray, potentials: Potentials) -> dict[tuple[int, ...], float]:
    """Every labelling of one sequence -> the sum of its scores."""
    found = {}
    for labels in itertools.product(range(potentials.n_labels), repeat=len(scores)):
        total = potentials.starts[labels[0]] + potentials.ends[labels[-1]]
        total += sum(scores[i, label] for i, label in enumerate(labels))
        total += sum(potentials.transitions[pair] for pair in itertools.pairwise(labels))
        found[labels] = float(total)
    return found


def probabilities(scores: np.ndarray, potentials: Potentials) -> dict[tuple[int, ...], float]:
    """Every labelling -> its probability."""
    found = enumerate_labellings(scores, potentials)
    highest = max(found.values())
    weights = {labels: np.exp(total - highest) for labels, total in found.items()}
    return {labels: weight / sum(weights.values()) for labels, weight in weights.items()}
