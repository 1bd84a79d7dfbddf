"""The best labellings of chains: Viterbi, the k best, and the best labelling through each label at each position."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from spacy_calib.types import Floats, Ints

from .chains import Chains, Packing

# From so many rows on, sums are compared label by label, without an array of all of them.
_MANY = 64
# Cells of an array of sums: few enough for the cache of a processor.
_CELLS = 1 << 17


def best_sums(scores: Any, transitions: Any) -> Any:
    """Return max over i of scores[:, i] + transitions[i, j], for each j.

    scores (array), and the result: Shape (b, K), or (G, b, K) for G models. transitions (array): (K, K) or (G, K, K).
    """
    n_rows, width = scores.shape[-2:]
    n_models = scores.size // max(1, n_rows * width)
    one_by_one = n_rows * n_models >= _MANY
    result = np.empty(scores.shape)
    for part in parts_of(n_rows, n_models * width * (5 if one_by_one else width)):
        rows = scores[..., part, :]
        if one_by_one:
            result[..., part, :] = _one_by_one(rows, transitions)
        else:
            result[..., part, :] = (rows[..., :, None] + transitions[..., None, :, :]).max(axis=-2)
    return result


def _one_by_one(scores: Any, transitions: Any) -> Any:
    """Compute the same label by label: half the time, as the best sums stay in the processor's cache."""
    steps = transitions[..., None, :, :]
    best = scores[..., :1] + steps[..., 0, :]
    sums = np.empty_like(best)
    for i in range(1, scores.shape[-1]):
        np.add(scores[..., i : i + 1], steps[..., i, :], out=sums)
        np.maximum(best, sums, out=best)
    return best


def parts_of(n: int, cells: int) -> Iterator[slice]:
    """Return slices of n rows, as large as is fast. cells (int): Number of values in memory for each row."""
    size = max(1, _CELLS // max(1, cells))
    return (slice(first, first + size) for first in range(0, n, size))


def order_from_best(values: Any, n: int) -> Any:
    """Return the indices of the n greatest values of the last axis, greatest first. values (array): Shape (..., K)."""
    if n == values.shape[-1]:
        return np.argsort(-values, axis=-1, kind="stable")
    best = np.argpartition(-values, n - 1, axis=-1)[..., :n]
    order = np.argsort(-np.take_along_axis(values, best, axis=-1), axis=-1, kind="stable")
    return np.take_along_axis(best, order, axis=-1)


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
    forward, ends = _forward_best(scores, transitions, packing), packing.lasts
    lasts = forward[:, ends]
    _check_allowed(lasts.max(axis=2).min(axis=0))
    into, model = transitions.swapaxes(1, 2), np.arange(len(scores))[:, None]
    labels = np.zeros(forward.shape[:2], dtype="i")
    labels[:, ends] = lasts.argmax(axis=2)
    for time in reversed(range(1, packing.n_times)):
        previous = packing.slice_before(time)
        labels[:, previous] = (forward[:, previous] + into[model, labels[:, packing.slice_at(time)]]).argmax(axis=2)
    return labels


def _forward_best(scores: Any, transitions: Any, packing: Packing) -> Any:
    """Return the score of the best labelling up to each position that ends with each label, packed, shape (..., N, K)."""
    forward = scores.copy()
    for time in range(1, packing.n_times):
        forward[..., packing.slice_at(time), :] += best_sums(forward[..., packing.slice_before(time), :], transitions)
    return forward


def _check_allowed(scores: Any) -> None:
    """Check that each sequence has an allowed labelling. scores: Of its best one, shape (B,)."""
    if not np.isfinite(scores).all():
        raise ValueError("a sequence has no allowed labelling")


def best_through(chains: Chains) -> Any:
    """Return the score of the best labelling with each label at each position (max-marginals), packed, shape (N, K)."""
    packing, through = chains.packing, _forward_best(chains.scores, chains.transitions, chains.packing)
    future = np.zeros_like(through)
    for time in reversed(range(1, packing.n_times)):
        positions = packing.slice_at(time)
        future[packing.slice_before(time)] = best_sums(chains.scores[positions] + future[positions], chains.transitions.T)
    through += future
    return through


def k_best(chains: Chains, k: int) -> list[BestLabellings]:
    """Return the k best labellings of each sequence.

    At each position only the k labels with the best labellings through them are used: others have k better ones.
    """
    packing = chains.packing
    through = best_through(chains)
    _check_allowed(through[packing.lasts].max(axis=1))
    labels = order_from_best(through, min(k, chains.n_labels))
    scores = np.take_along_axis(chains.scores, labels, axis=1)
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
        results[of_sequence] = _trace(finals[rank], backpointers, rank, of_labels[of_sequence], k)
    return results


def _k_step(path_scores: Any, transitions: Any, previous: Any, current: Any, k: int) -> tuple[Any, Any]:
    """Return (k best sums into each label, the paths that they extend, as label * slots + slot), shapes (b, m, at most k).

    path_scores (array): Scores of the paths into each of m labels, shape (b, m, slots). transitions (array): Shape (K, K).
    previous, current (array): The m labels tried before, and at, this time, shape (b, m).
    """
    n, width, slots = path_scores.shape
    n_best = min(k, width * slots)
    value, path = np.empty((n, width, n_best)), np.empty((n, width, n_best), dtype="i")
    for part in parts_of(n, width * width * slots):
        steps = transitions[previous[part][:, None], current[part][:, :, None]]
        sums = (path_scores[part][:, None] + steps[:, :, :, None]).reshape(-1, width, width * slots)
        path[part] = order_from_best(sums, n_best)
        value[part] = np.take_along_axis(sums, path[part], axis=2)
    return value, path


def _trace(final: Any, backpointers: list[Any], rank: int, labels_at: Any, k: int) -> BestLabellings:
    """Follow the backpointers of one sequence from its k best final scores.

    final (array): Scores of the paths that end in each of m labels, shape (m, slots). backpointers (list): For each time after
    the first the path that each path extends, as label * slots + slot, shape (alive, m, slots). rank (int): Of the sequence
    among those of a time, longest first. labels_at (array): The m labels tried at each position, shape (length, m).
    """
    flat = final.reshape(-1)
    best = order_from_best(flat, min(k, len(flat)))
    best = best[np.isfinite(flat[best])]
    labels = np.empty((len(best), len(labels_at)), dtype="i")
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
