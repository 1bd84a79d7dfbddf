"""The recognizers `calib_ner` and `calib_beam_ner`, which are spaCy's and remember probabilities, and their source."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.pipeline import EntityRecognizer
from spacy.tokens import Doc

from ...annotations import Annotation, get_annotation
from ...annotations.span_events import EVENTS
from ...errors import calib_error
from ...pairs.scores import DenseScores
from ...types import Floats, Spans, stack_spans
from ..source import has_weights
from ..transitions import KeptReadings, ParsedDocs, TransitionSource, clear_copy
from .actions import read_actions
from .decoding import decode
from .readings import EntityReading, Preset, biluo_labels, read_beams, split_decoding, type_labels

kept_readings = KeptReadings()
# Granularity of token labels -> name of their annotation.
GRANULARITIES = {"type": "ner", "biluo": "biluo"}


class CalibEntityRecognizer(EntityRecognizer):
    """An EntityRecognizer with spaCy's weights and entities that remembers the probabilities of its decisions.

    Greedy decoding scores whole batches (`sources.ner.decoding`); with a beam_width above 1, spaCy's beam search runs.
    """

    def predict(self, docs: Sequence[Doc] | Doc) -> Any:
        """Return the final state or beam of each Doc. RAISES C024: NaN scores. C033: unknown state features."""
        docs = [docs] if isinstance(docs, Doc) else list(docs)
        if not any(len(doc) for doc in docs):
            return self.moves.init_batch(docs)
        if self.cfg["beam_width"] != 1:
            beams = self._search(docs)
            presets = [Preset.from_doc(doc) for doc in docs]
            return ParsedDocs(beams, read_beams(self, beams, read_actions(self.moves).types, presets))
        for label in sorted({label for doc in docs for label in self.moves.get_doc_labels(doc)}):  # as spaCy does
            self.add_label(label)
        readings = decode_docs(self, docs)
        states = self.moves.init_batch(docs)
        for state, reading in zip(states, readings, strict=True):
            _replay(state, reading)
        return ParsedDocs(states, readings)

    def _search(self, docs: Sequence[Doc]) -> Any:
        """Return the beams of spaCy's beam search. RAISES C024: NaN scores, for which spaCy raises a bare AssertionError."""
        with contextlib.suppress(AssertionError):
            return super().predict(docs)
        decode_docs(self, docs)  # its error names the document
        return super().predict(docs)  # without such an error: raise the AssertionError

    def set_annotations(self, docs: Sequence[Doc], states_or_beams: Any) -> None:
        """Set the entities, as spaCy does, and remember for each Doc the probabilities ("reading") from `predict`."""
        super().set_annotations(docs, states_or_beams)
        # For a batch without any tokens `predict` returns spaCy's states, which have no readings.
        for doc, reading in zip(docs, getattr(states_or_beams, "readings", ()), strict=False):
            kept_readings.keep(doc, self.name, reading)


def _replay(state: Any, reading: EntityReading) -> None:
    """Bring a new state of spaCy's recognizer to its end, with the entities of a reading."""
    position = 0  # the next token
    for start, end, label in reading.entity_hashes():
        _skip_tokens(state, start - position)
        state.open_ent(label)
        _skip_tokens(state, end - start - 1)
        state.close_ent()  # at the last token
        _skip_tokens(state, 1)
        position = end
    _skip_tokens(state, reading.n_tokens - position)


def _skip_tokens(state: Any, n: int) -> None:
    for _ in range(n):
        state.push()  # onto the stack, and off it again
        state.pop()


def make_recognizer(nlp: Language, name: str, **settings: Any) -> CalibEntityRecognizer:
    """Create a component `calib_ner` or `calib_beam_ner`. settings: As for spaCy's EntityRecognizer."""
    return CalibEntityRecognizer(nlp.vocab, name=name, **settings)


def decode_docs(recognizer: Any, docs: Sequence[Doc], ignore_entities: bool = False) -> list[EntityReading]:
    """Return a recognizer's prediction by greedy decoding for each of some non-empty Docs.

    ignore_entities (bool): Decode as if the Docs had no entities. RAISES C024: NaN scores. C033: unknown state features.
    """
    return split_decoding(decode(recognizer, docs, ignore_entities), docs, ignore_entities)


def search_beam(
    recognizer: Any, docs: Sequence[Doc], greedy_readings: Sequence[EntityReading], width: int, density: float
) -> list[EntityReading]:
    """Return readings with the greedy entities but the probabilities of a beam search. width, density: Of the beam."""
    nonempty = [i for i, doc in enumerate(docs) if len(doc)]
    copies = [clear_copy(docs[i]) for i in nonempty]
    for i, copy in zip(nonempty, copies, strict=True):
        # The search starts, as greedy decoding did, from the entities that an earlier pipe set.
        copy.from_array(["ENT_IOB", "ENT_TYPE"], greedy_readings[i].preset.columns)  # type: ignore[arg-type]
    beams = recognizer.beam_parse(copies, beam_width=width, drop=0.0, beam_density=density)
    presets, entities = [greedy_readings[i].preset for i in nonempty], [greedy_readings[i].entities for i in nonempty]
    readings = list(greedy_readings)
    for i, reading in zip(nonempty, read_beams(recognizer, beams, greedy_readings[0].types, presets, entities), strict=True):
        readings[i] = reading
    return readings


class NerSource(TransitionSource):
    """Source of the probabilities of a recognizer's tokens and entities.

    component (str): Name of the component, `ner` or `beam_ner` of spaCy, or `calib_ner`. granularity (str): "type" for P(entity
    type or O), "biluo" for P(BILUO tag). beam_width (int): Above 1, the probabilities are from a beam search (several times
    slower); the entities are the same. beam_density (float): Minimum score of a parse in the beam, as a share of the best
    score, in [0, 1). RAISES C001: a setting out of range.
    """

    reads = ("ner", "beam_ner")
    events = tuple(EVENTS)
    singleton_labels = ("O",)
    component_classes = (EntityRecognizer,)
    remembering_class, memory = CalibEntityRecognizer, kept_readings
    output_name, output_attributes = "entities", frozenset({"doc.ents", "token.ent_type", "token.ent_iob"})

    def __init__(self, component: str = "ner", granularity: str = "type", beam_width: int = 1, beam_density: float = 0.0):
        if granularity not in GRANULARITIES:
            raise calib_error("C001", name="granularity", wanted=" or ".join(GRANULARITIES), given=repr(granularity))
        if isinstance(beam_width, bool) or not isinstance(beam_width, int) or beam_width < 1:
            raise calib_error("C001", name="beam_width", wanted="a whole number of at least 1", given=repr(beam_width))
        if not 0 <= beam_density < 1:
            raise calib_error("C001", name="beam_density", wanted="a number in [0, 1)", given=repr(beam_density))
        super().__init__(component)
        self.granularity = granularity
        self.beam_width = beam_width
        self.beam_density = beam_density

    def annotation(self, pipe: Any) -> Annotation:
        return get_annotation(GRANULARITIES[self.granularity])

    def labels(self, pipe: Any) -> tuple[str, ...]:
        to_labels = type_labels if self.granularity == "type" else biluo_labels
        return to_labels(self.span_labels(pipe))

    def frequency_label(self, label: str) -> str:
        return label if self.granularity == "type" or label == "O" else label[2:]

    def is_trained(self, pipe: Any) -> bool:
        return bool(self.span_labels(pipe)) and has_weights(pipe)

    def reads_output(self, pipe: Any) -> bool:
        return self.has_memory(pipe)

    def holds_preset(self, pipe: Any, doc: Doc) -> bool:
        return not self.has_memory(pipe) and doc.has_annotation("ENT_IOB")

    def read(self, pipe: Any, docs: Sequence[Doc]) -> DenseScores:
        """Return the probabilities of tokens and entities. RAISES C024: NaN scores. C033: unknown state features."""
        readings = self.readings(pipe, docs)
        n_types = len(self.span_labels(pipe))
        marginals = [self._marginals(reading, n_types) for reading in readings]
        spans = [self._spans(reading, doc_marginals) for reading, doc_marginals in zip(readings, marginals, strict=True)]
        return DenseScores(np.concatenate(marginals), stack_spans(spans, [len(doc) for doc in docs]))

    def readings(self, pipe: Any, docs: Sequence[Doc]) -> list[EntityReading]:
        """Return the reading of each Doc, with the probabilities of a beam search if the setting asks for it."""
        readings = super().readings(pipe, docs)
        return search_beam(pipe, docs, readings, self.beam_width, self.beam_density) if self.beam_width > 1 else readings

    def read_again(self, pipe: Any, docs: Sequence[Doc]) -> list[EntityReading]:
        """Decode the Docs as if they had no entities. RAISES C024: NaN scores. C033: unknown state features."""
        return decode_docs(pipe, docs, ignore_entities=True)

    def _marginals(self, reading: EntityReading, n_types: int) -> Floats:
        """Return P(label), shape (n_tokens, number of labels for n_types types); NaN in entities that earlier pipes set."""
        marginals = reading.type_marginals() if self.granularity == "type" else reading.biluo_marginals()
        # Types that the recognizer got after this reading have probability 0.
        n_new_columns = (n_types - len(reading.types)) * (1 if self.granularity == "type" else 4)
        if n_new_columns:
            marginals = np.concatenate([marginals, np.zeros((len(marginals), n_new_columns))], axis=1)
        marginals[reading.preset.tokens] = np.nan
        return marginals

    def _spans(self, reading: EntityReading, marginals: Floats) -> Spans:
        """Return the entities of a Doc, then its candidates, except any with tokens of preset entities. marginals: P(label)."""
        chosen, rejected = reading.entities, reading.candidates
        starts, ends = np.concatenate([chosen.starts, rejected.starts]), np.concatenate([chosen.ends, rejected.ends])
        types, probabilities = np.concatenate([chosen.types, rejected.types]), np.concatenate([chosen.path, rejected.path])
        is_chosen = np.arange(len(starts)) < len(chosen)
        lengths = ends - starts
        firsts = np.cumsum(lengths) - lengths  # index of each entity's first token among the tokens of all entities
        offsets = np.arange(lengths.sum()) - np.repeat(firsts, lengths)  # position of each token in its entity
        rows, kinds = np.repeat(starts, lengths) + offsets, np.repeat(types, lengths)
        if self.granularity == "type":
            columns = 1 + kinds  # column 0 is O
        else:  # four columns for each type: B (0), I (1), L (2), U (3)
            is_first, is_last = offsets == 0, offsets == np.repeat(lengths, lengths) - 1
            prefixes = np.where(is_first, np.where(is_last, 3, 0), np.where(is_last, 2, 1))
            columns = 1 + 4 * kinds + prefixes
        spans = Spans(starts, ends, types, marginals[rows, columns], probabilities, is_chosen)
        has_scores = np.ones(len(starts), dtype=bool)  # of each entity: whether all its tokens have a score
        entity_of_token = np.repeat(np.arange(len(starts)), lengths)
        has_scores[entity_of_token[np.isnan(spans.token_scores)]] = False
        return spans if has_scores.all() else spans.take(has_scores)

    def span_labels(self, pipe: Any) -> tuple[str, ...]:
        return read_actions(pipe.moves).types
