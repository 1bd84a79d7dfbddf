"""What a chain loses against gold labels, and the gradient of it: likelihood, structured perceptron, structured hinge, passive-aggressive.

Gold is a mask of the labels that may be right at each position: one of them (a gold label), all (no gold), or all but one (a label that is known
to be wrong). The loss of the likelihood is then -log P(the labelling is one of those), and that of the others compares the best labelling
with the best one of those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import calib_error
from .inference.best import viterbi
from .inference.chains import Chains, Potentials
from .inference.sums import sum_chains


@dataclass(frozen=True, eq=False)
class Loss:
    """loss (float): Summed over the sequences. scores (list): Its gradient by the scores of each sequence, shape (length, K).
    potentials (Potentials): Its gradient by those.
    """

    loss: float
    scores: list[Any]
    potentials: Potentials


@dataclass(frozen=True, eq=False)
class Question:
    """What a loss is asked: chains, and those among whose labellings the right one is.

    chains (Chains): All labellings. right (Chains): The same with -inf at the labels that are known to be wrong.
    smoothing (float): This share of a gold label's mass goes to the others (label smoothing), in [0, 1).
    """

    chains: Chains
    right: Chains
    smoothing: float = 0.0

    @classmethod
    def of(cls, scores: Sequence[Any], potentials: Potentials, masks: Sequence[Any], smoothing: float = 0.0) -> Question:
        """masks: Which labels may be right, booleans, shape (length, K) for each sequence. RAISES C321, C322: see Chains."""
        chains = Chains.of(scores, potentials)
        xp = chains.xp
        allowed = xp.concatenate([xp.zeros((0, chains.n_labels), dtype=bool), *map(xp.asarray, masks)])
        packed = xp.where(allowed[xp.asarray(chains.packing.flat)], chains.scores, -np.inf)
        return cls(chains, Chains(packed, chains.transitions, chains.packing), smoothing)


def likelihood(asked: Question) -> Loss:
    """-log P(the right labelling), with gradient E[all] - E[right] (Lafferty et al. 2001). RAISES C323: no right labelling is allowed."""
    every, right = sum_chains(asked.chains), sum_chains(asked.right)
    target = right.marginals
    if asked.smoothing:
        xp, width = asked.chains.xp, asked.chains.n_labels
        is_gold = xp.isfinite(asked.right.scores).sum(axis=1, keepdims=True) == 1
        smoothed = target * (1 - asked.smoothing) + (1 - target) * (asked.smoothing / max(1, width - 1))
        target = xp.where(is_gold, smoothed, target)
    lost = float((every.log_z - right.log_z).sum())
    return _loss(asked.chains, lost, every.marginals - target, every.expected_transitions - right.expected_transitions)


def perceptron(asked: Question) -> Loss:
    """How much the best labelling scores above the best right one (Collins 2002)."""
    return _compared(asked, viterbi(asked.chains), lambda margin, cost, size: 1.0)


def hinge(asked: Question) -> Loss:
    """How much a labelling with its Hamming distance scores above the best right one, at most (Taskar et al. 2003)."""
    return _compared(asked, viterbi(_with_cost(asked)), lambda margin, cost, size: 1.0, with_cost=True)


def passive_aggressive(asked: Question, most: float = 1.0) -> Loss:
    """The hinge with steps just long enough to repair each sequence: its gradient is weighed by min(most, loss / squared size of the change)
    (PA-I, Crammer et al. 2006, section 3, with the scores of labels and transitions as the features)."""
    return _compared(
        asked, viterbi(_with_cost(asked)), lambda margin, cost, size: min(most, (margin + cost) / size), with_cost=True
    )


LOSSES: dict[str, Callable[[Question], Loss]] = {
    "likelihood": likelihood,
    "perceptron": perceptron,
    "passive_aggressive": passive_aggressive,
    "hinge": hinge,
}


def get_loss(name: str) -> Callable[[Question], Loss]:
    """RAISES C001: no loss has this name."""
    if name not in LOSSES:
        raise calib_error("C001", name="loss", wanted=f"one of {', '.join(LOSSES)}", given=repr(name))
    return LOSSES[name]


def _with_cost(asked: Question) -> Chains:
    """The chains with a point more for each label that is known to be wrong."""
    wrong = ~asked.chains.xp.isfinite(asked.right.scores)
    return Chains(asked.chains.scores + wrong, asked.chains.transitions, asked.chains.packing)


def _compared(asked: Question, rivals: list[Any], weigh: Callable[[float, int, float], float], with_cost: bool = False) -> Loss:
    """Of each sequence: how much its rival scores above the best right labelling, and the difference of their features as the gradient.

    rivals: A labelling of each sequence. weigh: (margin, Hamming distance, squared size of the difference) -> weight of the gradient.
    """
    chains, xp, width = asked.chains, asked.chains.xp, asked.chains.n_labels
    right = viterbi(asked.right)
    margins = (chains.scores_of(rivals) - chains.scores_of(right)).tolist()
    lost, scores = 0.0, [xp.zeros((len(one), width)) for one in right]
    potentials = Potentials(xp.zeros((width, width)), xp.zeros(width), xp.zeros(width))
    for gradient, rival, own, margin in zip(scores, rivals, right, margins, strict=True):
        cost = int((rival != own).sum()) if with_cost else 0
        if bool((rival == own).all()):
            continue
        difference = _difference(rival, own, width, xp)
        size = float((difference[0] ** 2).sum() + (difference[1].transitions ** 2).sum())
        weight = weigh(margin, cost, max(size, 1.0))
        lost += margin + cost
        gradient += weight * difference[0]
        for name in ("transitions", "starts", "ends"):
            whole = getattr(potentials, name)
            whole += weight * getattr(difference[1], name)
    return Loss(lost, scores, potentials)


def _difference(rival: Any, own: Any, width: int, xp: Any) -> tuple[Any, Potentials]:
    """How often the rival has each label at each position and each transition, less how often the other has."""
    every = xp.eye(width)
    scores = every[rival] - every[own]
    transitions = every[rival[:-1]].T @ every[rival[1:]] - every[own[:-1]].T @ every[own[1:]]
    return scores, Potentials(transitions, scores[0].copy(), scores[-1].copy())


def _loss(chains: Chains, lost: float, positions: Any, transitions: Any) -> Loss:
    """A loss from its gradients by packed positions and by transitions."""
    xp, packing = chains.xp, chains.packing
    if not packing.n_times:
        return Loss(lost, [], Potentials(transitions, xp.zeros(chains.n_labels), xp.zeros(chains.n_labels)))
    starts, ends = positions[packing.at(0)].sum(axis=0), positions[xp.asarray(packing.lasts)].sum(axis=0)
    return Loss(lost, chains.unpacked(positions), Potentials(transitions, starts, ends))
