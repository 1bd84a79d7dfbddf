"""Histogram binning (share of hits in the bin of a score) and scaling binning (mean of another map's scores in the bin)."""

# No `from __future__ import annotations` here, as in `pipe.factory`: confection must resolve the type of an argument.
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import calib_error
from ...pairs.bins import assign, edges_between, make_binner
from ...schema import floats, lengths, record
from ...types import Floats
from .isotonic import IsotonicRegression
from .recalibrator import Recalibrator


def fill_empty_bins(values: Floats, counts: NDArray[Any]) -> Floats:
    """Return the value of each bin; an empty bin gets that of the nearest bin with pairs, of two equally near ones the lower.

    values, counts: Value and number of pairs (or sum of weights) of each bin, shape (n_bins,).
    """
    filled_bins = np.flatnonzero(counts > 0)
    nearest = filled_bins[np.abs(filled_bins[None, :] - np.arange(len(counts))[:, None]).argmin(axis=1)]
    return values[nearest]


# The form of learned bins: their lower ends but the first (infinite if a bin is empty), and the probability of each.
BINS = record(
    {"edges_": floats(0.0, np.inf, rising="never falls"), "values_": floats(0.0, 1.0)},
    lambda fields: lengths({"values_": len(fields["edges_"]) + 1}, fields),
)


class HistogramBinning(Recalibrator):
    """Histogram binning (Zadrozny and Elkan 2001) over adaptive bins (Kranzlein et al. 2021, section 2.2).

    n_bins (int): Number of adaptive bins, with about equally many pairs. bin_size (int | None): Pairs per bin; replaces n_bins.
    edges_ (Floats): Lower ends of the bins but the first, (n_bins - 1,). values_ (Floats): Share of hits per bin, (n_bins,).
    RAISES C001: n_bins or bin_size is not a whole number of at least 1.
    """

    registered = "spacy-calib.Histogram.v1"
    short = "histogram"
    n_parameters = 10  # one for each bin, of the default number of bins
    monotone = False
    _learned = ("edges_", "values_")
    learned_form = BINS
    edges_: Floats
    values_: Floats

    def __init__(self, n_bins: int = 10, bin_size: int | None = None):
        self.n_bins = n_bins
        self.bin_size = bin_size
        self.min_pairs = n_bins if bin_size is None else bin_size
        make_binner(n_bins, bin_size)  # only to check the settings

    def settings(self) -> dict[str, Any]:
        return {"n_bins": self.n_bins, "bin_size": self.bin_size}

    def _fit(self, scores: Floats, hits: NDArray[np.bool_], weights: Floats | None) -> None:
        self.edges_ = edges_between(make_binner(self.n_bins, self.bin_size)(scores, weights), scores)
        bins = assign(scores, self.edges_)
        mass = np.ones(len(scores)) if weights is None else weights
        counts = np.bincount(bins, weights=mass, minlength=len(self.edges_) + 1)
        sums = np.bincount(bins, weights=mass * self._targets(scores, hits, weights), minlength=len(self.edges_) + 1)
        self.values_ = fill_empty_bins(sums / np.maximum(counts, np.finfo(np.float64).tiny), counts)  # never 0 / 0

    def _targets(self, scores: Floats, hits: NDArray[np.bool_], weights: Floats | None) -> Floats:
        """Return a number per pair, here its hit (0 or 1), whose mean in a bin is the bin's value. weights: None for 1."""
        return hits.astype(np.float64)

    def _predict(self, scores: Floats) -> Floats:
        return self.values_[assign(scores, self.edges_)]


class ScalingBinning(HistogramBinning):
    """Scaling binning: fit another map, then return its mean in the bin of a score (Kumar et al. 2019).

    Bins are over the raw scores, as in Kranzlein et al. (2021, section 2.2). The means are over the pairs of the fit.
    n_bins (int): Number of adaptive bins. bin_size (int | None): Number of pairs per bin; replaces n_bins.
    scaling (Recalibrator | None): Prototype of the other map, not the setting `scaling` of the pipe; None: isotonic regression.
    edges_ (Floats): Lower ends of the bins but the first. values_ (Floats): Mean score per bin after the other map.
    RAISES C001: n_bins or bin_size is not a whole number of at least 1, or scaling is no recalibrator.
    """

    registered = "spacy-calib.ScalingBinning.v1"
    short = "scaling-binning"

    def __init__(self, n_bins: int = 10, bin_size: int | None = None, scaling: Recalibrator | None = None):
        self.scaling = IsotonicRegression() if scaling is None else scaling
        if not isinstance(self.scaling, Recalibrator):
            raise calib_error("C001", name="scaling", wanted="a recalibrator", given=repr(scaling))
        super().__init__(n_bins, bin_size)
        self.min_pairs = max(self.min_pairs, self.scaling.min_pairs)

    @property
    def monotone(self) -> bool:  # type: ignore[override]
        return self.scaling.monotone

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "scaling": self.scaling.clone().state()}

    def _fit(self, scores: Floats, hits: NDArray[np.bool_], weights: Floats | None) -> None:
        super()._fit(scores, hits, weights)
        if self.monotone:  # the means of equal numbers may differ by a rounding error
            self.values_ = np.maximum.accumulate(self.values_)

    def _targets(self, scores: Floats, hits: NDArray[np.bool_], weights: Floats | None) -> Floats:
        return self.scaling.clone().fit(scores, hits, weights).predict(scores)
