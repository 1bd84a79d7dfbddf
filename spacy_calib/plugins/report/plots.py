"""Matplotlib figures (extra `plots`) in Okabe and Ito's colours; lines and markers differ too, for print in grey."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...errors.visible import visible
from ...optional import figure_class
from .plot_data import HISTOGRAM_BINS, Curve, Panel, error_marks, reliability_curve

RAW_COLOR, CALIBRATED_COLOR = "#D55E00", "#0072B2"
RAW: dict[str, Any] = {"color": RAW_COLOR, "marker": "o", "linestyle": "--", "markerfacecolor": "white"}
CALIBRATED: dict[str, Any] = {"color": CALIBRATED_COLOR, "marker": "s", "linestyle": "-"}
LOOKS = {"raw": RAW, "calibrated": CALIBRATED}
QUIET = "0.35"
_LETTERS_AN_INCH = 10  # letters of a title per inch, at matplotlib's medium size; few enough for wide letters


def axes_for(ax: Any, width: float, height: float) -> Any:
    """Return `ax`, or the axes of a new figure of this width and height in inches if it is None."""
    return figure_class()(figsize=(width, height), layout="constrained").subplots() if ax is None else ax


def reliability_diagram(
    scores: ArrayLike,
    hits: ArrayLike,
    *,
    ax: Any = None,
    n_bins: int = 10,
    label: str = "",
    color: str = CALIBRATED_COLOR,
    **look: Any,
) -> Any:
    """Plot the share of hits against the mean score of each adaptive bin, with 95 % intervals.

    scores, hits (ArrayLike): Score of each pair, in [0, 1], and whether it is right, both (n,).
    ax (matplotlib.axes.Axes | None): Axes to draw on; None makes a new figure. n_bins (int): Number of bins. label (str): For
    the legend. color (str): Of line and markers. look: Further arguments of matplotlib's `errorbar`.
    RETURNS (matplotlib.axes.Axes): The axes. RAISES C001, C002: bad values or lengths. C061: matplotlib is not installed.

        >>> ax = reliability_diagram([0.2, 0.2, 0.9, 0.9], [False, False, True, True], n_bins=2)
        >>> ax.get_xlabel(), ax.get_ylabel()
        ('score', 'share that is right')
    """
    ax = axes_for(ax, 4.2, 4.2)
    ax.set(xlabel="score", ylabel="share that is right")
    draw_curve(ax, reliability_curve(scores, hits, n_bins), label, {"color": color, "marker": "o", **look})
    return ax


def draw_curve(ax: Any, curve: Curve, label: str, look: dict[str, Any]) -> None:
    """Draw a reliability curve with its intervals on `ax`, unless it has no bins. look (dict): Arguments of `errorbar`."""
    if curve.error is None:
        return
    scores, right, low, high = (np.array(values) for values in (curve.scores, curve.right, curve.low, curve.high))
    ax.errorbar(scores, right, yerr=(right - low, high - right), markersize=4, capsize=2, linewidth=1.2,
                label=f"{label} {curve.error:.3f}".strip(), **look)  # fmt: skip


def score_histogram(panel: Panel, ax: Any = None) -> Any:
    """Plot the number of scores in each twentieth of [0, 1] on a logarithmic scale, raw as a line, calibrated filled.

    ax (matplotlib.axes.Axes | None): Axes to draw on; None makes a new figure. RETURNS: The axes. RAISES C061: no matplotlib.
    """
    ax = axes_for(ax, 4.2, 1.6)
    edges = [i / HISTOGRAM_BINS for i in range(HISTOGRAM_BINS + 1)]
    ax.stairs(panel.calibrated.histogram, edges, fill=True, color=CALIBRATED_COLOR, alpha=0.35, linewidth=0)
    ax.stairs(panel.raw.histogram, edges, color=RAW_COLOR, linewidth=1, linestyle="--")
    top = max(panel.raw.histogram + panel.calibrated.histogram)
    # Limits before the scale: without scores a logarithmic scale finds no limits, and warns.
    ax.set_ylim(0.7, max(10, 2 * top))
    ax.set_yscale("log")
    ax.set_xlim(-0.02, 1.02)
    ax.set(xlabel="score", ylabel="pairs")
    quiet_frame(ax)
    return ax


def quiet_frame(ax: Any) -> None:
    """Remove the upper and right edge of axes and the minor ticks, and make the labels of ticks small."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize="small")
    ax.minorticks_off()


_MEASURES = {"reliability": "SMCE", "top": "ECE", "groups": "GMCE"}  # picture of panels -> name of the error in its legend
_PAGE_WIDTH, _FILE_WIDTH = 4.8, 7.0  # in inches, of the errors on a page, and in a file


def draw_picture(name: str, rows: Sequence[dict[str, Any]], title: str = "", *, on_page: bool = False) -> Any:
    """Draw a picture of `calib evaluate`.

    name (str): "reliability", "top", "groups", "tags", "errors", "coverage" or "slices". rows (Sequence[dict]): Its numbers, by
    `plot_data.picture_rows`; for "slices" a row of errors each. title (str): Above it. on_page (bool): Narrow, no histograms.
    RETURNS (matplotlib.figure.Figure): The figure, not saved. RAISES C061: matplotlib is not installed.
    """
    if name in ("errors", "slices"):
        ax = axes_for(None, _PAGE_WIDTH, _errors_height(rows)) if on_page else None
        return add_title(plot_errors(rows, ax=ax).figure, title)
    if name == "coverage":
        return add_title(plot_coverage(rows[0]).figure, title)
    panels = [Panel.from_state(row) for row in rows]
    return draw_panels(panels, title, measure=_MEASURES.get(name, "error"), histograms=not on_page, columns=3)


def _errors_height(rows: Sequence[dict[str, Any]]) -> float:
    """Return the height of a picture of errors in inches."""
    return 1.3 + 0.42 * len(error_marks(rows))


def draw_panels(
    panels: Sequence[Panel], title: str = "", *, measure: str = "SMCE", histograms: bool = True, columns: int | None = None
) -> Any:
    """Draw a reliability diagram of each panel in a new figure, and return the figure.

    measure (str): Name in the legends of the calibration error of a curve: "SMCE" of all pairs, "GMCE" of a group, "ECE" of top
    labels. histograms (bool): Draw a histogram of the scores below each. columns (int | None): Diagrams in a row; None for all.
    """
    n_columns = min(len(panels), columns or len(panels))
    n_rows = -(-len(panels) // n_columns)  # rounded up
    # In inches: a square diagram with .6 beside it, 1.2 above and below, and perhaps a histogram that is a fifth as high.
    width = 3.3 if len(panels) > 1 else 4.4
    height = 1.2 * (width - 0.6) + 1.2 if histograms else width + 0.6  # width + .6 is (width - .6) + 1.2
    figure = figure_class()(figsize=(width * n_columns + 0.3, height * n_rows + 0.3), layout="constrained")
    grid_rows, heights = (2 * n_rows, [5, 1] * n_rows) if histograms else (n_rows, None)  # a row of histograms below each
    grid = figure.add_gridspec(grid_rows, n_columns, height_ratios=heights)
    shared_ax = None  # the first diagram, whose axes all others share
    for index, panel in enumerate(panels):
        row, column = divmod(index, n_columns)
        ax = figure.add_subplot(grid[2 * row if histograms else row, column], sharex=shared_ax, sharey=shared_ax)
        shared_ax = shared_ax or ax
        _draw_panel(ax, panel, measure)
        ax.set_box_aspect(None if histograms else 1)  # as wide as its histogram
        bottom_ax = ax
        if histograms:
            ax.tick_params(labelbottom=False)
            bottom_ax = score_histogram(panel, figure.add_subplot(grid[2 * row + 1, column], sharex=shared_ax))
            bottom_ax.set_ylabel("pairs" if column == 0 else "", fontsize="small")
        bottom_ax.set_xlabel("score", fontsize="medium")
        if column == 0:
            ax.set_ylabel("share that is right")
    return add_title(figure, title)


def add_title(figure: Any, title: str) -> Any:
    """Write a title above a figure, wrapped to its width; return the figure. "" writes none."""
    if title:
        n_letters = max(20, int(_LETTERS_AN_INCH * figure.get_figwidth()))
        figure.suptitle(textwrap.fill(drawable(title), n_letters), fontsize="medium")
    return figure


def _draw_panel(ax: Any, panel: Panel, measure: str) -> None:
    """Draw a reliability diagram on `ax`: diagonal, both curves, title and legend. measure (str): Name of the error in it."""
    ax.plot([0, 1], [0, 1], color="0.7", linewidth=1, linestyle=":", zorder=0)
    for name, look in LOOKS.items():
        draw_curve(ax, getattr(panel, name), name, look)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    if panel.note:  # between diagram and title, which is moved up by 12 points for each line of the note
        ax.set_title(drawable(panel.title), fontsize="medium", fontweight="bold", pad=8 + 12 * (panel.note.count("\n") + 1))
        ax.text(
            0.5, 1.02, drawable(panel.note), transform=ax.transAxes, ha="center", va="bottom", fontsize="small", color=QUIET
        )
    else:
        ax.set_title(drawable(panel.title))
    if ax.containers:  # at least one curve was drawn
        sizes = {"fontsize": "small", "title_fontsize": "small"}
        ax.legend(edgecolor="none", framealpha=0.8, loc="upper left", title=measure, alignment="left", **sizes)
    else:
        ax.text(0.5, 0.5, "no pairs", ha="center", va="center", color=QUIET)
    quiet_frame(ax)


def plot_errors(rows: Sequence[dict[str, Any]], *, ax: Any = None) -> Any:
    """Plot the calibration error before and after calibration, overall and by group (Kranzlein et al. 2021, Figure 3).

    Each row has a circle (raw), an arrow, a square (calibrated), the 95 % interval of the true error, and a grey noise floor.
    rows (Sequence[dict]): The "errors" of a table of `spacy_calib.evaluate`. ax (matplotlib.axes.Axes | None): Axes to draw on;
    None makes a new figure. RETURNS (matplotlib.axes.Axes): The axes. RAISES C061: matplotlib is not installed.

        >>> row = {"group": "all", "raw": 0.07, "calibrated": 0.01, "floor95": 0.02, "true_low": 0.0, "true_high": 0.03}
        >>> [label.get_text() for label in plot_errors([row]).get_yticklabels()]
        ['all (SMCE)']
    """
    marks = error_marks(rows)
    ax = axes_for(ax, _FILE_WIDTH, _errors_height(rows))
    for row, mark in enumerate(marks):
        _draw_error(ax, row, mark)
    ax.set_yticks(range(len(marks)), [drawable(mark["name"]) for mark in marks])
    ax.set_ylim(len(marks) - 0.4, -0.6)  # the first row on top
    ax.set_xlim(left=0)
    ax.set_xlabel("calibration error (lower is better)")
    quiet_frame(ax)
    ax.tick_params(axis="y", length=0, labelsize="medium")
    _add_error_plot_legend(ax)
    return ax


def _draw_error(ax: Any, row: int, mark: dict[str, Any]) -> None:
    """Draw a row of errors (`mark`, by `error_marks`) on `ax` at height `row`: arrow (raw to calibrated), interval, floor."""
    raw, calibrated = mark["raw"], mark["calibrated"]
    if mark["floor95"] is not None:
        ax.barh(row, mark["floor95"], height=0.62, color="0.88", zorder=0)
    if mark["true_low"] is not None:
        ax.plot([mark["true_low"], mark["true_high"]], [row, row], color=CALIBRATED_COLOR, linewidth=4, alpha=0.4, zorder=1)
    ax.annotate("", (calibrated, row), (raw, row), arrowprops={"arrowstyle": "->", "color": "0.45", "shrinkA": 4, "shrinkB": 4})
    ax.plot(raw, row, **{**RAW, "linestyle": "none"}, markersize=7, zorder=3)
    ax.plot(calibrated, row, **{**CALIBRATED, "linestyle": "none"}, markersize=6, zorder=3)
    text = f"{raw:.4f} → {calibrated:.4f}"
    ax.text(1.02, row, text, transform=ax.get_yaxis_transform(), va="center", fontsize="small", color=QUIET)


def plot_coverage(curves: Mapping[str, Sequence[float]], *, ax: Any = None) -> Any:
    """Plot the accuracy of the most confident predictions against their share, raw and calibrated.

    curves (Mapping): "shares" of the predictions, and their accuracy by "raw" and "calibrated" scores, (n,) each.
    ax (matplotlib.axes.Axes | None): Axes to draw on; None makes a new figure. RETURNS: The axes. RAISES C061: no matplotlib.

        >>> ax = plot_coverage({"shares": [0.5, 1.0], "raw": [0.9, 0.8], "calibrated": [1.0, 0.8]})
        >>> [line.get_label() for line in ax.lines]
        ['raw', 'calibrated']
    """
    ax = axes_for(ax, 5.0, 3.6)
    for name, look in LOOKS.items():
        ax.plot(curves["shares"], curves[name], **{**look, "marker": ""}, label=name)
    ax.set(xlim=(0, 1), xlabel="share kept, most confident first", ylabel="accuracy of what is kept")
    quiet_frame(ax)
    ax.legend(edgecolor="none", fontsize="small")
    return ax


def _add_error_plot_legend(ax: Any) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Line2D([], [], **{**RAW, "linestyle": "none"}, markersize=7, label="raw"),
        Line2D([], [], **{**CALIBRATED, "linestyle": "none"}, markersize=6, label="calibrated"),
        Line2D([], [], color=CALIBRATED_COLOR, linewidth=4, alpha=0.4, label="95 % interval, calibrated"),
        Patch(color="0.88", label="noise floor, 95 %"),
    ]
    columns = 4 if ax.figure.get_figwidth() >= _FILE_WIDTH else 2
    look: dict[str, Any] = {"frameon": False, "fontsize": "small", "handletextpad": 0.5}
    ax.figure.legend(handles=handles, loc="outside lower center", ncols=columns, **look)


def drawable(text: str) -> str:
    """Return a text for a picture: with "$" escaped (matplotlib's formulas) and control characters visible (SVG lacks them)."""
    return visible(text, keep="\n").replace("$", r"\$")
