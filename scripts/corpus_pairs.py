"""Pairs of tags on consecutive tokens of documents that a calib pipe has scored."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from analysis.tag_pairs import Bools, TagPairs, product_pairs

from spacy_calib.corpus.scored import UNKNOWN, ScoredCorpus
from spacy_calib.errors import CalibError
from spacy_calib.types import Floats, Pairs


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
    RAISES CalibError: there is no place with gold and scores.
    """
    judged = corpus.pairs()
    singles = replace(judged.pairs, tags=corpus.tags[corpus.hits != UNKNOWN])
    events = product_pairs(singles, places_of(corpus), max(1, len(corpus.names)), threshold)
    if not len(events.pairs):
        raise no_places(threshold)
    return CorpusPairs(corpus.names, singles, judged.calibrated, events)


def no_places(threshold: object) -> CalibError:
    """What is said where a corpus has no two neighbours to judge."""
    wanted = f"with a product of scores of at least {threshold}; give annotated documents, or a lower threshold."
    return CalibError("study", f"No two consecutive tokens of one sentence have gold tags {wanted}")


def places_of(corpus: ScoredCorpus) -> Bools:
    """Whether token i and token i + 1 have gold and stand in one sentence, shape (n_tokens - 1,)."""
    known = corpus.gold >= 0
    return known[:-1] & known[1:] & ~corpus.starts[1:] if len(corpus) else np.zeros(0, dtype=bool)
