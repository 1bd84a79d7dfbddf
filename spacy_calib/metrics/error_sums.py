"""Sums over documents: their resampling, calibration errors as functions of them, and the noise that the bins add."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..pairs.bins import Binner, assign
from ..types import Floats, Ints

_CELLS_AT_ONCE = 1 << 22


def resamples(n_documents: int, n_samples: int, seed: int) -> Iterator[Floats]:
    """Yield how often each document is in each resample, in blocks of resamples: shape (n_documents, n_resamples of a block).

    A resample takes n_documents documents, with replacement. All blocks together have n_samples columns.
    """
    rng = np.random.default_rng(seed)
    step = max(1, _CELLS_AT_ONCE // n_documents)
    for begin in range(0, n_samples, step):
        size = min(step, n_samples - begin)
        index = rng.integers(n_documents, size=(size, n_documents))
        index *= size  # (document, resample) as one number, so that one bincount counts all
        index += np.arange(size)[:, None]
        yield np.bincount(index.ravel(), minlength=n_documents * size).reshape(n_documents, size).astype(np.float64)


def resample_sums(sums: Any, n_samples: int, seed: int) -> Floats:
    """Return each resample's sums, (k, n_samples). sums: k sums of each document, (k, n_documents), dense or sparse."""
    return np.concatenate([sums @ counts for counts in resamples(sums.shape[1], n_samples, seed)], axis=1)


@dataclass(frozen=True, eq=False)
class ErrorSums:
    """Sums of gaps per document, from which calibration errors of resamples follow. A cell is a bin with pairs in a group.

    sums: Sum of the gaps (score - hit) in each cell, then number of pairs in each cell, sparse, (2 * cells, documents).
    groups: 1 if the cell belongs to the group, sparse, shape (groups, cells).
    """

    sums: Any
    groups: Any

    @classmethod
    def from_pairs(cls, scores: Floats, gaps: Floats, groups: Ints, codes: Ints, n_documents: int, binner: Binner) -> ErrorSums:
        """Sum n pairs by document and cell (bin of a group).

        scores, gaps (Floats): Score of each pair, and score - hit, shape (n,). groups, codes (Ints): Group and document of each
            pair, shape (n,), documents from 0. binner (Binner): Makes the bins of a group from its scores.
        """
        from scipy.sparse import csr_matrix

        cells, group_of_cell = np.empty(len(scores), dtype=np.intp), list[int]()  # cell of each pair, group of each cell
        for number, group in enumerate(np.unique(groups)):
            index = np.flatnonzero(groups == group)
            bins, bin_of_pair = np.unique(assign(scores[index], binner(scores[index])), return_inverse=True)
            cells[index] = len(group_of_cell) + bin_of_pair
            group_of_cell += [number] * len(bins)
        n_cells = len(group_of_cell)
        entries, entry_of_pair = np.unique(codes * n_cells + cells, return_inverse=True)  # (document, cell) as one number
        document, cell = np.divmod(entries, n_cells)
        values = np.append(np.bincount(entry_of_pair, gaps), np.bincount(entry_of_pair))
        rows, columns = np.append(cell, cell + n_cells), np.tile(document, 2)
        sums = csr_matrix((values, (rows, columns)), shape=(2 * n_cells, n_documents))
        return cls(sums, csr_matrix((np.ones(n_cells), (group_of_cell, np.arange(n_cells)))))

    def total(self) -> Floats:
        """Return the sums of gaps and pairs in each cell over all documents, shape (2 * cells, 1)."""
        return np.asarray(self.sums @ np.ones((self.sums.shape[1], 1)))

    def errors(self, sums: Floats, noise: Any) -> Floats:
        """Return n calibration errors, (n,): means over groups with pairs of the signed root of (squared l2 error - noise).

        sums (Floats): Gaps and pairs in each cell, (2 * cells, n). noise: Noise of each group, shape (groups, 1), or 0.
        """
        gap, count = np.split(sums, 2)
        total = self.groups @ count
        squared_errors = self.groups @ (gap**2 / np.maximum(count, 1.0)) / np.maximum(total, 1.0) - noise
        roots = np.where(total > 0, np.sign(squared_errors) * np.sqrt(np.abs(squared_errors)), 0.0)
        return np.asarray(roots.sum(axis=0) / np.maximum((total > 0).sum(axis=0), 1))

    def noise(self) -> Floats:
        """Return how much noise of the bins adds to each group's squared error (Kumar et al. 2019, section 5), (groups, 1)."""
        n_cells, n_documents = self.groups.shape[1], self.sums.shape[1]
        gap, count = np.split(self.total(), 2)
        residuals = self.sums[:n_cells] - self.sums[n_cells:].multiply(gap / count)
        spread = residuals.multiply(residuals) @ np.ones((n_documents, 1)) * n_documents / max(1, n_documents - 1)
        return np.asarray(self.groups @ (spread / count) / (self.groups @ count))
