"""What a parser said about one Doc: its arcs as they stand on the Doc, and the probabilities of the decisions behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.pipeline import DependencyParser
from spacy.tokens import Doc
from thinc.api import set_dropout_rate

from ..copies import clear_copy
from .actions import read_actions
from .decoding import Decided, decode


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
