"""How often a form or an ending was met before. Kept are salted digests and counts, no words. Knows arrays, never Docs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..pairs.keyed import keyed
from ..schema import digests, lengths, optional, record, text, wholes
from ..types import Ints
from .words import Flags, Hashes, Words

# The most frequent ones are kept: rarer ones count as never met.
MOST_KEPT = 200_000
# What was met less often says little of new texts, and much of those that it was met in: it counts as never met.
FEWEST = 3

# The saved forms of Counts and WordCounts.
COUNTS = record({"hashes": digests, "counts": wholes(1)}, lambda held: lengths({"counts": len(held["hashes"])}, held))
WORD_COUNTS = record({"forms": COUNTS, "endings": COUNTS, "salt": optional(text, "")})


@dataclass(frozen=True, eq=False)
class Met:
    """How often the form and the ending of each token were met before. forms, endings (Ints): Shape (n_tokens,)."""

    forms: Ints
    endings: Ints


@dataclass(frozen=True, eq=False)
class Counts:
    """How often some things were met. hashes (Hashes): Rising. counts (Ints): Of each, 1 at least."""

    hashes: Hashes
    counts: Ints

    @classmethod
    def of(cls, hashes: Hashes) -> Counts:
        """hashes (Hashes): One for each time that something was met."""
        found, counts = np.unique(hashes, return_counts=True)
        return cls(found, counts.astype(np.intp))

    def __add__(self, other: Counts) -> Counts:
        found, place = np.unique(np.concatenate([self.hashes, other.hashes]), return_inverse=True)
        counts = np.bincount(place, weights=np.concatenate([self.counts, other.counts]), minlength=len(found))
        return Counts(found, counts.astype(np.intp))

    def look_up(self, hashes: Hashes) -> Ints:
        """How often each of these was met."""
        if not len(self.hashes):
            return np.zeros(len(hashes), dtype=np.intp)
        place = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return np.where(self.hashes[place] == hashes, self.counts[place], 0)

    def frequent(self, n: int = MOST_KEPT) -> Counts:
        """What was met often enough, the n most frequent ones at most; of equally frequent ones those with the lowest hashes."""
        order = np.argsort(-self.counts, kind="stable")[:n]
        kept = np.sort(order[self.counts[order] >= FEWEST])
        return Counts(self.hashes[kept], self.counts[kept])

    def salted(self, salt: str) -> Counts:
        """The same by other digests, see `keyed`."""
        made = keyed(self.hashes, salt)
        order = np.argsort(made)
        return Counts(made[order], self.counts[order])

    def state(self) -> dict[str, Any]:
        """Plain data and arrays: what `from_state` needs."""
        return {"hashes": self.hashes, "counts": self.counts}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Counts:
        """Rebuild from a state that COUNTS has read."""
        return cls(state["hashes"], state["counts"])


def no_counts() -> Counts:
    return Counts(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.intp))


@dataclass(frozen=True, eq=False)
class WordCounts:
    """How often forms and endings were met. forms, endings (Counts). salt (str): Of their digests; "" for hashes as they are."""

    forms: Counts
    endings: Counts
    salt: str = ""

    @classmethod
    def of(cls, words: Words) -> WordCounts:
        return cls(Counts.of(words.forms[words.counts]), Counts.of(words.endings[words.counts]))

    def __add__(self, other: WordCounts) -> WordCounts:
        return WordCounts(self.forms + other.forms, self.endings + other.endings)

    def to_keep(self, salt: str) -> WordCounts:
        """What a fitted context keeps: the frequent ones of either kind, by salted digests. What was kept once stays as it is."""
        if self.salt:
            return self
        return WordCounts(self.forms.frequent().salted(salt), self.endings.frequent().salted(salt), salt)

    def look_up(self, words: Words) -> Met:
        """How often the form and the ending of each token were met."""
        return Met(self.forms.look_up(keyed(words.forms, self.salt)), self.endings.look_up(keyed(words.endings, self.salt)))

    def state(self) -> dict[str, Any]:
        """Plain data and arrays: what `from_state` needs."""
        return {"forms": self.forms.state(), "endings": self.endings.state(), "salt": self.salt}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> WordCounts:
        """Rebuild from a state that WORD_COUNTS has read."""
        return cls(Counts.from_state(state["forms"]), Counts.from_state(state["endings"]), state["salt"])


def no_words() -> WordCounts:
    return WordCounts(no_counts(), no_counts())


def met_elsewhere(words: Words, documents: Ints) -> Met:
    """How often the form and the ending of each token were met in other documents than its own: 0 where too seldom to be kept.

    documents (Ints): Of each token.
    """
    return Met(_elsewhere(words.forms, words.counts, documents), _elsewhere(words.endings, words.counts, documents))


def _elsewhere(hashes: Hashes, counted: Flags, documents: Ints) -> Ints:
    forms, form = np.unique(hashes, return_inverse=True)
    total = np.bincount(form[counted], minlength=len(forms))
    cells, cell = np.unique(form * (int(documents.max(initial=0)) + 1) + documents, return_inverse=True)
    own = np.bincount(cell[counted], minlength=len(cells))
    elsewhere = total[form] - own[cell]
    return np.where(elsewhere >= FEWEST, elsewhere, 0)
