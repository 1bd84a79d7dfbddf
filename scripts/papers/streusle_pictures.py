"""Figures 2 and 3 of Kranzlein et al. (2021), from the rows of streusle_table.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from frame import COLORS, MARKERS, new_figure, save_figure

from spacy_calib.plugins.report.plots import QUIET, quiet_frame

# The raw scores, and what the paper's methods are called: by TagCalibrator.
NONE = "none"
TECHNIQUES = {"histogram": "histogram", "isotonic": "isotonic", "scaling binning": "scaling-binning"}


def draw(path: Path, models: Sequence[Any], rows: Sequence[Any], by_group: bool) -> None:
    """The paper's Figure 2 (SMCE), or 3 (GMCE by group): circles raw, arrows to TFG, squares SCW, a grey bar for the floor of TFG.

    models, rows: Model and Row of streusle_table.py. RAISES CalibError: matplotlib is not installed.
    """
    by_method = {(row.model, row.method): row for row in rows}
    groups = range(min(len(model.groups) for model in models)) if by_group else [None]
    height = 1.6 + 0.24 * len(TECHNIQUES) * len(groups)
    figure = new_figure(3.1 * len(models) + 0.6, height)
    axes = np.atleast_1d(figure.subplots(1, len(models), sharex=True, sharey=True))
    for ax, model in zip(axes, models, strict=True):
        places = []
        for block, group in enumerate(groups):
            for line, technique in enumerate(TECHNIQUES):
                place = block * (len(TECHNIQUES) + 1) + line
                places.append((place, technique))
                errors = {
                    kind: by_method[model.name, name].smce if group is None else by_method[model.name, name].groups[group]
                    for kind, name in (("raw", NONE), ("SCW", f"SCW {technique}"), ("TFG", f"TFG {technique}"))
                }
                draw_line(ax, place, errors)
            if by_group:
                ax.text(0.99, block * (len(TECHNIQUES) + 1) - 0.75, f"group {block + 1}", transform=ax.get_yaxis_transform(), ha="right", va="center", fontsize="small", color=QUIET)  # fmt: skip
        ax.set_yticks([place for place, _ in places], [name for _, name in places])
        ax.set_ylim(places[-1][0] + 0.7, -1.1 if by_group else -0.7)
        ax.set(title=model.name, xlabel="GMCE" if by_group else "SMCE")
        quiet_frame(ax)
        ax.tick_params(axis="y", length=0)
    axes[0].set_xlim(left=0)  # once all are drawn: it holds the limits of all at what they are
    add_legend(figure)
    save_figure(path, figure, 150)


def draw_line(ax: Any, place: float, errors: Mapping[str, Any]) -> None:
    """found: "raw", "SCW" and "TFG"."""
    raw, scw_error, by_method = (errors[kind].error for kind in ("raw", "SCW", "TFG"))
    ax.barh(place, errors["TFG"].floor, height=0.8, color="0.9", zorder=0)
    color = COLORS[2] if by_method <= raw else COLORS[1]
    ax.annotate(
        "", (by_method, place), (raw, place), arrowprops={"arrowstyle": "-|>", "color": color, "shrinkA": 3, "shrinkB": 0}
    )
    ax.plot(raw, place, "o", color="black", markerfacecolor="white", markersize=5, zorder=3)
    ax.plot(scw_error, place, MARKERS[1], color=COLORS[0], markersize=4, zorder=3)


def add_legend(figure: Any) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Line2D([], [], marker="o", color="black", markerfacecolor="white", linestyle="none", label="raw"),
        Line2D([], [], color=COLORS[2], marker=">", markersize=5, label="to TFG, less"),
        Line2D([], [], color=COLORS[1], marker=">", markersize=5, label="to TFG, more"),
        Line2D([], [], color=COLORS[0], marker=MARKERS[1], linestyle="none", label="SCW"),
        Patch(color="0.9", label="floor of TFG, 95 %"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize="small")
