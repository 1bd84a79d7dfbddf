"""What cut-offs that bound misses flag and find, in a table that adds up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..calibration.recall_cutoffs import RecallCutoffs
from ..corpus.missed import ByDocument, Caught, Finds
from .blocks import Blocks, Digests
from .sorting import Numbers, collapse_rows, smallest
from .tables import BlockCounts

_NAMES = tuple(field.name for field in fields(Finds))
# So many tables of units and hits belong to one cut-off.
PARTS = len(Caught._fields) * len(_NAMES)


@dataclass(frozen=True, eq=False)
class FlagCounts(BlockCounts):
    """Units (tokens, gold entities) and hits by block. Its tags number the parts of `Caught` of the first cut-off, those of the second and so on."""

    @classmethod
    def of(cls, caught: Mapping[str, Caught], keys: Sequence[str], digests: Digests) -> FlagCounts:
        """The table of what cut-offs find. keys (Sequence[str]): Of all cut-offs. digests (Digests): Of each document."""
        rows = [_row(tag, part, digests) for key, one in caught.items() for tag, part in _numbered(keys.index(key), one)]
        columns = zip([np.zeros(0, dtype=np.uint64)] * 4, *rows, strict=True)
        tags, of_row, units, hits = (np.concatenate(column) for column in columns)
        documents = Blocks.of(of_row)
        counted = collapse_rows([smallest(tags), documents.numbers(of_row).astype(np.uint16)], units, hits)
        return cls._joined([counted], len(tags), [], documents)

    def caught(self, keys: Sequence[str]) -> Iterator[tuple[str, Caught]]:
        """(key, what its cut-off finds, block by block), of the keys with a token that has a score."""
        for number, key in enumerate(keys):
            parts = [self._part(number * PARTS + i) for i in range(PARTS)]
            if len(parts[0].units):
                n = len(_NAMES)
                yield key, Caught(Finds(*parts[:n]), Finds(*parts[n:]))

    def _part(self, tag: int) -> ByDocument:
        own = self.tags == tag
        return ByDocument(self.pairs[own].astype(np.intp), self.hits[own].astype(np.intp))


def flagged_rows(counts: FlagCounts, cutoffs: RecallCutoffs) -> list[dict[str, Any]]:
    """What each cut-off finds, see `Caught.row`, and the recall that was "wanted"."""
    caught = counts.caught(list(cutoffs.values))
    return [{"wanted": cutoffs.recall, **one.row(key, cutoffs)} for key, one in caught]


def _numbered(key: int, caught: Caught) -> Iterator[tuple[int, ByDocument]]:
    """(tag, part) of the cut-off with this number."""
    parts = [getattr(finds, name) for finds in caught for name in _NAMES]
    return zip(range(key * PARTS, (key + 1) * PARTS), parts, strict=True)


def _row(tag: int, part: ByDocument, digests: Digests) -> tuple[Numbers, ...]:
    """(tag, digest, units, hits) of each document that has any, all unsigned."""
    own = np.flatnonzero(part.units)
    return (
        np.full(len(own), tag, dtype=np.uint64),
        digests[own],
        part.units[own].astype(np.uint64),
        part.hits[own].astype(np.uint64),
    )
