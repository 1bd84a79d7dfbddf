"""Windows of texts, one after another -> the picture of what accuracy to expect over time, alarms marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..expect.windows import differs_in
from .plots import CALIBRATED_COLOR, QUIET, RAW_COLOR, axes_for, drawable, entitle_for, quiet_frame

# Names of windows that an axis shows at most.
_NAMES = 16
_ALARM, _NONE = "alarm", "no alarm"


def windows_of(lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of a picture or table. lines (Sequence): Of `Monitor.lines`.

    RETURNS (list[dict]): "place" (from 0), "name", "expected", "low", "high" (None without scores), "alarm" ("alarm" or "no alarm"), "verdict",
        "why" (what differs; "" where nothing does), "documents", "tokens".
    """
    parts = {line["part"] for line in lines}
    return [
        {
            "place": place,
            "name": f"{line['part']} {line['at']}" if len(parts) > 1 else str(line["at"]),
            **{name: line[name] for name in ("expected", "low", "high", "verdict", "documents", "tokens")},
            "alarm": _ALARM if line["alarm"] else _NONE,
            "why": differs_in(line),
        }
        for place, line in enumerate(lines)
    ]


def section_of(found: Mapping[str, Any], name: str, fit: float) -> dict[str, Any]:
    """What a page shows of windows. found (Mapping): Of `Monitor.snapshot`. name (str): Of what is watched. fit (float): Accuracy of the fit data."""
    return {
        "name": name,
        "fit": fit,
        "rate": round(found["rate"]),
        "alarms": found["alarms"],
        "windows": windows_of(found["windows"]),
    }


def plot_over_time(lines: Sequence[Mapping[str, Any]], fit: float, *, ax: Any = None, title: str = "") -> Any:
    """Draw the accuracy to be expected in each window, with its interval; windows that give an alarm in another colour and shape.

    lines (Sequence): Of `Monitor.lines`. fit (float): Accuracy of the fit data, a dotted line. ax: The matplotlib axes to draw on; None makes
    a figure.
    RETURNS (matplotlib.axes.Axes): The axes. RAISES C061: matplotlib is not installed.
    """
    rows = windows_of(lines)
    entitle = entitle_for(ax)
    ax = axes_for(ax, min(12.0, max(6.6, 1.5 + 0.3 * len(rows))), 3.6)
    ax.axhline(100 * fit, color="0.6", linewidth=1, linestyle=":", zorder=0, label="accuracy of the fit data")
    scored = [row for row in rows if row["expected"] is not None]
    ax.plot([row["place"] for row in scored], [100 * row["expected"] for row in scored], color="0.75", linewidth=1, zorder=1)
    looks = {_NONE: (CALIBRATED_COLOR, "s", "expected, 95 % interval"), _ALARM: (RAW_COLOR, "X", "alarm: do not trust it")}
    for kind, (color, marker, label) in looks.items():
        own = [row for row in scored if row["alarm"] == kind]
        places, expected = [row["place"] for row in own], [100 * row["expected"] for row in own]
        reach = [[100 * (row["expected"] - row["low"]) for row in own], [100 * (row["high"] - row["expected"]) for row in own]]
        if own:
            ax.errorbar(
                places,
                expected,
                yerr=reach,
                fmt=marker,
                color=color,
                markersize=6,
                capsize=2,
                linewidth=1.2,
                label=label,
                zorder=2,
            )
    for row in rows:
        if row["expected"] is None:
            ax.axvspan(row["place"] - 0.4, row["place"] + 0.4, color="0.93", zorder=0, linewidth=0)
    step = -(-len(rows) // _NAMES) or 1
    ax.set_xticks(
        [row["place"] for row in rows[::step]], [drawable(row["name"]) for row in rows[::step]], rotation=45, ha="right"
    )
    ax.set_xlim(-0.6, max(0.6, len(rows) - 0.4))
    ax.set_ylabel("expected accuracy, %")
    entitle(ax, title)
    quiet_frame(ax)
    ax.figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize="small")
    if not scored:
        ax.text(0.5, 0.5, "no texts", ha="center", va="center", color=QUIET, transform=ax.transAxes)
    return ax
