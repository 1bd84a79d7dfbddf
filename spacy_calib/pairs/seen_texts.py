"""Salted digests of the texts of a fit: no text."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..schema import Serializable, digests, saved_field, text
from ..types import Floats, Ints
from .keyed import Digests
from .keyed import keyed as salted

# A pipe keeps at most so many digests, of eight bytes each.
MOST = 1 << 16


# Shorter texts recur by chance, and do not show that a fit has seen them.
LEAST_WORDS = 6


# From this share of known words on, data is no test of the fit; up to the other one sentences recur by chance.
MANY, FEW = 0.1, 0.01


@dataclass(frozen=True, eq=False)
class TextUnits:
    """n stretches, documents and their sentences: digest, words, document, and whether it is the whole document."""

    digests: Digests
    words: Ints
    documents: Ints
    whole: NDArray[np.bool_]


@dataclass(frozen=True)
class SeenShare:
    """How much of some data a fit has seen: comparable documents, those half seen or more, and the share of all words."""

    documents: int
    seen: int
    share: float

    @property
    def many(self) -> bool:
        """Whether the data is no test of the fit."""
        return self.share > MANY

    @property
    def some(self) -> bool:
        """Whether more recurs than chance would let."""
        return self.seen > 0 or self.share > FEW

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "many": self.many}


@dataclass(frozen=True, eq=False)
class SeenTexts(Serializable):
    """digests (Digests): Of the longer documents and sentences, the MOST lowest, ascending. salt (str): See `keyed`."""

    digests: Digests = saved_field(digests, lambda: np.zeros(0, dtype=np.uint64))
    salt: str = saved_field(text, "")

    def plus(self, units: TextUnits) -> SeenTexts:
        """Add the texts of at least LEAST_WORDS words: shorter ones are never compared, and can be guessed."""
        digests = salted(units.digests[units.words >= LEAST_WORDS], self.salt)
        return SeenTexts(np.unique(np.concatenate([self.digests, digests]))[:MOST], self.salt)

    def share_of(self, units: TextUnits) -> SeenShare | None:
        """How much of other data the fit has seen, by documents, else sentences; None where nothing can be compared."""
        long = units.words >= LEAST_WORDS
        digests = salted(units.digests, self.salt)
        is_known = long & np.isin(digests, self.digests)
        complete = len(self.digests) < MOST
        comparable = long & (complete | (digests <= self.digests[-1:].max(initial=0)))
        n = int(units.documents.max()) + 1 if len(units.documents) else 0

        def words(where: NDArray[np.bool_]) -> Floats:
            return np.bincount(units.documents[where], units.words[where], n).astype(np.float64)

        by_parts = ~units.whole & ~np.isin(units.documents, units.documents[units.whole & is_known])
        words_compared = words(units.whole & is_known) + words(by_parts & comparable)
        words_seen = words(units.whole & is_known) + words(by_parts & is_known)
        is_compared = words_compared > 0
        if not is_compared.any():
            return None
        half_seen = int((2 * words_seen[is_compared] >= words_compared[is_compared]).sum())
        return SeenShare(int(is_compared.sum()), half_seen, float(words_seen.sum() / words_compared.sum()))


def warning_of(seen: dict[str, Any] | None) -> str | None:
    """The warning for a `SeenShare.to_dict`; None where the data is a fair test, or nothing is known."""
    if seen is None or not seen["many"]:
        return None
    return (
        f"JUDGED ON THE FIT DATA: {seen['seen']:,} of {seen['documents']:,} documents ({100 * seen['share']:.0f} % of the words) are among "
        "those that the pipe was fitted on, where every fit looks good. This is no test of it: judge it on other gold."
    )
