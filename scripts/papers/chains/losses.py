"""Losses of chains against gold labels, with gradients: likelihood, and the structured hinge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spacy_calib.types import Floats, Ints

from .best import viterbi
from .chains import Chains, Potentials
from .sums import sum_chains


@dataclass(frozen=True, eq=False)
class LossResult:
    """A loss, summed over sequences, and its gradients: by the scores of each sequence, and by the potentials."""

    loss: float
    d_scores: list[Floats]
    d_potentials: Potentials

    @classmethod
    def from_packed(cls, chains: Chains, loss: float, positions: Floats, transitions: Floats) -> LossResult:
        """Build it from the gradients by packed positions, (N, K), and by transitions, (K, K)."""
        starts, ends = positions[chains.packing.slice_at(0)].sum(axis=0), positions[chains.packing.lasts].sum(axis=0)
        return cls(loss, chains.unpack(positions), Potentials(transitions, starts, ends))


def likelihood(chains: Chains, gold: Sequence[Ints]) -> LossResult:
    """Return -log P(gold), with the gradient E[all] - gold (Lafferty et al. 2001). gold: Column of each position's label."""
    sums, labels = sum_chains(chains), chains.pack(gold)
    positions = sums.marginals.copy()
    positions[np.arange(len(labels)), labels] -= 1.0
    loss = float(sums.log_z.sum() - chains.scores_of(gold).sum())
    return LossResult.from_packed(chains, loss, positions, sums.expected_transitions - _count_steps(chains, labels))


def hinge(chains: Chains, gold: Sequence[Ints]) -> LossResult:
    """Return how far the best rival, with a point for each wrong label, is above gold (Taskar et al. 2003)."""
    right, rows = chains.pack(gold), np.arange(len(chains.scores))
    costs = np.ones_like(chains.scores)
    costs[rows, right] = 0.0
    rivals = viterbi(Chains(chains.scores + costs, chains.transitions, chains.packing))
    rival = chains.pack(rivals)
    losses = chains.scores_of(rivals) - chains.scores_of(gold) + chains.sum_by_sequence(costs[rows, rival])
    positions = np.zeros_like(chains.scores)
    positions[rows, rival] += 1.0
    positions[rows, right] -= 1.0
    return LossResult.from_packed(
        chains, float(losses.sum()), positions, _count_steps(chains, rival) - _count_steps(chains, right)
    )


def _count_steps(chains: Chains, labels: Ints) -> Floats:
    """Count the transitions between each two labels, shape (K, K). labels: Packed, shape (N,)."""
    width = chains.n_labels
    return np.bincount(chains.steps(labels), minlength=width**2).astype("float64").reshape(width, width)
