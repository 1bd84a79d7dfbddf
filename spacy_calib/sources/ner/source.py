"""Entity recognizers: what `calib_ner` kept while it decoded, or a second pass over the model of spaCy's own `ner`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.pipeline import EntityRecognizer
from spacy.tokens import Doc

from ...doc.annotations import Annotation, get_annotation
from ...doc.events import EVENTS
from ...errors import calib_error
from ...pairs.build import DenseScores
from ...types import Floats, Spans, stack_spans
from ..base import Source
from ..listeners import missing_input, overwriting_pipe
from .actions import read_actions
from .readings import EntityReading, biluo_labels, type_labels
from .recognizer import CalibEntityRecognizer, decode_docs, kept_reading, search_beam

GRANULARITIES = {"type": "ner", "biluo": "biluo"}


class NerSource(Source):
    """Marginals and entities of a recognizer.

    component (str): Name of the component, `ner` or `beam_ner` of spaCy, or `calib_ner`.
    granularity (str): "type": P(entity type, or O); "biluo": P(BILUO tag).
    beam_width (int): 1 takes the probabilities of the decoding that the recognizer does by itself; above 1, a beam search of this width
        gives them (several times slower) while the entities stay those of the recognizer.
    beam_density (float): Parses whose score is below this share of the best one leave the beam, in [0, 1).
    RAISES C001: a setting out of range.
    """

    reads = ("ner", "beam_ner")
    events = tuple(EVENTS)
    alone = ("O",)

    def __init__(self, component: str = "ner", granularity: str = "type", beam_width: int = 1, beam_density: float = 0.0):
        if granularity not in GRANULARITIES:
            raise calib_error("C001", name="granularity", wanted=" or ".join(GRANULARITIES), given=repr(granularity))
        if isinstance(beam_width, bool) or not isinstance(beam_width, int) or beam_width < 1:
            raise calib_error("C001", name="beam_width", wanted="a whole number of at least 1", given=repr(beam_width))
        if not 0 <= beam_density < 1:
            raise calib_error("C001", name="beam_density", wanted="a number in [0, 1)", given=repr(beam_density))
        self.component = component
        self.granularity = granularity
        self.beam_width = beam_width
        self.beam_density = beam_density

    def supports(self, pipe: Any) -> bool:
        return isinstance(pipe, EntityRecognizer)

    def claims(self, pipe: Any) -> bool:
        return self.supports(pipe)

    def kind(self, pipe: Any) -> str:
        return EntityRecognizer.__name__

    def annotation(self, pipe: Any) -> Annotation:
        return get_annotation(GRANULARITIES[self.granularity])

    def labels(self, pipe: Any) -> tuple[str, ...]:
        to_labels = type_labels if self.granularity == "type" else biluo_labels
        return to_labels(self.span_labels(pipe))

    def frequency_label(self, label: str) -> str:
        return label if self.granularity == "type" or label == "O" else label[2:]

    def is_trained(self, pipe: Any) -> bool:
        return bool(self.span_labels(pipe)) and all(
            node.has_param(name) for node in pipe.model.walk() for name in node.param_names
        )

    def obstacle(self, nlp: Language, name: str, pipe: Any) -> str:
        if self.reads_output(pipe):
            return ""
        presetting = _presetting_pipe(nlp, pipe)
        if presetting:
            return (
                f"'{presetting}' sets entities before '{self.component}', and a second pass cannot tell them from its own; "
                "fit the pipeline again without --second-pass"
            )
        return overwriting_pipe(nlp, name, pipe)

    def reads_output(self, pipe: Any) -> bool:
        return isinstance(pipe, CalibEntityRecognizer)

    def holds_preset(self, pipe: Any, doc: Doc) -> bool:
        return not self.reads_output(pipe) and doc.has_annotation("ENT_IOB")

    def missing(self, pipe: Any, docs: Sequence[Doc]) -> list[str]:
        if not self.reads_output(pipe):
            return missing_input(pipe, docs)
        why = f"'{self.component}' did not run on the Doc in this process, or tokens were merged or split since"
        return ["" if not len(doc) or kept_reading(doc, pipe.name) is not None else why for doc in docs]

    def read(self, pipe: Any, docs: Sequence[Doc]) -> DenseScores:
        """RAISES C024: NaN in the scores. C033: a model with other states."""
        readings = self._readings(pipe, docs)
        n_types = len(self.span_labels(pipe))
        parts = [self._marginals(reading, n_types) for reading in readings]
        spans = [self._spans(reading, part) for reading, part in zip(readings, parts, strict=True)]
        return DenseScores(np.concatenate(parts), stack_spans(spans, [len(doc) for doc in docs]))

    def _readings(self, pipe: Any, docs: Sequence[Doc]) -> list[EntityReading]:
        if self.reads_output(pipe):
            readings: list[Any] = [kept_reading(doc, pipe.name) for doc in docs]
        else:
            readings = decode_docs(pipe, docs, cleared=True)
        if self.beam_width > 1:
            return search_beam(pipe, docs, readings, self.beam_width, self.beam_density)
        return readings

    def _marginals(self, reading: EntityReading, n_types: int) -> Floats:
        """With a column for each label that the recognizer has now, and NaN for preset tokens."""
        found = reading.type_marginals() if self.granularity == "type" else reading.biluo_marginals()
        later = (n_types - len(reading.types)) * (1 if self.granularity == "type" else 4)
        if later:
            found = np.concatenate([found, np.zeros((len(found), later))], axis=1)
        found[reading.preset.tokens] = np.nan
        return found

    def _spans(self, reading: EntityReading, marginals: Floats) -> Spans:
        """The entities that the recognizer decided by itself, and the candidates."""
        found = [(reading.entities, True), (reading.candidates, False)]
        starts = np.concatenate([entities.starts for entities, _ in found])
        ends = np.concatenate([entities.ends for entities, _ in found])
        types = np.concatenate([entities.types for entities, _ in found])
        own = np.concatenate([entities.path for entities, _ in found])
        chosen = np.concatenate([np.full(len(entities), is_chosen) for entities, is_chosen in found])
        lengths = ends - starts
        firsts = np.cumsum(lengths) - lengths
        place = np.arange(lengths.sum()) - np.repeat(firsts, lengths)
        rows, kinds = np.repeat(starts, lengths) + place, np.repeat(types, lengths)
        if self.granularity == "type":
            columns = 1 + kinds
        else:  # B, I, L, U
            first, last = place == 0, place == np.repeat(lengths, lengths) - 1
            columns = 1 + 4 * kinds + np.where(first, np.where(last, 3, 0), np.where(last, 2, 1))
        spans = Spans(starts, ends, types, marginals[rows, columns], own, chosen)
        known = np.ones(len(starts), dtype=bool)
        known[np.repeat(np.arange(len(starts)), lengths)[np.isnan(spans.token_scores)]] = False
        return spans if known.all() else spans.take(known)

    def span_labels(self, pipe: Any) -> tuple[str, ...]:
        return read_actions(pipe.moves).types


def _presetting_pipe(nlp: Language, pipe: Any) -> str:
    """The name of a component before this one that sets entities, "" if there is none."""
    for other in nlp.pipe_names:
        candidate = nlp.get_pipe(other)
        if candidate is pipe:
            return ""
        assigns = nlp.get_pipe_meta(other).assigns
        if {"doc.ents", "token.ent_type", "token.ent_iob"} & set(assigns) or getattr(candidate, "annotate_ents", False):
            return other
    return ""
