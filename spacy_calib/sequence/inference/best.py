"""The best labellings of chains: Viterbi, the k best, and the best labelling through each label of each position."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from thinc.util import get_array_module

from ...errors import calib_error
from ...types import Floats, Ints
from .chains import Chains, Packing

# Of more labels than these the likely ones are tried first.
_FEW = 64
# How many of them, from each side.
_TRIED = 16
# From so many rows on, labels are gone through one after the other, without an array of all sums.
_MANY = 64
# Cells that are compared together: few enough for the cache of a processor, many enough for a device.
_CELLS = 1 << 17
# Arrays of a row that are then held at once.
_AT_ONCE = 5
_DEVICE_CELLS = 1 << 26


@dataclass(frozen=True, eq=False)
class Maxima:
    """The best sums of a score and of a transition into each label.

    transitions (array): From each label (row) to each (column), shape (K, K); or those of G models, shape (G, K, K).
    """

    transitions: Any

    @property
    def xp(self) -> Any:
        return get_array_module(self.transitions)

    @property
    def _is_tried(self) -> bool:
        return self.xp is np and self.transitions.shape[-1] > _FEW

    @cached_property
    def _into(self) -> tuple[Any, Any, Any, Any]:
        """For each label: (the _TRIED labels with the greatest transitions into it, these, the greatest, the greatest
        of the others): shapes (K, m), (K, m), (K,), (K,)."""
        into = np.ascontiguousarray(self.transitions.T)
        order = np.argpartition(-into, _TRIED, axis=1)[:, : _TRIED + 1]
        values = np.take_along_axis(into, order, axis=1)
        return order[:, :_TRIED], values[:, :_TRIED], values.max(axis=1), values[:, _TRIED]

    def of(self, scores: Any) -> Any:
        """max over i of scores[:, i] + transitions[i, j], for each j. scores, and result: (b, K) or (G, b, K)."""
        if self._is_tried and scores.ndim == 3:
            return np.stack([one.of(own) for one, own in zip(self._each, scores, strict=True)])
        n_rows, width = scores.shape[-2:]
        n_models = scores.size // max(1, n_rows * width)
        one_by_one = self.xp is np and n_rows * n_models >= _MANY
        found = self.xp.empty(scores.shape)
        for part in parts_of(
            n_rows, n_models * width * (_TRIED if self._is_tried else _AT_ONCE if one_by_one else width), self.xp
        ):
            own = scores[..., part, :]
            found[..., part, :] = (
                self._tried(own) if self._is_tried else self._one_by_one(own) if one_by_one else self._all(own)
            )
        return found

    @cached_property
    def _each(self) -> list[Maxima]:
        return [Maxima(one) for one in self.transitions]

    def _all(self, scores: Any) -> Any:
        return (scores[..., :, None] + self.transitions[..., None, :, :]).max(axis=-2)

    def _one_by_one(self, scores: Any) -> Any:
        """As `_all`, in half the time on a processor: label by label, while the best sums so far are in its cache."""
        steps = self.transitions[..., None, :, :]
        found = scores[..., :1] + steps[..., 0, :]
        sums = np.empty_like(found)
        for i in range(1, scores.shape[-1]):
            np.add(scores[..., i : i + 1], steps[..., i, :], out=sums)
            np.maximum(found, sums, out=found)
        return found

    def _tried(self, scores: Any) -> Any:
        """As `_all`, by the threshold algorithm (Fagin et al. 2003): the best scores and the greatest transitions are
        tried first. The rest is at most the next best score plus the next greatest transition, and is looked at where
        that is more than what was found.
        """
        order = np.argpartition(-scores, _TRIED, axis=1)[:, : _TRIED + 1]
        best = np.take_along_axis(scores, order, axis=1)
        found = (best[:, :_TRIED, None] + self.transitions[order[:, :_TRIED]]).max(axis=1)
        labels, values, greatest, rest = self._into
        row, column = np.nonzero(best[:, _TRIED:] + greatest > found)
        tried = (scores[row[:, None], labels[column]] + values[column]).max(axis=1)
        found[row, column] = np.maximum(found[row, column], tried)
        left = best[row, _TRIED] + rest[column] > found[row, column]
        row, column = row[left], column[left]
        for part in parts_of(len(row), len(self.transitions), np):
            found[row[part], column[part]] = (scores[row[part]] + self.transitions.T[column[part]]).max(axis=1)
        return found


def parts_of(n: int, cells: int, xp: Any) -> Iterator[slice]:
    """Slices of n rows of so many cells each, as large as is fast."""
    size = max(1, (_CELLS if xp is np else _DEVICE_CELLS) // max(1, cells))
    return (slice(first, first + size) for first in range(0, n, size))


def order_from_best(values: Any, n: int, xp: Any) -> Any:
    """The places of the n greatest values of the last axis, greatest first."""
    if n == values.shape[-1]:
        return _descending(values, xp)
    best = xp.argpartition(-values, n - 1, axis=-1)[..., :n]
    return xp.take_along_axis(best, _descending(xp.take_along_axis(values, best, axis=-1), xp), axis=-1)


def _descending(values: Any, xp: Any) -> Any:
    return xp.argsort(-values, axis=-1, kind="stable") if xp is np else xp.argsort(-values, axis=-1)  # cupy's is stable always


@dataclass(frozen=True, eq=False)
class Best:
    """The k best labellings of one sequence, or fewer where fewer are allowed.

    labels (array): Columns, shape (k, length). scores (array): Highest first, shape (k,).
    """

    labels: Any
    scores: Any


def viterbi(chains: Chains) -> list[Any]:
    """The labelling with the highest score of each sequence in the order given: columns, shape (length,).

    RAISES C323: a sequence has no labelling that is allowed.
    """
    return chains.unpacked(best_labels(chains.scores[None], chains.transitions[None], chains.packing)[0])


def best_labels(scores: Any, transitions: Any, packing: Packing) -> Any:
    """`viterbi` by G models at once, packed, shape (G, N). scores, transitions: Shapes (G, N, K) and (G, K, K)."""
    xp = get_array_module(scores)
    reached, ends = _reached(scores, transitions, packing), packing.on(xp, "lasts")
    lasts = reached[:, ends]
    _check_allowed(lasts.max(axis=2).min(axis=0), xp)
    into, model = transitions.swapaxes(1, 2), xp.arange(len(scores))[:, None]
    labels = xp.zeros(reached.shape[:2], dtype="i")
    labels[:, ends] = lasts.argmax(axis=2)
    for time in reversed(range(1, packing.n_times)):
        before = packing.before(time)
        labels[:, before] = (reached[:, before] + into[model, labels[:, packing.at(time)]]).argmax(axis=2)
    return labels


def _reached(scores: Any, transitions: Any, packing: Packing) -> Any:
    """The score of the best labelling up to each position that ends with each label, packed, shape (..., N, K)."""
    reached, steps = scores.copy(), Maxima(transitions)
    for time in range(1, packing.n_times):
        reached[..., packing.at(time), :] += steps.of(reached[..., packing.before(time), :])
    return reached


def _check_allowed(scores: Any, xp: Any) -> None:
    """RAISES C323: a sequence has no labelling that is allowed. scores: Of each one's best, shape (B,)."""
    allowed = xp.isfinite(scores)
    if not bool(allowed.all()):
        raise calib_error("C323", number=int(allowed.argmin()) + 1)


def best_through(chains: Chains) -> Any:
    """The score of the best labelling with each label at each position (max-marginals), packed, shape (N, K)."""
    packing, through = chains.packing, _reached(chains.scores, chains.transitions, chains.packing)
    steps, future = Maxima(chains.transitions.T), chains.xp.zeros_like(through)
    for time in reversed(range(1, packing.n_times)):
        at = packing.at(time)
        future[packing.before(time)] = steps.of(chains.scores[at] + future[at])
    through += future
    return through


def k_best(chains: Chains, k: int) -> list[Best]:
    """The k best labellings of each sequence in the order given.

    At each position only the k labels with the best labellings through them are looked at: others have k better ones.
    RAISES C001: k is not at least 1. C323: a sequence has no labelling that is allowed.
    """
    if k < 1:
        raise calib_error("C001", name="k", wanted="at least 1", given=k)
    xp, packing = chains.xp, chains.packing
    through = best_through(chains)
    _check_allowed(through[packing.on(xp, "lasts")].max(axis=1), xp)
    labels = order_from_best(through, min(k, chains.n_labels), xp)
    scores = xp.take_along_axis(chains.scores, labels, axis=1)
    kept: list[Any] = []  # of each time: the path that each held one goes on from, shape (alive, m, held)
    held = scores[packing.at(0)][:, :, None] if packing.n_times else scores[:, :, None]
    finals: list[Any] = [None] * len(packing.lengths)
    for time in range(1, packing.n_times):
        alive = int(packing.alive[time])
        for rank in range(alive, len(held)):
            finals[rank] = held[rank]
        value, place = _k_step(held[:alive], chains.transitions, labels[packing.before(time)], labels[packing.at(time)], k)
        kept.append(place)
        held = value + scores[packing.at(time)][:, :, None]
    for rank in range(len(held)):
        finals[rank] = held[rank]
    given: list[Any] = [None] * len(finals)
    of_labels = chains.unpacked(labels)
    for rank, of_sequence in enumerate(packing.ranked.tolist()):
        given[of_sequence] = _trace(finals[rank], kept, rank, of_labels[of_sequence], k, xp)
    return given


def _k_step(held: Any, transitions: Any, before: Any, at: Any, k: int) -> tuple[Any, Any]:
    """(the k best sums into each label, the path each comes from: label * slots + slot), of shape (b, m, at most k).

    held: Scores of the paths into each label, best first, shape (b, m, slots). before, at: Columns of labels, (b, m).
    """
    xp = get_array_module(held)
    n, width, slots = held.shape
    wanted = min(k, width * slots)
    value, place = xp.empty((n, width, wanted)), xp.empty((n, width, wanted), dtype="i")
    for part in parts_of(n, width * width * slots, xp):
        steps = transitions[before[part][:, None], at[part][:, :, None]]
        sums = (held[part][:, None] + steps[:, :, :, None]).reshape(-1, width, width * slots)
        place[part] = order_from_best(sums, wanted, xp)
        value[part] = xp.take_along_axis(sums, place[part], axis=2)
    return value, place


def _trace(final: Any, kept: list[Any], rank: int, columns: Any, k: int, xp: Any) -> Best:
    """The labellings behind the best final scores of one sequence. final: (m, slots). columns: (length, m)."""
    flat = final.reshape(-1)
    best = order_from_best(flat, min(k, len(flat)), xp)
    best = best[xp.isfinite(flat[best])]
    labels = xp.empty((len(best), len(columns)), dtype="i")
    label, slot = best // final.shape[1], best % final.shape[1]
    for time in reversed(range(len(columns))):
        labels[:, time] = columns[time][label]
        if time:
            place = kept[time - 1][rank][label, slot]
            slots = kept[time - 2].shape[2] if time > 1 else 1
            label, slot = place // slots, place % slots
    return Best(labels, flat[best])


def viterbi_one(scores: Floats, transitions: Floats) -> Ints:
    """The best labelling of one sequence: as `viterbi`, without the packing of many."""
    back = np.empty(scores.shape, dtype=np.intp)
    reached, columns = scores[0], np.arange(scores.shape[1])
    for i in range(1, len(scores)):
        sums = reached[:, None] + transitions
        back[i] = sums.argmax(axis=0)
        reached = sums[back[i], columns] + scores[i]
    labels = np.empty(len(scores), dtype=np.intp)
    labels[-1] = reached.argmax()
    for i in range(len(scores) - 1, 0, -1):
        labels[i - 1] = back[i, labels[i]]
    return labels


def k_best_one(scores: Floats, transitions: Floats, k: int) -> Ints:
    """The k best labellings of one sequence, best first, shape (at most k, n): as `k_best`, without packing."""
    n, width = scores.shape
    rows = np.arange(width)[:, None]
    held = scores[0][:, None]  # of the paths into each label, best first, shape (K, slots)
    places = []
    for i in range(1, n):
        sums = (held[None] + transitions.T[:, :, None]).reshape(width, -1)
        order = np.argsort(-sums, axis=1, kind="stable")[:, :k]
        places.append((order, held.shape[1]))
        held = sums[rows, order] + scores[i][:, None]
    best = np.argsort(-held.reshape(-1), kind="stable")[:k]
    label, slot = best // held.shape[1], best % held.shape[1]
    labels = np.empty((len(best), n), dtype=np.intp)
    for i in range(n - 1, 0, -1):
        labels[:, i] = label
        order, slots = places[i - 1]
        place = order[label, slot]
        label, slot = place // slots, place % slots
    labels[:, 0] = label
    return labels
