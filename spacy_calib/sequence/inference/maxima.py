"""The best way into each label: the product of matrices with "max" for "sum", and "+" for "times", that Viterbi takes at each position."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from thinc.util import get_array_module

# Of more labels than these the likely ones are tried first.
_FEW = 64
# How many of them, from each side.
_TRIED = 16
# From so many rows on labels are gone through one after the other: that needs no array of all sums.
_MANY = 64
# Cells that are compared together: few enough for the cache of a processor, many enough for a device.
_CELLS = 1 << 17
# Arrays of a row that are held at once where labels are gone through one after the other.
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
        """(the _TRIED labels with the greatest transitions into each label, these transitions, the greatest one, the next greatest of the others):
        shapes (K, m), (K, m), (K,), (K,)."""
        into = np.ascontiguousarray(self.transitions.T)
        order = np.argpartition(-into, _TRIED, axis=1)[:, : _TRIED + 1]
        values = np.take_along_axis(into, order, axis=1)
        return order[:, :_TRIED], values[:, :_TRIED], values.max(axis=1), values[:, _TRIED]

    def of(self, scores: Any) -> Any:
        """max over i of scores[:, i] + transitions[i, j], for each j; exact. scores: Shape (b, K), or (G, b, K). RETURNS: Likewise."""
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
        """As `_all`, by half the work for a processor: the sums of one label before are compared with the best so far while they are in its cache."""
        steps = self.transitions[..., None, :, :]
        found = scores[..., :1] + steps[..., 0, :]
        sums = np.empty_like(found)
        for i in range(1, scores.shape[-1]):
            np.add(scores[..., i : i + 1], steps[..., i, :], out=sums)
            np.maximum(found, sums, out=found)
        return found

    def _tried(self, scores: Any) -> Any:
        """As `_all`. The labels with the best scores are tried, then those with the greatest transitions. What was not tried has neither: it
        is no better than the next best score and the next greatest transition together, and is looked at only where that is more than what
        was found (the threshold algorithm of Fagin et al. 2003).
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
    """Cuts of n rows of so many cells each, as many together as are fast."""
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
