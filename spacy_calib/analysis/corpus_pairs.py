"""Pairs of tags on consecutive tokens of documents that a calib pipe has scored."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..errors import calib_error
from ..scored import UNKNOWN, ScoredCorpus
from ..types import Floats, Pairs
from .tag_pairs import Bools, TagPairs, product_pairs


@dataclass(frozen=True, eq=False)
class CorpusPairs:
    """The single tags and the pairs of tags of a corpus.

    names (tuple[str, ...]): Tags; the columns of both.
    singles (Pairs), calibrated (Floats): Raw and calibrated scores of the tags of tokens with gold.
    events (TagPairs): Their products over consecutive tokens of one sentence.
    """

    names: tuple[str, ...]
    singles: Pairs
    calibrated: Floats
    events: TagPairs

    def name_of(self, code: int) -> str:
        """ "DT NN" for the code of a pair."""
        first, second = divmod(code, len(self.names))
        return f"{self.names[first]} {self.names[second]}"


def corpus_pairs(corpus: ScoredCorpus, threshold: float = 0.01) -> CorpusPairs:
    """Pairs of tags whose raw product reaches a threshold; the calibrated products are judged on the same pairs.

    corpus (ScoredCorpus): With gold. threshold (float): Not below that of the calib pipe, which would miss pairs.
    RAISES C085: there is no place with gold and scores.
    """
    singles, calibrated, _ = corpus.pairs()
    singles = replace(singles, tags=corpus.tags[corpus.hits != UNKNOWN])
    events = product_pairs(singles, places_of(corpus), max(1, len(corpus.names)), threshold)
    if not len(events.pairs):
        raise calib_error("C085", threshold=threshold)
    return CorpusPairs(corpus.names, singles, calibrated, events)


def places_of(corpus: ScoredCorpus) -> Bools:
    """Whether token i and token i + 1 have gold and stand in one sentence, shape (n_tokens - 1,)."""
    known = corpus.gold >= 0
    return known[:-1] & known[1:] & ~corpus.starts[1:] if len(corpus) else np.zeros(0, dtype=bool)
