"""Sums over all labellings of chains: partition function, marginals of labels and pairs, expected transitions, samples.

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

    def paths(self, positions: Any, labels: Any, lengths: Ints) -> Any:
        """Return P(labels) of stretches of neighbouring positions (packed), one after the other. lengths (Ints): 1 or more."""
        if not len(lengths):
            return self.chains.xp.zeros(0)
        xp = self.chains.xp
        positions, labels = xp.asarray(positions), xp.asarray(labels)
        ends = np.cumsum(lengths)
        inner = np.ones(len(positions), dtype=bool)
        inner[ends - lengths] = False
        stretch, inner = xp.asarray(np.repeat(np.arange(len(lengths)), lengths)), xp.asarray(np.flatnonzero(inner))
        first, last = xp.asarray(ends - lengths), xp.asarray(ends - 1)
        with np.errstate(divide="ignore"):
            steps = self._log_steps(positions[inner - 1], labels[inner - 1], positions[inner], labels[inner])
            total = xp.bincount(stretch[inner], weights=steps, minlength=len(lengths))
            return xp.exp(total + self._log_ends(positions[first], labels[first], positions[last], labels[last]))

    @abstractmethod
    def _log_steps(self, positions: Any, labels: Any, next_positions: Any, next_labels: Any) -> Any:
        """Return the log of the factor that each transition within a stretch contributes to its probability."""

    @abstractmethod
    def _log_ends(self, first: Any, first_labels: Any, last: Any, last_labels: Any) -> Any:
        """Return the log of the factor that the two ends of each stretch contribute to its probability."""

    @abstractmethod
    def _label_weights(self, positions: slice, next_labels: Any) -> Any:
        """Return P(label | next label) at positions of one time, up to a factor, (b, n, K). next_labels: (at most b, n)."""

    def sample(self, n: int, seed: int = 0) -> list[Any]:
        """Sample n independent labellings of each sequence: columns, shape (n, length) each, in the order given."""
        xp, packing = self.chains.xp, self.chains.packing
        rng = xp.random.RandomState(seed)
        samples = xp.zeros((len(self.marginals), n), dtype="i")
        next_labels = samples[:0]
        for time in reversed(range(packing.n_times)):
            positions = packing.slice_at(time)
            samples[positions] = self._draw(positions, next_labels, rng.random_sample((positions.stop - positions.start, n)))
            next_labels = samples[positions]
        return [labels.T for labels in self.chains.unpack(samples)]

    def _draw(self, positions: slice, next_labels: Any, uniforms: Any) -> Any:
        """Sample a label for each position of one time and each sample, (b, n). uniforms: Random numbers in [0, 1)."""
        xp, width = self.chains.xp, self.chains.n_labels
        labels = xp.empty(uniforms.shape, dtype="i")
        for part in parts_of(uniforms.shape[1], len(uniforms) * width, xp):
            sums = xp.cumsum(self._label_weights(positions, next_labels[:, part]), axis=-1)
            columns = (sums <= (uniforms[:, part] * sums[..., -1])[..., None]).sum(axis=-1)
            labels[:, part] = xp.minimum(columns, width - 1)
        return labels


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
        previous, following = self.chains.packing.on(self.chains.xp, "neighbours")
        return (self.forward[previous].T @ self.backward[following]) * self.step

    def joint(self, first: Any, second: Any) -> Any:
        first, second = map(self.chains.xp.asarray, (first, second))
        return self.forward[first][:, :, None] * self.step * self.backward[second][:, None]

    def _log_steps(self, positions: Any, labels: Any, next_positions: Any, next_labels: Any) -> Any:
        xp = self.chains.xp
        joint = self.forward[positions, labels] * self.step[labels, next_labels] * self.backward[next_positions, next_labels]
        marginal = self.marginals[positions, labels]
        return xp.log(joint / xp.where(marginal > 0, marginal, 1.0))

    def _log_ends(self, first: Any, first_labels: Any, last: Any, last_labels: Any) -> Any:
        return self.chains.xp.log(self.marginals[first, first_labels])

    def _label_weights(self, positions: slice, next_labels: Any) -> Any:
        weights = self.chains.xp.repeat(self.forward[positions][:, None], next_labels.shape[1], axis=1)
        weights[: len(next_labels)] *= self.step.T[next_labels]
        return weights


@dataclass(frozen=True, eq=False)
class LogSums(ChainSums):
    """Forward-backward in logarithms. forward (array): Log sum up to and with each position. future (array): After it."""

    forward: Any
    future: Any

    @cached_property
    def expected_transitions(self) -> Any:
        previous, following = self.chains.packing.on(self.chains.xp, "neighbours")
        total = self.chains.xp.zeros_like(self.chains.transitions)
        for part in parts_of(len(previous), total.size, self.chains.xp):
            total += self.joint(previous[part], following[part]).sum(axis=0)
        return total

    def joint(self, first: Any, second: Any) -> Any:
        first, second = map(self.chains.xp.asarray, (first, second))
        next_labels = self.chains.scores[second] + self.future[second]
        joint = self.forward[first][:, :, None] + self.chains.transitions + next_labels[:, None]
        weights = self.chains.xp.exp(joint - joint.max(axis=(1, 2), keepdims=True))
        return weights / weights.sum(axis=(1, 2), keepdims=True)

    def _log_steps(self, positions: Any, labels: Any, next_positions: Any, next_labels: Any) -> Any:
        return self.chains.transitions[labels, next_labels] + self.chains.scores[next_positions, next_labels]

    def _log_ends(self, first: Any, first_labels: Any, last: Any, last_labels: Any) -> Any:
        total = _log_sum(self.forward[first] + self.future[first], self.chains.xp)  # over all labellings of the sequence
        return self.forward[first, first_labels] + self.future[last, last_labels] - total

    def _label_weights(self, positions: slice, next_labels: Any) -> Any:
        xp = self.chains.xp
        scores = xp.repeat(self.forward[positions][:, None], next_labels.shape[1], axis=1)
        scores[: len(next_labels)] += self.chains.transitions.T[next_labels]
        return xp.exp(scores - scores.max(axis=-1, keepdims=True))


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
    xp, packing, highest = chains.xp, chains.packing, chains.highest
    top = chains.greatest_step
    if not (np.isfinite(top) and bool(xp.isfinite(highest).all())):
        return None
    step = xp.exp(chains.transitions - top)
    odds = chains.scores - highest[:, None]
    xp.exp(odds, out=odds)
    forward, total = xp.empty_like(odds), xp.empty((len(odds), 1))
    for time in range(packing.n_times):
        positions = packing.slice_at(time)
        if time:
            xp.matmul(forward[packing.slice_before(time)], step, out=forward[positions])
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
    if not bool((xp.isfinite(whole) & (total > 0)).all()):
        return None
    marginals /= whole
    log_z = chains.sum_by_sequence(xp.log(total[:, 0]) + highest)
    log_z += top * (packing.on(xp, "lengths") - 1)
    return ScaledSums(chains, log_z, marginals, forward, step, backward)


def _sum_logarithms(chains: Chains) -> LogSums:
    """Return the sums by logarithms: slower, but right for scores of any size."""
    xp, packing, into = chains.xp, chains.packing, chains.transitions.T
    forward = chains.scores.copy()
    for time in range(1, packing.n_times):
        forward[packing.slice_at(time)] += _log_product(forward[packing.slice_before(time)], into, xp)
    log_z = _log_sum(forward[packing.on(xp, "lasts")], xp)
    is_allowed = xp.isfinite(log_z)
    if not bool(is_allowed.all()):
        raise ValueError("a sequence has no allowed labelling")
    future = xp.zeros_like(forward)
    for time in reversed(range(1, packing.n_times)):
        positions = packing.slice_at(time)
        future[packing.slice_before(time)] = _log_product(chains.scores[positions] + future[positions], chains.transitions, xp)
    joint = forward + future
    marginals = xp.exp(joint - joint.max(axis=1, keepdims=True))
    marginals /= marginals.sum(axis=1, keepdims=True)
    return LogSums(chains, log_z, marginals, forward, future)


def _log_product(scores: Any, steps: Any, xp: Any) -> Any:
    """Return log(sum over i of exp(scores[:, i] + steps[j, i])) for each j: shape (b, K)."""
    result = xp.empty((len(scores), len(steps)))
    for part in parts_of(len(scores), steps.size, xp):
        result[part] = _log_sum(scores[part][:, None] + steps, xp)
    return result


def _log_sum(values: Any, xp: Any) -> Any:
    """Return log(sum(exp(values))) along the last axis; -inf where all are."""
    highest = values.max(axis=-1, keepdims=True)
    shift = xp.where(xp.isfinite(highest), highest, 0.0)
    return xp.log(xp.exp(values - shift).sum(axis=-1)) + shift[..., 0]


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
