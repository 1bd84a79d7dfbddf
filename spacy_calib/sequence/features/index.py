"""The features that a model knows, and those of tokens as rows of its table of weights. Knows arrays only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...types import Floats, Ints

Hashes = NDArray[np.uint64]
# First row of features that are not known, and the bits of their hashes that are left out, so that a row times the number of labels is a number.
_BEYOND, _KEPT = 1 << 40, np.uint64(20)


@dataclass(frozen=True, eq=False)
class Sparse:
    """The binary features of the tokens of one sequence. rows (Ints): Features, token after token. starts (Ints): Where each token's begin,
    and the end of the last, shape (n + 1,); each token has at least one."""

    rows: Ints
    starts: Ints

    def __len__(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True, eq=False)
class FeatureIndex:
    """The features that are known. hashes (Hashes): Ascending; row 0 stands for one that every token has."""

    hashes: Hashes

    def __len__(self) -> int:
        return len(self.hashes) + 1

    @classmethod
    def of(cls, found: Sequence[Hashes], least: int = 1) -> FeatureIndex:
        """least (int): Features that stand more seldom are left out."""
        flat = np.concatenate([np.zeros(0, dtype=np.uint64), *(one.reshape(-1) for one in found)])
        hashes, counts = np.unique(flat, return_counts=True)
        return cls(hashes[counts >= least])

    def rows(self, found: Hashes, unseen: bool = False) -> Sparse:
        """The known features of each token. found (Hashes): Shape (n, n_templates).

        unseen (bool): Those that are not known, too, each in a row of its own beyond any table: for what asks how little is known of them.
        """
        place = np.searchsorted(self.hashes, found.reshape(-1))
        known = np.zeros(len(place), dtype=bool)
        inside = place < len(self.hashes)
        known[inside] = self.hashes[place[inside]] == found.reshape(-1)[inside]
        others = _BEYOND + (found.reshape(-1) >> _KEPT).astype(np.intp) if unseen else -1
        rows = np.where(known, place + 1, others).reshape(found.shape)
        rows = np.concatenate([np.zeros((len(found), 1), dtype=np.intp), rows], axis=1)
        kept = rows >= 0
        return Sparse(rows[kept], np.concatenate([[0], np.cumsum(kept.sum(axis=1))]))


def cut(tokens: Sparse, start: int, end: int) -> Sparse:
    """The features of some tokens."""
    starts: Ints = tokens.starts[start : end + 1]
    return Sparse(tokens.rows[starts[0] : starts[-1]], starts - starts[0])


def row_sums(table: Floats, tokens: Sparse) -> Floats:
    """The sum of a table's rows of the features of each token. table (Floats): Shape (n_rows, K). RETURNS (Floats): Shape (n, K)."""
    from scipy.sparse import csr_matrix

    ones = np.ones(len(tokens.rows))
    found: Floats = csr_matrix((ones, tokens.rows, tokens.starts), shape=(len(tokens), len(table))) @ table
    return found
