"""What a recognizer said about one Doc: probabilities of its tokens, its entities, and those that it held but did not choose."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc

from ...types import Floats, Ints
from .actions import Bools
from .decoding import Decoded, FoundEntities

PREFIXES = ("B", "I", "L", "U")
_Key = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Preset:
    """What a Doc held before its entities were recognized.

    columns (NDArray[uint64]): ENT_IOB and ENT_TYPE, shape (n_tokens, 2). tokens (Bools): Those in an entity or blocked, (n_tokens,).
    """

    columns: NDArray[np.uint64]
    tokens: Bools

    @classmethod
    def of(cls, doc: Doc, cleared: bool = False) -> Preset:
        """cleared (bool): As if the Doc had no entities."""
        columns = doc.to_array(["ENT_IOB", "ENT_TYPE"]).astype(np.uint64).reshape(-1, 2)
        if cleared:
            columns[:] = 0
        return cls(columns, (columns[:, 0] == 1) | (columns[:, 0] == 3))


def type_labels(types: Sequence[str]) -> tuple[str, ...]:
    """The columns of `type_marginals`."""
    return ("O", *types)


def biluo_labels(types: Sequence[str]) -> tuple[str, ...]:
    """The columns of `biluo_marginals`: the four tags of a type stand together, so that types added later come last."""
    return ("O", *(f"{prefix}-{label}" for label in types for prefix in PREFIXES))


@dataclass(frozen=True, eq=False)
class EntityReading(ABC):
    """What a recognizer said about one Doc.

    types (tuple[str, ...]): Entity types. entities (FoundEntities): In the Doc's tokens; `path` is the decoder's own probability.
    preset (Preset): What the Doc held before.
    """

    types: tuple[str, ...]
    entities: FoundEntities
    preset: Preset

    @property
    def n_tokens(self) -> int:
        return len(self.preset.tokens)

    @property
    def candidates(self) -> FoundEntities:
        """Entities that were held but not chosen."""
        none = np.zeros(0, dtype=np.intp)
        return FoundEntities(none, none, none, np.zeros(0))

    @abstractmethod
    def type_marginals(self) -> Floats:
        """P(entity type, or O) of each token, shape (n_tokens, 1 + n_types): columns of `type_labels`."""

    @abstractmethod
    def biluo_marginals(self) -> Floats:
        """P(tag) of each token, shape (n_tokens, 1 + 4 * n_types): columns of `biluo_labels`."""

    def entity_hashes(self) -> Iterator[tuple[int, int, int]]:
        """(start, end, hash of the type) of each entity."""
        for start, end, kind in self.entities.triples():
            yield start, end, get_string_id(self.types[kind])


@dataclass(frozen=True, eq=False)
class GreedyReading(EntityReading):
    """What greedy decoding said: `openings`, `opener` and `closing` as in `Decoded`, in the Doc's tokens.

    Given the greedy history a token inside of an entity has its own type as the only choice, and would score 1.0. It carries the
    probabilities of its entity's opening decision.
    """

    openings: Floats
    opener: Ints
    closing: Floats

    def type_marginals(self) -> Floats:
        n_types = len(self.types)
        decided = self.openings[self.opener]
        marginals = np.empty((self.n_tokens, 1 + n_types))
        marginals[:, 0] = decided[:, 2 * n_types]
        np.add(decided[:, :n_types], decided[:, n_types : 2 * n_types], out=marginals[:, 1:])
        return marginals

    def biluo_marginals(self) -> Floats:
        n_types = len(self.types)
        marginals = np.zeros((self.n_tokens, 1 + 4 * n_types))
        outside = np.flatnonzero(np.isnan(self.closing))
        marginals[outside, 0] = self.openings[outside, 2 * n_types]
        marginals[outside, 1::4] = self.openings[outside, :n_types]
        marginals[outside, 4::4] = self.openings[outside, n_types : 2 * n_types]
        type_of = np.zeros(self.n_tokens, dtype=np.intp)
        type_of[self.entities.starts] = self.entities.types
        inside = np.flatnonzero(~np.isnan(self.closing))
        kind = type_of[self.opener[inside]]
        opened = self.openings[self.opener[inside], kind]
        marginals[inside, 2 + 4 * kind] = opened * (1.0 - self.closing[inside])
        marginals[inside, 3 + 4 * kind] = opened * self.closing[inside]
        return marginals


def split_decoded(decoded: Decoded, docs: Sequence[Doc], cleared: bool = False) -> list[EntityReading]:
    """The reading of each of the Docs that were decoded together.

    cleared (bool): They were decoded as if they had no entities.
    """
    ends = np.cumsum([len(doc) for doc in docs])
    starts = ends - np.array([len(doc) for doc in docs])
    found = decoded.entities
    first = np.searchsorted(found.starts, starts).tolist()
    last = np.searchsorted(found.starts, ends).tolist()
    readings: list[EntityReading] = []
    for i, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        own = slice(first[i], last[i])
        readings.append(
            GreedyReading(
                decoded.actions.types,
                FoundEntities(
                    found.starts[own] - start, found.ends[own] - start, found.types[own].copy(), found.path[own].copy()
                ),
                Preset.of(docs[i], cleared),
                decoded.openings[start:end].copy(),
                decoded.opener[start:end] - start,
                decoded.closing[start:end].copy(),
            )
        )
    return readings


@dataclass(frozen=True, eq=False)
class BeamReading(EntityReading):
    """What a beam held, its parses weighed by their probability in the beam, which is normalised: the parses sum to 1.

    held (FoundEntities): Every entity of every parse; `path` is the summed probability of the parses that hold it.
    chosen (Bools): Those that the best parse holds, shape (len(held),).
    """

    held: FoundEntities
    chosen: Bools

    @property
    def candidates(self) -> FoundEntities:
        return self.held.take(~self.chosen)

    def type_marginals(self) -> Floats:
        biluo = self.biluo_marginals()
        return np.concatenate([biluo[:, :1], biluo[:, 1:].reshape(self.n_tokens, len(self.types), 4).sum(axis=2)], axis=1)

    def biluo_marginals(self) -> Floats:
        marginals = np.zeros((self.n_tokens, 1 + 4 * len(self.types)))
        for (start, end, kind), mass in zip(self.held.triples(), self.held.path.tolist(), strict=True):
            first = 1 + 4 * kind
            if end - start == 1:
                marginals[start, first + 3] += mass
            else:
                marginals[start, first] += mass
                marginals[start + 1 : end - 1, first + 1] += mass
                marginals[end - 1, first + 2] += mass
        np.clip(marginals, 0.0, 1.0, out=marginals)
        marginals[:, 0] = np.clip(1.0 - marginals[:, 1:].sum(axis=1), 0.0, 1.0)
        return marginals


def read_beams(
    recognizer: Any,
    beams: Sequence[Any],
    types: tuple[str, ...],
    presets: Sequence[Preset],
    decided: Sequence[FoundEntities] | None = None,
) -> list[EntityReading]:
    """The readings of `beam_parse`'s beams.

    types (tuple[str, ...]): The recognizer's entity types. presets: What each Doc held before.
    decided: The entities that the recognizer decided otherwise than by the beam; None takes those of the best parse.
    """
    column = {label: i for i, label in enumerate(types)}
    readings: list[EntityReading] = []
    for i, (beam, preset) in enumerate(zip(beams, presets, strict=True)):
        parses = recognizer.moves.get_beam_parses(beam)
        masses = _masses(parses, column)
        if decided is None:
            best = {(start, end, column[label]) for start, end, label in parses[0][1] if label} if parses else set()
        else:
            best = set(decided[i].triples())
        readings.append(_beam_reading(types, preset, masses, best))
    return readings


def _masses(parses: list[Any], column: dict[str, int]) -> dict[_Key, float]:
    """(start, end, type) -> probability that a parse of the beam holds the entity."""
    total = sum(mass for mass, _ in parses)
    masses: defaultdict[_Key, float] = defaultdict(float)
    for mass, entities in parses:
        for start, end, label in entities:
            if label:  # a blocked token stands among them as an entity without a type
                masses[start, end, column[label]] += mass / total
    return masses


def _beam_reading(types: tuple[str, ...], preset: Preset, masses: dict[_Key, float], best: set[_Key]) -> BeamReading:
    keys = sorted(best | set(masses))
    table = np.array(keys, dtype=np.intp).reshape(-1, 3)
    path = np.array([min(1.0, masses.get(key, 0.0)) for key in keys])
    held = FoundEntities(table[:, 0], table[:, 1], table[:, 2], path)
    chosen = np.array([key in best for key in keys], dtype=bool)
    return BeamReading(types, held.take(chosen), preset, held, chosen)
