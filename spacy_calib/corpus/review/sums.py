"""What is told of the units of corpora that come one after the other: sums, never units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ...pairs.keyed import STEP, splitmix64
from ...types import Floats, Ints
from ..distinct import Digests, Distinct
from ..scored import ScoredCorpus
from .queue import below_cutoff, long_enough
from .ranking import SHARES
from .units import Units

# Of a doubt as a float32 number these bits are left: cells of a width of 1/4096 of the doubt at most.
_LOST = 11
_CELLS = (0x3F800000 >> _LOST) + 1


@dataclass(eq=False)
class UnitSums:
    """Units of several corpora.

    least (int): Words that a unit of the queue needs. count_repeats (bool): Whether units at the same place of the same sentence are one in the queue.
    below_only (bool): Whether the queue is of entities below their cut-off alone. n, accepted, too_short (int): Units, those that it leaves out for that, and
    those with fewer words. counts (Ints), doubts (Floats): In each cell of doubt: units, and the sum of their doubts.
    tags (dict): The tags with a score, in the order in which they are met.
    """

    least: int
    count_repeats: bool
    below_only: bool = False
    n: int = 0
    accepted: int = 0
    too_short: int = 0
    counts: Ints = field(default_factory=lambda: np.zeros(_CELLS, dtype=np.int64))
    doubts: Floats = field(default_factory=lambda: np.zeros(_CELLS))
    tags: dict[str, None] = field(default_factory=dict)
    _places: Distinct = field(default_factory=Distinct)

    def add(self, corpus: ScoredCorpus, units: Units) -> None:
        """The units of one more corpus."""
        doubt = 1 - units.calibrated
        cells = (doubt.astype(np.float32).clip(0, 1).view(np.int32) >> _LOST).astype(np.intp)
        self.counts += np.bincount(cells, minlength=_CELLS)
        self.doubts += np.bincount(cells, doubt, minlength=_CELLS)
        asked = np.flatnonzero(below_cutoff(corpus)) if self.below_only else np.arange(len(units))
        long = long_enough(corpus, units, asked, self.least)
        self.n, self.accepted = self.n + len(units), self.accepted + len(units) - len(asked)
        self.too_short += len(asked) - len(long)
        self.tags.update(dict.fromkeys(corpus.tags_met()))
        if self.count_repeats:
            self._places.add(place_digests(corpus, units)[long])

    @property
    def repeats(self) -> int:
        """Units that the queue leaves out since there is another at the same place of the same sentence."""
        return self.n - self.accepted - self.too_short - self._places.count() if self.count_repeats else 0

    @property
    def expected_wrong(self) -> float:
        return float(self.doubts.sum())

    def expected_shares(self, shares: Sequence[float] = SHARES) -> list[float | None]:
        """As `ranking.expected_shares`: in the cell that a share ends in, all doubts count as their mean."""
        total = self.expected_wrong
        if total <= 0:
            return [None] * len(shares)
        n, sums = np.append(0, np.cumsum(self.counts[::-1])), np.append(0.0, np.cumsum(self.doubts[::-1]))
        return [float(np.interp(round(share * self.n), n, sums)) / total for share in shares]


def place_digests(corpus: ScoredCorpus, units: Units) -> Digests:
    """64 bits of the tokens of each unit's sentence and of its place in it."""
    from hashlib import blake2b

    sentence = corpus.sentences[units.firsts]
    bounds, words = corpus.sentence_starts, corpus.words
    texts = np.zeros(len(bounds) - 1, dtype=np.uint64)
    for number in np.unique(sentence).tolist():
        held = "\0".join(words[bounds[number] : bounds[number + 1]].tolist()).encode("utf-8", "surrogatepass")
        texts[number] = int.from_bytes(blake2b(held, digest_size=8).digest(), "little")
    found: Digests = texts[sentence]
    for place in (units.firsts - bounds[sentence], units.lasts - bounds[sentence]):
        found = splitmix64(found + place.astype(np.uint64) + STEP)
    return found
