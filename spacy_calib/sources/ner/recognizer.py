"""The recognizers `calib_ner` and `calib_beam_ner`: spaCy's own, but they keep the probabilities of what they decide.

`decode_docs` and `search_beam` do so with the model of any recognizer of spaCy, without touching the Docs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from spacy.pipeline import EntityRecognizer
from spacy.tokens import Doc
from thinc.api import set_dropout_rate

from ..base import clear_copy
from .actions import read_actions
from .decoding import decode
from .readings import EntityReading, Preset, read_beams, split_decoded

# What a recognizer found in a Doc, for as long as the Doc lives: nothing of it is saved with the Doc.
_READINGS: WeakKeyDictionary[Doc, tuple[str, EntityReading, NDArray[Any]]] = WeakKeyDictionary()


def kept_reading(doc: Doc, component: str) -> EntityReading | None:
    """What the recognizer of this name found in the Doc; None if it did not run on it, or the Doc was re-tokenized since."""
    name, reading, words = _READINGS.get(doc, ("", None, None))
    return reading if name == component and words is not None and np.array_equal(words, doc.to_array("ORTH")) else None


class ParsedDocs(list):
    """The states (or beams) that `predict` gives, as spaCy wants them, with the reading of each Doc beside them."""

    def __init__(self, states: Sequence[Any], readings: Sequence[EntityReading | None]):
        super().__init__(states)
        self.readings = readings


class CalibEntityRecognizer(EntityRecognizer):
    """spaCy's EntityRecognizer with the same weights and the same entities.

    Greedy decoding multiplies whole batches (`sources.ner.decoding`) where spaCy steps from token to token. With a beam_width above 1, spaCy's
    beam search runs, and the probabilities are those of its beams.
    """

    def predict(self, docs: Sequence[Doc] | Doc) -> Any:
        """The final state or beam of each Doc, in order.

        RAISES C024: the scores hold NaN. C033: the model's states are of another kind.
        """
        docs = [docs] if isinstance(docs, Doc) else list(docs)
        if not any(len(doc) for doc in docs):
            return self.moves.init_batch(docs)
        if self.cfg["beam_width"] != 1:
            beams = self._search(docs)
            return ParsedDocs(beams, read_beams(self, beams, read_actions(self.moves).types, [Preset.of(doc) for doc in docs]))
        self._ensure_labels_are_added(docs)
        set_dropout_rate(self.model, 0.0)
        readings = decode_docs(self, docs)
        states = self.moves.init_batch(docs)
        for state, reading in zip(states, readings, strict=True):
            _replay(state, reading)
        return ParsedDocs(states, readings)

    def _search(self, docs: Sequence[Doc]) -> Any:
        """spaCy's beams.

        RAISES C024: the scores hold NaN, of which spaCy's beam search makes an AssertionError without words.
        """
        with contextlib.suppress(AssertionError):
            return super().predict(docs)
        decode_docs(self, docs)  # says which document
        return super().predict(docs)

    def set_annotations(self, docs: Sequence[Doc], states_or_beams: Any) -> None:
        """Set the entities, as spaCy does, and remember the readings."""
        super().set_annotations(docs, states_or_beams)
        for doc, reading in zip(docs, getattr(states_or_beams, "readings", ()), strict=False):
            _READINGS[doc] = (self.name, reading, doc.to_array("ORTH"))


def _replay(state: Any, reading: EntityReading) -> None:
    """Take the transitions of the entities that were found."""
    at = 0
    for start, end, label in reading.entity_hashes():
        for _ in range(start - at):
            state.push()
            state.pop()
        state.open_ent(label)
        for _ in range(end - start - 1):
            state.push()
            state.pop()
        state.close_ent()
        state.push()
        state.pop()
        at = end
    for _ in range(reading.n_tokens - at):
        state.push()
        state.pop()


def make_recognizer(nlp: Language, name: str, **settings: Any) -> CalibEntityRecognizer:
    """One of a pipeline. settings: Those of spaCy's own."""
    return CalibEntityRecognizer(nlp.vocab, name=name, **settings)


def decode_docs(recognizer: Any, docs: Sequence[Doc], cleared: bool = False) -> list[EntityReading]:
    """Greedy decoding, all Docs at once.

    recognizer (EntityRecognizer): Its model and transitions are used. docs: Hold at least one token together.
    cleared (bool): As if the Docs had no entities yet.
    RAISES C024: the scores hold NaN. C033: the model's states are of another kind.
    """
    step_model = recognizer.model.predict(docs)
    try:
        decoded = decode(
            step_model, recognizer.model.get_ref("lower"), docs, read_actions(recognizer.moves), recognizer.name, cleared
        )
        return split_decoded(decoded, docs, cleared)
    finally:
        step_model.clear_memory()


def search_beam(
    recognizer: Any, docs: Sequence[Doc], decided: Sequence[EntityReading], width: int, density: float
) -> list[EntityReading]:
    """Probabilities from spaCy's beam search beside the entities that were decided without it.

    It runs on copies of the Docs that hold what they held before the recognizer ran.

    decided: The reading of each Doc. width (int), density (float): As in `beam_parse`.
    """
    held = [i for i, doc in enumerate(docs) if len(doc)]
    copies = [clear_copy(docs[i]) for i in held]
    for i, copy in zip(held, copies, strict=True):
        copy.from_array(["ENT_IOB", "ENT_TYPE"], decided[i].preset.columns)  # type: ignore[arg-type]
    beams = recognizer.beam_parse(copies, beam_width=width, drop=0.0, beam_density=density)
    presets, entities = [decided[i].preset for i in held], [decided[i].entities for i in held]
    readings = list(decided)
    for i, reading in zip(held, read_beams(recognizer, beams, decided[0].types, presets, entities), strict=True):
        readings[i] = reading
    return readings
