"""How many documents there are, and blocks of them: the first bits of the documents' digests, as many bits as leave no more than so many blocks.

Folds and intervals are made over documents. A table that kept every document of millions apart would be as large as the corpus, so that
documents whose digests begin alike share a block. How many bits are kept follows from the set of digests alone, never from the order in
which tables were merged: with few documents each is a block of its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..types import Ints

# The most blocks of a table.
MOST_BLOCKS = 1 << 14
# So many digests are kept, the lowest ones, to count documents by: exact for a million, an estimate beyond.
MOST = 1 << 20
_BITS = 64

Digests = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks of a table.

    bits (int): How many bits of a digest are kept, 0 to 64. prefixes (Digests): Distinct digests with all other bits 0, ascending; at most
        MOST_BLOCKS of them, and with one bit more there would be more.
    """

    bits: int
    prefixes: Digests

    @classmethod
    def of(cls, digests: Digests, most_bits: int = _BITS) -> Blocks:
        """Those of some documents. most_bits (int): So many bits of the digests are known."""
        distinct = _first_bits(np.unique(digests), most_bits)
        bits = bisect_right(range(most_bits + 1), MOST_BLOCKS, key=lambda kept: _count(distinct, kept)) - 1
        return cls(bits, np.unique(_first_bits(distinct, bits)))

    @classmethod
    def merged(cls, parts: Sequence[Blocks]) -> Blocks:
        """Those of the documents of all parts: what `of` gives of all digests at once."""
        if not parts:
            return cls.of(np.zeros(0, dtype=np.uint64))
        return cls.of(np.concatenate([part.prefixes for part in parts]), min(part.bits for part in parts))

    def __len__(self) -> int:
        return len(self.prefixes)

    @property
    def single(self) -> bool:
        """Whether each block is one document."""
        return self.bits == _BITS

    def holds(self) -> bool:
        """Whether prefixes are ascending, of so many bits, and no more than there may be."""
        ascending = (self.prefixes[1:] > self.prefixes[:-1]).all() and len(self) <= MOST_BLOCKS
        return bool(self.bits <= _BITS and ascending and (_first_bits(self.prefixes, self.bits) == self.prefixes).all())

    def numbers(self, digests: Digests) -> Ints:
        """The number of each digest's block, from 0; each digest must be of one of these documents."""
        return np.searchsorted(self.prefixes, _first_bits(digests, self.bits))


def _first_bits(digests: Digests, bits: int) -> NDArray[Any]:
    """The digests with all bits but the first ones 0."""
    kept = ((1 << bits) - 1) << (_BITS - bits)
    return digests & np.uint64(kept)


def _count(distinct: Digests, bits: int) -> int:
    """How many blocks so many bits make. distinct (Digests): Ascending."""
    prefixes = _first_bits(distinct, bits)
    return min(1, len(distinct)) + int(np.count_nonzero(prefixes[1:] != prefixes[:-1]))


def lowest(parts: Iterable[Digests], most: int = MOST) -> Digests:
    """The lowest digests of all parts, each once, ascending."""
    return np.unique(np.concatenate([np.zeros(0, dtype=np.uint64), *parts]))[:most]


def count_distinct(kept: Digests, most: int = MOST) -> int:
    """How many digests there were. Where all of them were kept their number; else as many as leave the last one where it stands
    (Bar-Yossef et al. 2002, the k-th minimum value; with a million kept the standard error is .1 %).
    """
    return len(kept) if len(kept) < most else round((most - 1) * 2.0**64 / float(kept[-1]))
