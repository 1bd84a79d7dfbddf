"""Vega-Lite specifications of the page's pictures, through Altair (the extra `report`), and the script that draws them.

Colours are CSS variables of the page, so that one drawing serves light, dark and print.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from ..errors import calib_error
from .plot_data import error_marks

KINDS = ["raw", "calibrated"]
COLORS = ["var(--raw)", "var(--calibrated)"]
SHAPES = ["circle", "square"]
# Both pictures of scores leave the same room for their axis, so that they stand exactly above each other.
AXIS_ROOM = 52
ROW_HEIGHT = 26


def load_altair() -> Any:
    """The module altair. RAISES C080: it, or what turns it into a page, is not installed."""
    try:
        import altair
        import vl_convert  # noqa: F401
    except ImportError:
        raise calib_error("C080") from None
    return altair


@cache
def library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, which puts `vegaEmbed` on the window. RAISES C080: see `load_altair`."""
    load_altair()
    import vl_convert

    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("\r\n", "\n")


def _config() -> dict[str, Any]:
    text = {
        "labelColor": "var(--ink)",
        "titleColor": "var(--ink)",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
    }
    return {
        "background": "transparent",
        "font": "system-ui, sans-serif",
        "view": {"stroke": "transparent"},
        "axis": {**text, "gridColor": "var(--grid)", "domainColor": "var(--line)", "tickColor": "var(--line)"},
        "legend": {**text, "orient": "top", "title": None, "symbolSize": 60, "symbolStrokeWidth": 0},
    }


def specifications(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """ "diagram", "scores" and "coverage", whose data the page fills in, and "errors".

    rows (Sequence): "errors" of `metrics.table.calibration_table`. RAISES C080: see `load_altair`.
    """
    return {"diagram": diagram(), "scores": score_bars(), "coverage": coverage_chart(), "errors": error_chart(rows)}


def finished(chart: Any, width: int, height: int) -> dict[str, Any]:
    return chart.properties(width=width, height=height).configure(**_config()).to_dict()


def _by_kind(alt: Any) -> dict[str, Any]:
    """Colour and shape, which say the same: nobody needs to tell colours apart."""
    return {
        "color": alt.Color("kind:N", scale=alt.Scale(domain=KINDS, range=COLORS)),
        "shape": alt.Shape("kind:N", scale=alt.Scale(domain=KINDS, range=SHAPES)),
    }


def diagram() -> dict[str, Any]:
    """A reliability diagram of the data "bins": rows with kind, score, right, low, high, pairs; the diagonal is the truth."""
    alt = load_altair()
    axis = {"values": [0, 0.2, 0.4, 0.6, 0.8, 1], "format": ".1f", "labelFlush": False}
    scale = alt.Scale(domain=[0, 1], nice=False)
    x = alt.X("score:Q", title="mean score of the bin", scale=scale, axis=alt.Axis(**axis))
    room = alt.Axis(minExtent=AXIS_ROOM, maxExtent=AXIS_ROOM, **axis)
    y = alt.Y("right:Q", title="share that is right", scale=scale, axis=room)
    tooltip = [
        alt.Tooltip("kind:N", title="scores"),
        alt.Tooltip("score:Q", title="mean score", format=".3f"),
        alt.Tooltip("right:Q", title="right", format=".3f"),
        alt.Tooltip("bar:N", title="95 %"),
        alt.Tooltip("pairs:Q", title="pairs", format=","),
    ]
    both = _by_kind(alt)
    bars = (
        alt.Chart()
        .mark_rule(strokeWidth=1.5, aria=False)
        .encode(x=x, y=alt.Y("low:Q", axis=room), y2="high:Q", color=both["color"])
    )
    line = alt.Chart().mark_line(strokeWidth=1.5, aria=False).encode(x=x, y=y, color=both["color"], strokeDash=_dashes(alt))
    points = alt.Chart().mark_point(filled=True, size=70, opacity=1).encode(x=x, y=y, tooltip=tooltip, **both)
    truth = alt.Chart(alt.Data(values=[{"score": 0, "right": 0}, {"score": 1, "right": 1}]))
    diagonal = truth.mark_line(color="var(--line)", strokeDash=[2, 3], aria=False).encode(x=x, y=y)
    return finished(alt.layer(diagonal, bars, line, points, data=alt.NamedData(name="bins")), 420, 380)


def _dashes(alt: Any) -> Any:
    return alt.StrokeDash("kind:N", scale=alt.Scale(domain=KINDS, range=[[5, 3], [1, 0]]))


def score_bars() -> dict[str, Any]:
    """How many scores lie where: the data "scores", rows with kind, start, end (where the bar stands), low, high (of the scores), pairs."""
    alt = load_altair()
    x = alt.X("start:Q", title="score of a pair", scale=alt.Scale(domain=[0, 1], nice=False),
              axis=alt.Axis(values=[0, 0.2, 0.4, 0.6, 0.8, 1], format=".1f", grid=False, labelFlush=False))  # fmt: skip
    axis = alt.Axis(minExtent=AXIS_ROOM, maxExtent=AXIS_ROOM, tickCount=3, format=",d")
    y = alt.Y("pairs:Q", title="pairs (√ scale)", scale=alt.Scale(type="sqrt"), axis=axis)
    tooltip = [
        alt.Tooltip("kind:N", title="scores"),
        alt.Tooltip("range:N", title="from, to"),
        alt.Tooltip("pairs:Q", title="pairs", format=","),
    ]
    color = alt.Color("kind:N", scale=alt.Scale(domain=KINDS, range=COLORS), legend=None)
    bars = (
        alt.Chart(alt.NamedData(name="scores"))
        .mark_bar()
        .encode(x=x, x2="end:Q", y=y, y2=alt.datum(0), color=color, tooltip=tooltip)
    )
    return finished(bars, 420, 90)


def coverage_chart() -> dict[str, Any]:
    """Accuracy of the most confident share: the data "coverage", rows with kind, share, accuracy."""
    alt = load_altair()
    x = alt.X(
        "share:Q",
        title="share kept, most confident first",
        scale=alt.Scale(domain=[0, 1], nice=False),
        axis=alt.Axis(format=".0%", tickCount=5, labelFlush=False),
    )
    room = alt.Axis(minExtent=AXIS_ROOM, maxExtent=AXIS_ROOM, format=".1%")
    y = alt.Y("accuracy:Q", title="accuracy of what is kept", scale=alt.Scale(zero=False), axis=room)
    legend = alt.Legend(symbolType="stroke", symbolOpacity=1, symbolStrokeWidth=2)
    color = alt.Color("kind:N", scale=alt.Scale(domain=KINDS, range=COLORS), legend=legend)
    tooltip = [
        alt.Tooltip("kind:N", title="scores"),
        alt.Tooltip("share:Q", title="kept", format=".0%"),
        alt.Tooltip("accuracy:Q", title="right", format=".2%"),
    ]
    base = alt.Chart(alt.NamedData(name="coverage")).encode(x=x, y=y, color=color, tooltip=tooltip)
    # What a pointer finds is broader than what is seen.
    lines = base.mark_line(strokeWidth=2, aria=False).encode(strokeDash=_dashes(alt))
    return finished(alt.layer(lines, base.mark_point(size=80, opacity=0, aria=False)), 420, 220)


def error_chart(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The error before and after, of all and of each group, with its 95 % interval and what chance would show (Kranzlein et al. 2021, figures
    2 and 3). rows (Sequence): See `specifications`; those without pairs are left out.
    """
    alt = load_altair()
    marks = error_marks(rows)
    long = [{**mark, "kind": kind, "error": mark[kind]} for mark in marks for kind in KINDS]
    y = alt.Y(
        "name:N", title=None, sort=[mark["name"] for mark in marks], axis=alt.Axis(labelLimit=110, ticks=False, domain=False)
    )
    # All layers name the axis alike, or none is named.
    title = "calibration error (lower is better)"
    x = alt.X("raw:Q", title=title, axis=alt.Axis(format=".2~f"))
    base = alt.Chart(alt.Data(values=marks)).encode(y=y)
    floor = base.mark_bar(color="var(--floor)", height=18, aria=False).encode(x=alt.X("floor95:Q", title=title))
    change = base.mark_rule(color="var(--line)", strokeWidth=1.5, aria=False).encode(x=x, x2="calibrated:Q")
    reach = base.mark_rule(color="var(--calibrated)", strokeWidth=5, opacity=0.4, aria=False).encode(
        x=alt.X("true_low:Q", title=title), x2="true_high:Q"
    )
    points = (
        alt.Chart(alt.Data(values=long))
        .mark_point(filled=True, size=90, opacity=1)
        .encode(y=y, x=alt.X("error:Q", title=title), tooltip=_error_tooltip(alt), **_by_kind(alt))
    )
    # Without intervals (a single document) the axis would have no end to reckon with.
    with_reach = [reach] if any(mark["true_low"] is not None for mark in marks) else []
    return finished(alt.layer(floor, change, *with_reach, points), 420, ROW_HEIGHT * max(1, len(marks)))


def _error_tooltip(alt: Any) -> list[Any]:
    numbers = {
        "raw": "raw",
        "calibrated": "calibrated",
        "true_low": "95 % from",
        "true_high": "95 % to",
        "floor95": "chance, up to",
    }
    return [
        alt.Tooltip("name:N", title="of"),
        *(alt.Tooltip(f"{key}:Q", title=title, format=".4f") for key, title in numbers.items()),
        alt.Tooltip("pairs:Q", title="pairs", format=","),
    ]
