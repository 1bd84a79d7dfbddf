"""Calibration error over bins: SMCE, GMCE, MCE, ECE, and the debiased estimate; None without pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..errors import calib_error
from ..pairs.bins import Binner, bin_table, check_count, make_binner
from ..pairs.build import top_pairs
from ..types import BinTable, Groups, Ints, Pairs, as_hits, as_probabilities
from .metric import Metric


def table_of(scores: ArrayLike, hits: ArrayLike, binner: Binner) -> BinTable:
    """Bin the pairs; the edges follow from the pairs' own scores. RAISES C001: values out of range. C002: lengths differ."""
    probabilities = as_probabilities("scores", scores)
    return bin_table(probabilities, as_hits(hits, len(probabilities)).astype(np.float64), binner(probabilities))


def check_norm(norm: str) -> None:
    """RAISES C001: norm is neither "l1" nor "l2"."""
    if norm not in ("l1", "l2"):
        raise calib_error("C001", name="norm", wanted="'l1' or 'l2'", given=repr(norm))


def error_of_table(table: BinTable, norm: str = "l2") -> float:
    """sqrt(sum_b |b|/N (mean score - mean hit)^2) for "l2", the weighted mean of |.| for "l1". RAISES C001: another norm."""
    check_norm(norm)
    share = table.counts / table.counts.sum()
    gap = np.abs(table.mean_score - table.mean_hit)
    return float(np.sum(share * gap)) if norm == "l1" else float(np.sqrt(np.sum(share * gap**2)))


def calibration_error(
    scores: ArrayLike,
    hits: ArrayLike,
    n_bins: int = 10,
    bin_size: int | None = None,
    norm: str = "l2",
) -> float | None:
    """Calibration error over adaptive bins, or CalibErr over bins of `bin_size` (Nguyen & O'Connor 2015, Algorithm 1).

    scores: n probabilities. hits: n booleans. n_bins (int): Adaptive bins.
    bin_size (int | None): beta; replaces n_bins.
    norm (str): "l2" (root mean square) or "l1" (mean absolute).
    RAISES C001: values out of range. C002: lengths differ.
    """
    if not np.size(scores):
        return None
    return error_of_table(table_of(scores, hits, make_binner(n_bins, bin_size)), norm)


def calibration_error_interval(
    scores: ArrayLike, hits: ArrayLike, n_bins: int = 10, bin_size: int | None = None, n_samples: int = 1000, seed: int = 0
) -> tuple[float, float] | None:
    """95 % interval of the l2 calibration error (Nguyen & O'Connor 2015, Algorithm 2).

    Each bin's share of hits is sampled from its normal approximation, clipped to [0, 1]; the interval is the mean of the
    errors of the samples, plus and minus 1.96 of their standard deviations, cut at 0.

    RETURNS (tuple): (low, high); None without pairs.
    RAISES C001: values out of range, n_samples below 1. C002: lengths differ.
    """
    if not np.size(scores):
        return None
    table = table_of(scores, hits, make_binner(n_bins, bin_size))
    rng = np.random.default_rng(seed)
    spread = np.sqrt(table.mean_hit * (1 - table.mean_hit) / table.counts)
    shape = (check_count("n_samples", n_samples), len(table))
    samples = np.clip(rng.normal(table.mean_hit, spread, size=shape), 0.0, 1.0)
    share = table.counts / table.counts.sum()
    errors = np.sqrt((share * (table.mean_score - samples) ** 2).sum(axis=1))
    half = 1.96 * errors.std()
    return max(0.0, float(errors.mean() - half)), float(errors.mean() + half)


def smce(pairs: Pairs, scores: ArrayLike | None = None, n_bins: int = 10) -> float | None:
    """Shared marginal calibration error (Kranzlein et al. 2021, eq. 2). scores: Replace the pairs' raw scores."""
    return calibration_error(pairs.scores if scores is None else scores, pairs.hits, n_bins)


def group_slices(pairs: Pairs, groups: Groups) -> list[Ints]:
    """Indices of the pairs of each group."""
    of_pair = groups.find(pairs.tags)
    return [np.flatnonzero(of_pair == g) for g in range(len(groups))]


def gmce(pairs: Pairs, groups: Groups, scores: ArrayLike | None = None, n_bins: int = 10) -> list[float | None]:
    """Grouped marginal calibration error (Kranzlein et al. 2021, eq. 3): one per group, None for one without pairs."""
    values = pairs.scores if scores is None else np.asarray(scores)
    return [calibration_error(values[index], pairs.hits[index], n_bins) for index in group_slices(pairs, groups)]


def mean_of(values: list[float | None]) -> float | None:
    """Unweighted mean of the values that are there: mean GMCE is taken over the groups that have pairs."""
    numbers = [value for value in values if value is not None]
    return float(np.mean(numbers)) if numbers else None


def mce(
    pairs: Pairs,
    scores: ArrayLike | None = None,
    n_bins: int = 10,
    min_pairs: int = 200,
    debiased: bool = False,
) -> tuple[float | None, dict[int, float]]:
    """Marginal calibration error (Kumar et al. 2019; Kranzlein et al. 2021, eq. 1): root mean square over tags.

    min_pairs (int): Tags with fewer pairs are left out. debiased (bool): Use the debiased estimate per tag.
    RETURNS (tuple): The error (None where no tag has enough pairs) and the error of each tag, by column.
    RAISES C001: min_pairs is not a whole number of at least 1.
    """
    check_count("min_pairs", min_pairs)
    values_of_pairs = pairs.scores if scores is None else np.asarray(scores)
    error = debiased_calibration_error if debiased else calibration_error
    order = np.argsort(pairs.tags, kind="stable")
    present, starts, counts = np.unique(pairs.tags[order], return_index=True, return_counts=True)
    per_tag: dict[int, float] = {}
    for tag, start, count in zip(present, starts, counts, strict=True):
        if count >= min_pairs:
            index = order[start : start + count]
            value = error(values_of_pairs[index], pairs.hits[index], n_bins=n_bins)
            assert value is not None
            per_tag[int(tag)] = value
    if not per_tag:
        return None, per_tag
    return float(np.sqrt(np.mean(np.square(list(per_tag.values()))))), per_tag


def ece(
    pairs: Pairs | ArrayLike,
    scores: ArrayLike | None = None,
    n_bins: int = 10,
    norm: str = "l1",
    top: Ints | None = None,
) -> float | None:
    """Top-label expected calibration error (Guo et al. 2017), of each token's pair with the highest raw score.

    pairs (Pairs | ArrayLike): Pairs, whose raw scores `scores` replace; or the scores of top labels, and `scores` is whether each is
    right. norm (str): "l1" (the usual ECE) or "l2". top (Ints | None): Index of these pairs, where rows do not tell them.
    """
    if not isinstance(pairs, Pairs):
        return calibration_error(pairs, () if scores is None else scores, n_bins, norm=norm)
    values = pairs.scores if scores is None else np.asarray(scores)
    top = top_pairs(pairs) if top is None else top
    return calibration_error(values[top], pairs.hits[top], n_bins, norm=norm)


def debiased_calibration_error(
    scores: ArrayLike, hits: ArrayLike, n_bins: int = 10, bin_size: int | None = None
) -> float | None:
    """The l2 error without the bias that sampling adds in every bin (Kumar et al. 2019, section 5).

    sqrt(max(0, sum_b |b|/N ((q_b - p_b)^2 - p_b (1 - p_b) / (|b| - 1)))), with q_b the mean score and p_b the share of
    hits. A bin of one pair cannot estimate its bias and counts 0.
    RAISES C001: values out of range. C002: lengths differ.
    """
    if not np.size(scores):
        return None
    table = table_of(scores, hits, make_binner(n_bins, bin_size))
    is_large = table.counts > 1
    bias = table.mean_hit * (1 - table.mean_hit) / np.where(is_large, table.counts - 1, 1)
    squared_gaps = np.where(is_large, (table.mean_score - table.mean_hit) ** 2 - bias, 0.0)
    return float(np.sqrt(max(0.0, np.sum(table.counts * squared_gaps) / table.counts.sum())))


@dataclass(frozen=True)
class CalibrationError(Metric):
    """`calibration_error` as a metric, with its settings. RAISES C001: a setting out of range."""

    registered: ClassVar[str] = "spacy-calib.CalibrationError.v1"
    short: ClassVar[str] = "smce"
    title: ClassVar[str] = "SMCE"
    listed: ClassVar[bool] = False
    n_bins: int = 10
    bin_size: int | None = None
    norm: str = "l2"

    def __post_init__(self) -> None:
        make_binner(self.n_bins, self.bin_size)
        check_norm(self.norm)

    def __call__(self, scores: ArrayLike, hits: ArrayLike) -> float | None:
        return calibration_error(scores, hits, self.n_bins, self.bin_size, self.norm)


@dataclass(frozen=True)
class DebiasedCalibrationError(Metric):
    """`debiased_calibration_error` as a metric, with its settings. RAISES C001: a setting out of range."""

    registered: ClassVar[str] = "spacy-calib.DebiasedCalibrationError.v1"
    short: ClassVar[str] = "debiased"
    title: ClassVar[str] = "Debiased SMCE"
    listed: ClassVar[bool] = False
    n_bins: int = 10
    bin_size: int | None = None

    def __post_init__(self) -> None:
        make_binner(self.n_bins, self.bin_size)

    def __call__(self, scores: ArrayLike, hits: ArrayLike) -> float | None:
        return debiased_calibration_error(scores, hits, self.n_bins, self.bin_size)
