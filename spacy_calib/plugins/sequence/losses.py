"""Losses of a chain against gold labels, with gradients: likelihood, perceptron, hinge, passive-aggressive.

Gold is a mask of the labels that may be right at each position: one (a gold label), all (no gold), or all but one (a label
known to be wrong). Likelihood is -log P(the labelling is one of those); the other losses compare the best labelling with the
best one of those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .inference.best import viterbi
from .inference.chains import Chains, Potentials
from .inference.sums import sum_chains
from .messages import calib_error


@dataclass(frozen=True, eq=False)
class Loss:
    """loss (float): Sum over sequences. scores (list): Gradient by each sequence's scores. potentials: By the potentials."""

    loss: float
    scores: list[Any]
    potentials: Potentials


@dataclass(frozen=True, eq=False)
class Question:
    """The input of a loss. right (Chains): `chains` with -inf at labels that are known to be wrong.

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
        mask = xp.asarray(np.concatenate([np.zeros((0, chains.n_labels), dtype=bool), *masks])[packing.flat])
        return cls(chains, Chains(xp.where(mask, chains.scores, -np.inf), chains.transitions, packing), smoothing)


def likelihood(question: Question) -> Loss:
    """Return -log P(the right labelling), gradient E[all] - E[right] (Lafferty et al. 2001). RAISES C323: none is allowed.

    With smoothing a gold label's score becomes the mean of the scores that its mass is spread over, as in a softmax.
    """
    all_sums, right = sum_chains(question.chains), _sums_of_right(question)
    loss, target = float(all_sums.log_z.sum() - right.log_z.sum()), right.marginals
    if question.smoothing:
        target = _smooth_target(question, target)
        xp, scores = question.chains.xp, question.chains.scores
        loss += float(((right.marginals - target) * xp.where(xp.isfinite(scores), scores, 0.0)).sum())
    return _loss(question.chains, loss, all_sums.marginals - target, all_sums.expected_transitions - right.expected_transitions)


class _Right(NamedTuple):
    """The part of `Sums` that is used of the right labellings."""

    log_z: Any
    marginals: Any
    expected_transitions: Any


def _sums_of_right(question: Question) -> Any:
    """Return the sums over the right labellings; where there is one for each sequence they are its scores and counts."""
    chains, xp, width = question.chains, question.chains.xp, question.chains.n_labels
    marginals = xp.isfinite(question.right.scores)
    if not bool((marginals.sum(axis=1) == 1).all()):
        return sum_chains(question.right)
    labels = marginals.argmax(axis=1)
    log_z = chains.scores_of(chains.unpacked(labels))
    if not bool(xp.isfinite(log_z).all()):
        return sum_chains(question.right)  # which says so
    return _Right(log_z, marginals.astype("float64"), _count(_steps(chains, labels), None, width**2, xp).reshape(width, width))


def _steps(chains: Chains, labels: Any) -> Any:
    """Return the transition into each position but the first, as previous label * K + label. labels: Packed, shape (N,)."""
    previous, following = chains.packing.on(chains.xp, "followed")
    return labels[previous].astype("int64") * chains.n_labels + labels[following]


def _count(codes: Any, weights: Any, n: int, xp: Any) -> Any:
    """Return the sum of the weights of each code, or its frequency, shape (n,)."""
    return xp.bincount(codes, weights=weights, minlength=n).astype("float64")


def _smooth_target(question: Question, target: Any) -> Any:
    """Spread a share of each gold label's mass over the other labels that its position may have."""
    xp = question.chains.xp
    is_other = xp.isfinite(question.chains.scores) & ~xp.isfinite(question.right.scores)
    n_others = is_other.sum(axis=1, keepdims=True)
    is_gold = (xp.isfinite(question.right.scores).sum(axis=1, keepdims=True) == 1) & (n_others > 0)
    share = xp.where(is_gold, question.smoothing, 0.0)
    return target * (1 - share) + is_other * (share / xp.maximum(n_others, 1))


def perceptron(question: Question) -> Loss:
    """Return how much the best labelling scores above the best right one (Collins 2002)."""
    return _compare_rivals(question, viterbi(question.chains), with_cost=False)


def hinge(question: Question) -> Loss:
    """Return how far the best rival, with a point for each wrong label, is above the best right one (Taskar et al. 2003)."""
    return _compare_rivals(question, viterbi(_with_cost(question)), with_cost=True)


def passive_aggressive(question: Question, maximum: float = 1.0) -> Loss:
    """Return the hinge with steps just long enough to repair each sequence.

    Its gradient times min(maximum, loss / squared change) (PA-I, Crammer et al. 2006, section 3, with the scores of labels and
    transitions as the features).
    """
    return _compare_rivals(question, viterbi(_with_cost(question)), with_cost=True, maximum=maximum)


LOSSES: dict[str, Callable[[Question], Loss]] = {
    "likelihood": likelihood,
    "perceptron": perceptron,
    "passive_aggressive": passive_aggressive,
    "hinge": hinge,
}


def get_loss(name: str) -> Callable[[Question], Loss]:
    """Return the loss of this name. RAISES C001: there is none."""
    if name not in LOSSES:
        raise calib_error("C001", name="loss", wanted=f"one of {', '.join(LOSSES)}", given=repr(name))
    return LOSSES[name]


def _with_cost(question: Question) -> Chains:
    """Add a point for each label that is known to be wrong."""
    wrong = ~question.chains.xp.isfinite(question.right.scores)
    return Chains(question.chains.scores + wrong, question.chains.transitions, question.chains.packing)


def _compare_rivals(question: Question, rivals: list[Any], with_cost: bool, maximum: float | None = None) -> Loss:
    """Return how far each sequence's rival scores above its best right labelling; the gradient is the difference of features.

    rivals: A labelling of each sequence. with_cost (bool): Whether a point is added for each wrong label. maximum (float |
    None): Multiplies gradients by min(maximum, loss / squared size of the difference).
    """
    chains, xp, width = question.chains, question.chains.xp, question.chains.n_labels
    owner, n = chains.packing.on(xp, "owner"), len(chains.packing.lengths)
    best = viterbi(question.right)
    rival, right = chains.packed(rivals), chains.packed(best)
    rows = xp.arange(len(chains.scores))
    losses = chains.scores_of(rivals) - chains.scores_of(best)
    if with_cost:
        losses += chains.summed((~xp.isfinite(question.right.scores[rows, rival])).astype("float64"))
    # How often each has each transition: what both have often cancels out.
    of_sequence = owner[chains.packing.on(xp, "followed")[1]] * width**2
    codes = xp.concatenate([of_sequence + _steps(chains, rival), of_sequence + _steps(chains, right)])
    distinct, place = xp.unique(codes, return_inverse=True)
    signs = xp.ones(len(codes))
    signs[len(of_sequence) :] = -1
    differences = _count(place.reshape(-1), signs, len(distinct), xp)
    weights = xp.ones(n)
    if maximum is not None:
        size = 2 * chains.summed((rival != right).astype("float64")) + _count(distinct // width**2, differences**2, n, xp)
        weights = xp.minimum(maximum, losses / xp.maximum(size, 1.0))
    positions = xp.zeros_like(chains.scores)
    positions[rows, rival] += weights[owner]
    positions[rows, right] -= weights[owner]
    transitions = _count(distinct % width**2, differences * weights[distinct // width**2], width**2, xp).reshape(width, width)
    return _loss(chains, float(losses.sum()), positions, transitions)


def _loss(chains: Chains, loss: float, positions: Any, transitions: Any) -> Loss:
    """Build a loss from its gradients by packed positions and by transitions."""
    xp, packing = chains.xp, chains.packing
    if not packing.n_times:
        return Loss(loss, [], Potentials(transitions, xp.zeros(chains.n_labels), xp.zeros(chains.n_labels)))
    starts, ends = positions[packing.at(0)].sum(axis=0), positions[packing.on(xp, "lasts")].sum(axis=0)
    return Loss(loss, chains.unpacked(positions), Potentials(transitions, starts, ends))
