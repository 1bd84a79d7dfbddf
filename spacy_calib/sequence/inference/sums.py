"""Sums over all labellings of chains: the partition function, marginals of labels and of pairs, expected transitions, samples.

Forward-backward with the probabilities rescaled at each position (Rabiner 1989, section V.A), so that each step is one product of matrices
for all sequences of a batch. Where scores lie so far apart that a rescaled sum vanishes, the same is done with logarithms.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...errors import calib_error
from .chains import Chains


@dataclass(frozen=True, eq=False)
class Sums(ABC):
    """What forward-backward finds.

    chains (Chains): Of which. log_z (array): Logarithm of the sum over all labellings, of each sequence in the order given, shape (B,).
    marginals (array): P(label at position), packed, shape (N, K).
    """

    chains: Chains
    log_z: Any
    marginals: Any

    def by_sequence(self) -> list[Any]:
        """The marginals of each sequence in the order given, shape (length, K)."""
        return self.chains.unpacked(self.marginals)

    @property
    @abstractmethod
    def expected_transitions(self) -> Any:
        """How often each label is expected to follow each other one, in all sequences, shape (K, K)."""

    @abstractmethod
    def joint(self, first: Any, second: Any) -> Any:
        """P(labels at two packed places that follow one another), shape (n, K, K). first, second (array): Packed places, shape (n,)."""

    @abstractmethod
    def path(self, places: Any, labels: Any) -> float:
        """P(these labels at packed places that follow one another). places, labels (array): Shape (n,), n at least 1."""

    @abstractmethod
    def _chances(self, at: slice, behind: Any) -> Any:
        """The chance of each label at the places of a time, up to a factor: shape (b, n, K).

        behind (array): The label that follows in each sample, of the places that another follows, shape (at most b, n).
        """

    def sample(self, n: int, seed: int = 0) -> list[Any]:
        """n labellings of each sequence, drawn independently: columns, shape (n, length) each, in the order given."""
        xp, packing = self.chains.xp, self.chains.packing
        rng = xp.random.RandomState(seed)
        drawn = xp.zeros((len(self.marginals), n), dtype="i")
        behind = drawn[:0]
        for time in reversed(range(packing.n_times)):
            at = packing.at(time)
            drawn[at] = _draw(self._chances(at, behind), rng, xp)
            behind = drawn[at]
        return [one.T for one in self.chains.unpacked(drawn)]


@dataclass(frozen=True, eq=False)
class ScaledSums(Sums):
    """With P(y_t, y_t+1) = forward_t[y_t] * step[y_t, y_t+1] * ahead_t+1[y_t+1].

    forward (array): P(label at position | the positions up to it), packed, shape (N, K).
    step (array): The exponential of the transitions, up to a factor, (K, K). ahead (array): The rest, packed, (N, K).
    """

    forward: Any
    step: Any
    ahead: Any

    @cached_property
    def expected_transitions(self) -> Any:
        before, after = map(self.chains.xp.asarray, self.chains.packing.followed)
        return (self.forward[before].T @ self.ahead[after]) * self.step

    def joint(self, first: Any, second: Any) -> Any:
        return self.forward[first][:, :, None] * self.step * self.ahead[second][:, None]

    def path(self, places: Any, labels: Any) -> float:
        first, second = (places[:-1], labels[:-1]), (places[1:], labels[1:])
        joint = self.forward[first] * self.step[labels[:-1], labels[1:]] * self.ahead[second]
        before = self.marginals[first]
        follows = joint / self.chains.xp.where(before > 0, before, 1.0)
        return float(self.marginals[places[0], labels[0]] * follows.prod())

    def _chances(self, at: slice, behind: Any) -> Any:
        chances = self.chains.xp.repeat(self.forward[at][:, None], behind.shape[1], axis=1)
        chances[: len(behind)] *= self.step.T[behind]
        return chances


@dataclass(frozen=True, eq=False)
class LogSums(Sums):
    """The same in logarithms.

    forward (array): Log of the sum over the labels before, with the position's own score, packed, (N, K). future (array): Of those after, (N, K).
    """

    forward: Any
    future: Any

    @cached_property
    def expected_transitions(self) -> Any:
        places = zip(*self.chains.packing.followed, strict=True)
        total = self.chains.xp.zeros_like(self.chains.transitions)
        for first, second in places:
            total += self.joint(first[None], second[None])[0]
        return total

    def joint(self, first: Any, second: Any) -> Any:
        behind = self.chains.scores[second] + self.future[second]
        joint = self.forward[first][:, :, None] + self.chains.transitions + behind[:, None]
        chance = self.chains.xp.exp(joint - joint.max(axis=(1, 2), keepdims=True))
        return chance / chance.sum(axis=(1, 2), keepdims=True)

    def path(self, places: Any, labels: Any) -> float:
        xp, chains = self.chains.xp, self.chains
        inner = chains.transitions[labels[:-1], labels[1:]].sum() + chains.scores[places[1:], labels[1:]].sum()
        whole = self.forward[places[0]] + self.future[places[0]]  # the sum over all labellings of the chain, by the label here
        total = _log_sum(whole[None], 1, xp)[0]
        return float(xp.exp(self.forward[places[0], labels[0]] + inner + self.future[places[-1], labels[-1]] - total))

    def _chances(self, at: slice, behind: Any) -> Any:
        xp = self.chains.xp
        scores = xp.repeat(self.forward[at][:, None], behind.shape[1], axis=1)
        scores[: len(behind)] += self.chains.transitions.T[behind]
        return xp.exp(scores - scores.max(axis=-1, keepdims=True))


def _draw(chance: Any, rng: Any, xp: Any) -> Any:
    """A column for each row, with chances in proportion to the last axis."""
    sums = xp.cumsum(chance, axis=-1)
    at = rng.random_sample(sums.shape[:-1]) * sums[..., -1]
    return xp.minimum((sums <= at[..., None]).sum(axis=-1), chance.shape[-1] - 1)


def sum_chains(chains: Chains) -> Sums:
    """Forward-backward over all sequences of a batch.

    RAISES C323: a sequence has no labelling that is allowed.
    """
    with np.errstate(divide="ignore", over="ignore", invalid="ignore", under="ignore"):
        return _scaled(chains) or _logarithmic(chains)


def _scaled(chains: Chains) -> ScaledSums | None:
    """None where a sum vanished, or a product grew beyond what a float holds."""
    xp, packing = chains.xp, chains.packing
    highest = chains.scores.max(axis=1, initial=-np.inf)
    own = xp.exp(chains.scores - highest[:, None])
    top = chains.transitions.max(initial=-np.inf)
    if not (bool(xp.isfinite(highest).all()) and (bool(xp.isfinite(top)) or packing.n_times < 2)):
        return None
    step = xp.exp(chains.transitions - top) if packing.n_times > 1 else xp.zeros_like(chains.transitions)
    forward, ahead, total = xp.empty_like(own), xp.empty_like(own), xp.empty(len(own))
    for time in range(packing.n_times):
        at = packing.at(time)
        reached = own[at] if time == 0 else (forward[packing.before(time)] @ step) * own[at]
        total[at] = reached.sum(axis=1)
        forward[at] = reached / total[at][:, None]
    future = xp.ones_like(own)
    for time in reversed(range(1, packing.n_times)):
        at = packing.at(time)
        ahead[at] = own[at] * future[at] / total[at][:, None]
        future[packing.before(time)] = ahead[at] @ step.T
    first = packing.at(0) if packing.n_times else slice(0, 0)
    ahead[first] = 0.0
    marginals = forward * future
    if not bool(xp.isfinite(marginals).all()) or not bool((total > 0).all()):
        return None
    marginals /= marginals.sum(axis=1, keepdims=True)
    log_z = _by_sequence(chains, xp.log(total) + highest)
    log_z += top * (xp.asarray(packing.lengths) - 1) if packing.n_times > 1 else 0.0
    return ScaledSums(chains, log_z, marginals, forward, step, ahead)


def _logarithmic(chains: Chains) -> LogSums:
    """The same with logarithms throughout: slower, and right for scores of any size. RAISES C323."""
    xp, packing = chains.xp, chains.packing
    forward = chains.scores.copy()
    for time in range(1, packing.n_times):
        forward[packing.at(time)] += _log_sum(forward[packing.before(time)][:, :, None] + chains.transitions[None], 1, xp)
    lasts = forward[xp.asarray(packing.lasts)]
    log_z = _log_sum(lasts, 1, xp)
    if not bool(xp.isfinite(log_z).all()):
        raise calib_error("C323", number=int(xp.argmin(xp.isfinite(log_z))) + 1)
    future = xp.zeros_like(forward)
    for time in reversed(range(1, packing.n_times)):
        at = packing.at(time)
        behind = (chains.scores[at] + future[at])[:, None, :] + chains.transitions[None]
        future[packing.before(time)] = _log_sum(behind, 2, xp)
    joint = forward + future
    marginals = xp.exp(joint - joint.max(axis=1, keepdims=True))
    marginals /= marginals.sum(axis=1, keepdims=True)
    return LogSums(chains, log_z, marginals, forward, future)


def _log_sum(values: Any, axis: int, xp: Any) -> Any:
    """log(sum(exp(values))) along an axis; -inf where all are."""
    highest = values.max(axis=axis, keepdims=True)
    shift = xp.where(xp.isfinite(highest), highest, 0.0)
    return xp.log(xp.exp(values - shift).sum(axis=axis)) + shift.squeeze(axis)


def _by_sequence(chains: Chains, of_positions: Any) -> Any:
    """The sum of what is given for the positions of each sequence, in the order given, shape (B,)."""
    xp, lengths = chains.xp, chains.packing.lengths
    if not len(lengths):
        return xp.zeros(0)
    owner = np.empty(len(of_positions), dtype=np.intp)
    owner[chains.packing.packed] = np.repeat(np.arange(len(lengths)), lengths)
    return xp.bincount(xp.asarray(owner), weights=of_positions, minlength=len(lengths))
