"""Numbers -> figures, by matplotlib (the extra `plots`), in Okabe and Ito's colours; in grey line and marker differ."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...errors.visible import visible
from ...optional import figure_class
from .plot_data import HISTOGRAM_BINS, Curve, Panel, error_marks, reliability_curve, reliability_panel

RAW_COLOR, CALIBRATED_COLOR = "#D55E00", "#0072B2"
RAW: dict[str, Any] = {"color": RAW_COLOR, "marker": "o", "linestyle": "--", "markerfacecolor": "white"}
CALIBRATED: dict[str, Any] = {"color": CALIBRATED_COLOR, "marker": "s", "linestyle": "-"}
LOOKS = {"raw": RAW, "calibrated": CALIBRATED}
QUIET = "0.35"
# Letters of a title to an inch, at matplotlib's medium size, few enough for the widest.
_LETTERS_AN_INCH = 10


def axes_for(ax: Any, width: float, height: float) -> Any:
    """Return the given axes, or those of a new figure."""
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
    """Draw share of hits against mean score per adaptive bin, with 95 % bars.

    scores, hits: n of each. ax: The matplotlib axes to draw on; None makes a figure. label (str): For the legend. look: More
    for matplotlib's `errorbar`. RETURNS (matplotlib.axes.Axes): Its `figure` is the whole. RAISES C001, C002: values out of
    range, lengths differ. C061: matplotlib is not installed.
    """
    ax = axes_for(ax, 4.2, 4.2)
    ax.set(xlabel="score", ylabel="share that is right")
    draw_curve(ax, reliability_curve(scores, hits, n_bins), label, {"color": color, "marker": "o", **look})
    return ax


def draw_curve(ax: Any, curve: Curve, label: str, look: dict[str, Any]) -> None:
    """Draw a curve with its bars; one without bins draws nothing."""
    if curve.error is None:
        return
    scores, right, low, high = (np.array(values) for values in (curve.scores, curve.right, curve.low, curve.high))
    ax.errorbar(scores, right, yerr=(right - low, high - right), markersize=4, capsize=2, linewidth=1.2,
                label=f"{label} {curve.error:.3f}".strip(), **look)  # fmt: skip


def score_histogram(panel: Panel, ax: Any = None) -> Any:
    """Draw how many scores lie in each twentieth of [0, 1], raw as a line, calibrated filled, on a logarithmic scale.

    ax: As in `reliability_diagram`. RETURNS (matplotlib.axes.Axes): The axes. RAISES C061: matplotlib is not installed.
    """
    ax = axes_for(ax, 4.2, 1.6)
    edges = [i / HISTOGRAM_BINS for i in range(HISTOGRAM_BINS + 1)]
    ax.stairs(panel.calibrated.histogram, edges, fill=True, color=CALIBRATED_COLOR, alpha=0.35, linewidth=0)
    ax.stairs(panel.raw.histogram, edges, color=RAW_COLOR, linewidth=1, linestyle="--")
    top = max(panel.raw.histogram + panel.calibrated.histogram)
    # The limits first: of no scores at all a logarithmic scale finds none of its own, and warns.
    ax.set_ylim(0.7, max(10, 2 * top))
    ax.set_yscale("log")
    ax.set_xlim(-0.02, 1.02)
    ax.set(xlabel="score", ylabel="pairs")
    quiet_frame(ax)
    return ax


def quiet_frame(ax: Any) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize="small")
    ax.minorticks_off()


def compare_reliability(
    panels: list[dict[str, Any]], title: str = "", n_bins: int = 10, histograms: bool = False, columns: int | None = None
) -> Any:
    """Draw reliability diagrams side by side, raw against calibrated.

    panels (list): Each a dict with "title", "hits", "raw", "calibrated". histograms (bool): One under each diagram. columns
    (int | None): Diagrams in a row. RETURNS (matplotlib.figure.Figure): The figure, not saved. RAISES C001, C002: values out of
    range, lengths differ. C061: matplotlib is not installed.
    """
    numbers = [
        reliability_panel(panel["raw"], panel["calibrated"], panel["hits"], panel["title"], n_bins=n_bins) for panel in panels
    ]
    return draw_panels(numbers, title, histograms=histograms, columns=columns)


def draw_panels(
    panels: Sequence[Panel], title: str = "", *, measure: str = "SMCE", histograms: bool = True, columns: int | None = None
) -> Any:
    """Draw panels side by side, as `compare_reliability` does. measure (str): Name of the error in the legend."""
    n_columns = min(len(panels), columns or len(panels))
    down = -(-len(panels) // n_columns)
    width = 3.3 if len(panels) > 1 else 4.4
    height = 1.2 * (width - 0.6) + 1.2 if histograms else width + 0.6
    figure = figure_class()(figsize=(width * n_columns + 0.3, height * down + 0.3), layout="constrained")
    rows, heights = (2 * down, [5, 1] * down) if histograms else (down, None)
    grid = figure.add_gridspec(rows, n_columns, height_ratios=heights)
    first = None
    for place, panel in enumerate(panels):
        row, column = divmod(place, n_columns)
        ax = figure.add_subplot(grid[2 * row if histograms else row, column], sharex=first, sharey=first)
        first = first or ax
        _draw_panel(ax, panel, measure)
        ax.set_box_aspect(None if histograms else 1)  # the histogram under it is to be as wide
        lowest = ax
        if histograms:
            ax.tick_params(labelbottom=False)
            lowest = score_histogram(panel, figure.add_subplot(grid[2 * row + 1, column], sharex=first))
            lowest.set_ylabel("pairs" if column == 0 else "", fontsize="small")
        lowest.set_xlabel("score", fontsize="medium")
        if column == 0:
            ax.set_ylabel("share that is right")
    if title:
        figure.suptitle(wrap_title(title, figure.get_figwidth()), fontsize="medium")
    return figure


def entitle_for(given_axes: Any) -> Callable[[Any, str], None]:
    """Return a function that puts a title over a figure of ours, else over the given axes."""

    def entitle(ax: Any, title: str) -> None:
        if title:
            set_title = ax.figure.suptitle if given_axes is None else ax.set_title
            set_title(wrap_title(title, ax.figure.get_figwidth()), fontsize="medium")

    return entitle


def wrap_title(title: str, width: float, letters: int = _LETTERS_AN_INCH) -> str:
    """Wrap a title. width (float): Inches. letters (int): To an inch."""
    return textwrap.fill(drawable(title), max(20, int(letters * width)))


def _draw_panel(ax: Any, panel: Panel, measure: str) -> None:
    ax.plot([0, 1], [0, 1], color="0.7", linewidth=1, linestyle=":", zorder=0)
    for name, look in LOOKS.items():
        draw_curve(ax, getattr(panel, name), name, look)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    if panel.note:
        ax.set_title(drawable(panel.title), fontsize="medium", fontweight="bold", pad=8 + 12 * (panel.note.count("\n") + 1))
        ax.text(
            0.5, 1.02, drawable(panel.note), transform=ax.transAxes, ha="center", va="bottom", fontsize="small", color=QUIET
        )
    else:
        ax.set_title(drawable(panel.title))
    if ax.containers:
        ax.legend(
            edgecolor="none",
            framealpha=0.8,
            loc="upper left",
            fontsize="small",
            title=measure,
            title_fontsize="small",
            alignment="left",
        )
    else:
        ax.text(0.5, 0.5, "no pairs", ha="center", va="center", color=QUIET)
    quiet_frame(ax)


def plot_errors(rows: Sequence[dict[str, Any]], *, ax: Any = None, title: str = "") -> Any:
    """Draw calibration error before and after, overall and by group (as Kranzlein et al. 2021, Figure 3, do).

    rows (Sequence): "errors" of `metrics.table.calibration_table`. Each gets a circle (raw), an arrow, a square (calibrated)
    with the 95 % interval of the true error, and the noise floor as a grey bar. ax: As in `reliability_diagram`. RETURNS
    (matplotlib.axes.Axes): The axes. RAISES C061: matplotlib is not installed.
    """
    marks = error_marks(rows)
    entitle = entitle_for(ax)
    ax = axes_for(ax, 7.0, 1.3 + 0.42 * len(marks))
    for place, mark in enumerate(marks):
        _draw_error(ax, place, mark)
    ax.set_yticks(range(len(marks)), [drawable(mark["name"]) for mark in marks])
    ax.set_ylim(len(marks) - 0.4, -0.6)
    ax.set_xlim(left=0)
    ax.set_xlabel("calibration error (lower is better)")
    entitle(ax, title)
    quiet_frame(ax)
    ax.tick_params(axis="y", length=0, labelsize="medium")
    _error_legend(ax)
    return ax


def _draw_error(ax: Any, place: int, mark: dict[str, Any]) -> None:
    raw, new = mark["raw"], mark["calibrated"]
    if mark["floor95"] is not None:
        ax.barh(place, mark["floor95"], height=0.62, color="0.88", zorder=0)
    if mark["true_low"] is not None:
        ax.plot([mark["true_low"], mark["true_high"]], [place, place], color=CALIBRATED_COLOR, linewidth=4, alpha=0.4, zorder=1)
    ax.annotate("", (new, place), (raw, place), arrowprops={"arrowstyle": "->", "color": "0.45", "shrinkA": 4, "shrinkB": 4})
    ax.plot(raw, place, **{**RAW, "linestyle": "none"}, markersize=7, zorder=3)
    ax.plot(new, place, **{**CALIBRATED, "linestyle": "none"}, markersize=6, zorder=3)
    ax.text(
        1.02, place, f"{raw:.4f} → {new:.4f}", transform=ax.get_yaxis_transform(), va="center", fontsize="small", color=QUIET
    )


def plot_coverage(curves: Mapping[str, Sequence[float]], *, ax: Any = None, title: str = "") -> Any:
    """Draw the accuracy of the most confident share, raw and calibrated.

    curves (Mapping): See `plot_data.coverage_curves`. ax: As in `reliability_diagram`. RETURNS (matplotlib.axes.Axes): The
    axes. RAISES C061: matplotlib is not installed.
    """
    entitle = entitle_for(ax)
    ax = axes_for(ax, 5.0, 3.6)
    for name, look in LOOKS.items():
        ax.plot(curves["shares"], curves[name], **{**look, "marker": ""}, label=name)
    ax.set(xlim=(0, 1), xlabel="share kept, most confident first", ylabel="accuracy of what is kept")
    entitle(ax, title)
    quiet_frame(ax)
    ax.legend(edgecolor="none", fontsize="small")
    return ax


def _error_legend(ax: Any) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Line2D([], [], **{**RAW, "linestyle": "none"}, markersize=7, label="raw"),
        Line2D([], [], **{**CALIBRATED, "linestyle": "none"}, markersize=6, label="calibrated"),
        Line2D([], [], color=CALIBRATED_COLOR, linewidth=4, alpha=0.4, label="95 % interval, calibrated"),
        Patch(color="0.88", label="noise floor, 95 %"),
    ]
    ax.figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize="small", handletextpad=0.5)


def drawable(text: str) -> str:
    """Return a text for a picture: control characters made visible (SVG cannot hold them), and dollars escaped."""
    return visible(text, keep="\n").replace("$", r"\$")
