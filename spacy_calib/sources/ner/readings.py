"""The prediction of a recognizer for one Doc: probabilities of its tokens, its entities, and candidates that it rejected."""

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
from .decoding import FoundEntities, GreedyDecoding

_EntityKey = tuple[int, int, int]  # start, end, index of the type


@dataclass(frozen=True, eq=False)
class Preset:
    """A Doc's entities before recognition. columns: ENT_IOB, ENT_TYPE. tokens: Whether a token is in an entity or blocked."""

    columns: NDArray[np.uint64]
    tokens: Bools

    @classmethod
    def from_doc(cls, doc: Doc, ignore_entities: bool = False) -> Preset:
        """Read the preset entities of a Doc. ignore_entities (bool): Read it as if it had none."""
        columns = doc.to_array(["ENT_IOB", "ENT_TYPE"]).astype(np.uint64).reshape(-1, 2)
        if ignore_entities:
            columns[:] = 0
        return cls(columns, (columns[:, 0] == 1) | (columns[:, 0] == 3))  # I or B


def type_labels(types: Sequence[str]) -> tuple[str, ...]:
    """Return the labels of the columns of `EntityReading.type_marginals`: "O" and the entity types."""
    return ("O", *types)


def biluo_labels(types: Sequence[str]) -> tuple[str, ...]:
    """Return the labels of the columns of `EntityReading.biluo_marginals`: "O", then B-, I-, L- and U- of each type."""
    return ("O", *(f"{prefix}-{label}" for label in types for prefix in "BILU"))


@dataclass(frozen=True, eq=False)
class EntityReading(ABC):
    """A recognizer's prediction for one Doc: its entity types, the entities with their probabilities, the preset entities."""

    types: tuple[str, ...]
    entities: FoundEntities
    preset: Preset

    @property
    def n_tokens(self) -> int:
        return len(self.preset.tokens)

    @property
    def candidates(self) -> FoundEntities:
        """The entities that the decoder considered and rejected: none, except after a beam search."""
        empty = np.zeros(0, dtype=np.intp)
        return FoundEntities(empty, empty, empty, np.zeros(0))

    @abstractmethod
    def type_marginals(self) -> Floats:
        """Return P(entity type or O) of each token, shape (n_tokens, n_labels), columns as in `type_labels`."""

    @abstractmethod
    def biluo_marginals(self) -> Floats:
        """Return P(BILUO tag) of each token, shape (n_tokens, n_labels), columns as in `biluo_labels`."""

    def entity_hashes(self) -> Iterator[tuple[int, int, int]]:
        """Yield (start, end, hash of the type) of each entity."""
        for start, end, kind in self.entities.triples():
            yield start, end, get_string_id(self.types[kind])


@dataclass(frozen=True, eq=False)
class GreedyReading(EntityReading):
    """The prediction of greedy decoding; the type probabilities of all tokens of an entity are those of its first token.

    openings (Floats): Probability of each transition if no entity is open (B- of each type, U- of each, O), for each token.
    opener (Ints): First token of the entity that contains each token, else the token itself. closing (Floats): Probability that
    the entity ends at each of its tokens but the first; NaN elsewhere.
    """

    openings: Floats
    opener: Ints
    closing: Floats

    def type_marginals(self) -> Floats:
        """Return P(entity type or O), (n_tokens, 1 + n_types), O first. Tokens of an entity have its first token's values."""
        n_types = len(self.types)
        opening_rows = self.openings[self.opener]
        marginals = np.empty((self.n_tokens, 1 + n_types))
        marginals[:, 0] = opening_rows[:, 2 * n_types]  # O
        np.add(opening_rows[:, :n_types], opening_rows[:, n_types : 2 * n_types], out=marginals[:, 1:])  # B- and U-
        return marginals

    def biluo_marginals(self) -> Floats:
        """Return P(BILUO tag), (n_tokens, 1 + 4 * n_types); of an entity's later tokens P(B-) of the first * P(I- or L-)."""
        n_types = len(self.types)
        # Columns: 0 is O; 1 + 4 * k to 4 + 4 * k are B-, I-, L- and U- of type k.
        marginals = np.zeros((self.n_tokens, 1 + 4 * n_types))
        out_tokens = np.flatnonzero(np.isnan(self.closing))  # with the first tokens of entities
        marginals[out_tokens, 0] = self.openings[out_tokens, 2 * n_types]
        marginals[out_tokens, 1::4] = self.openings[out_tokens, :n_types]
        marginals[out_tokens, 4::4] = self.openings[out_tokens, n_types : 2 * n_types]
        type_of = np.zeros(self.n_tokens, dtype=np.intp)
        type_of[self.entities.starts] = self.entities.types
        in_tokens = np.flatnonzero(~np.isnan(self.closing))
        kind = type_of[self.opener[in_tokens]]
        begin_scores = self.openings[self.opener[in_tokens], kind]
        marginals[in_tokens, 2 + 4 * kind] = begin_scores * (1.0 - self.closing[in_tokens])
        marginals[in_tokens, 3 + 4 * kind] = begin_scores * self.closing[in_tokens]
        return marginals


def split_decoding(batch: GreedyDecoding, docs: Sequence[Doc], ignore_entities: bool = False) -> list[EntityReading]:
    """Split the decoding of a batch by Doc. ignore_entities: Whether the Docs were decoded as if they had no entities."""
    ends = np.cumsum([len(doc) for doc in docs])
    starts = ends - np.array([len(doc) for doc in docs])
    entities = batch.entities
    firsts, lasts = (np.searchsorted(entities.starts, bounds).tolist() for bounds in (starts, ends))  # entities of each Doc
    readings: list[EntityReading] = []
    for doc, start, end, first, last in zip(docs, starts.tolist(), ends.tolist(), firsts, lasts, strict=True):
        # Copies, so that the arrays of the batch are not kept in memory as long as one of its Docs.
        openings, closing = batch.openings[start:end].copy(), batch.closing[start:end].copy()
        begins, stops = entities.starts[first:last] - start, entities.ends[first:last] - start
        doc_entities = FoundEntities(begins, stops, entities.types[first:last].copy(), entities.path[first:last].copy())
        preset, opener = Preset.from_doc(doc, ignore_entities), batch.opener[start:end] - start
        readings.append(GreedyReading(batch.actions.types, doc_entities, preset, openings, opener, closing))
    return readings


@dataclass(frozen=True, eq=False)
class BeamReading(EntityReading):
    """The prediction of a beam search. all_entities: Entities of all parses. is_chosen: Whether each is in the final parse.

    The `path` of an entity is the probability of the parses that have it, as a share of all parses of the beam.
    """

    all_entities: FoundEntities
    is_chosen: Bools

    @property
    def candidates(self) -> FoundEntities:
        return self.all_entities.take(~self.is_chosen)

    def type_marginals(self) -> Floats:
        biluo = self.biluo_marginals()
        by_type = biluo[:, 1:].reshape(self.n_tokens, len(self.types), 4)  # the last axis: B-, I-, L-, U-
        return np.concatenate([biluo[:, :1], by_type.sum(axis=2)], axis=1)

    def biluo_marginals(self) -> Floats:
        """Return P(BILUO tag) of each token: the summed probabilities of the entities that give the tag, the rest for O."""
        marginals = np.zeros((self.n_tokens, 1 + 4 * len(self.types)))
        for (start, end, kind), mass in zip(self.all_entities.triples(), self.all_entities.path.tolist(), strict=True):
            first = 1 + 4 * kind  # column of B-; those of I-, L- and U- follow
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
    final_entities: Sequence[FoundEntities] | None = None,
) -> list[EntityReading]:
    """Return a reading for each of the beams, one per Doc, that the recognizer's beam search (`beam_parse`) returned.

    types (tuple[str, ...]): Entity types. presets (Sequence[Preset]): Entities of each Doc before recognition.
    final_entities (Sequence | None): The predicted entities of each Doc; None for those of the best parse.
    """
    column = {label: i for i, label in enumerate(types)}
    readings: list[EntityReading] = []
    for i, (beam, preset) in enumerate(zip(beams, presets, strict=True)):
        parses = recognizer.moves.get_beam_parses(beam)  # (probability, entities) of each, the best first
        probabilities = _entity_probabilities(parses, column)
        if final_entities is None:
            best_parse = parses[0][1] if parses else []
            final_keys = {(start, end, column[label]) for start, end, label in best_parse if label}
        else:
            final_keys = set(final_entities[i].triples())
        keys = sorted(final_keys | set(probabilities))
        starts, ends, kinds = np.array(keys, dtype=np.intp).reshape(-1, 3).T
        path = np.array([min(1.0, probabilities.get(key, 0.0)) for key in keys])
        entities = FoundEntities(starts, ends, kinds, path)
        is_chosen = np.array([key in final_keys for key in keys], dtype=bool)
        readings.append(BeamReading(types, entities.take(is_chosen), preset, entities, is_chosen))
    return readings


def _entity_probabilities(parses: list[Any], column: dict[str, int]) -> dict[_EntityKey, float]:
    """Return (start, end, type index) -> sum of the probabilities of the parses with this entity, as a share of all parses.

    parses (list): (probability, [(start, end, type)]) of each. column (dict): Type -> index.
    """
    total = sum(mass for mass, _ in parses)
    shares: defaultdict[_EntityKey, float] = defaultdict(float)
    for mass, entities in parses:
        for start, end, label in entities:
            if label:  # a blocked token is listed as an entity without a type
                shares[start, end, column[label]] += mass / total
    return shares
