"""What a chain loses against gold labels, and the gradient: likelihood, perceptron, hinge, passive-aggressive.

Gold is a mask of the labels that may be right at each position: one (a gold label), all (no gold), or all but one (a
label known to be wrong). Likelihood is -log P(the labelling is one of those); the other losses compare the best
labelling with the best one of those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..errors import calib_error
from .inference.best import viterbi
from .inference.chains import Chains, Potentials
from .inference.sums import sum_chains


@dataclass(frozen=True, eq=False)
class Loss:
    """loss (float): Summed over sequences. scores (list): Gradient by each sequence's scores, shape (length, K).

    potentials (Potentials): Gradient by the potentials.
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
        """masks: Which labels may be right, booleans of numpy, (length, K) each. RAISES C321, C322: as `Chains.of`."""
        chains = Chains.of(scores, potentials)
        xp, packing = chains.xp, chains.packing
        allowed = xp.asarray(np.concatenate([np.zeros((0, chains.n_labels), dtype=bool), *masks])[packing.flat])
        return cls(chains, Chains(xp.where(allowed, chains.scores, -np.inf), chains.transitions, packing), smoothing)


def likelihood(asked: Question) -> Loss:
    """-log P(the right labelling), gradient E[all] - E[right] (Lafferty et al. 2001). RAISES C323: none is allowed.

    With smoothing a gold label's score becomes the mean of the scores that its mass is spread over, as in a softmax.
    """
    every, right = sum_chains(asked.chains), _sums_of_right(asked)
    lost, target = float(every.log_z.sum() - right.log_z.sum()), right.marginals
    if asked.smoothing:
        target = _smoothed(asked, target)
        xp, scores = asked.chains.xp, asked.chains.scores
        lost += float(((right.marginals - target) * xp.where(xp.isfinite(scores), scores, 0.0)).sum())
    return _loss(asked.chains, lost, every.marginals - target, every.expected_transitions - right.expected_transitions)


class _Right(NamedTuple):
    """The part of `Sums` that is asked of the right labellings."""

    log_z: Any
    marginals: Any
    expected_transitions: Any


def _sums_of_right(asked: Question) -> Any:
    """The sums over the right labellings; where there is one for each sequence they are its scores and counts."""
    chains, xp, width = asked.chains, asked.chains.xp, asked.chains.n_labels
    marginals = xp.isfinite(asked.right.scores)
    if not bool((marginals.sum(axis=1) == 1).all()):
        return sum_chains(asked.right)
    labels = marginals.argmax(axis=1)
    log_z = chains.scores_of(chains.unpacked(labels))
    if not bool(xp.isfinite(log_z).all()):
        return sum_chains(asked.right)  # which says so
    return _Right(log_z, marginals.astype("float64"), _count(_steps(chains, labels), None, width**2, xp).reshape(width, width))


def _steps(chains: Chains, labels: Any) -> Any:
    """The transition into each position but the first, as label before * K + label. labels: Packed, shape (N,)."""
    before, after = chains.packing.on(chains.xp, "followed")
    return labels[before].astype("int64") * chains.n_labels + labels[after]


def _count(codes: Any, weights: Any, n: int, xp: Any) -> Any:
    """The sum of the weights of each code, or how often it stands there, shape (n,)."""
    return xp.bincount(codes, weights=weights, minlength=n).astype("float64")


def _smoothed(asked: Question, target: Any) -> Any:
    """A share of each gold label's mass goes to the other labels that its position may have."""
    xp = asked.chains.xp
    others = xp.isfinite(asked.chains.scores) & ~xp.isfinite(asked.right.scores)
    n_others = others.sum(axis=1, keepdims=True)
    is_gold = (xp.isfinite(asked.right.scores).sum(axis=1, keepdims=True) == 1) & (n_others > 0)
    share = xp.where(is_gold, asked.smoothing, 0.0)
    return target * (1 - share) + others * (share / xp.maximum(n_others, 1))


def perceptron(asked: Question) -> Loss:
    """How much the best labelling scores above the best right one (Collins 2002)."""
    return _compared(asked, viterbi(asked.chains), with_cost=False)


def hinge(asked: Question) -> Loss:
    """How far the best rival, a point added for each label known to be wrong, is above the best right one (Taskar et
    al. 2003)."""
    return _compared(asked, viterbi(_with_cost(asked)), with_cost=True)


def passive_aggressive(asked: Question, most: float = 1.0) -> Loss:
    """The hinge with steps just long enough to repair each sequence: its gradient times min(most, loss / squared
    change) (PA-I, Crammer et al. 2006, section 3, with the scores of labels and transitions as the features)."""
    return _compared(asked, viterbi(_with_cost(asked)), with_cost=True, most=most)


LOSSES: dict[str, Callable[[Question], Loss]] = {
    "likelihood": likelihood,
    "perceptron": perceptron,
    "passive_aggressive": passive_aggressive,
    "hinge": hinge,
}


def get_loss(name: str) -> Callable[[Question], Loss]:
    """The loss of this name. RAISES C001: there is none."""
    if name not in LOSSES:
        raise calib_error("C001", name="loss", wanted=f"one of {', '.join(LOSSES)}", given=repr(name))
    return LOSSES[name]


def _with_cost(asked: Question) -> Chains:
    """The chains with a point more for each label that is known to be wrong."""
    wrong = ~asked.chains.xp.isfinite(asked.right.scores)
    return Chains(asked.chains.scores + wrong, asked.chains.transitions, asked.chains.packing)


def _compared(asked: Question, rivals: list[Any], with_cost: bool, most: float | None = None) -> Loss:
    """How far each sequence's rival scores above its best right labelling; the gradient is the difference of features.

    rivals: A labelling of each sequence. with_cost (bool): Whether a point is added for each label known to be wrong.
    most (float | None): If given, gradients are multiplied by min(most, loss / squared size of the difference).
    """
    chains, xp, width = asked.chains, asked.chains.xp, asked.chains.n_labels
    owner, n = chains.packing.on(xp, "owner"), len(chains.packing.lengths)
    best = viterbi(asked.right)
    rival, own = chains.packed(rivals), chains.packed(best)
    rows = xp.arange(len(chains.scores))
    lost = chains.scores_of(rivals) - chains.scores_of(best)
    if with_cost:
        lost += chains.summed((~xp.isfinite(asked.right.scores[rows, rival])).astype("float64"))
    # How often each has each transition: what both have often cancels out.
    of_sequence = owner[chains.packing.on(xp, "followed")[1]] * width**2
    codes = xp.concatenate([of_sequence + _steps(chains, rival), of_sequence + _steps(chains, own)])
    at, place = xp.unique(codes, return_inverse=True)
    signs = xp.ones(len(codes))
    signs[len(of_sequence) :] = -1
    by = _count(place.reshape(-1), signs, len(at), xp)
    weights = xp.ones(n)
    if most is not None:
        size = 2 * chains.summed((rival != own).astype("float64")) + _count(at // width**2, by**2, n, xp)
        weights = xp.minimum(most, lost / xp.maximum(size, 1.0))
    positions = xp.zeros_like(chains.scores)
    positions[rows, rival] += weights[owner]
    positions[rows, own] -= weights[owner]
    transitions = _count(at % width**2, by * weights[at // width**2], width**2, xp).reshape(width, width)
    return _loss(chains, float(lost.sum()), positions, transitions)


def _loss(chains: Chains, lost: float, positions: Any, transitions: Any) -> Loss:
    """A loss from its gradients by packed positions and by transitions."""
    xp, packing = chains.xp, chains.packing
    if not packing.n_times:
        return Loss(lost, [], Potentials(transitions, xp.zeros(chains.n_labels), xp.zeros(chains.n_labels)))
    starts, ends = positions[packing.at(0)].sum(axis=0), positions[packing.on(xp, "lasts")].sum(axis=0)
    return Loss(lost, chains.unpacked(positions), Potentials(transitions, starts, ends))
