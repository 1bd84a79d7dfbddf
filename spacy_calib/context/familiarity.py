"""How often a form or an ending was met before. Kept are hashes and counts, no words. Knows arrays, never Docs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..schema import digests, lengths, record, wholes
from ..types import Ints
from .words import Flags, Hashes, Words

# The most frequent ones are kept: rarer ones count as never met.
MOST_KEPT = 200_000

# The saved forms of Counts and WordCounts.
COUNTS = record({"hashes": digests, "counts": wholes(1)}, lambda held: lengths({"counts": len(held["hashes"])}, held))
WORD_COUNTS = record({"forms": COUNTS, "endings": COUNTS})


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

    def most_frequent(self, n: int = MOST_KEPT) -> Counts:
        """The n most frequent ones; of equally frequent ones those with the lowest hashes."""
        if len(self.hashes) <= n:
            return self
        kept = np.sort(np.argsort(-self.counts, kind="stable")[:n])
        return Counts(self.hashes[kept], self.counts[kept])

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
    """How often forms and endings were met. forms, endings (Counts)."""

    forms: Counts
    endings: Counts

    @classmethod
    def of(cls, words: Words) -> WordCounts:
        return cls(Counts.of(words.forms[words.counts]), Counts.of(words.endings[words.counts]))

    def __add__(self, other: WordCounts) -> WordCounts:
        return WordCounts(self.forms + other.forms, self.endings + other.endings)

    def most_frequent(self, n: int = MOST_KEPT) -> WordCounts:
        """The n most frequent ones of either kind."""
        return WordCounts(self.forms.most_frequent(n), self.endings.most_frequent(n))

    def look_up(self, words: Words) -> Met:
        """How often the form and the ending of each token were met."""
        return Met(self.forms.look_up(words.forms), self.endings.look_up(words.endings))

    def state(self) -> dict[str, Any]:
        """Plain data and arrays: what `from_state` needs."""
        return {"forms": self.forms.state(), "endings": self.endings.state()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> WordCounts:
        """Rebuild from a state that WORD_COUNTS has read."""
        return cls(Counts.from_state(state["forms"]), Counts.from_state(state["endings"]))


def no_words() -> WordCounts:
    return WordCounts(no_counts(), no_counts())


def met_elsewhere(words: Words, documents: Ints) -> Met:
    """How often the form and the ending of each token were met in other documents than its own. documents (Ints): Of each token."""
    return Met(_elsewhere(words.forms, words.counts, documents), _elsewhere(words.endings, words.counts, documents))


def _elsewhere(hashes: Hashes, counted: Flags, documents: Ints) -> Ints:
    forms, form = np.unique(hashes, return_inverse=True)
    total = np.bincount(form[counted], minlength=len(forms))
    cells, cell = np.unique(form * (int(documents.max(initial=0)) + 1) + documents, return_inverse=True)
    own = np.bincount(cell[counted], minlength=len(cells))
    return total[form] - own[cell]
