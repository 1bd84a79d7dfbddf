"""The parser `calib_parser`: spaCy's own, but it keeps what it said of each Doc.

That is its arcs as they stand on the Doc, and the probabilities of the decisions behind them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from spacy.pipeline import DependencyParser
from spacy.tokens import Doc
from thinc.api import set_dropout_rate

from ..base import clear_copy
from .actions import read_actions
from .decoding import Decided, decode

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


@dataclass(frozen=True, eq=False)
class ArcReading:
    """What a parser said about one Doc of n tokens.

    decided (Decided): Of its tokens. arcs (NDArray[int64]): The head of each, relative to the token, and the hash of its label, as the parser
    left them on the Doc: shape (n, 2). words (NDArray[uint64]): Hash of each word.
    """

    decided: Decided
    arcs: NDArray[np.int64]
    words: NDArray[np.uint64]

    @classmethod
    def of(cls, decided: Decided, parsed: Doc) -> ArcReading:
        """parsed (Doc): With the arcs of the parser."""
        return cls(decided, arcs_on(parsed), parsed.to_array(["ORTH"]).reshape(-1).astype(np.uint64))

    def stands_on(self, doc: Doc) -> bool:
        """Whether the Doc has the words that were read."""
        return np.array_equal(self.words, doc.to_array(["ORTH"]).reshape(-1))


def arcs_on(doc: Doc) -> NDArray[np.int64]:
    """The head and the label of each token, see ArcReading."""
    return doc.to_array(["HEAD", "DEP"]).astype(np.uint64).view(np.int64).reshape(-1, 2)


def predict_decided(parser: Any, docs: Sequence[Doc]) -> tuple[list[Any], list[Decided]]:
    """(final state of each Doc, what was decided of its tokens), all Docs at once; nothing is written on them.

    parser (DependencyParser): Its model and transitions are used. docs: Hold at least one token together.
    RAISES C024: the scores hold NaN. C271: the model's states are of another kind.
    """
    set_dropout_rate(parser.model, 0.0)
    states, decided = decode(parser, docs, read_actions(parser.moves))
    ends = np.cumsum([len(doc) for doc in docs]).tolist()
    return states, [decided.part(end - len(doc), end) for end, doc in zip(ends, docs, strict=True)]


def parse_again(parser: Any, docs: Sequence[Doc]) -> list[ArcReading]:
    """The readings by a second pass over Docs that a parser annotated; it runs on copies without arcs and sentences.

    RAISES: see `predict_decided`.
    """
    copies = [clear_copy(doc, parsed=False) for doc in docs]
    states, decided = predict_decided(parser, copies)
    DependencyParser.set_annotations(parser, copies, states)
    return [ArcReading.of(one, copy) for one, copy in zip(decided, copies, strict=True)]
