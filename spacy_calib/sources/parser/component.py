"""The parser `calib_parser`: spaCy's own, but it keeps the probabilities of what it decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from spacy.language import Language
from spacy.pipeline import DependencyParser
from spacy.tokens import Doc

from .decoding import Decided
from .readings import ArcReading, predict_decided

# What a parser found in a Doc, for as long as the Doc lives: nothing of it is saved with the Doc.
_READINGS: WeakKeyDictionary[Doc, tuple[str, ArcReading]] = WeakKeyDictionary()


def kept_reading(doc: Doc, component: str) -> ArcReading | None:
    """What the parser of this name found in the Doc; None if it did not run on it, or the Doc was re-tokenized since."""
    name, reading = _READINGS.get(doc, ("", None))
    return reading if name == component and reading is not None and reading.stands_on(doc) else None


class ParsedDocs(list):
    """The states that `predict` gives, as spaCy wants them, with what was decided of each Doc beside them."""

    def __init__(self, states: Sequence[Any], decided: Sequence[Decided]):
        super().__init__(states)
        self.decided = decided


class CalibDependencyParser(DependencyParser):
    """spaCy's DependencyParser with the same weights, heads and labels.

    Greedy decoding goes step by step through Python (`sources.parser.decoding`), all Docs of a batch at once.
    """

    def predict(self, docs: Sequence[Doc] | Doc) -> Any:
        """The final state of each Doc, in order.

        RAISES C024: the scores hold NaN. C271: the model's states are of another kind.
        """
        docs = [docs] if isinstance(docs, Doc) else list(docs)
        if not any(len(doc) for doc in docs):
            return self.moves.init_batch(docs)
        return ParsedDocs(*predict_decided(self, docs))

    def set_annotations(self, docs: Sequence[Doc], states: Any) -> None:
        """Set heads and labels, as spaCy does, and remember the readings."""
        n_tokens = [len(doc) for doc in docs]
        super().set_annotations(docs, states)
        for doc, decided, n in zip(docs, getattr(states, "decided", ()), n_tokens, strict=False):
            if len(doc) == n:  # else its tokens were joined by their arcs
                _READINGS[doc] = (self.name, ArcReading.of(decided, doc))


def make_parser(nlp: Language, name: str, **settings: Any) -> CalibDependencyParser:
    """One of a pipeline. settings: Those of spaCy's own."""
    return CalibDependencyParser(nlp.vocab, name=name, **settings)
