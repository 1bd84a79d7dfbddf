"""Tables of counts that add up: how many pairs of a tag, a block of documents and a score there are, and how many hit.

Nothing is rounded, so that tables merged in any order are equal to the byte, and so is what is made of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import calib_error
from ..schema import MOST, Misfit
from ..types import Floats, as_hits, as_probabilities
from .blocks import Blocks, Rows, collapse_rows, in_pieces, joined_rows, smallest, widest
from .file import check_length, check_within, column_of

Self = TypeVar("Self", bound="BlockCounts")
Numbers = NDArray[Any]


@dataclass(frozen=True, eq=False)
class BlockCounts:
    """Distinct (tag, block, keys), ascending, with how many pairs there are of each; arrays of one length.

    tags (Numbers): Columns of the labels. blocks (Numbers): Number of the block in `documents`, uint16.
    keys (tuple): Named by KEYS: scores in [0, 1], float32 where that holds every one exactly, else float64.
    pairs, hits (Numbers): How many pairs, and how many hit; unsigned, as narrow as the greatest allows.
    documents (Blocks): What the blocks are.
    """

    KEYS: ClassVar[tuple[str, ...]] = ()
    tags: Numbers
    blocks: Numbers
    keys: tuple[Numbers, ...]
    pairs: Numbers
    hits: Numbers
    documents: Blocks

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def n_tags(self) -> int:
        """The least number of labels that it can be of."""
        return int(self.tags.max()) + 1 if len(self) else 0

    @property
    def total(self) -> int:
        """How many pairs it counts."""
        return int(self.pairs.sum(dtype=np.uint64))

    @property
    def total_hits(self) -> int:
        """How many of them hit."""
        return int(self.hits.sum(dtype=np.uint64))

    @property
    def nbytes(self) -> int:
        """Memory of its arrays."""
        return sum(column.nbytes for column in self.arrays().values())

    @classmethod
    def merged(cls: type[Self], parts: Sequence[Self]) -> Self:
        """All parts (at least one) as one: the same bytes in whatever order they are merged.

        Beside parts and result it needs memory for one piece of the result at a time.
        """
        documents = Blocks.merged([part.documents for part in parts])
        numbers = [documents.numbers(part.documents.prefixes).astype(np.uint16) for part in parts]
        kinds = [widest([part.keys[i].dtype for part in parts]) for i in range(len(cls.KEYS))]

        def piece(where: Sequence[slice]) -> Rows:
            """The rows of one range of tags and blocks."""
            cut = list(zip(parts, numbers, where, strict=True))
            return collapse_rows(
                [
                    np.concatenate([part.tags[at] for part, _, at in cut]),
                    np.concatenate([number[part.blocks[at]] for part, number, at in cut]),
                    *(
                        np.concatenate([part.keys[i][at].astype(kind, copy=False) for part, _, at in cut])
                        for i, kind in enumerate(kinds)
                    ),
                ],
                np.concatenate([part.pairs[at] for part, _, at in cut]),
                np.concatenate([part.hits[at] for part, _, at in cut]),
            )

        columns = [(part.tags, number[part.blocks]) for part, number in zip(parts, numbers, strict=True)]
        return cls._joined(map(piece, in_pieces(columns)), sum(map(len, parts)), kinds, documents)

    @classmethod
    def _counted(cls: type[Self], tags: ArrayLike, keys: Sequence[ArrayLike], hits: ArrayLike, digests: ArrayLike) -> Self:
        """The table of n pairs. RAISES C001: values out of range. C002: lengths differ."""
        given = [_narrow(as_probabilities("scores", key)) for key in keys]
        n = len(given[0])
        column, of = whole_numbers("tag", tags, n), np.asarray(digests, dtype=np.uint64)
        if of.shape != (n,):
            raise calib_error("C002", what="A table", first="document", second="score", n_first=of.size, n_second=n)
        documents = Blocks.of(of)
        for other in given[1:]:
            as_hits(np.zeros(len(other), dtype=bool), n)
        blocks = documents.numbers(of).astype(np.uint16)
        rows = collapse_rows([column, blocks, *given], np.ones(n, dtype=np.uint8), as_hits(hits, n).astype(np.uint8))
        return cls._joined([rows], len(rows.columns[0]), [key.dtype for key in given], documents)

    @classmethod
    def _joined(cls: type[Self], pieces: Iterable[Rows], most: int, kinds: Sequence[Any], documents: Blocks) -> Self:
        """One table of pieces that follow one another, of at most so many rows."""
        tags, blocks, *keys, pairs, hits = joined_rows(pieces, most, [np.uint8, np.uint16, *kinds, np.uint8, np.uint8])
        return cls(tags, blocks, tuple(keys), pairs, hits, documents)

    def arrays(self) -> dict[str, Numbers]:
        """Name -> array: what a file holds of the table."""
        keys = dict(zip(self.KEYS, self.keys, strict=True))
        columns = {"tags": self.tags, "blocks": self.blocks, **keys, "pairs": self.pairs, "hits": self.hits}
        return {**columns, "prefixes": self.documents.prefixes, "bits": np.array([self.documents.bits], dtype=np.uint8)}

    @classmethod
    def from_arrays(cls: type[Self], arrays: Mapping[str, Numbers]) -> Self:
        """The table of such arrays. RAISES Misfit: they are none of a table of this kind."""
        counts = {name: column_of(arrays, name, "u") for name in ("tags", "blocks", "pairs", "hits")}
        keys = {name: column_of(arrays, name, "f") for name in cls.KEYS}
        prefixes, bits = column_of(arrays, "prefixes", "u"), column_of(arrays, "bits", "u")
        check_length({**counts, **keys}, len(counts["tags"]))
        check_length({"bits": bits}, 1)
        documents = Blocks(int(bits[0]), prefixes.astype(np.uint64, copy=False))
        made = cls(counts["tags"], counts["blocks"], tuple(keys.values()), counts["pairs"], counts["hits"], documents)
        made._check()
        return made

    def _check(self) -> None:
        """RAISES Misfit: a number is out of range, or rows do not ascend, each once."""
        if not self.documents.holds():
            raise Misfit("prefixes", "an array of different digests of as many bits as 'bits' says, ascending")
        for name, key in zip(self.KEYS, self.keys, strict=True):
            check_within(name, key, 0, 1)
            if key.dtype not in (np.float32, np.float64) or np.signbit(key).any():
                raise Misfit(name, "an array of single or double precision, without -0.0")
        check_within("pairs", self.pairs, 1, MOST)
        check_within("blocks", self.blocks, 0, len(self.documents) - 1)
        if self.pairs.sum(dtype=np.float64) > MOST:
            raise Misfit("pairs", f"an array of {MOST:,} pairs at most")
        if (self.hits > self.pairs).any():
            raise Misfit("hits", "an array of numbers up to those of the pairs")
        if not Rows([self.tags, self.blocks, *self.keys]).ascending():
            raise Misfit("tags", "an array of ascending rows, with blocks and scores")

    def by_hit(self) -> tuple[Numbers, NDArray[np.bool_], Floats]:
        """(row of each distinct (tag, block, keys, hit), whether it is a hit, how many such pairs); misses first."""
        misses = self.pairs - self.hits
        of_misses, of_hits = np.flatnonzero(misses), np.flatnonzero(self.hits)
        weights = np.concatenate([misses[of_misses], self.hits[of_hits]]).astype(np.float64)
        return np.concatenate([of_misses, of_hits]), np.arange(len(weights)) >= len(of_misses), weights


@dataclass(frozen=True, eq=False)
class JudgedCounts(BlockCounts):
    """Pairs before and after calibration: what every figure of a calibration table needs of them.

    units (int): Tokens that were looked at, with or without a pair.
    """

    KEYS: ClassVar[tuple[str, ...]] = ("raw", "calibrated", "likeliest")
    units: int = 0

    @classmethod
    def of(
        cls,
        tags: ArrayLike,
        raw: ArrayLike,
        calibrated: ArrayLike,
        hits: ArrayLike,
        likeliest: ArrayLike,
        blocks: ArrayLike,
        units: int,
    ) -> JudgedCounts:
        """The table of n pairs. likeliest: Whether a pair has the highest raw score of its token (`top_pairs`).

        tags, raw, calibrated, hits: One of each per pair; a tag is a column of the labels. blocks: The digest of each
            pair's document, unsigned 64 bits. RAISES C001: values out of range. C002: lengths differ.
        """
        return replace(
            cls._counted(tags, [raw, calibrated, np.asarray(likeliest, dtype=np.float32)], hits, blocks), units=units
        )

    @classmethod
    def merged(cls, parts: Sequence[JudgedCounts]) -> JudgedCounts:
        return replace(super().merged(parts), units=sum(part.units for part in parts))

    def arrays(self) -> dict[str, Numbers]:
        return {**super().arrays(), "units": np.array([self.units], dtype=np.uint64)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Numbers]) -> JudgedCounts:
        units = column_of(arrays, "units", "u")
        check_length({"units": units}, 1)
        made = replace(super().from_arrays(arrays), units=int(units[0]))
        likeliest = made.keys[-1]
        if not np.isin(likeliest, (0, 1)).all() or made.pairs[likeliest == 1].sum(dtype=np.uint64) > units[0]:
            raise Misfit("likeliest", "an array of 0 and 1, with one pair of each unit at most that is the likeliest")
        return made


def _narrow(scores: Floats) -> Numbers:
    """The same numbers as float32 where that loses nothing; -0.0 is 0.0."""
    small = scores.astype(np.float32)
    return (small if (small == scores).all() else scores) + small.dtype.type(0)


def whole_numbers(name: str, values: ArrayLike, n: int) -> Numbers:
    """The values in the narrowest type. RAISES C001: a number below 0. C002: not n of them."""
    given = np.asarray(values)
    if given.shape != (n,):
        raise calib_error("C002", what="A table", first=name, second="score", n_first=given.size, n_second=n)
    if n and (given.dtype.kind not in "iu" or given.min() < 0):
        raise calib_error("C001", name=f"{name}s", wanted="whole numbers of at least 0", given="other values")
    return smallest(given.astype(np.uint64))
