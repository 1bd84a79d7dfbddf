"""The numbers of the pictures: reliability curves and histograms (overall, by group, by tag) and coverage curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ...metrics.calibration_errors import error_of_table, group_slices, table_of
from ...metrics.proper import accuracy_at_coverage
from ...pairs.bins import BinTable, assign, check_count, fixed_edges, make_binner
from ...pairs.pairing import top_pairs
from ...types import Floats, Groups, Ints, Pairs

if TYPE_CHECKING:
    from ...metrics.judged_view import JudgedView

HISTOGRAM_BINS = 20
PER_BIN = 20  # minimum number of pairs in each bin of a tag
COVERAGE = tuple(percent / 100 for percent in range(1, 101))  # shares of the top labels in the curve of accuracy
REMNANT = 0.1  # a bin with less than this share of the average number of pairs is joined to its neighbour


@dataclass(frozen=True)
class Curve:
    """A reliability curve over adaptive bins; without scores it has no bins and no error.

    error (float | None): Calibration error. pairs, scores, right (list): Number of pairs, mean score and share of hits of each
    bin. low, high (list[float]): 95 % interval of that share. histogram (list[int]): Number of scores in each of HISTOGRAM_BINS
    bins of equal width.
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
    """Numbers of a reliability diagram with curves `raw` and `calibrated`. title, note: Texts above. pairs: Number of pairs."""

    title: str
    note: str
    pairs: int
    raw: Curve
    calibrated: Curve

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Panel:
        """Build a panel from `state`, the plain data that `dataclasses.asdict` makes of a panel."""
        return cls(**{**state, "raw": Curve(**state["raw"]), "calibrated": Curve(**state["calibrated"])})


def picture_rows(name: str, view: JudgedView, errors: list[dict[str, Any]], tags: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the numbers of one picture as plain data: its panels (`Panel`), its errors or its coverage curves.

    name (str): "reliability", "top", "groups", "tags", "errors" or "coverage". errors (list): Rows of the table of errors
    (`metrics.table.error_row`). tags (Sequence[str]): Tags of the picture "tags", all of which are labels of the view.
    """
    pairs, calibrated, labels, n_bins = view.pairs, view.calibrated, view.labels, view.n_bins
    noun = "tag" if view.kind == "tokens" else "label"
    if name == "errors":
        return errors
    if name == "coverage":
        return [coverage_curves(pairs, calibrated)]
    if name == "groups":
        panels = group_panels(pairs, calibrated, view.groups, labels, n_bins, noun)
    elif name == "tags":
        panels = tag_panels(pairs, calibrated, labels, tags, n_bins)
    elif name == "top":
        panels = [top_panel(pairs, calibrated, n_bins)]
    else:
        title, note = f"All {noun}s", f"{len(pairs):,} pairs"
        panels = [reliability_panel(pairs.scores, calibrated, pairs.hits, title, note, n_bins)]
    return [asdict(panel) for panel in panels]


def bins_for(n_pairs: int, n_bins: int) -> int:
    """Return the number of bins of a tag: n_bins, or fewer so that each has at least PER_BIN pairs."""
    return max(1, min(n_bins, n_pairs // PER_BIN))


def reliability_curve(scores: ArrayLike, hits: ArrayLike, n_bins: int = 10, norm: str = "l2") -> Curve:
    """Return the reliability curve of n scores and hits (whether each is right), (n,) each, over `n_bins` adaptive bins.

    norm (str): Error of the curve: "l2", root mean square distance of mean score and share of hits in a bin, or "l1", mean
    distance. RAISES C001: values out of range. C002: lengths differ.
    """
    binner = make_binner(check_count("n_bins", n_bins))
    table = table_of(scores, hits, binner)
    error = error_of_table(table, norm) if len(table) else None
    table = without_remnants(table, n_bins)  # for the drawing only; the error is that of all bins
    low, high = share_interval(table.mean_hit, table.counts)
    bins = assign(np.asarray(scores, dtype=np.float64), fixed_edges(HISTOGRAM_BINS))
    counts, histogram = table.counts.astype(int).tolist(), np.bincount(bins, minlength=HISTOGRAM_BINS).tolist()
    return Curve(error, counts, table.mean_score.tolist(), table.mean_hit.tolist(), low.tolist(), high.tolist(), histogram)


def without_remnants(table: BinTable, n_bins: int) -> BinTable:
    """Join each bin with less than REMNANT of the average number of pairs (all / n_bins) to a large bin, below it if possible.

    With many equal scores (isotonic regression) some adaptive bins have few pairs, and intervals as wide as the picture.
    """
    small = table.counts < REMNANT * table.counts.sum() / n_bins
    # The large bin that each bin joins: itself or, for a small one, the last large one below it (-1 if there is none).
    target = np.maximum.accumulate(np.where(small, -1, np.arange(len(table))))
    large = np.flatnonzero(~small)
    if not small.any() or not len(large):
        return table
    target = np.where(target < 0, large[0], target)
    new_bin = np.searchsorted(large, target)  # number of this large bin among the large ones
    counts: Floats = np.bincount(new_bin, table.counts).astype(np.float64)
    means = [np.bincount(new_bin, table.counts * values) / counts for values in (table.mean_score, table.mean_hit)]
    return BinTable(counts, *means)


def share_interval(shares: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """Return (low, high) of the 95 % interval of each share of hits among `counts` pairs (Wilson 1927, score interval).

    The normal approximation of Nguyen & O'Connor (2015, section 3.3) agrees for large bins, but has no width if all are hits.
    """
    z_squared = 1.96**2
    centre = shares + z_squared / (2 * counts)
    half = 1.96 * np.sqrt(shares * (1 - shares) / counts + z_squared / (4 * counts**2))
    low, high = ((centre + sign * half) / (1 + z_squared / counts) for sign in (-1, 1))
    # Rounding may put the share outside of its interval.
    return np.clip(np.minimum(low, shares), 0, 1), np.clip(np.maximum(high, shares), 0, 1)


def reliability_panel(
    raw: ArrayLike, calibrated: ArrayLike, hits: ArrayLike, title: str = "", note: str = "", n_bins: int = 10, norm: str = "l2"
) -> Panel:
    """Return the numbers of a diagram of n pairs: raw and calibrated scores, and hits (whether each is right), (n,) each.

    title, note (str): Texts above it. n_bins, norm, RAISES: as for `reliability_curve`.
    """
    curves = [reliability_curve(scores, hits, n_bins, norm) for scores in (raw, calibrated)]
    return Panel(title, note, int(np.size(raw)), *curves)


def _subset_panel(pairs: Pairs, calibrated: Floats, index: Ints, title: str, note: str, n_bins: int, norm: str = "l2") -> Panel:
    """Return `reliability_panel` of the pairs with the indices `index`. calibrated: Scores of all pairs, by calibration."""
    return reliability_panel(pairs.scores[index], calibrated[index], pairs.hits[index], title, note, n_bins, norm)


def top_panel(pairs: Pairs, calibrated: Floats, n_bins: int = 10) -> Panel:
    """Return the diagram of the top labels (attribute `calib_score`); its error is the ECE. calibrated: Score of all pairs."""
    top = top_pairs(pairs)
    return _subset_panel(pairs, calibrated, top, "calib_score", f"{len(top):,} top labels", n_bins, "l1")


def coverage_curves(pairs: Pairs, calibrated: Floats) -> dict[str, list[float]]:
    """Return the accuracy of the most confident top labels, by "raw" and "calibrated" scores, for "shares" of 1 to 100 %."""
    top = top_pairs(pairs)
    if not len(top):
        return {"shares": [], "raw": [], "calibrated": []}
    scores_by_kind = {"raw": pairs.scores[top], "calibrated": calibrated[top]}
    hits = pairs.hits[top]
    curves = {kind: accuracy_at_coverage(scores, hits, COVERAGE).tolist() for kind, scores in scores_by_kind.items()}
    return {"shares": list(COVERAGE), **curves}


def group_panels(
    pairs: Pairs, calibrated: Floats, groups: Groups, labels: Sequence[str], n_bins: int = 10, noun: str = "tag"
) -> list[Panel]:
    """Return a panel for each group of tags, with its tags and their frequencies (Kranzlein et al. 2021, Table 1).

    calibrated (Floats): Calibrated score of each pair. labels (Sequence[str]): Names of the tags (`pairs.tags`), by index.
    n_bins (int): Number of adaptive bins. noun (str): Word for a tag.
    """
    return [
        _subset_panel(pairs, calibrated, index, f"Group {name}", group_note(groups, group, labels, noun), n_bins)
        for group, (name, index) in enumerate(zip(groups.names, group_slices(pairs, groups), strict=True))
    ]


def group_note(groups: Groups, index: int, labels: Sequence[str], noun: str = "tag") -> str:
    """Return the text above the diagram of group `index`: number of its tags, names (labels) of two, and gold frequencies."""
    tags = groups.tags_in(index)  # the most frequent first
    if not len(tags):
        return f"no {noun}s"
    names = cut_text(" · ".join(labels[tag] for tag in tags[:2]))
    plural, ellipsis = "s" if len(tags) > 1 else "", " · …" if len(tags) > 2 else ""
    text = f"{len(tags)} {noun}{plural}: {names}{ellipsis}"
    maximum, minimum = int(groups.counts[tags[0]]), int(groups.counts[tags[-1]])
    if not maximum:
        return text
    frequencies = f"{maximum:,}" if minimum == maximum else f"{minimum:,} to {maximum:,}"
    return f"{text}\ncounted {frequencies} times"


def cut_text(text: str, width: int = 28) -> str:
    """Shorten a text to at most `width` characters, with an ellipsis."""
    return text if len(text) <= width else text[: width - 1] + "…"


def tag_panels(pairs: Pairs, calibrated: Floats, labels: Sequence[str], tags: Sequence[str], n_bins: int = 10) -> list[Panel]:
    """Return the diagram of each of `tags`. calibrated: Score of each pair. labels: Names of all tags. n_bins: Maximum."""
    panels = []
    for tag in tags:
        index = np.flatnonzero(pairs.tags == list(labels).index(tag))
        note = f"{len(index):,} pair{'' if len(index) == 1 else 's'}"
        panels.append(_subset_panel(pairs, calibrated, index, cut_text(tag), note, bins_for(len(index), n_bins)))
    return panels


def error_marks(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of errors, by `metrics.table.error_row`, with a "name" for the picture. Rows without pairs are left out."""
    names = {"all": "all (SMCE)", "mean": "mean (GMCE)"}
    return [{"name": names.get(row["group"], f"group {row['group']}"), **row} for row in rows if row["raw"] is not None]
