"""Sums over all labellings of chains: partition function, marginals of labels and pairs and expected transitions.

Forward-backward with probabilities rescaled at each position (Rabiner 1989, section V.A), so that each step is one product of
matrices for the whole batch. Where a rescaled sum would vanish, the same is done with logarithms.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spacy_calib.types import Floats, Ints

from .best import parts_of
from .chains import Chains


@dataclass(frozen=True, eq=False)
class ChainSums(ABC):
    """Sums over all labellings. log_z: Log partition function, (B,). marginals: P(label at position), packed, (N, K)."""

    chains: Chains
    log_z: Any
    marginals: Any

    def by_sequence(self) -> list[Any]:
        """Return the marginals of each sequence in the order given, shape (length, K)."""
        return self.chains.unpack(self.marginals)

    @property
    @abstractmethod
    def expected_transitions(self) -> Any:
        """Expected number of transitions between each two labels, in all sequences, shape (K, K)."""

    @abstractmethod
    def joint(self, first: Any, second: Any) -> Any:
        """Return P(labels at two neighbouring positions), shape (n, K, K). first, second (array): Packed, shape (n,)."""


@dataclass(frozen=True, eq=False)
class ScaledSums(ChainSums):
    """Forward-backward in rescaled probabilities: P(y_t, y_t+1) = forward_t[y_t] * step[y_t, y_t+1] * backward_t+1[y_t+1].

    forward (array): P(label at position | the positions up to it), packed, (N, K). step (array): Exponential of the
    transitions, up to a factor, (K, K).
    """

    forward: Any
    step: Any
    backward: Any

    @cached_property
    def expected_transitions(self) -> Any:
        previous, following = self.chains.packing.neighbours
        return (self.forward[previous].T @ self.backward[following]) * self.step

    def joint(self, first: Any, second: Any) -> Any:
        return self.forward[first][:, :, None] * self.step * self.backward[second][:, None]


@dataclass(frozen=True, eq=False)
class LogSums(ChainSums):
    """Forward-backward in logarithms. forward (array): Log sum up to and with each position. future (array): After it."""

    forward: Any
    future: Any

    @cached_property
    def expected_transitions(self) -> Any:
        previous, following = self.chains.packing.neighbours
        total = np.zeros_like(self.chains.transitions)
        for part in parts_of(len(previous), total.size):
            total += self.joint(previous[part], following[part]).sum(axis=0)
        return total

    def joint(self, first: Any, second: Any) -> Any:
        next_labels = self.chains.scores[second] + self.future[second]
        joint = self.forward[first][:, :, None] + self.chains.transitions + next_labels[:, None]
        weights = np.exp(joint - joint.max(axis=(1, 2), keepdims=True))
        return weights / weights.sum(axis=(1, 2), keepdims=True)


def sum_chains(chains: Chains) -> ChainSums:
    """Run forward-backward over all sequences of a batch: two products of matrices, (b, K) and (K, K), at each position.

    N positions and K labels take 4 N K + 2 K^2 numbers of 8 bytes, scores and transitions among them: 36.5 MB for 64 sentences
    of 25 tokens and 600 labels. What logarithms need in addition is bounded (`parts_of`). RAISES ValueError: a sequence has no
    labelling that is allowed.
    """
    with np.errstate(divide="ignore", over="ignore", invalid="ignore", under="ignore"):
        return _sum_scaled(chains) or _sum_logarithms(chains)


def _sum_scaled(chains: Chains) -> ScaledSums | None:
    """Return the sums by rescaled probabilities; None where a sum vanished, or a product overflowed.

    No label can vanish unseen: if P(label | before) underflows and P(label) does not, the following factors overflow, and a
    marginal is not finite.
    """
    packing, highest, top = chains.packing, chains.scores.max(axis=1), chains.transitions.max()
    if not (np.isfinite(top) and np.isfinite(highest).all()):
        return None
    step = np.exp(chains.transitions - top)
    odds = chains.scores - highest[:, None]
    np.exp(odds, out=odds)
    forward, total = np.empty_like(odds), np.empty((len(odds), 1))
    for time in range(packing.n_times):
        positions = packing.slice_at(time)
        if time:
            np.matmul(forward[packing.slice_before(time)], step, out=forward[positions])
            forward[positions] *= odds[positions]
        else:
            forward[positions] = odds[positions]
        total[positions] = forward[positions].sum(axis=1, keepdims=True)
        forward[positions] /= total[positions]
    backward, marginals = odds, forward.copy()  # the odds of a position are not needed once its backward sum is computed
    for time in reversed(range(1, packing.n_times)):
        positions, previous = packing.slice_at(time), packing.slice_before(time)
        backward[positions] /= total[positions]
        future = backward[positions] @ step.T
        marginals[previous] *= future
        backward[previous] *= future
    backward[packing.slice_at(0) if packing.n_times else slice(0, 0)] = 0.0
    whole = marginals.sum(axis=1, keepdims=True)
    if not (np.isfinite(whole) & (total > 0)).all():
        return None
    marginals /= whole
    log_z = chains.sum_by_sequence(np.log(total[:, 0]) + highest)
    log_z += top * (packing.lengths - 1)
    return ScaledSums(chains, log_z, marginals, forward, step, backward)


def _sum_logarithms(chains: Chains) -> LogSums:
    """Return the sums by logarithms: slower, but right for scores of any size."""
    packing, into = chains.packing, chains.transitions.T
    forward = chains.scores.copy()
    for time in range(1, packing.n_times):
        forward[packing.slice_at(time)] += _log_product(forward[packing.slice_before(time)], into)
    log_z = _log_sum(forward[packing.lasts])
    if not np.isfinite(log_z).all():
        raise ValueError("a sequence has no allowed labelling")
    future = np.zeros_like(forward)
    for time in reversed(range(1, packing.n_times)):
        positions = packing.slice_at(time)
        future[packing.slice_before(time)] = _log_product(chains.scores[positions] + future[positions], chains.transitions)
    joint = forward + future
    marginals = np.exp(joint - joint.max(axis=1, keepdims=True))
    marginals /= marginals.sum(axis=1, keepdims=True)
    return LogSums(chains, log_z, marginals, forward, future)


def _log_product(scores: Any, steps: Any) -> Any:
    """Return log(sum over i of exp(scores[:, i] + steps[j, i])) for each j: shape (b, K)."""
    result = np.empty((len(scores), len(steps)))
    for part in parts_of(len(scores), steps.size):
        result[part] = _log_sum(scores[part][:, None] + steps)
    return result


def _log_sum(values: Any) -> Any:
    """Return log(sum(exp(values))) along the last axis; -inf where all are."""
    highest = values.max(axis=-1, keepdims=True)
    shift = np.where(np.isfinite(highest), highest, 0.0)
    return np.log(np.exp(values - shift).sum(axis=-1)) + shift[..., 0]


# How many probabilities are computed together.
_CELLS = 1 << 22


def each_joint(sums: ChainSums) -> Iterator[tuple[Ints, Floats]]:
    """Yield (first tokens, P(labels of each and of the next), shape (n, K, K)), n tokens at a time, in order."""
    chains = sums.chains
    previous, following = chains.packing.neighbours
    order = np.argsort(chains.packing.flat_index[previous], kind="stable")
    size = max(1, _CELLS // max(1, chains.n_labels**2))
    for first in range(0, len(order), size):
        part = order[first : first + size]
        yield chains.packing.flat_index[previous[part]], np.asarray(sums.joint(previous[part], following[part]))
