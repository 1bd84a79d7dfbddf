"""Where the true calibration error lies, by resampling whole documents.

Noise in the bins makes a resample look worse than the data, and the data worse than the truth. Where scores are true,
plain percentiles never hold the true error, and nor does Algorithm 2 of Nguyen & O'Connor (2015). So that noise,
estimated from the spread among documents, is taken off the squared error twice: for the data and for the resample.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import calib_error
from ..pairs.bins import assign, check_count, make_binner
from ..types import Floats, Groups, Ints, Pairs, as_hits, as_probabilities
from .resampling import ONE_DOCUMENT, Interval, check_coverage, checked_scores, document_codes, percentiles, rank_of, resamples


def error_interval(
    scores: ArrayLike,
    hits: ArrayLike,
    documents: ArrayLike,
    n_bins: int = 10,
    bin_size: int | None = None,
    n_samples: int = 1000,
    seed: int = 0,
    coverage: float = 0.95,
) -> Interval | None:
    """Interval of the true l2 calibration error (SMCE, or GMCE over one group's pairs), by document.

    The true error is that of the same bins with endless data; the measured one is larger by the bins' noise and may be
    above `high`. Simulated 95 % intervals held it in 95 to 100 % of cases with 10 to 300 documents, 87 to 93 % with 5.
    The bins stay those of all the data: bins made anew for each resample give the same coverage, more slowly.

    scores, hits, documents: One of each per pair. n_bins (int): Adaptive bins.
    bin_size (int | None): beta; replaces n_bins.
    RETURNS (Interval): None without pairs.
    RAISES C001: values out of range, n_samples too few for the coverage. C002: lengths differ.
    """
    _check_samples(n_samples, coverage)
    found = resample_error(scores, hits, documents, n_bins, bin_size, n_samples, seed)
    return None if found is None else found.interval(coverage)


@dataclass(frozen=True, eq=False)
class ResampledError:
    """A calibration error, and that of each resample.

    estimate (float): As measured. corrected (float): Less the bins' noise; below 0 where noise alone would show more.
    drawn (Floats): As `corrected`, of each resample, shape (n_samples,); empty where all pairs are of one document.
    documents (int): How many have pairs.
    """

    estimate: float
    corrected: float
    drawn: Floats
    documents: int

    def interval(self, coverage: float = 0.95) -> Interval:
        """The interval of the true error. RAISES C001: coverage not in (0, 1), or too near 1 for so few resamples."""
        return self._interval(np.maximum(0.0, self.drawn), self.estimate, max(0.0, self.corrected), coverage)

    def difference(self, other: ResampledError, coverage: float = 0.95) -> Interval:
        """The interval of the true error less another one's: below 0, this one is smaller.

        other (ResampledError): Of the same documents, n_samples and seed, so that both see the same resamples.
        RAISES C001: as `interval`. C002: other resamples.
        """
        if self.drawn.shape != other.drawn.shape or self.documents != other.documents:
            raise calib_error(
                "C002", what="A paired difference", first="resample", second="resample of the other",
                n_first=len(self.drawn), n_second=len(other.drawn),
            )  # fmt: skip
        drawn = np.maximum(0.0, self.drawn) - np.maximum(0.0, other.drawn)
        corrected = max(0.0, self.corrected) - max(0.0, other.corrected)
        return self._interval(drawn, self.estimate - other.estimate, corrected, coverage)

    def _interval(self, drawn: Floats, estimate: float, corrected: float, coverage: float) -> Interval:
        check_coverage(coverage)
        if self.documents < 2:
            return Interval(estimate, None, None, None, coverage, self.documents, reason=ONE_DOCUMENT)
        rank_of((1 - coverage) / 2, len(drawn))
        return percentiles(drawn, estimate, coverage, self.documents, corrected)


def resample_error(
    scores: ArrayLike,
    hits: ArrayLike,
    documents: ArrayLike,
    n_bins: int = 10,
    bin_size: int | None = None,
    n_samples: int = 1000,
    seed: int = 0,
    among: ArrayLike | None = None,
) -> ResampledError | None:
    """Resample a calibration error by document, for its interval or for paired differences of errors.

    Arguments as in `error_interval`. among (ArrayLike | None): All documents, where some may have no pairs. RETURNS (ResampledError): None without pairs.
    RAISES C001: values out of range. C002: lengths differ.
    """
    given = as_probabilities("scores", scores)
    one = np.zeros(len(given), dtype=np.intp)
    right = as_hits(hits, len(given))
    return _resampled(given, right, one, 1, documents, n_bins, bin_size, n_samples, seed, among)


def mean_gmce_interval(
    pairs: Pairs,
    groups: Groups,
    documents: ArrayLike,
    scores: ArrayLike | None = None,
    n_bins: int = 10,
    n_samples: int = 1000,
    seed: int = 0,
) -> Interval | None:
    """95 % interval of the true mean GMCE (unweighted, over the groups that have pairs), by document.

    scores: Replace the pairs' raw scores. Other arguments and errors as in `error_interval`.
    RETURNS (Interval): None where no group has pairs.
    """
    _check_samples(n_samples)
    judged = checked_scores(pairs, scores)
    codes, _ = document_codes(documents, len(pairs))
    of_pair = groups.of(pairs.tags)
    own = np.flatnonzero(of_pair >= 0)
    found = _resampled(judged[own], pairs.hits[own], of_pair[own], len(groups), codes[own], n_bins, None, n_samples, seed)
    return None if found is None else found.interval()


def _check_samples(n_samples: int, coverage: float = 0.95) -> None:
    """RAISES C001: coverage not in (0, 1), n_samples too few for it."""
    rank_of((1 - check_coverage(coverage)) / 2, check_count("n_samples", n_samples))


def _resampled(
    scores: Floats,
    hits: Any,
    of_pair: Ints,
    n_groups: int,
    documents: ArrayLike,
    n_bins: int,
    bin_size: int | None,
    n_samples: int,
    seed: int,
    among: ArrayLike | None = None,
) -> ResampledError | None:
    """The mean error of the groups. of_pair (Ints): Group of each pair, in [0, n_groups)."""
    binner = make_binner(n_bins, bin_size)
    codes, n_documents = document_codes(documents, len(scores))
    if among is not None:
        distinct = np.unique(among)
        codes, n_documents = np.searchsorted(distinct, documents), len(distinct)
    check_count("n_samples", n_samples)
    if not len(scores):
        return None
    cells, group_of_cell = _cells(scores, of_pair, n_groups, binner)
    sums = _DocumentSums(scores - hits, cells, group_of_cell, codes, n_documents)
    estimate = float(np.mean(np.sqrt(sums.squared)))
    if n_documents < 2:
        return ResampledError(estimate, estimate, np.zeros(0), n_documents)
    noise = sums.noise()
    drawn = np.concatenate([sums.resampled(weights, 2 * noise) for weights in resamples(n_documents, n_samples, seed)])
    return ResampledError(estimate, float(np.mean(_signed_root(sums.squared - noise))), drawn, n_documents)


def _cells(scores: Floats, of_pair: Ints, n_groups: int, binner: Callable[..., Floats]) -> tuple[Ints, Ints]:
    """(cell of each pair, group of each cell): a cell is a bin of a group that holds pairs; all are numbered from 0."""
    cells = np.empty(len(scores), dtype=np.intp)
    of_cell: list[Ints] = []
    begin = 0
    for group in range(n_groups):
        own = np.flatnonzero(of_pair == group)
        held, cell = np.unique(assign(scores[own], binner(scores[own])), return_inverse=True)
        cells[own] = cell + begin
        of_cell.append(np.full(len(held), group))
        begin += len(held)
    # Groups without pairs take no part: the others are numbered from 0.
    return cells, np.unique(np.concatenate(of_cell), return_inverse=True)[1]


def _signed_root(values: Floats) -> Floats:
    return np.sign(values) * np.sqrt(np.abs(values))


class _DocumentSums:
    """Sums over each document's pairs in each cell (bin of a group), and the squared errors that follow from them.

    squared (Floats): Squared calibration error of each group.
    """

    def __init__(self, gaps: Floats, cells: Ints, group_of_cell: Ints, codes: Ints, n_documents: int):
        from scipy.sparse import csr_matrix

        n_cells = len(group_of_cell)
        present, at = np.unique(codes * n_cells + cells, return_inverse=True)
        self.of_document, self.of_cell = np.divmod(present, n_cells)
        self.gaps = np.bincount(at, weights=gaps)
        self.counts = np.bincount(at).astype(np.float64)
        self.n_documents = n_documents
        shape = (n_cells, n_documents)
        where = (self.of_cell, self.of_document)
        self.gap_matrix = csr_matrix((self.gaps, where), shape=shape)
        self.count_matrix = csr_matrix((self.counts, where), shape=shape)
        self.by_group = csr_matrix((np.ones(n_cells), (group_of_cell, np.arange(n_cells))))
        self.gap = np.bincount(self.of_cell, weights=self.gaps)
        self.count = np.bincount(self.of_cell, weights=self.counts)
        self.total = self.by_group @ self.count
        self.squared = self.by_group @ (self.gap**2 / self.count) / self.total

    def noise(self) -> Floats:
        """How much of each group's squared error is chance, on average (Kumar et al. 2019, section 5, for clusters)."""
        mean = self.gap / self.count
        rest = self.gaps - mean[self.of_cell] * self.counts
        spread = np.bincount(self.of_cell, weights=rest**2) * self.n_documents / (self.n_documents - 1)
        return self.by_group @ (spread / self.count) / self.total

    def resampled(self, weights: Floats, less: Floats) -> Floats:
        """Mean over the groups with pairs of the signed root of (squared error - less), for each resample."""
        gap, count = self.gap_matrix @ weights, self.count_matrix @ weights
        total = self.by_group @ count
        squared = self.by_group @ (gap**2 / np.maximum(count, 1.0)) / np.maximum(total, 1.0)
        roots = np.where(total > 0, _signed_root(squared - less[:, None]), 0.0)
        return roots.sum(axis=0) / np.maximum((total > 0).sum(axis=0), 1)
