"""Decoding with the model of any recognizer of spaCy, without touching the Docs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from spacy.tokens import Doc

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


# What embedding layers may read besides the word: of the token, not of its lexeme ("n't" has the norm "not").
_READ: list[int | str] = ["NORM", "TAG", "POS", "MORPH", "LEMMA", "DEP"]


def clear_copy(doc: Doc) -> Doc:
    """The same words with what a recognizer's model reads (token vectors, transformer data, sentence starts), but no entities."""
    columns = doc.to_array(["SENT_START"]).astype(np.uint64).reshape(-1).view(np.int64)
    starts: list[bool | int | None] = [None if sign == 0 else bool(sign == 1) for sign in columns.tolist()]
    copy = Doc(
        doc.vocab, words=[token.text for token in doc], spaces=[bool(token.whitespace_) for token in doc], sent_starts=starts
    )
    copy.from_array(_READ, np.asarray(doc.to_array(_READ)))  # type: ignore[arg-type]
    copy.tensor = doc.tensor
    if Doc.has_extension("trf_data"):
        copy._.trf_data = doc._.trf_data
    return copy
