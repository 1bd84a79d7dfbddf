"""The best labellings of chains: Viterbi, the k best, and the best labelling through each label of each position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import calib_error
from .chains import Chains

# Predecessors that are tried first; the others are looked at only where one of them could still be better.
_TRIED = 32
# Cells that are compared together.
_CELLS = 1 << 23


@dataclass(frozen=True, eq=False)
class Best:
    """The k best labellings of one sequence: labels (array), columns, shape (k, length); scores (array), highest first, shape (k,).

    k is smaller where there are fewer labellings that are allowed.
    """

    labels: Any
    scores: Any


def viterbi(chains: Chains) -> list[Any]:
    """The labelling with the highest score of each sequence in the order given: columns, shape (length,).

    RAISES C323: a sequence has no labelling that is allowed.
    """
    xp, packing = chains.xp, chains.packing
    back = xp.zeros(chains.scores.shape, dtype="i")
    reached = chains.scores[packing.at(0)] if packing.n_times else chains.scores
    ends = []
    for time in range(1, packing.n_times):
        alive = int(packing.alive[time])
        ends.append(reached[alive:])
        value, back[packing.at(time)] = _step(reached[:alive], chains.transitions, xp)
        reached = value + chains.scores[packing.at(time)]
    ends.append(reached)
    finals = xp.concatenate(ends[::-1])  # by rank: the longest sequences end last
    if not bool(xp.isfinite(finals.max(axis=1, initial=-np.inf)).all()):
        raise calib_error("C323", number=int(packing.ranked[int(xp.argmin(xp.isfinite(finals.max(axis=1))))]) + 1)
    labels = xp.zeros(len(chains.scores), dtype="i")
    last = finals.argmax(axis=1).astype("i")
    for time in reversed(range(packing.n_times)):
        at, alive = packing.at(time), int(packing.alive[time])
        goes_on = int(packing.alive[time + 1]) if time + 1 < packing.n_times else 0
        labels[at] = last[:alive]
        if goes_on:
            behind = packing.at(time + 1)
            labels[at][:goes_on] = back[behind][xp.arange(goes_on), labels[behind]]
    return chains.unpacked(labels)


def _step(reached: Any, transitions: Any, xp: Any) -> tuple[Any, Any]:
    """(the best sum of each row's score of some label and the transition from it, that label), each of shape (b, K).

    Exact. Of many labels the best few are tried first: no other can be better where its score and the greatest transition that leads to
    a label add up to less than what was found.
    """
    width = reached.shape[1]
    if width <= 2 * _TRIED:
        return _full_step(reached, transitions, xp)
    tried = xp.argpartition(-reached, _TRIED, axis=1)
    rest = xp.take_along_axis(reached, tried[:, _TRIED : _TRIED + 1], axis=1)
    tried = xp.sort(tried[:, :_TRIED], axis=1)
    value, place = _full_step_from(xp.take_along_axis(reached, tried, axis=1), tried, transitions, xp)
    bound = rest + transitions.max(axis=0)[None]
    open_rows = xp.flatnonzero(~(value > bound).all(axis=1))
    if len(open_rows):
        value[open_rows], place[open_rows] = _full_step(reached[open_rows], transitions, xp)
    return value, place


def _full_step_from(scores: Any, labels: Any, transitions: Any, xp: Any) -> tuple[Any, Any]:
    """`_full_step` from some labels of each row only. scores, labels: Shape (b, m)."""
    value, place = xp.empty((len(scores), transitions.shape[1])), xp.empty((len(scores), transitions.shape[1]), dtype="i")
    size = max(1, _CELLS // max(1, labels.shape[1] * transitions.shape[1]))
    for first in range(0, len(scores), size):
        part = slice(first, first + size)
        sums = scores[part][:, :, None] + transitions[labels[part]]
        at = sums.argmax(axis=1)
        value[part] = xp.take_along_axis(sums, at[:, None], axis=1)[:, 0]
        place[part] = xp.take_along_axis(labels[part], at, axis=1)
    return value, place


def _full_step(reached: Any, transitions: Any, xp: Any) -> tuple[Any, Any]:
    """As `_step`, from every label."""
    every = xp.broadcast_to(xp.arange(reached.shape[1], dtype="i"), reached.shape)
    return _full_step_from(reached, every, transitions, xp)


def best_through(chains: Chains) -> Any:
    """The score of the best labelling of its sequence that has a label at a position (max-marginals), packed, shape (N, K)."""
    xp, packing = chains.xp, chains.packing
    forward, future = chains.scores.copy(), xp.zeros_like(chains.scores)
    for time in range(1, packing.n_times):
        forward[packing.at(time)] += _step(forward[packing.before(time)], chains.transitions, xp)[0]
    for time in reversed(range(1, packing.n_times)):
        at = packing.at(time)
        future[packing.before(time)] = _step(chains.scores[at] + future[at], chains.transitions.T, xp)[0]
    return forward + future


def k_best(chains: Chains, k: int) -> list[Best]:
    """The k best labellings of each sequence in the order given.

    RAISES C001: k is not at least 1. C323: a sequence has no labelling that is allowed.
    """
    if k < 1:
        raise calib_error("C001", name="k", wanted="at least 1", given=k)
    xp, packing = chains.xp, chains.packing
    kept: list[Any] = []  # of each time: (labels, slots) of the predecessor of each held path, shape (alive, K, held)
    held = chains.scores[packing.at(0)][:, :, None] if packing.n_times else chains.scores[:, :, None]
    finals: list[Any] = [None] * len(packing.lengths)
    for time in range(1, packing.n_times):
        alive = int(packing.alive[time])
        for rank in range(alive, len(held)):
            finals[rank] = held[rank]
        value, place = _k_step(held[:alive], chains.transitions, k, xp)
        kept.append(place)
        held = value + chains.scores[packing.at(time)][:, :, None]
    for rank in range(len(held)):
        finals[rank] = held[rank]
    given: list[Any] = [None] * len(finals)
    for rank, of_sequence in enumerate(packing.ranked.tolist()):
        given[of_sequence] = _trace(finals[rank], kept, rank, int(packing.lengths[of_sequence]), k, xp)
        if not len(given[of_sequence].scores):
            raise calib_error("C323", number=of_sequence + 1)
    return given


def _k_step(held: Any, transitions: Any, k: int, xp: Any) -> tuple[Any, Any]:
    """(the k best sums into each label, from which path each comes: label * slots + slot), each of shape (b, K, at most k).

    held: Scores of the paths into each label, best first, shape (b, K, slots).
    """
    n, width, slots = held.shape
    wanted = min(k, width * slots)
    value, place = xp.empty((n, width, wanted)), xp.empty((n, width, wanted), dtype="i")
    size = max(1, _CELLS // max(1, width * width * slots))
    for first in range(0, n, size):
        part = slice(first, first + size)
        sums = (held[part][:, None] + transitions.T[None, :, :, None]).reshape(-1, width, width * slots)
        best = xp.argpartition(-sums, wanted - 1, axis=2)[:, :, :wanted]
        scores = xp.take_along_axis(sums, best, axis=2)
        order = xp.argsort(-scores, axis=2, kind="stable")
        value[part] = xp.take_along_axis(scores, order, axis=2)
        place[part] = xp.take_along_axis(best, order, axis=2)
    return value, place


def _trace(final: Any, kept: list[Any], rank: int, length: int, k: int, xp: Any) -> Best:
    """The labellings behind the best final scores of one sequence. final: Shape (K, slots)."""
    flat = final.reshape(-1)
    best = xp.argsort(-flat, kind="stable")[:k]
    best = best[xp.isfinite(flat[best])]
    labels = xp.empty((len(best), length), dtype="i")
    label, slot = best // final.shape[1], best % final.shape[1]
    for time in reversed(range(length)):
        labels[:, time] = label
        if time:
            place = kept[time - 1][rank][label, slot]
            slots = kept[time - 2].shape[2] if time > 1 else 1
            label, slot = place // slots, place % slots
    return Best(labels, flat[best])
