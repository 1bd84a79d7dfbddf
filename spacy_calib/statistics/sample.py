"""A sample of whole documents that does not depend on the order in which they come: those with the smallest digests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .readings import Readings, numbered

# A sample takes documents until it holds so many pairs: what a choice of methods and the scalings look at anyway.
MOST_PAIRS = 500_000


@dataclass(frozen=True, eq=False)
class Sample:
    """Documents in the order of their digests, up to the one with which so many pairs are reached. Since the documents that are left out would
    only come later, the sample of several samples is that of all documents at once, in whatever order they were put together.

    readings (Readings): What was read of them; Docs of one document, which may have come from anywhere, in the order of their own digests.
    most (int): Pairs, see `Readings.sizes`.
    """

    readings: Readings
    most: int = MOST_PAIRS

    @classmethod
    def of(cls, readings: Readings, most: int = MOST_PAIRS) -> Sample:
        """That of all documents that were read."""
        distinct, of_doc = np.unique(readings.digests, return_inverse=True)
        sizes = np.bincount(of_doc, readings.sizes, len(distinct)).astype(np.intp)
        before = np.cumsum(sizes) - sizes
        kept = readings.take(np.flatnonzero(before[of_doc] < most)).with_spans_in_order()
        ordered = kept.take(np.lexsort((kept.digests_of_docs(), kept.digests)))
        return cls(replace(ordered, documents=numbered(ordered.digests)), most)

    @classmethod
    def merged(cls, parts: Sequence[Sample]) -> Sample:
        """The sample of the documents of all parts, of which there is one at least, with one limit."""
        return cls.of(Readings.joined([part.readings for part in parts]), parts[0].most)

    @property
    def n_pairs(self) -> int:
        """Pairs that it holds."""
        return int(self.readings.sizes.sum())
