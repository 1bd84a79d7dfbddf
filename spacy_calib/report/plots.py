"""Rows -> figures, through matplotlib (the extra `plots`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..binning import make_binner
from ..errors import calib_error
from ..metrics.calibration_error import calibration_error, table_of

# Okabe and Ito's colour-blind-safe palette
RAW_COLOR, CALIBRATED_COLOR = "#D55E00", "#0072B2"


def figure_class() -> Any:
    """matplotlib's Figure. Not pyplot: that keeps every figure it made, and its backend is the user's to choose.

    RAISES C061: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise calib_error("C061") from None
    return Figure


def reliability_diagram(
    scores: ArrayLike, hits: ArrayLike, *, ax: Any, n_bins: int = 10, label: str = "", color: str = CALIBRATED_COLOR
) -> None:
    """Draw share of hits against mean score per adaptive bin, with 95 % bars (Nguyen & O'Connor 2015, section 3.3).

    scores, hits: n of each. ax: The matplotlib axes to draw on. label (str): For the legend, with the error. No scores draw nothing.
    """
    if not np.size(scores):
        return
    table = table_of(scores, hits, make_binner(n_bins))
    bars = 1.96 * np.sqrt(table.mean_hit * (1 - table.mean_hit) / table.counts)
    error = calibration_error(scores, hits, n_bins)
    ax.errorbar(table.mean_score, table.mean_hit, yerr=bars, color=color, marker="o", markersize=4, capsize=2,
                linewidth=1.2, label=f"{label} {error:.3f}".strip())  # fmt: skip


def compare_reliability(panels: list[dict[str, Any]], title: str = "") -> Any:
    """A row of reliability diagrams, raw against calibrated.

    panels (list): Each a dict with "title", "hits", "raw", "calibrated".
    RETURNS (matplotlib.figure.Figure): The figure, not saved.
    RAISES C061: matplotlib is not installed.
    """
    figure = figure_class()(figsize=(3.6 * len(panels), 4.4), layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)
    for ax, panel in zip(axes[0], panels, strict=True):
        ax.plot([0, 1], [0, 1], color="0.7", linewidth=1, linestyle="--", zorder=0)
        for key, color in (("raw", RAW_COLOR), ("calibrated", CALIBRATED_COLOR)):
            reliability_diagram(panel[key], panel["hits"], ax=ax, label=key, color=color)
        ax.set(title=panel["title"], xlabel="score", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        if ax.containers:
            ax.legend(frameon=False, loc="upper left", fontsize="small", title="SMCE", title_fontsize="small")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0][0].set_ylabel("share that is right")
    if title:
        figure.suptitle(title)
    return figure
