"""Pictures of counts over groups of documents, as of years."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...optional import figure_class
from ...pairs.documents import pluralize
from .plot_data import cut_text
from .plots import CALIBRATED_COLOR, QUIET, RAW_COLOR, drawable, quiet_frame, wrap_title

# Names that an axis shows at most, and letters of a query in a title.
_NAMES = 16
_LETTERS = 70
# Letters of small print to an inch.
_SMALL = 13


def plot_counts(result: Mapping[str, Any]) -> Any:
    """Draw each query below the other, on one axis of time.

    result (Mapping): Of `plugins.counts.count_command`: "by", "confidence", "per", "gold", and of each of "queries" "name", "query", "unit",
    perhaps "drawn", and "rows" with "group", "tokens", "raw", "expected", "low", "high". Whole numbers such as years are placed
    by value, and a line breaks where one is missing. RETURNS (matplotlib.figure.Figure): The figure, not saved. RAISES C061:
    matplotlib is not installed.
    """
    counts, per = result["queries"], result["per"]
    names = [row["group"] for row in counts[0]["rows"]]
    numeric = all(name.lstrip("-").isdigit() for name in names)
    places = [int(name) for name in names] if numeric else list(range(len(names)))
    width = min(12.0, max(6.0, 2.0 + 0.14 * (max(places, default=0) - min(places, default=0) + 1)))
    figure = figure_class()(figsize=(width, 1.1 + 1.9 * len(counts)), layout="constrained")
    all_axes = figure.subplots(len(counts), 1, sharex=True, squeeze=False)[:, 0]
    for ax, query in zip(all_axes, counts, strict=True):
        scale = [1.0 if per is None else per / max(1, row["tokens"]) for row in query["rows"]]
        values = {
            name: [row[name] * times for row, times in zip(query["rows"], scale, strict=True)]
            for name in ("raw", "expected", "low", "high")
        }
        for stretch in _stretches(places, numeric):
            x = [places[i] for i in stretch]
            means, low, high = ([values[name][i] for i in stretch] for name in ("expected", "low", "high"))
            if len(stretch) == 1:
                ax.vlines(x, low, high, color=CALIBRATED_COLOR, alpha=0.35, linewidth=4)
            else:
                ax.fill_between(x, low, high, color=CALIBRATED_COLOR, alpha=0.2, linewidth=0)
            ax.plot(x, means, color=CALIBRATED_COLOR, linewidth=1.6, marker="o", markersize=2.5)
        ax.plot(places, values["raw"], "x", color=RAW_COLOR, markersize=4.5, markeredgewidth=1, clip_on=False)
        ax.set_title(drawable(cut_text(_title(query), _LETTERS)), loc="left", fontsize="medium")
        ax.set_ylim(bottom=0)
        ax.yaxis.get_major_locator().set_params(integer=per is None)
        ax.margins(x=0.02)
        quiet_frame(ax)
    last = all_axes[-1]
    if not numeric:
        step = -(-len(names) // _NAMES) or 1
        last.set_xticks(places[::step], [drawable(name) for name in names[::step]], rotation=45, ha="right")
    else:
        last.xaxis.get_major_locator().set_params(integer=True)
    last.set_xlabel(drawable(result["by"] or ""))
    if per is not None:
        figure.supylabel(f"for each {per:,} tokens", fontsize="medium")
    _explain(all_axes[0], f"expected, {100 * result['confidence']:g} % interval", "found")
    figure.supxlabel(wrap_title(_caption(result), width, _SMALL), fontsize="small", color=QUIET)
    return figure


def _title(query: Mapping[str, Any]) -> str:
    """Return a query's name, or the query with its unit."""
    return str(query["name"]) if query["name"] != query["query"] else f"{query['query']} ({pluralize(query['unit'])})"


def _caption(result: Mapping[str, Any]) -> str:
    """Explain the band in a sentence."""
    share = f"{100 * result['confidence']:g}"
    if all(query.get("drawn", False) for query in result["queries"]):
        return f"The band holds {share} of 100 draws of who is who; it knows no error of the parser."
    often = f"The band holds the true number {share} times of 100"
    if result["gold"] is not None:
        return f"{often}, as {result['gold']:,} labelled documents correct it."
    return f"{often} on texts like those of the fit; it knows what the pipeline mistakes, not what the texts leave out."


def _explain(ax: Any, band_label: str, cross_label: str) -> None:
    """Explain the two looks, in their colours, in place of a legend."""
    ax.annotate(f"— {band_label}", (1, 1.02), xycoords="axes fraction", ha="right", va="bottom", xytext=(-52, 3),
                textcoords="offset points", fontsize="small", color=CALIBRATED_COLOR)  # fmt: skip
    ax.annotate(f"× {cross_label}", (1, 1.02), xycoords="axes fraction", ha="right", va="bottom", xytext=(0, 3),
                textcoords="offset points", fontsize="small", color=RAW_COLOR)  # fmt: skip


def _stretches(places: Sequence[int], numeric: bool) -> list[list[int]]:
    """Return the numbers of groups that follow one another without a gap."""
    stretches: list[list[int]] = []
    for i, place in enumerate(places):
        if stretches and (not numeric or place == places[i - 1] + 1):
            stretches[-1].append(i)
        else:
            stretches.append([i])
    return stretches
