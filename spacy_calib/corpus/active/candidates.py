"""The units of very many texts, as far as they are needed to choose among all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...types import Floats, Ints
from ..distinct import Digests
from ..scored import ScoredCorpus
from .pieces import Pieces


@dataclass(frozen=True, eq=False)
class Candidates:
    """n units, 28 bytes each.

    docs (Ints): Number of each one's Doc in the data, ascending; those of a Doc are all there. words (NDArray[int32]): How many it has.
    scores (Floats): Its priority. keys (Digests): `digest` of its text.
    """

    docs: Ints
    words: NDArray[np.int32]
    scores: Floats
    keys: Digests

    def __len__(self) -> int:
        return len(self.docs)

    @classmethod
    def of(cls, corpus: ScoredCorpus, pieces: Pieces, scores: Floats, keys: Digests) -> Candidates:
        """Those of one corpus."""
        return cls(corpus.numbers_of_docs[pieces.docs], pieces.words.astype(np.int32), scores, keys)

    @classmethod
    def joined(cls, parts: Sequence[Candidates]) -> Candidates:
        """Those of several corpora, in their order."""
        columns: dict[str, Any] = {one.name: np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(cls)}
        return cls(**columns)

    def places_in(self, corpus: ScoredCorpus, pieces: Pieces, own: Ints) -> Ints:
        """Where some of them are among the pieces of a corpus that has their Docs. own (Ints): Places here."""
        docs = self.docs[own]
        inside = own - np.searchsorted(self.docs, docs)
        return np.asarray(np.searchsorted(corpus.numbers_of_docs[pieces.docs], docs) + inside)
