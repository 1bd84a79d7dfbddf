"""Linear chains over label sequences, packed so that all sequences of a batch take each step together.

Also a chain with given marginals that is nearest to another. Of all distributions of labellings with marginals q_t, the one
nearest to a chain p (the least KL(q || p)) is a chain, too. With q_t fixed the divergence is a sum over neighbours, so each
P(y_t, y_t+1) is fitted to the margins q_t and q_t+1 by itself, by iterative proportional fitting (Deming and Stephan 1940;
Csiszár 1975), which keeps its odds ratios.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from thinc.util import get_array_module

from spacy_calib.types import Ints


@dataclass(frozen=True, eq=False)
class Potentials:
    """Log weights of a chain that do not depend on the text; -inf forbids."""

    transitions: Any  # from label (row) to label (column), shape (K, K)
    starts: Any  # of first labels, (K,)
    ends: Any  # of last labels, (K,)

    @property
    def n_labels(self) -> int:
        return len(self.starts)

    @classmethod
    def zeros(cls, n_labels: int) -> Potentials:
        """Return potentials of 0, by which all sequences of labels are equally likely."""
        return cls(np.zeros((n_labels, n_labels)), np.zeros(n_labels), np.zeros(n_labels))

    def on(self, xp: Any) -> Potentials:
        """Return the potentials in arrays of numpy or cupy; the device's copy is made once."""
        if xp is np:
            return self
        if not self._copies:
            self._copies.append(Potentials(*map(xp.asarray, (self.transitions, self.starts, self.ends))))
        return self._copies[0]

    @cached_property
    def _copies(self) -> list[Potentials]:
        return []

    def add_constraints(self, constraints: Potentials) -> Potentials:
        """Add constraints: potentials of 0, or -inf to forbid."""
        return Potentials(
            self.transitions + constraints.transitions, self.starts + constraints.starts, self.ends + constraints.ends
        )


@dataclass(frozen=True, eq=False)
class Packing:
    """B sequences by position, longest first: the first of each, then the second of each that has one. lengths: All > 0."""

    lengths: Ints

    @cached_property
    def longest_first(self) -> Ints:
        """The indices of the sequences, from the longest to the shortest, shape (B,)."""
        return np.argsort(-self.lengths, kind="stable")

    @cached_property
    def alive(self) -> Ints:
        """How many sequences reach each time, shape (T,)."""
        n_ended = np.searchsorted(np.sort(self.lengths), np.arange(int(self.lengths.max(initial=0))), side="right")
        return len(self.lengths) - n_ended

    @cached_property
    def begins(self) -> Ints:
        """First position of each time, and the end, shape (T + 1,)."""
        return np.concatenate([[0], np.cumsum(self.alive)])

    @cached_property
    def flat_index(self) -> Ints:
        """For each packed position its index in the concatenated sequences, shape (N,)."""
        starts = np.cumsum(self.lengths) - self.lengths
        rank = np.concatenate([np.zeros(0, dtype=np.intp), *map(np.arange, self.alive.tolist())]).astype(np.intp)
        time = np.repeat(np.arange(len(self.alive)), self.alive)
        return starts[self.longest_first[rank]] + time

    @cached_property
    def packed_index(self) -> Ints:
        """For each position of the concatenated sequences its packed position, shape (N,): the inverse of `flat_index`."""
        index = np.empty(len(self.flat_index), dtype=np.intp)
        index[self.flat_index] = np.arange(len(self.flat_index))
        return index

    @cached_property
    def lasts(self) -> Ints:
        """The packed position of the end of each sequence, in the order given, shape (B,)."""
        return self.packed_index[np.cumsum(self.lengths) - 1]

    @cached_property
    def owner(self) -> Ints:
        """The sequence of each packed position, shape (N,)."""
        of_flat: Ints = np.repeat(np.arange(len(self.lengths)), self.lengths)
        return of_flat[self.flat_index]

    def on(self, xp: Any, name: str) -> Any:
        """Return an array of this class, or a pair, as arrays of numpy or cupy; the device's copy is made once."""
        array = getattr(self, name)
        if xp is np:
            return array
        if name not in self._copies:
            self._copies[name] = tuple(map(xp.asarray, array)) if isinstance(array, tuple) else xp.asarray(array)
        return self._copies[name]

    @cached_property
    def _copies(self) -> dict[str, Any]:
        return {}

    def slice_at(self, time: int) -> slice:
        """Return the packed positions of a time."""
        return slice(int(self.begins[time]), int(self.begins[time + 1]))

    def slice_before(self, time: int) -> slice:
        """Return the packed positions, at the previous time, of the sequences that reach this one."""
        first = int(self.begins[time - 1])
        return slice(first, first + int(self.alive[time]))

    @property
    def n_times(self) -> int:
        return len(self.alive)

    @cached_property
    def neighbours(self) -> tuple[Ints, Ints]:
        """Packed positions of neighbours: (each position that has a successor, its successor), ordered by the successor."""
        befores = [np.arange(*self.slice_before(time).indices(len(self.flat_index))) for time in range(1, self.n_times)]
        empty = np.zeros(0, dtype=np.intp)
        return np.concatenate([empty, *befores]), np.arange(int(self.begins[1]) if self.n_times else 0, len(self.flat_index))


@dataclass(frozen=True, eq=False)
class Chains:
    """B sequences with the score of each label at each position: P(labels) is proportional to exp(sum of scores and
    transitions).

    scores (array): Packed, with starts and ends added to the first and last positions, shape (N, K). transitions (array): As in
    Potentials.
    """

    scores: Any
    transitions: Any
    packing: Packing

    @classmethod
    def from_scores(cls, scores: Sequence[Any], potentials: Potentials) -> Chains:
        """Pack scores of sequences, shape (length, K) each."""
        xp = get_array_module(potentials.transitions)
        width = potentials.n_labels
        other_width = next((array.shape[1] for array in scores if array.shape[1] != width), width)
        if not width or other_width != width:
            raise ValueError("a chain needs a score for each label of its potentials")
        packing = Packing(np.array([len(array) for array in scores], dtype=np.intp))
        flat = xp.concatenate([*map(xp.asarray, scores)]) if len(scores) else xp.zeros((0, width))
        packed_scores = flat[packing.on(xp, "flat_index")].astype("float64", copy=False)
        if len(packed_scores):
            packed_scores[packing.slice_at(0)] += xp.asarray(potentials.starts)
            packed_scores[packing.on(xp, "lasts")] += xp.asarray(potentials.ends)
        chains = cls(packed_scores, xp.asarray(potentials.transitions, dtype="float64"), packing)
        if not (chains.greatest_step < np.inf and bool((chains.highest < np.inf).all())):
            raise ValueError("the scores of a chain contain NaN or infinity")
        return chains

    @cached_property
    def highest(self) -> Any:
        """The highest score at each position, packed, shape (N,)."""
        return self.scores.max(axis=1)

    @cached_property
    def greatest_step(self) -> float:
        """The greatest score of a transition."""
        return float(self.transitions.max())

    @property
    def n_labels(self) -> int:
        return int(self.transitions.shape[0])

    @property
    def xp(self) -> Any:
        """The array module of the scores: numpy or cupy."""
        return get_array_module(self.scores)

    def unpack(self, of_positions: Any) -> list[Any]:
        """Return values of packed positions, sequence by sequence in the order given."""
        xp = get_array_module(of_positions)
        flat = of_positions[self.packing.on(xp, "packed_index")]
        return xp.split(flat, np.cumsum(self.packing.lengths)[:-1].tolist()) if len(self.packing.lengths) else []

    def pack(self, labels: Sequence[Any]) -> Any:
        """Pack the labels of each sequence, shape (N,)."""
        xp = self.xp
        return xp.concatenate([xp.zeros(0, dtype="i"), *map(xp.asarray, labels)])[self.packing.on(xp, "flat_index")]

    def scores_of(self, labels: Sequence[Any]) -> Any:
        """Return the score of one labelling of each sequence, shape (B,). labels: Columns, shape (length,) each."""
        flat, (previous, following) = self.pack(labels), self.packing.on(self.xp, "neighbours")
        values = self.scores[self.xp.arange(len(flat)), flat]
        values[following] += self.transitions[flat[previous], flat[following]]
        return self.sum_by_sequence(values)

    def sum_by_sequence(self, of_positions: Any) -> Any:
        """Sum the values of each sequence's packed positions, shape (B,)."""
        owner, n = self.packing.on(self.xp, "owner"), len(self.packing.lengths)
        return self.xp.bincount(owner, weights=of_positions, minlength=n) if n else self.xp.zeros(0)
