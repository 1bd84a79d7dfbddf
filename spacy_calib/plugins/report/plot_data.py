"""Pairs and calibrated scores -> the numbers of reliability curves and histograms, overall, by group and by tag."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...metrics.calibration_errors import error_of_table, group_slices, table_of
from ...metrics.proper import accuracy_at_coverage
from ...pairs.bins import BinTable, assign, check_count, fixed_edges, make_binner
from ...pairs.build import top_pairs
from ...types import Floats, Groups, Pairs

HISTOGRAM_BINS = 20
# A tag's bins hold so many pairs at least: fewer tell nothing.
PER_BIN = 20
# Shares of all labels that are kept in the curve of accuracy against coverage.
COVERAGE = tuple(percent / 100 for percent in range(1, 101))
# A bin with less than this share of what an even one holds is not drawn by itself.
REMNANT = 0.1


@dataclass(frozen=True)
class Curve:
    """A reliability curve over adaptive bins; no bins and no error without scores.

    error (float | None): Root mean square gap of score and share of hits. pairs, scores, right: Count, mean score and share of
    hits of each bin. low, high: 95 % interval of that share (`share_interval`). histogram (list[int]): Scores in each of
    HISTOGRAM_BINS bins of equal width.
    """

    error: float | None
    pairs: list[int]
    scores: list[float]
    right: list[float]
    low: list[float]
    high: list[float]
    histogram: list[int]


@dataclass(frozen=True)
class Panel:
    """One diagram: raw against calibrated. title, note (str): Above it. pairs (int): In it."""

    title: str
    note: str
    pairs: int
    raw: Curve
    calibrated: Curve

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Panel:
        """Build it from plain data."""
        return cls(**{**state, "raw": Curve(**state["raw"]), "calibrated": Curve(**state["calibrated"])})


def bins_for(n_pairs: int, n_bins: int) -> int:
    """Return the number of bins of a tag, fewer if it has few pairs."""
    return max(1, min(n_bins, n_pairs // PER_BIN))


def reliability_curve(scores: ArrayLike, hits: ArrayLike, n_bins: int = 10, norm: str = "l2") -> Curve:
    """Bin n scores with their hits. norm (str): "l2" (root mean square error) or "l1" (mean absolute). RAISES C001, C002."""
    binner = make_binner(check_count("n_bins", n_bins))
    table = table_of(scores, hits, binner)
    error = error_of_table(table, norm) if len(table) else None
    table = without_remnants(table, n_bins)
    low, high = share_interval(table.mean_hit, table.counts)
    bins = assign(np.asarray(scores, dtype=np.float64), fixed_edges(HISTOGRAM_BINS))
    return Curve(
        error,
        table.counts.astype(int).tolist(),
        table.mean_score.tolist(),
        table.mean_hit.tolist(),
        low.tolist(),
        high.tolist(),
        np.bincount(bins, minlength=HISTOGRAM_BINS).tolist(),
    )


def without_remnants(table: BinTable, n_bins: int) -> BinTable:
    """Join bins with less than REMNANT of an even share to the bin below, the lowest to the bin above.

    Where many scores are equal (the steps of isotonic regression) adaptive bins leave a few pairs over, whose interval is as
    wide as the picture.
    """
    small = table.counts < REMNANT * table.counts.sum() / n_bins
    home = np.maximum.accumulate(np.where(small, -1, np.arange(len(table))))
    large = np.flatnonzero(~small)
    if not small.any() or not len(large):
        return table
    home = np.where(home < 0, large[0], home)
    place = np.searchsorted(large, home)
    counts: Floats = np.bincount(place, table.counts).astype(np.float64)
    means = [np.bincount(place, table.counts * values) / counts for values in (table.mean_score, table.mean_hit)]
    return BinTable(counts, *means)


def share_interval(shares: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """Return the 95 % interval of shares of hits (Wilson 1927, score interval).

    The normal approximation of Nguyen & O'Connor (2015, section 3.3) tends to it as bins grow, but has no width in a small bin
    without a miss.
    """
    z_squared = 1.96**2
    centre = shares + z_squared / (2 * counts)
    half = 1.96 * np.sqrt(shares * (1 - shares) / counts + z_squared / (4 * counts**2))
    low, high = ((centre + sign * half) / (1 + z_squared / counts) for sign in (-1, 1))
    # The formula holds the share; rounding may not.
    return np.clip(np.minimum(low, shares), 0, 1), np.clip(np.maximum(high, shares), 0, 1)


def reliability_panel(
    raw: ArrayLike, calibrated: ArrayLike, hits: ArrayLike, title: str = "", note: str = "", n_bins: int = 10, norm: str = "l2"
) -> Panel:
    """Return the numbers of one diagram. norm (str): As in `reliability_curve`. RAISES C001, C002: see there."""
    curves = [reliability_curve(scores, hits, n_bins, norm) for scores in (raw, calibrated)]
    return Panel(title, note, int(np.size(raw)), *curves)


def top_panel(pairs: Pairs, calibrated: Floats, n_bins: int = 10) -> Panel:
    """Return the diagram of each token's or entity's top label, whose error is the ECE of `calib_score`."""
    top = top_pairs(pairs)
    note = f"{len(top):,} likeliest labels"
    return reliability_panel(pairs.scores[top], calibrated[top], pairs.hits[top], "calib_score", note, n_bins, "l1")


def coverage_curves(pairs: Pairs, calibrated: Floats) -> dict[str, list[float]]:
    """Return the accuracy "raw" and "calibrated" of the most confident "shares" of top labels; empty lists without pairs."""
    top = top_pairs(pairs)
    shares = COVERAGE if len(top) else ()
    scores_by_kind = {"raw": pairs.scores[top], "calibrated": calibrated[top]}
    hits = pairs.hits[top]
    curves = {
        kind: accuracy_at_coverage(scores, hits, shares).tolist() if shares else [] for kind, scores in scores_by_kind.items()
    }
    return {"shares": list(shares), **curves}


def group_panels(
    pairs: Pairs, calibrated: Floats, groups: Groups, labels: Sequence[str], n_bins: int = 10, noun: str = "tag"
) -> list[Panel]:
    """Return a panel for each group of tags, with its tags and their frequencies (Kranzlein et al. 2021, Table 1).

    labels (Sequence[str]): The tags, as columns of the pairs. noun (str): Name of one.
    """
    return [
        reliability_panel(
            pairs.scores[index_of_pairs],
            calibrated[index_of_pairs],
            pairs.hits[index_of_pairs],
            f"Group {name}",
            group_note(groups, index, labels, noun),
            n_bins,
        )
        for index, (name, index_of_pairs) in enumerate(zip(groups.names, group_slices(pairs, groups), strict=True))
    ]


def group_note(groups: Groups, index: int, labels: Sequence[str], noun: str = "tag") -> str:
    """Describe how many tags a group has, which they are, and how frequent."""
    tags = groups.tags_in(index)
    if not len(tags):
        return f"no {noun}s"
    names = " · ".join(labels[tag] for tag in tags[:2])
    text = f"{len(tags)} {noun}{'s' if len(tags) > 1 else ''}: {cut_text(names)}{' · …' if len(tags) > 2 else ''}"
    maximum, minimum = int(groups.counts[tags[0]]), int(groups.counts[tags[-1]])
    if not maximum:
        return text
    return f"{text}\ncounted {f'{minimum:,} to ' if minimum != maximum else ''}{maximum:,} times"


def cut_text(text: str, width: int = 28) -> str:
    """Cut a text to at most so many letters."""
    return text if len(text) <= width else text[: width - 1] + "…"


def tag_panels(pairs: Pairs, calibrated: Floats, labels: Sequence[str], tags: Sequence[str], n_bins: int = 10) -> list[Panel]:
    """Return a panel for each of these tags, which are all among the labels."""
    panels = []
    for tag in tags:
        index = np.flatnonzero(pairs.tags == list(labels).index(tag))
        panels.append(
            reliability_panel(
                pairs.scores[index],
                calibrated[index],
                pairs.hits[index],
                cut_text(tag),
                f"{len(index):,} pair{'' if len(index) == 1 else 's'}",
                bins_for(len(index), n_bins),
            )
        )
    return panels


def error_marks(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows (`metrics.table.ErrorRow`) that have an error, with the name that a picture gives them."""
    names = {"all": "all (SMCE)", "mean": "mean (GMCE)"}
    return [{"name": names.get(row["group"], f"group {row['group']}"), **row} for row in rows if row["raw"] is not None]
