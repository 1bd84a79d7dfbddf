"""The best labellings of chains: Viterbi, the k best, and the best labelling through each label at each position."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from thinc.util import get_array_module

from spacy_calib.types import Floats, Ints

from .chains import Chains, Packing

# With more labels than this, those with the best scores and transitions are tried first.
_FEW = 64
# How many of them: of the scores, and of the transitions.
_TRIED = 16
# From so many rows on, sums are compared label by label, without an array of all of them.
_MANY = 64
# Cells of an array of sums: few enough for the cache of a processor, many enough for a device.
_CELLS = 1 << 17
# Arrays of a row that are in memory then at the same time.
_AT_ONCE = 5
_DEVICE_CELLS = 1 << 26


@dataclass(frozen=True, eq=False)
class BestTransitions:
    """Finds the best transition into each label. transitions (array): Shape (K, K), or (G, K, K) for G models."""

    transitions: Any

    @property
    def xp(self) -> Any:
        return get_array_module(self.transitions)

    @property
    def _is_tried(self) -> bool:
        return self.xp is np and self.transitions.shape[-1] > _FEW

    @cached_property
    def _into(self) -> tuple[Any, Any, Any, Any]:
        """For each label: the _TRIED labels with the greatest transitions into it, these, their maximum, the next greatest."""
        into = np.ascontiguousarray(self.transitions.T)
        order = np.argpartition(-into, _TRIED, axis=1)[:, : _TRIED + 1]
        values = np.take_along_axis(into, order, axis=1)
        return order[:, :_TRIED], values[:, :_TRIED], values.max(axis=1), values[:, _TRIED]

    def best_sums(self, scores: Any) -> Any:
        """Return max over i of scores[:, i] + transitions[i, j], for each j. scores, and result: (b, K) or (G, b, K)."""
        if self._is_tried and scores.ndim == 3:
            return np.stack([model.best_sums(rows) for model, rows in zip(self._by_table, scores, strict=True)])
        n_rows, width = scores.shape[-2:]
        n_models = scores.size // max(1, n_rows * width)
        one_by_one = self.xp is np and n_rows * n_models >= _MANY
        result = self.xp.empty(scores.shape)
        for part in parts_of(
            n_rows, n_models * width * (_TRIED if self._is_tried else _AT_ONCE if one_by_one else width), self.xp
        ):
            rows = scores[..., part, :]
            result[..., part, :] = (
                self._threshold_search(rows) if self._is_tried else self._one_by_one(rows) if one_by_one else self._all(rows)
            )
        return result

    @cached_property
    def _by_table(self) -> list[BestTransitions]:
        return [BestTransitions(table) for table in self.transitions]

    def _all(self, scores: Any) -> Any:
        return (scores[..., :, None] + self.transitions[..., None, :, :]).max(axis=-2)

    def _one_by_one(self, scores: Any) -> Any:
        """Compute `_all` label by label: half the time on a processor, as the best sums stay in its cache."""
        steps = self.transitions[..., None, :, :]
        best = scores[..., :1] + steps[..., 0, :]
        sums = np.empty_like(best)
        for i in range(1, scores.shape[-1]):
            np.add(scores[..., i : i + 1], steps[..., i, :], out=sums)
            np.maximum(best, sums, out=best)
        return best

    def _threshold_search(self, scores: Any) -> Any:
        """Compute `_all` by the threshold algorithm (Fagin et al. 2003).

        The best scores and the greatest transitions are tried first; the rest is at most the next best of both, and is computed
        only where that could exceed the result.
        """
        order = np.argpartition(-scores, _TRIED, axis=1)[:, : _TRIED + 1]
        best = np.take_along_axis(scores, order, axis=1)
        result = (best[:, :_TRIED, None] + self.transitions[order[:, :_TRIED]]).max(axis=1)
        labels, values, greatest, next_greatest = self._into
        row, column = np.nonzero(best[:, _TRIED:] + greatest > result)
        sums = (scores[row[:, None], labels[column]] + values[column]).max(axis=1)
        result[row, column] = np.maximum(result[row, column], sums)
        is_open = best[row, _TRIED] + next_greatest[column] > result[row, column]
        row, column = row[is_open], column[is_open]
        for part in parts_of(len(row), len(self.transitions), np):
            result[row[part], column[part]] = (scores[row[part]] + self.transitions.T[column[part]]).max(axis=1)
        return result


def parts_of(n: int, cells: int, xp: Any) -> Iterator[slice]:
    """Return slices of n rows, as large as is fast. cells (int): Number of values in memory for each row."""
    size = max(1, (_CELLS if xp is np else _DEVICE_CELLS) // max(1, cells))
    return (slice(first, first + size) for first in range(0, n, size))


def order_from_best(values: Any, n: int, xp: Any) -> Any:
    """Return the indices of the n greatest values of the last axis, greatest first. values (array): Shape (..., K)."""
    if n == values.shape[-1]:
        return _descending(values, xp)
    best = xp.argpartition(-values, n - 1, axis=-1)[..., :n]
    return xp.take_along_axis(best, _descending(xp.take_along_axis(values, best, axis=-1), xp), axis=-1)


def _descending(values: Any, xp: Any) -> Any:
    return xp.argsort(-values, axis=-1, kind="stable") if xp is np else xp.argsort(-values, axis=-1)  # cupy's is stable always


@dataclass(frozen=True, eq=False)
class BestLabellings:
    """The at most k best labellings of one sequence. labels (array): Columns, (k, length). scores (array): Highest first."""

    labels: Any
    scores: Any


def viterbi(chains: Chains) -> list[Any]:
    """Return the columns of the best labelling of each sequence."""
    return chains.unpack(best_labels(chains.scores[None], chains.transitions[None], chains.packing)[0])


def best_labels(scores: Any, transitions: Any, packing: Packing) -> Any:
    """Return `viterbi` by G models at once, packed, shape (G, N). scores, transitions: Shapes (G, N, K) and (G, K, K)."""
    xp = get_array_module(scores)
    forward, ends = _forward_best(scores, transitions, packing), packing.on(xp, "lasts")
    lasts = forward[:, ends]
    _check_allowed(lasts.max(axis=2).min(axis=0), xp)
    into, model = transitions.swapaxes(1, 2), xp.arange(len(scores))[:, None]
    labels = xp.zeros(forward.shape[:2], dtype="i")
    labels[:, ends] = lasts.argmax(axis=2)
    for time in reversed(range(1, packing.n_times)):
        previous = packing.slice_before(time)
        labels[:, previous] = (forward[:, previous] + into[model, labels[:, packing.slice_at(time)]]).argmax(axis=2)
    return labels


def _forward_best(scores: Any, transitions: Any, packing: Packing) -> Any:
    """Return the score of the best labelling up to each position that ends with each label, packed, shape (..., N, K)."""
    forward, steps = scores.copy(), BestTransitions(transitions)
    for time in range(1, packing.n_times):
        forward[..., packing.slice_at(time), :] += steps.best_sums(forward[..., packing.slice_before(time), :])
    return forward


def _check_allowed(scores: Any, xp: Any) -> None:
    """Check that each sequence has an allowed labelling. scores: Of its best one, shape (B,)."""
    is_allowed = xp.isfinite(scores)
    if not bool(is_allowed.all()):
        raise ValueError("a sequence has no allowed labelling")


def best_through(chains: Chains) -> Any:
    """Return the score of the best labelling with each label at each position (max-marginals), packed, shape (N, K)."""
    packing, through = chains.packing, _forward_best(chains.scores, chains.transitions, chains.packing)
    steps, future = BestTransitions(chains.transitions.T), chains.xp.zeros_like(through)
    for time in reversed(range(1, packing.n_times)):
        positions = packing.slice_at(time)
        future[packing.slice_before(time)] = steps.best_sums(chains.scores[positions] + future[positions])
    through += future
    return through


def k_best(chains: Chains, k: int) -> list[BestLabellings]:
    """Return the k best labellings of each sequence.

    At each position only the k labels with the best labellings through them are used: others have k better ones. RAISES C001: k
    is not at least 1. C323: a sequence has no labelling that is allowed.
    """
    if k < 1:
        raise ValueError("a setting is out of range")
    xp, packing = chains.xp, chains.packing
    through = best_through(chains)
    _check_allowed(through[packing.on(xp, "lasts")].max(axis=1), xp)
    labels = order_from_best(through, min(k, chains.n_labels), xp)
    scores = xp.take_along_axis(chains.scores, labels, axis=1)
    backpointers: list[Any] = []  # for each time: the path that each one extends, shape (alive, m, slots)
    path_scores = scores[packing.slice_at(0)][:, :, None] if packing.n_times else scores[:, :, None]
    finals: list[Any] = [None] * len(packing.lengths)
    for time in range(1, packing.n_times):
        alive = int(packing.alive[time])
        for rank in range(alive, len(path_scores)):
            finals[rank] = path_scores[rank]
        value, path = _k_step(
            path_scores[:alive], chains.transitions, labels[packing.slice_before(time)], labels[packing.slice_at(time)], k
        )
        backpointers.append(path)
        path_scores = value + scores[packing.slice_at(time)][:, :, None]
    for rank in range(len(path_scores)):
        finals[rank] = path_scores[rank]
    results: list[Any] = [None] * len(finals)
    of_labels = chains.unpack(labels)
    for rank, of_sequence in enumerate(packing.longest_first.tolist()):
        results[of_sequence] = _trace(finals[rank], backpointers, rank, of_labels[of_sequence], k, xp)
    return results


def _k_step(path_scores: Any, transitions: Any, previous: Any, current: Any, k: int) -> tuple[Any, Any]:
    """Return (k best sums into each label, the paths that they extend, as label * slots + slot), shapes (b, m, at most k).

    path_scores (array): Scores of the paths into each of m labels, shape (b, m, slots). transitions (array): Shape (K, K).
    previous, current (array): The m labels tried before, and at, this time, shape (b, m).
    """
    xp = get_array_module(path_scores)
    n, width, slots = path_scores.shape
    n_best = min(k, width * slots)
    value, path = xp.empty((n, width, n_best)), xp.empty((n, width, n_best), dtype="i")
    for part in parts_of(n, width * width * slots, xp):
        steps = transitions[previous[part][:, None], current[part][:, :, None]]
        sums = (path_scores[part][:, None] + steps[:, :, :, None]).reshape(-1, width, width * slots)
        path[part] = order_from_best(sums, n_best, xp)
        value[part] = xp.take_along_axis(sums, path[part], axis=2)
    return value, path


def _trace(final: Any, backpointers: list[Any], rank: int, labels_at: Any, k: int, xp: Any) -> BestLabellings:
    """Follow the backpointers of one sequence from its k best final scores.

    final (array): Scores of the paths that end in each of m labels, shape (m, slots). backpointers (list): For each time after
    the first the path that each path extends, as label * slots + slot, shape (alive, m, slots). rank (int): Of the sequence
    among those of a time, longest first. labels_at (array): The m labels tried at each position, shape (length, m).
    """
    flat = final.reshape(-1)
    best = order_from_best(flat, min(k, len(flat)), xp)
    best = best[xp.isfinite(flat[best])]
    labels = xp.empty((len(best), len(labels_at)), dtype="i")
    label, slot = best // final.shape[1], best % final.shape[1]
    for time in reversed(range(len(labels_at))):
        labels[:, time] = labels_at[time][label]
        if time:
            path = backpointers[time - 1][rank][label, slot]
            slots = backpointers[time - 2].shape[2] if time > 1 else 1  # at the first time each label has one path
            label, slot = path // slots, path % slots
    return BestLabellings(labels, flat[best])


def viterbi_one(scores: Floats, transitions: Floats) -> Ints:
    """Return the best labelling of one sequence, shape (n,), without packing. scores, transitions: Shapes (n, K) and (K, K)."""
    back = np.empty(scores.shape, dtype=np.intp)
    forward, columns = scores[0], np.arange(scores.shape[1])
    for i in range(1, len(scores)):
        sums = forward[:, None] + transitions
        back[i] = sums.argmax(axis=0)
        forward = sums[back[i], columns] + scores[i]
    labels = np.empty(len(scores), dtype=np.intp)
    labels[-1] = forward.argmax()
    for i in range(len(scores) - 1, 0, -1):
        labels[i - 1] = back[i, labels[i]]
    return labels


def k_best_one(scores: Floats, transitions: Floats, k: int) -> Ints:
    """Return the k best labellings of one sequence, best first, shape (at most k, n). scores, transitions: As `viterbi_one`."""
    n, width = scores.shape
    rows = np.arange(width)[:, None]
    path_scores = scores[0][:, None]  # of the paths into each label, best first, shape (K, slots)
    paths = []
    for i in range(1, n):
        sums = (path_scores[None] + transitions.T[:, :, None]).reshape(width, -1)
        order = np.argsort(-sums, axis=1, kind="stable")[:, :k]
        paths.append((order, path_scores.shape[1]))
        path_scores = sums[rows, order] + scores[i][:, None]
    best = np.argsort(-path_scores.reshape(-1), kind="stable")[:k]
    label, slot = best // path_scores.shape[1], best % path_scores.shape[1]
    labels = np.empty((len(best), n), dtype=np.intp)
    for i in range(n - 1, 0, -1):
        labels[:, i] = label
        order, slots = paths[i - 1]
        path = order[label, slot]
        label, slot = path // slots, path % slots
    labels[:, 0] = label
    return labels
