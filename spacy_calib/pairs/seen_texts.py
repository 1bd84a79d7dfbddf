"""The overlap of other data with the data of a fit, found by salted digests, so that no text is saved."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..schema import Serializable, digests, saved_field, text
from ..types import Floats, Ints
from .keyed import Digests, salt_digests

MOST = 1 << 16  # a pipe keeps at most so many digests, of eight bytes each
LEAST_WORDS = 6  # shorter texts recur by chance, and do not show that a fit has seen them
# Data that shares more than MANY of its words with the fit data is no test of the fit; up to FEW sentences recur by chance.
MANY, FEW = 0.1, 0.01


@dataclass(frozen=True, eq=False)
class TextUnits:
    """n texts: digest, number of words, and document (a number) of each, and whether it is the whole document or a sentence."""

    digests: Digests
    words: Ints
    documents: Ints
    whole: NDArray[np.bool_]


@dataclass(frozen=True)
class TrainTestOverlap:
    """How much of some data was also in the data of a fit.

    documents (int): Number of documents that can be compared. seen (int): Number of those with at least half of their words in
    the fit data. share (float): Share of the words in the fit data, over all documents compared.
    """

    documents: int
    seen: int
    share: float

    @property
    def is_fit_data(self) -> bool:
        """Whether so many words are in the fit data that the data is no test of the fit."""
        return self.share > MANY

    @property
    def is_overlapping(self) -> bool:
        """Whether more is in the fit data than sentences that recur by chance."""
        return self.seen > 0 or self.share > FEW

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "many": self.is_fit_data}


@dataclass(frozen=True, eq=False)
class FitTextDigests(Serializable):
    """Digests of the texts that a pipe was fitted on.

    digests (Digests): Digests of documents and sentences with LEAST_WORDS words or more; only the lowest MOST, ascending.
    salt (str): The key under which texts are hashed.
    """

    digests: Digests = saved_field(digests, lambda: np.zeros(0, dtype=np.uint64))
    salt: str = saved_field(text, "")

    def with_texts(self, units: TextUnits) -> FitTextDigests:
        """Return a copy that includes the digests of `units`, except texts below LEAST_WORDS words, which are easy to guess."""
        digests = salt_digests(units.digests[units.words >= LEAST_WORDS], self.salt)
        return FitTextDigests(np.unique(np.concatenate([self.digests, digests]))[:MOST], self.salt)

    def overlap_with(self, units: TextUnits) -> TrainTestOverlap | None:
        """Return how much of other data (`units`) was in the fit data; None if nothing can be compared.

        A document that was in the fit data as a whole counts with all its words. Others are compared sentence by sentence.
        """
        is_long = units.words >= LEAST_WORDS
        digests = salt_digests(units.digests, self.salt)
        is_known = is_long & np.isin(digests, self.digests)
        is_complete = len(self.digests) < MOST
        # If digests were dropped, only texts with a digest in the range of those kept can be compared.
        is_comparable = is_long & (is_complete | (digests <= self.digests[-1:].max(initial=0)))
        n_documents = int(units.documents.max()) + 1 if len(units.documents) else 0

        def count_words(mask: NDArray[np.bool_]) -> Floats:  # in each document
            return np.bincount(units.documents[mask], units.words[mask], n_documents).astype(np.float64)

        is_known_document = units.whole & is_known
        # Sentences of the other documents.
        is_other_sentence = ~units.whole & ~np.isin(units.documents, units.documents[is_known_document])
        words_compared = count_words(is_known_document) + count_words(is_other_sentence & is_comparable)
        words_seen = count_words(is_known_document) + count_words(is_other_sentence & is_known)
        is_compared = words_compared > 0
        if not is_compared.any():
            return None
        n_half_seen = int((2 * words_seen[is_compared] >= words_compared[is_compared]).sum())
        return TrainTestOverlap(int(is_compared.sum()), n_half_seen, float(words_seen.sum() / words_compared.sum()))


def format_overlap_warning(overlap: dict[str, Any] | None) -> str | None:
    """Return a warning that a pipe was evaluated on its fit data; None if it was not, or if this is not known.

    overlap (dict | None): "documents", "seen", "share" (see TrainTestOverlap), and "many": whether the data counts as fit data.
    """
    if overlap is None or not overlap["many"]:
        return None
    return (
        f"JUDGED ON THE FIT DATA: {overlap['seen']:,} of {overlap['documents']:,} documents ({100 * overlap['share']:.0f} % "
        "of the words) are among those that the pipe was fitted on, where every fit looks good. This is no test of it: judge "
        "it on other gold."
    )
