"""Losses of a chain against gold labels, with gradients: likelihood, perceptron, hinge, passive-aggressive.

Gold is a mask of the labels that may be right at each position: one (a gold label), all (no gold), or all but one (a label
known to be wrong). Likelihood is -log P(the labelling is one of those); the other losses compare the best labelling with the
best one of those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .best import viterbi
from .chains import Chains, Potentials
from .sums import sum_chains


@dataclass(frozen=True, eq=False)
class LossResult:
    """A loss, summed over sequences, and its gradients: by the scores of each sequence, and by the potentials."""

    loss: float
    d_scores: list[Any]
    d_potentials: Potentials


@dataclass(frozen=True, eq=False)
class LossInput:
    """The chains that a loss compares with gold. right (Chains): `chains` with -inf at labels that are known to be wrong.

    smoothing (float): This share of a gold label's mass goes to the others (label smoothing), in [0, 1).
    """

    chains: Chains
    right: Chains
    smoothing: float = 0.0

    @classmethod
    def from_scores(
        cls, scores: Sequence[Any], potentials: Potentials, masks: Sequence[Any], smoothing: float = 0.0
    ) -> LossInput:
        """Pack scores, and masks of labels that may be right (numpy), shape (length, K) each."""
        chains = Chains.from_scores(scores, potentials)
        xp, packing = chains.xp, chains.packing
        mask = xp.asarray(np.concatenate([np.zeros((0, chains.n_labels), dtype=bool), *masks])[packing.flat_index])
        return cls(chains, Chains(xp.where(mask, chains.scores, -np.inf), chains.transitions, packing), smoothing)


def likelihood(inputs: LossInput) -> LossResult:
    """Return -log P(the right labelling), gradient E[all] - E[right] (Lafferty et al. 2001). RAISES C323: none is allowed.

    With smoothing a gold label's score becomes the mean of the scores that its mass is spread over, as in a softmax.
    """
    all_sums, right = sum_chains(inputs.chains), _sums_of_right(inputs)
    loss, target = float(all_sums.log_z.sum() - right.log_z.sum()), right.marginals
    if inputs.smoothing:
        target = _smooth_target(inputs, target)
        xp, scores = inputs.chains.xp, inputs.chains.scores
        loss += float(((right.marginals - target) * xp.where(xp.isfinite(scores), scores, 0.0)).sum())
    transitions = all_sums.expected_transitions - right.expected_transitions
    return _make_result(inputs.chains, loss, all_sums.marginals - target, transitions)


class _RightSums(NamedTuple):
    """The sums over the right labellings, in the form of `ChainSums`."""

    log_z: Any
    marginals: Any
    expected_transitions: Any


def _sums_of_right(inputs: LossInput) -> Any:
    """Return the sums over the right labellings; if each sequence has only one, from its score and its transitions."""
    chains, xp, width = inputs.chains, inputs.chains.xp, inputs.chains.n_labels
    marginals = xp.isfinite(inputs.right.scores)
    if not bool((marginals.sum(axis=1) == 1).all()):
        return sum_chains(inputs.right)
    labels = marginals.argmax(axis=1)
    log_z = chains.scores_of(chains.unpack(labels))
    if not bool(xp.isfinite(log_z).all()):
        return sum_chains(inputs.right)  # which raises C323
    transitions = _count(_steps(chains, labels), None, width**2, xp).reshape(width, width)
    return _RightSums(log_z, marginals.astype("float64"), transitions)


def _steps(chains: Chains, labels: Any) -> Any:
    """Return the transition into each position but the first, as previous label * K + label. labels: Packed, shape (N,)."""
    previous, following = chains.packing.on(chains.xp, "neighbours")
    return labels[previous].astype("int64") * chains.n_labels + labels[following]


def _count(codes: Any, weights: Any, n: int, xp: Any) -> Any:
    """Return the sum of the weights of each code, or its frequency, shape (n,)."""
    return xp.bincount(codes, weights=weights, minlength=n).astype("float64")


def _smooth_target(inputs: LossInput, target: Any) -> Any:
    """Spread a share of each gold label's mass over the other labels that its position may have."""
    xp = inputs.chains.xp
    is_other = xp.isfinite(inputs.chains.scores) & ~xp.isfinite(inputs.right.scores)
    n_others = is_other.sum(axis=1, keepdims=True)
    is_gold = (xp.isfinite(inputs.right.scores).sum(axis=1, keepdims=True) == 1) & (n_others > 0)
    share = xp.where(is_gold, inputs.smoothing, 0.0)
    return target * (1 - share) + is_other * (share / xp.maximum(n_others, 1))


def hinge(inputs: LossInput) -> LossResult:
    """Return how far the best rival, with a point for each wrong label, is above the best right one (Taskar et al. 2003)."""
    return _compare_rivals(inputs, viterbi(_add_cost(inputs)), with_cost=True)


def _add_cost(inputs: LossInput) -> Chains:
    """Add a point for each label that is known to be wrong."""
    wrong = ~inputs.chains.xp.isfinite(inputs.right.scores)
    return Chains(inputs.chains.scores + wrong, inputs.chains.transitions, inputs.chains.packing)


def _compare_rivals(inputs: LossInput, rivals: list[Any], with_cost: bool, maximum: float | None = None) -> LossResult:
    """Return how far each sequence's rival scores above its best right labelling; the gradient is the difference of features.

    rivals: A labelling of each sequence. with_cost (bool): Whether a point is added for each wrong label. maximum (float |
    None): Multiplies gradients by min(maximum, loss / squared size of the difference).
    """
    chains, xp, width = inputs.chains, inputs.chains.xp, inputs.chains.n_labels
    owner, n = chains.packing.on(xp, "owner"), len(chains.packing.lengths)
    best = viterbi(inputs.right)
    rival, right = chains.pack(rivals), chains.pack(best)
    rows = xp.arange(len(chains.scores))
    losses = chains.scores_of(rivals) - chains.scores_of(best)
    if with_cost:
        losses += chains.sum_by_sequence((~xp.isfinite(inputs.right.scores[rows, rival])).astype("float64"))
    # How often each has each transition: what both have often cancels out.
    of_sequence = owner[chains.packing.on(xp, "neighbours")[1]] * width**2
    codes = xp.concatenate([of_sequence + _steps(chains, rival), of_sequence + _steps(chains, right)])
    distinct, code_index = xp.unique(codes, return_inverse=True)
    signs = xp.ones(len(codes))
    signs[len(of_sequence) :] = -1
    differences = _count(code_index.reshape(-1), signs, len(distinct), xp)
    weights = xp.ones(n)
    if maximum is not None:
        size = 2 * chains.sum_by_sequence((rival != right).astype("float64"))
        size += _count(distinct // width**2, differences**2, n, xp)
        weights = xp.minimum(maximum, losses / xp.maximum(size, 1.0))
    positions = xp.zeros_like(chains.scores)
    positions[rows, rival] += weights[owner]
    positions[rows, right] -= weights[owner]
    transitions = _count(distinct % width**2, differences * weights[distinct // width**2], width**2, xp).reshape(width, width)
    return _make_result(chains, float(losses.sum()), positions, transitions)


def _make_result(chains: Chains, loss: float, positions: Any, transitions: Any) -> LossResult:
    """Build a loss from its gradients by packed positions and by transitions."""
    xp, packing = chains.xp, chains.packing
    if not packing.n_times:
        return LossResult(loss, [], Potentials(transitions, xp.zeros(chains.n_labels), xp.zeros(chains.n_labels)))
    starts, ends = positions[packing.slice_at(0)].sum(axis=0), positions[packing.on(xp, "lasts")].sum(axis=0)
    return LossResult(loss, chains.unpack(positions), Potentials(transitions, starts, ends))
