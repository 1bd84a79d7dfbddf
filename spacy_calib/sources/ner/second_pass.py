"""Decoding with the model of any recognizer of spaCy, without touching the Docs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spacy.tokens import Doc

from ..copies import clear_copy
from .actions import read_actions
from .decoding import decode
from .readings import EntityReading, read_beams, split_decoded


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
