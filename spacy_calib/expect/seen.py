"""Salted digests of the texts that a fit saw, to tell when the same texts test it. No text is kept."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..corpus.distinct import Digests
from ..pairs.keyed import keyed
from ..schema import Saved, digests, kept, later, text
from ..types import Adds, Floats, Ints

# A pipe keeps at most so many digests, of eight bytes each.
MOST = 1 << 16
# Shorter texts recur by chance, and say nothing of what was seen.
LEAST_WORDS = 6
# From this share of known words on, data is no test of the fit; up to the other one sentences recur by chance.
MANY, FEW = 0.1, 0.01


@dataclass(frozen=True, eq=False)
class TextUnits:
    """n stretches of text: each document as a whole, and each of its sentences. digests (Digests), words
    (Ints), documents (Ints): Of each; its document. whole (NDArray[bool]): Whether it is the whole document.
    """

    digests: Digests
    words: Ints
    documents: Ints
    whole: NDArray[np.bool_]


@dataclass(frozen=True)
class SeenShare:
    """How much of some data a fit has seen.

    documents (int): Comparable ones. seen (int): Those half seen or more, by words. share (float): Of all words.
    """

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


@dataclass(frozen=True)
class SeenSums(Adds):
    """What `SeenShare` is made of. compared, known (int): Words that could be compared, and that the fit saw."""

    documents: int = 0
    seen: int = 0
    compared: int = 0
    known: int = 0

    def share(self) -> SeenShare | None:
        """None where nothing could be compared."""
        return SeenShare(self.documents, self.seen, self.known / self.compared) if self.compared else None


@dataclass(frozen=True, eq=False)
class SeenTexts(Saved):
    """digests (Digests): Of documents and sentences of the fit data, ascending; at most the MOST lowest, a fair sample.
    salt (str): Of these digests, see `keyed`.
    """

    digests: Digests = kept(digests)
    salt: str = later(text, "")

    @classmethod
    def of(cls, digests: Digests, salt: str = "") -> SeenTexts:
        """The digests of some texts, each once; at most the MOST lowest."""
        return cls(np.zeros(0, dtype=np.uint64), salt).plus(digests)

    def plus(self, digests: Digests) -> SeenTexts:
        """With these texts too."""
        return SeenTexts(np.unique(np.concatenate([self.digests, keyed(digests, self.salt)]))[:MOST], self.salt)

    def share_of(self, units: TextUnits) -> SeenShare | None:
        """How much of other data the fit has seen, see `sums_of`. None where nothing can be compared."""
        return self.sums_of(units).share()

    def sums_of(self, units: TextUnits) -> SeenSums:
        """The sums over other data: documents known as a whole, and known sentences of the rest."""
        long = units.words >= LEAST_WORDS
        digests = keyed(units.digests, self.salt)
        known = long & np.isin(digests, self.digests)
        complete = len(self.digests) < MOST
        comparable = long & (complete | (digests <= self.digests[-1:].max(initial=0)))
        n = int(units.documents.max()) + 1 if len(units.documents) else 0

        def words(where: NDArray[np.bool_]) -> Floats:
            return np.bincount(units.documents[where], units.words[where], n).astype(np.float64)

        by_parts = ~units.whole & ~np.isin(units.documents, units.documents[units.whole & known])
        compared = words(units.whole & known) + words(by_parts & comparable)
        seen = words(units.whole & known) + words(by_parts & known)
        held = compared > 0
        return SeenSums(int(held.sum()), int((2 * seen[held] >= compared[held]).sum()), int(compared.sum()), int(seen.sum()))

    def share_in(self, units: TextUnits) -> SeenShare | None:
        """The share of these texts that is in other data, counted in texts; None where there are none."""
        long = SeenTexts.of(units.digests[units.words >= LEAST_WORDS], self.salt)
        n, found = len(self.digests), int(np.isin(self.digests, long.digests).sum())
        return SeenShare(n, found, found / n) if n else None


def warning_of(seen: dict[str, Any] | None) -> str | None:
    """The warning for a `SeenShare.to_dict`; None where the data is a fair test, or nothing is known."""
    if seen is None or not seen["many"]:
        return None
    return (
        f"JUDGED ON THE FIT DATA: {seen['seen']:,} of {seen['documents']:,} documents ({100 * seen['share']:.0f} % of the words) are among "
        "those that the pipe was fitted on, where every fit looks good. This is no test of it: judge it on other gold."
    )
