"""What is labelled as one piece: the sentences, or the documents, of a scored corpus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...errors import calib_error
from ...types import Floats, Ints

if TYPE_CHECKING:
    from ..scored import ScoredCorpus

PIECE_KINDS = ("sentence", "doc")


@dataclass(frozen=True, eq=False)
class Pieces:
    """n pieces of text, one after the other, without tokens between them.

    docs (Ints): Number of each one's Doc. first, last (Ints): Its first token in the corpus, and the one after the last; never empty.
    words (Ints): Its tokens that are not white space; of documents with a label their words. counted (Ints): Its tokens that are counted, see `ScoredCorpus.counted`.
    """

    docs: Ints
    first: Ints
    last: Ints
    words: Ints
    counted: Ints

    def __len__(self) -> int:
        return len(self.first)

    def sums(self, values: Floats) -> Floats:
        """The sum of a value over the tokens of each piece, NaN counting nothing.

        values (Floats): One for each token. RETURNS (Floats): Shape (n,).
        """
        return np.add.reduceat(np.nan_to_num(values), self.first) if len(self) else np.zeros(0)

    def maxima(self, values: Floats) -> Floats:
        """The greatest value of each piece, -inf where all are NaN; shape (n,)."""
        return np.maximum.reduceat(np.where(np.isnan(values), -np.inf, values), self.first) if len(self) else np.zeros(0)

    def of_tokens(self) -> Ints:
        """The piece of each token."""
        return np.repeat(np.arange(len(self)), self.last - self.first)


def pieces_of(corpus: ScoredCorpus, unit: str = "sentence") -> Pieces:
    """The sentences, or the Docs that have tokens.

    RAISES C001: unit is neither "sentence" nor "doc".
    """
    if unit not in PIECE_KINDS:
        raise calib_error("C001", name="unit", wanted=f"one of {', '.join(PIECE_KINDS)}", given=repr(unit))
    bounds = corpus.sentence_starts if unit == "sentence" else np.unique(corpus.doc_starts)
    first, last = bounds[:-1], bounds[1:]
    before = np.concatenate([[0], np.cumsum(corpus.lengths)])
    counted = np.concatenate([[0], np.cumsum(corpus.counted, dtype=np.intp)])
    return Pieces(corpus.docs[first], first, last, before[last] - before[first], counted[last] - counted[first])
