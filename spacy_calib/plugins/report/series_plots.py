"""Plots of counts over groups of documents, such as years."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...optional import figure_class
from ...pairs.documents import pluralize
from .plot_data import cut_text
from .plots import CALIBRATED_COLOR, QUIET, RAW_COLOR, drawable, quiet_frame, wrap_title

# Maximum number of names on an axis, and of letters of a query in a title.
_NAMES = 16
_LETTERS = 70
# Letters of small print per inch.
_SMALL = 13


def plot_counts(result: Mapping[str, Any]) -> Any:
    """Plot the counts of each query over the groups, in rows with a common axis.

    result (Mapping): Result of `calib count`: "by", "confidence", "per", "gold", and "queries", each with "name", "query",
    "unit", perhaps "drawn" (whether counts are sampled), and "rows" with "group", "tokens", "raw", "expected", "low", "high".
    Groups that are whole numbers, such as years, are placed by value, and the line breaks at a gap. RETURNS
    (matplotlib.figure.Figure): The figure, not saved.
    RAISES C061: matplotlib is not installed.
    """
    counts, per = result["queries"], result["per"]
    names = [row["group"] for row in counts[0]["rows"]]
    numeric = all(name.lstrip("-").isdigit() for name in names)
    positions = [int(name) for name in names] if numeric else list(range(len(names)))
    width = min(12.0, max(6.0, 2.0 + 0.14 * (max(positions, default=0) - min(positions, default=0) + 1)))
    figure = figure_class()(figsize=(width, 1.1 + 1.9 * len(counts)), layout="constrained")
    all_axes = figure.subplots(len(counts), 1, sharex=True, squeeze=False)[:, 0]
    for ax, query in zip(all_axes, counts, strict=True):
        scale = [1.0 if per is None else per / max(1, row["tokens"]) for row in query["rows"]]
        values = {
            name: [row[name] * times for row, times in zip(query["rows"], scale, strict=True)]
            for name in ("raw", "expected", "low", "high")
        }
        for run in _find_runs(positions, numeric):
            x = [positions[i] for i in run]
            means, low, high = ([values[name][i] for i in run] for name in ("expected", "low", "high"))
            if len(run) == 1:
                ax.vlines(x, low, high, color=CALIBRATED_COLOR, alpha=0.35, linewidth=4)
            else:
                ax.fill_between(x, low, high, color=CALIBRATED_COLOR, alpha=0.2, linewidth=0)
            ax.plot(x, means, color=CALIBRATED_COLOR, linewidth=1.6, marker="o", markersize=2.5)
        ax.plot(positions, values["raw"], "x", color=RAW_COLOR, markersize=4.5, markeredgewidth=1, clip_on=False)
        ax.set_title(drawable(cut_text(_title(query), _LETTERS)), loc="left", fontsize="medium")
        ax.set_ylim(bottom=0)
        ax.yaxis.get_major_locator().set_params(integer=per is None)
        ax.margins(x=0.02)
        quiet_frame(ax)
    last = all_axes[-1]
    if not numeric:
        step = -(-len(names) // _NAMES) or 1
        last.set_xticks(positions[::step], [drawable(name) for name in names[::step]], rotation=45, ha="right")
    else:
        last.xaxis.get_major_locator().set_params(integer=True)
    last.set_xlabel(drawable(result["by"] or ""))
    if per is not None:
        figure.supylabel(f"for each {per:,} tokens", fontsize="medium")
    _explain(all_axes[0], f"expected, {100 * result['confidence']:g} % interval", "found")
    figure.supxlabel(wrap_title(_caption(result), width, _SMALL), fontsize="small", color=QUIET)
    return figure


def _title(query: Mapping[str, Any]) -> str:
    return str(query["name"]) if query["name"] != query["query"] else f"{query['query']} ({pluralize(query['unit'])})"


def _caption(result: Mapping[str, Any]) -> str:
    """Return the sentence that explains the band."""
    share = f"{100 * result['confidence']:g}"
    if all(query.get("drawn", False) for query in result["queries"]):
        return f"The band contains {share} of 100 samples of the coreference clusters; errors of the parser are not included."
    coverage = f"The band contains the true number in {share} of 100 cases"
    if result["gold"] is not None:
        return f"{coverage}, as {result['gold']:,} labelled documents correct it."
    return f"{coverage} on texts like those of the fit; it covers the errors of the pipeline, not what the texts leave out."


def _explain(ax: Any, band_label: str, cross_label: str) -> None:
    """Label the band and the crosses in their colours, in place of a legend."""
    ax.annotate(f"— {band_label}", (1, 1.02), xycoords="axes fraction", ha="right", va="bottom", xytext=(-52, 3),
                textcoords="offset points", fontsize="small", color=CALIBRATED_COLOR)  # fmt: skip
    ax.annotate(f"× {cross_label}", (1, 1.02), xycoords="axes fraction", ha="right", va="bottom", xytext=(0, 3),
                textcoords="offset points", fontsize="small", color=RAW_COLOR)  # fmt: skip


def _find_runs(positions: Sequence[int], numeric: bool) -> list[list[int]]:
    """Return runs of groups without a gap, as indices."""
    runs: list[list[int]] = []
    for i, position in enumerate(positions):
        if runs and (not numeric or position == positions[i - 1] + 1):
            runs[-1].append(i)
        else:
            runs.append([i])
    return runs
