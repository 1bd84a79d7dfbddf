"""The pairs of a fit as counts and sums of scores in fixed cells, so that memory does not grow with the corpus.

A cell is a stretch of log-odds. Pairs of a tag in it are taken for pairs of their mean score (docs/statistics.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..calibration.recalibrators.logistic import sigmoid
from ..errors import calib_error
from ..pairs.bins import assign, check_count
from ..pairs.weighted import TaggedPairs, WeightedPairs, spliced, with_misses_and_hits
from ..schema import Misfit
from ..types import Floats, Groups, as_hits, as_probabilities
from .file import check_within, column_of
from .tables import whole_numbers

# Cells of a tag, where the tags are not too many for the memory of a table.
MOST_CELLS = 1 << 14
# What the counts and sums of a table may weigh, in bytes.
MOST_BYTES = 64 << 20
_BYTES_OF_A_CELL = 24
# Cells are of equal width in log-odds up to this far from 0; the first and the last hold what lies beyond.
_FARTHEST = 20.0
# Ends of cells are multiples of this, so that exp, which processors round differently, moves no score to another cell.
_GRID = 2.0**-45
# Scores are added up as whole multiples of this: no float32 number of 1/256 or more is rounded by it.
UNIT = 2.0**-32
_MOST_PAIRS = (1 << 32) - 1

Counts = NDArray[np.uint64]


def cells_of(n_tags: int) -> int:
    """How many cells each of so many tags has: a power of two, MOST_CELLS or what memory allows."""
    wanted = MOST_CELLS
    while wanted > 2 and wanted * n_tags * _BYTES_OF_A_CELL > MOST_BYTES:
        wanted //= 2
    return wanted


@cache
def edges_of_cells(n_cells: int) -> Floats:
    """Lower ends of all cells but the first, shape (n_cells - 1,)."""
    margins = np.linspace(-_FARTHEST, _FARTHEST, n_cells + 1)[1:-1]
    return np.round(sigmoid(margins) / _GRID) * _GRID


@dataclass(frozen=True, eq=False)
class PairCells:
    """Pairs of each tag in each cell, shape (n_tags, n_cells) each.

    pairs, hits (Counts): How many pairs, and how many of them hit. sums (Counts): Of their scores, in steps of UNIT.
    """

    pairs: Counts
    hits: Counts
    sums: Counts

    @property
    def n_cells(self) -> int:
        """Cells of each tag."""
        return self.pairs.shape[1]

    @property
    def total(self) -> int:
        """How many pairs it counts."""
        return int(self.pairs.sum())

    @property
    def total_hits(self) -> int:
        """How many of them hit."""
        return int(self.hits.sum())

    @property
    def nbytes(self) -> int:
        """Memory of its arrays."""
        return self.pairs.nbytes + self.hits.nbytes + self.sums.nbytes

    @classmethod
    def of(cls, tags: ArrayLike, scores: ArrayLike, hits: ArrayLike, n_tags: int, n_cells: int | None = None) -> PairCells:
        """The table of n pairs.

        tags, scores, hits: One of each per pair; a tag is a column of the labels. n_cells (int | None): Of each tag.
        RAISES C001: values out of range. C002: lengths differ.
        """
        given = as_probabilities("scores", scores)
        column = whole_numbers("tag", tags, len(given)).astype(np.intp)
        if len(given) and column.max() >= n_tags:
            raise calib_error("C001", name="tags", wanted=f"columns below {n_tags}", given=str(column.max()))
        width = cells_of(n_tags) if n_cells is None else check_count("n_cells", n_cells)
        at = column * width + assign(given, edges_of_cells(width))
        shape = (n_tags, width)
        # Floats hold these sums exactly: those of the upper and of the lower half of the bits are added up apart.
        whole = np.round(given / UNIT)
        upper = np.floor(whole / 65536)
        sums = [np.bincount(at, weights, n_tags * width).astype(np.uint64) for weights in (upper, whole - 65536 * upper)]
        pairs = np.bincount(at, minlength=n_tags * width).astype(np.uint64)
        right = np.bincount(at[as_hits(hits, len(given))], minlength=n_tags * width).astype(np.uint64)
        return cls(pairs.reshape(shape), right.reshape(shape), (sums[0] * np.uint64(65536) + sums[1]).reshape(shape))

    @classmethod
    def merged(cls, parts: Sequence[PairCells]) -> PairCells:
        """All parts as one, exactly. parts (Sequence): At least one.

        RAISES C421: of other tags or cells. C422: a cell holds more pairs than whole numbers can add up.
        """
        first = parts[0]
        pairs, hits, sums = first.pairs.copy(), first.hits.copy(), first.sums.copy()
        for part in parts[1:]:
            if part.pairs.shape != pairs.shape:
                raise calib_error("C421", first=_said(first), second=_said(part))
            pairs += part.pairs
            hits += part.hits
            sums += part.sums
            if pairs.max(initial=0) > _MOST_PAIRS:
                raise calib_error("C422", most=f"{_MOST_PAIRS:,}")
        return cls(pairs, hits, sums)

    @cached_property
    def _held(self) -> NDArray[np.intp]:
        """Tags with pairs."""
        return np.flatnonzero(self.pairs.any(axis=1))

    def weighted(self, groups: Groups) -> tuple[WeightedPairs, list[WeightedPairs]]:
        """As `collapse_groups` of pairs with the mean scores of their cells."""
        of_tag = groups.of(np.arange(len(self.pairs)))
        parts = [
            _of_cells(*(counts[of_tag == group].sum(axis=0) for counts in (self.pairs, self.hits, self.sums)))
            for group in range(-1, len(groups))
        ]
        return spliced(parts)

    def tagged(self) -> TaggedPairs:
        """The distinct (tag, score, hit) with their weights; a score is the mean of its cell."""
        parts = [_of_cells(self.pairs[tag], self.hits[tag], self.sums[tag]) for tag in self._held]
        tags = np.repeat(self._held, [len(part.scores) for part in parts])
        none = WeightedPairs(np.zeros(0), np.zeros(0, dtype=bool), np.zeros(0))
        return TaggedPairs(*spliced([none, *parts])[0], tags)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Name -> array: what a file holds of the table."""
        return {"pairs": self.pairs, "hits": self.hits, "sums": self.sums}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> PairCells:
        """The table of such arrays. RAISES Misfit: they are none of such a table."""
        pairs, hits, sums = (
            column_of(arrays, name, "u", 2).astype(np.uint64, copy=False) for name in ("pairs", "hits", "sums")
        )
        for name, given in (("hits", hits), ("sums", sums)):
            if given.shape != pairs.shape:
                raise Misfit(name, f"of the shape of the pairs {pairs.shape}")
        if not pairs.shape[1]:
            raise Misfit("pairs", "an array of one cell at least")
        check_within("pairs", pairs, 0, _MOST_PAIRS)
        if (hits > pairs).any():
            raise Misfit("hits", "an array of numbers up to those of the pairs")
        if not _means_lie_within(pairs, sums):
            raise Misfit("sums", "an array whose means lie in their cells")
        return cls(pairs, hits, sums)


def _means_lie_within(pairs: Counts, sums: Counts) -> bool:
    """Whether the mean score of each cell lies in the cell, but for rounding to UNIT, and empty cells have no sum."""
    ends = np.concatenate([[0.0], edges_of_cells(pairs.shape[1]), [1.0]]) / UNIT
    lowest, highest = pairs * (ends[:-1] - 1), pairs * (ends[1:] + 1)
    return bool(((sums >= lowest) & (sums <= highest)).all())


def _of_cells(pairs: Counts, hits: Counts, sums: Counts) -> WeightedPairs:
    """The weighted pairs of the cells that hold any."""
    held = np.flatnonzero(pairs)
    means = np.minimum(sums[held].astype(np.float64) * UNIT / pairs[held].astype(np.float64), 1.0)
    return with_misses_and_hits(means, pairs[held], hits[held])


def _said(cells: PairCells) -> str:
    return f"{cells.pairs.shape[0]:,} tags with {cells.n_cells:,} cells each"
