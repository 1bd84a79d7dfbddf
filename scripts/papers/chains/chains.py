"""Linear chains over label sequences, packed so that all sequences of a batch take each step together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spacy_calib.types import Floats, Ints


@dataclass(frozen=True, eq=False)
class Potentials:
    """Log weights of a chain that do not depend on the text; -inf forbids."""

    transitions: Any  # from label (row) to label (column), shape (K, K)
    starts: Any  # of first labels, (K,)
    ends: Any  # of last labels, (K,)

    @property
    def n_labels(self) -> int:
        return len(self.starts)


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

    scores: Floats
    transitions: Floats
    packing: Packing

    @classmethod
    def from_scores(cls, scores: Sequence[Any], potentials: Potentials) -> Chains:
        """Pack the scores of sequences, shape (length, K) each."""
        packing = Packing(np.array([len(array) for array in scores], dtype=np.intp))
        flat = np.concatenate(scores) if len(scores) else np.zeros((0, potentials.n_labels))
        packed_scores = flat[packing.flat_index].astype("float64", copy=False)
        if len(packed_scores):
            packed_scores[packing.slice_at(0)] += potentials.starts
            packed_scores[packing.lasts] += potentials.ends
        return cls(packed_scores, np.asarray(potentials.transitions, dtype="float64"), packing)

    @property
    def n_labels(self) -> int:
        return int(self.transitions.shape[0])

    def unpack(self, of_positions: Any) -> list[Any]:
        """Return values of packed positions, sequence by sequence in the order given."""
        lengths = self.packing.lengths
        return np.split(of_positions[self.packing.packed_index], np.cumsum(lengths)[:-1]) if len(lengths) else []

    def pack(self, labels: Sequence[Ints]) -> Ints:
        """Pack the labels of each sequence, shape (N,)."""
        return np.concatenate([np.zeros(0, dtype=np.intp), *labels])[self.packing.flat_index]

    def scores_of(self, labels: Sequence[Ints]) -> Floats:
        """Return the score of one labelling of each sequence, shape (B,). labels: Columns, shape (length,) each."""
        flat, (previous, following) = self.pack(labels), self.packing.neighbours
        values = self.scores[np.arange(len(flat)), flat]
        values[following] += self.transitions[flat[previous], flat[following]]
        return self.sum_by_sequence(values)

    def sum_by_sequence(self, of_positions: Any) -> Floats:
        """Sum the values of each sequence's packed positions, shape (B,)."""
        n = len(self.packing.lengths)
        return np.bincount(self.packing.owner, weights=of_positions, minlength=n).astype(np.float64) if n else np.zeros(0)

    def steps(self, labels: Ints) -> Ints:
        """Return each transition as previous label * K + label, in the order of `neighbours`. labels: Packed, shape (N,)."""
        previous, following = self.packing.neighbours
        return labels[previous].astype("int64") * self.n_labels + labels[following]
