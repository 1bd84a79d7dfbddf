"""Calibration errors over bins: SMCE, GMCE, MCE, ECE, and the debiased estimate."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..errors import calib_error
from ..pairs.bins import Binner, bin_table, check_count, make_binner
from ..pairs.pairing import top_pairs
from ..types import BinTable, Groups, Ints, Pairs, as_hits, as_probabilities


def table_of(scores: ArrayLike, hits: ArrayLike, binner: Binner) -> BinTable:
    """Return the table of bins that a binner makes of n scores and hits. RAISES C001: out of range. C002: lengths differ."""
    probabilities = as_probabilities("scores", scores)
    return bin_table(probabilities, as_hits(hits, len(probabilities)).astype(np.float64), binner(probabilities))


def error_of_table(table: BinTable, norm: str = "l2") -> float:
    """Return the calibration error of the N pairs in a table of bins b. RAISES C001: an unknown norm.

    norm (str): "l2" for sqrt(sum_b |b|/N (mean score - mean hit)^2), "l1" for sum_b |b|/N |mean score - mean hit|.
    """
    if norm not in ("l1", "l2"):
        raise calib_error("C001", name="norm", wanted="'l1' or 'l2'", given=repr(norm))
    share = table.counts / table.counts.sum()
    gap = np.abs(table.mean_score - table.mean_hit)
    return float(np.sum(share * gap)) if norm == "l1" else float(np.sqrt(np.sum(share * gap**2)))


def calibration_error(
    scores: ArrayLike, hits: ArrayLike, n_bins: int = 10, bin_size: int | None = None, norm: str = "l2"
) -> float | None:
    """Return the calibration error over bins of equally many pairs ("adaptive") each (Nguyen & O'Connor 2015, Algorithm 1).

    scores (ArrayLike): n probabilities. hits (ArrayLike): n booleans, or zeros and ones. n_bins (int): Number of adaptive bins.
    bin_size (int | None): Pairs per bin (beta); replaces n_bins. norm (str): "l2" (root mean square) or "l1" (mean absolute).
    RETURNS (float | None): None without pairs. RAISES C001: values out of range. C002: lengths differ.

        >>> round(calibration_error([0.9, 0.9, 0.2, 0.2], [1, 0, 0, 0], n_bins=2), 6)
        0.316228
    """
    if not np.size(scores):
        return None
    return error_of_table(table_of(scores, hits, make_binner(n_bins, bin_size)), norm)


def calibration_error_interval(
    scores: ArrayLike, hits: ArrayLike, n_bins: int = 10, bin_size: int | None = None, n_samples: int = 1000, seed: int = 0
) -> tuple[float, float] | None:
    """Return the 95 % interval of the l2 calibration error (Nguyen & O'Connor 2015, Algorithm 2).

    Each bin's share of hits is sampled from its normal approximation, clipped to [0, 1]; the interval is the mean of the
    errors of the samples, plus and minus 1.96 of their standard deviations, cut at 0.
    scores (ArrayLike): n probabilities. hits (ArrayLike): n booleans, or zeros and ones. n_bins (int): Number of adaptive bins.
    bin_size (int | None): Pairs per bin; replaces n_bins. n_samples (int): Samples. seed (int): Seed of the random numbers.
    RETURNS (tuple | None): (low, high); None without pairs. RAISES C001: bad values, n_samples below 1. C002: lengths differ.

        >>> low, high = calibration_error_interval([0.9] * 100, [1] * 80 + [0] * 20)
        >>> low < 0.1 < high
        True
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
    """Return the shared marginal calibration error (Kranzlein et al. 2021, eq. 2), the l2 error of all pairs.

    pairs (Pairs): n pairs. scores (ArrayLike | None): n scores that replace raw ones. n_bins (int): Bins of equally many pairs.
    RETURNS (float | None): None without pairs. RAISES C001: values out of range. C002: lengths differ.

        >>> pairs = Pairs(np.arange(4), np.zeros(4, dtype=int), np.array([0.9, 0.9, 0.6, 0.6]), [1, 0, 1, 0], n_units=4)
        >>> round(smce(pairs), 6), round(smce(pairs, [0.5] * 4), 6)
        (0.291548, 0.0)
    """
    return calibration_error(pairs.scores if scores is None else scores, pairs.hits, n_bins)


def group_slices(pairs: Pairs, groups: Groups) -> list[Ints]:
    """Return for each group the indices of the pairs whose tag is in it."""
    group_of_pair = groups.find(pairs.tags)
    return [np.flatnonzero(group_of_pair == g) for g in range(len(groups))]


def gmce(pairs: Pairs, groups: Groups, scores: ArrayLike | None = None, n_bins: int = 10) -> list[float | None]:
    """Return the grouped marginal calibration errors (Kranzlein et al. 2021, eq. 3): the l2 error of each group's pairs.

    pairs (Pairs): n pairs. groups (Groups): Groups of their tags. scores (ArrayLike | None): n scores instead of the raw ones.
    n_bins (int): Number of bins of equally many pairs, in each group.
    RETURNS (list): One error per group, None for a group without pairs. RAISES C001: values out of range. C002: lengths differ.

        >>> pairs = Pairs(np.arange(4), np.array([0, 0, 1, 1]), np.array([0.9, 0.9, 0.6, 0.6]), [1, 0, 1, 0], n_units=4)
        >>> [round(error, 6) for error in gmce(pairs, Groups(("1", "2"), np.array([0, 1])))]
        [0.4, 0.1]
    """
    values = pairs.scores if scores is None else np.asarray(scores)
    return [calibration_error(values[index], pairs.hits[index], n_bins) for index in group_slices(pairs, groups)]


def mean_of(values: list[float | None]) -> float | None:
    """Return the mean of the values that are not None, or None: the mean GMCE leaves out groups without pairs."""
    numbers = [value for value in values if value is not None]
    return float(np.mean(numbers)) if numbers else None


def mce(
    pairs: Pairs, scores: ArrayLike | None = None, n_bins: int = 10, min_pairs: int = 200
) -> tuple[float | None, dict[int, float]]:
    """Return the marginal calibration error (Kumar et al. 2019; Kranzlein et al. 2021, eq. 1): root mean square over tags.

    pairs (Pairs): n pairs. scores (ArrayLike | None): n scores that replace raw ones. n_bins (int): Bins of equally many pairs.
    min_pairs (int): Tags with fewer pairs are left out. RAISES C001: it is not a whole number of at least 1.
    RETURNS (tuple): (error, None if no tag has enough pairs; dict of column of a tag -> its l2 error).

        >>> pairs = Pairs(np.arange(4), np.array([0, 0, 1, 1]), np.array([0.9, 0.9, 0.6, 0.6]), [1, 0, 1, 0], n_units=4)
        >>> round(mce(pairs, min_pairs=2)[0], 6)
        0.291548
    """
    check_count("min_pairs", min_pairs)
    values_of_pairs = pairs.scores if scores is None else np.asarray(scores)
    order = np.argsort(pairs.tags, kind="stable")
    distinct_tags, starts, counts = np.unique(pairs.tags[order], return_index=True, return_counts=True)
    per_tag: dict[int, float] = {}
    for tag, start, count in zip(distinct_tags, starts, counts, strict=True):
        if count >= min_pairs:
            index = order[start : start + count]
            value = calibration_error(values_of_pairs[index], pairs.hits[index], n_bins)
            assert value is not None
            per_tag[int(tag)] = value
    error = float(np.sqrt(np.mean(np.square(list(per_tag.values()))))) if per_tag else None
    return error, per_tag


def ece(pairs: Pairs | ArrayLike, scores: ArrayLike | None = None, n_bins: int = 10, top: Ints | None = None) -> float | None:
    """Return the top-label expected calibration error (Guo et al. 2017), over each token's pair with the highest raw score.

    pairs (Pairs | ArrayLike): n pairs; or the scores of n top labels, and then `scores` holds whether each label is right.
    scores (ArrayLike | None): With pairs: n probabilities that replace their raw scores. n_bins (int): Number of adaptive bins.
    top (Ints | None): Indices of the top pairs; None finds them.
    RETURNS (float | None): None without pairs. RAISES C001: values out of range. C002: lengths differ.

        >>> round(ece([0.9, 0.9, 0.6, 0.6], [1, 0, 1, 0]), 6)
        0.25
    """
    if not isinstance(pairs, Pairs):
        return calibration_error(pairs, () if scores is None else scores, n_bins, norm="l1")
    values = pairs.scores if scores is None else np.asarray(scores)
    top = top_pairs(pairs) if top is None else top
    return calibration_error(values[top], pairs.hits[top], n_bins, norm="l1")


def debiased_calibration_error(
    scores: ArrayLike, hits: ArrayLike, n_bins: int = 10, bin_size: int | None = None
) -> float | None:
    """Return the l2 calibration error without the bias that sampling adds in every bin (Kumar et al. 2019, section 5).

    sqrt(max(0, sum_b |b|/N ((q_b - p_b)^2 - p_b (1 - p_b) / (|b| - 1)))), with q_b the mean score and p_b the share of
    hits. A bin of one pair cannot estimate its bias and counts 0.
    scores (ArrayLike): n probabilities. hits (ArrayLike): n booleans, or zeros and ones. n_bins (int): Number of adaptive bins.
    bin_size (int | None): Pairs per bin; replaces n_bins.
    RETURNS (float | None): None without pairs. RAISES C001: values out of range. C002: lengths differ.

        >>> scores, hits = [0.9] * 10, [1] * 6 + [0] * 4
        >>> round(calibration_error(scores, hits), 6), round(debiased_calibration_error(scores, hits), 6)
        (0.3, 0.251661)
    """
    if not np.size(scores):
        return None
    table = table_of(scores, hits, make_binner(n_bins, bin_size))
    is_large = table.counts > 1
    bias = table.mean_hit * (1 - table.mean_hit) / np.where(is_large, table.counts - 1, 1)
    squared_gaps = np.where(is_large, (table.mean_score - table.mean_hit) ** 2 - bias, 0.0)
    return float(np.sqrt(max(0.0, np.sum(table.counts * squared_gaps) / table.counts.sum())))
