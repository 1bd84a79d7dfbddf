"""How often a label stands there: of tokens, entities, documents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from spacy.strings import get_string_id
from spacy.tokens import Doc

from ...types import Floats
from ..annotations import SPANS_PREFIX
from ..attributes import doc_view
from .base import DOCUMENT, ENTITY, TOKEN, Answer, Query, Scored, ViewOf


def units_of(scored: Scored) -> tuple[str, ...]:
    """What a label of these scores may be counted in; the first where nothing is said."""
    if scored.annotation.unit == DOCUMENT:
        return (DOCUMENT,)
    if scored.plain.startswith(SPANS_PREFIX):
        return (ENTITY, DOCUMENT)
    return (ENTITY, TOKEN, DOCUMENT) if scored.key == "ENT_TYPE" else (TOKEN, DOCUMENT)


@dataclass(frozen=True)
class LabelQuery(Query):
    """scored (Scored): The scores of its pipe. label (str): As the gold names it, without the B- and the like of entities."""

    text: str
    unit: str
    scored: Scored
    label: str

    @property
    def labels(self) -> list[tuple[str, str]]:
        return [(self.scored.attr, label) for label in self.scored.labels if self._is_label(label)]

    def _is_label(self, label: str) -> bool:
        scored = self.scored
        return label == self.label or (scored.annotation.prefixed and label[2:] == self.label)

    def _begins(self, label: str) -> bool:
        return self._is_label(label) and label[:2] in ("B-", "U-")

    @property
    def _of_entities(self) -> bool:
        """Whether entities are what is counted, or what makes a document count."""
        return ENTITY in units_of(self.scored) and self.unit != TOKEN

    def answer(self, doc: Doc, view_of: ViewOf = doc_view) -> Answer:
        found = self._count(doc)
        tokens = None
        if self._of_entities and self.scored.plain.startswith(SPANS_PREFIX):
            view = view_of(doc, self.scored.attr)
            spans = [] if view is None else [span for span in (*view.ents, *view.candidates) if span.label == self.label]
            return Answer(np.array([span.raw for span in spans]), np.array([span.score for span in spans]), found)
        if self._of_entities and self.scored.annotation.prefixed:
            raw, calibrated = self.scored.chances(doc, self._begins, view_of)
        elif self._of_entities:
            of_tokens = self.scored.chances(doc, self._is_label, view_of)
            raw, calibrated = (self._beginnings(doc, held) for held in of_tokens)
            tokens = float(of_tokens[1].sum())
        else:
            raw, calibrated = self.scored.chances(doc, self._is_label, view_of)
        own = (raw > 0) | (calibrated > 0)
        return Answer(raw[own], calibrated[own], found, tokens=tokens)

    def _beginnings(self, doc: Doc, chances: Floats) -> Floats:
        """The chance that an entity of the label begins at a token.

        Only the chance that the token has its type is known. A token whose neighbour before it is at least as likely begins none, unless one
        that was found does: tokens of one entity stand or fall together.
        """
        begins = chances.copy()
        begins[1:] = np.maximum(0.0, chances[1:] - chances[:-1])
        starts = [span.start for span in self.scored.annotation.spans_on(doc)]
        begins[starts] = chances[starts]
        return begins

    def _count(self, doc: Doc, gold: bool = False) -> int:
        if self._of_entities:
            annotation, wanted = self.scored.annotation, get_string_id(self.label)
            if gold:
                n = sum(span.label == wanted for span in annotation.gold.spans_on(doc))
            else:
                n = sum(annotation.gold_span_label(span.label) == wanted for span in annotation.spans_on(doc))
        else:
            n = int(self.scored.carried(doc, self._is_label, gold).sum())
        return min(n, 1) if self.unit == DOCUMENT else n

    def true(self, doc: Doc) -> int:
        return self._count(doc, gold=True)
