"""All that a fit needs of any number of shards: the same bytes in whatever order the shards are added up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import calib_error
from ..expect.record import MOST as MOST_TEXTS
from ..pairs.keyed import Key
from ..schema import Misfit, choice, digests, listed, record, whole
from .blocks import count_distinct, lowest
from .cells import PairCells, cells_of
from .file import FOR_FIT, Arrays, column_of, made_of, pack, unpack, with_prefix
from .further_tables import TOTALS, Totals
from .identity import Identity, Shard, called, check_complete, joined_shards
from .readings import Readings, numbered

Digests = NDArray[np.uint64]

_HEADER = record(
    {
        "statistics_for": choice(FOR_FIT), "identity": Identity.read, "shards": listed(Shard.read), "totals": TOTALS, "pairs_sampled_from": whole(),
    }
)  # fmt: skip

# A sample takes documents until it holds so many pairs: what choosing methods and fitting scalings look at anyway.
MOST_PAIRS = 500_000


@dataclass(frozen=True, eq=False)
class Sample:
    """The documents with the lowest digests, until so many pairs are reached.

    Documents left out come later in any larger set, too, so a sample of several samples is that of all documents.
    readings (Readings): What was read of the documents; Docs of one document are in the order of their own digests.
    most (int): Pairs, as `Readings.sizes` counts them.
    """

    readings: Readings
    most: int = MOST_PAIRS

    @classmethod
    def of(cls, readings: Readings, most: int = MOST_PAIRS) -> Sample:
        """The sample of all documents that were read."""
        distinct, of_doc = np.unique(readings.digests, return_inverse=True)
        sizes = np.bincount(of_doc, readings.sizes, len(distinct)).astype(np.intp)
        before = np.cumsum(sizes) - sizes
        kept = readings.take(np.flatnonzero(before[of_doc] < most)).with_spans_in_order()
        ordered = kept.take(np.lexsort((kept.digests_of_docs(), kept.digests)))
        return cls(replace(ordered, documents=numbered(ordered.digests)), most)

    @classmethod
    def merged(cls, parts: Sequence[Sample]) -> Sample:
        """The sample of the documents of all parts (at least one), with the limit of the first."""
        return cls.of(Readings.joined([part.readings for part in parts]), parts[0].most)

    @property
    def n_pairs(self) -> int:
        """Pairs that it holds."""
        return int(self.readings.sizes.sum())


@dataclass(frozen=True, eq=False)
class FitStatistics:
    """identity (Identity): Whose they are. shards (tuple[Shard, ...]): What was added up. totals (Totals): Gold counts.
    pairs (PairCells): The pairs with gold that reach the threshold. documents (Digests): The lowest of all documents'.
    texts (Digests): Of `SeenTexts`; none without a key. sample (Sample): Whole documents. size (int): Pairs of all
        documents; where the sample holds all of them, a fit looks at these alone.
    """

    identity: Identity
    shards: tuple[Shard, ...]
    totals: Totals
    pairs: PairCells
    documents: Digests
    texts: Digests
    sample: Sample
    size: int

    @classmethod
    def of(cls, identity: Identity, readings: Readings, texts: Digests) -> FitStatistics:
        """Statistics of documents that were read and hidden (`Readings.hidden`), without shard and totals."""
        pairs = readings.pairs(0)
        kept = np.flatnonzero(pairs.scores >= identity.threshold)
        return cls(
            identity,
            (),
            Totals(),
            PairCells.of(pairs.tags[kept], pairs.scores[kept], pairs.hits[kept], len(identity.labels)),
            lowest([readings.digests]),
            texts,
            Sample.of(readings, identity.sample),
            int(readings.sizes.sum()),
        )

    @classmethod
    def merged(cls, parts: Sequence[FitStatistics]) -> FitStatistics:
        """All parts (at least one) as one: the same bytes in whatever order they are merged.

        RAISES C425: statistics of different models, labels, thresholds or settings. C426: a shard is there twice.
        """
        first = parts[0]
        for part in parts[1:]:
            first.identity.check_same(part.identity, first.name, part.name)
        return cls(
            first.identity,
            joined_shards([part.shards for part in parts]),
            Totals.merged([part.totals for part in parts]),
            PairCells.merged([part.pairs for part in parts]),
            lowest(part.documents for part in parts),
            lowest((part.texts for part in parts), MOST_TEXTS),
            Sample.merged([part.sample for part in parts]),
            sum(part.size for part in parts),
        )

    def merge(self, other: FitStatistics) -> FitStatistics:
        """`merged` of these and others."""
        return FitStatistics.merged([self, other])

    def named(self, shard: Shard, totals: Totals) -> FitStatistics:
        """The statistics of a shard, with what was counted in it."""
        return replace(self, shards=(shard,), totals=Totals.merged([totals]))

    @property
    def name(self) -> str:
        """How messages call them."""
        return called(self.shards)

    @property
    def sampled_all(self) -> bool:
        """Whether the sample holds every document."""
        return self.sample.n_pairs == self.size

    @cached_property
    def n_documents(self) -> int:
        """Documents with scores; beyond a million an estimate."""
        return count_distinct(self.documents)

    def check_complete(self) -> None:
        """RAISES C428: shards are missing, by the names of the others."""
        check_complete(self.shards)

    def check_key(self, key: Key | None) -> None:
        """RAISES C481: it is not the one that they were collected with."""
        if key is not None and key.fingerprint != self.identity.key:
            wanted = self.identity.key or "no key"
            raise calib_error("C481", name=self.name, given=key.fingerprint, wanted=wanted)

    # Files

    def to_bytes(self) -> bytes:
        """The content of a file."""
        header = {
            "statistics_for": FOR_FIT,
            "identity": self.identity.state(),
            "shards": [shard.state() for shard in self.shards],
            "totals": self.totals.state(),
            "pairs_sampled_from": self.size,
        }
        arrays = with_prefix("pairs", self.pairs.arrays()) | with_prefix("sample", self.sample.readings.arrays())
        return pack(header, {**arrays, "documents": self.documents, "texts": self.texts})

    @classmethod
    def from_bytes(cls, data: bytes, path: object = "these bytes") -> FitStatistics:
        """What `to_bytes` wrote. path: Where the bytes come from, for the message.

        RAISES C427: they cannot be read. C429: another version. C430: they are statistics for something else.
        """
        return unpack(data, path, FOR_FIT, cls._from_parts)

    @classmethod
    def _from_parts(cls, header: dict[str, Any], arrays: Arrays) -> FitStatistics:
        """The statistics in a file's parts. RAISES Misfit: they do not fit one another."""
        held = _HEADER(header, "header")
        identity = held["identity"]
        made = cls(
            identity,
            joined_shards([held["shards"]]),
            Totals.from_state(held["totals"]),
            made_of("pairs", arrays, PairCells.from_arrays),
            digests(column_of(arrays, "documents", "u"), "documents"),
            digests(column_of(arrays, "texts", "u"), "texts"),
            Sample(made_of("sample", arrays, Readings.of_arrays), identity.sample),
            held["pairs_sampled_from"],
        )
        made._check()
        return made

    def _check(self) -> None:
        """RAISES Misfit: its parts do not fit one another."""
        identity, n_labels, pairs = self.identity, len(self.identity.labels), self.pairs
        if pairs.pairs.shape != (n_labels, cells_of(n_labels)):
            raise Misfit("pairs", f"of {n_labels} labels with {cells_of(n_labels)} cells each")
        documents = self.sample.readings.digests
        if (documents[1:] < documents[:-1]).any():
            raise Misfit("sample.digests", "an array that never falls")
        self.sample.readings.check_labels(n_labels, len(identity.span_labels))
        words = self.sample.readings.words
        if words is not None and (words.seals is None) == bool(identity.key):
            raise Misfit("sample.words.seals", "there where the header names a key, and only there")
        if max(pairs.total, self.sample.n_pairs) > self.size:
            raise Misfit("header.pairs_sampled_from", "as great as the pairs of the tables and of the sample")
