"""Render the contents of a report as one HTML page, without external resources and with all texts escaped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from ...errors.visible import visible
from ...pairs.seen_texts import format_overlap_warning
from ...pipe.record.drift import OTHER_WEIGHTS_SENTENCE
from .page_pictures import MAX_DRAWN, page_pictures


def file_text(name: str) -> str:
    """Return the text of a file in this folder."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def render_template(name: str, filters: Mapping[str, Callable[..., str]] | None = None, **values: Any) -> str:
    """Return a Jinja template in this folder, filled in with escaped values. filters (Mapping): Name in it -> function."""
    from jinja2 import Environment

    env = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    env.filters |= filters or {}
    return env.from_string(file_text(name)).render(**values)


# No script, nothing from elsewhere, no form.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def render_report(contents: Mapping[str, Any]) -> str:
    """Return the report page as HTML.

    contents (Mapping): "title", "model", "data", "made" (term -> description of the run), "skipped" (list[str]: sentences on
    what is not evaluated), "views" (by `view_contents`, each with "component" and "name").
    """
    contents = make_visible(contents)
    filters = {format_.__name__: format_ for format_ in (number, count, percent, bounds, tie, change, format_score)}
    return render_template(
        "page.html.j2",
        filters,
        **{name: value for name, value in contents.items() if name != "views"},
        policy=_POLICY,
        style=file_text("page.css"),
        views=[
            {
                **view,
                "drawn": page_pictures(view, f"view-{i}"),
                "alarm": OTHER_WEIGHTS_SENTENCE if view["weights_changed"] else format_overlap_warning(view["seen"]),
            }
            for i, view in enumerate(contents["views"])
        ],
        max_drawn=MAX_DRAWN,
        names=FIGURE_NAMES,
    )


# Name of a metric -> its title and description on the page; other metrics have their title.
FIGURE_NAMES = {
    "smce": ("Calibration error, all together (SMCE)", "distance of scores from the share that is right, root mean square"),
    "gmce": ("Calibration error, mean of groups (GMCE)", "the same, with equal weight for frequent and rare tags"),
    "ece": ("Calibration error of the top label (ECE)", "mean distance of calib_score from the share that is right"),
    "smece": ("Smooth calibration error (smECE)", "mean distance after smoothing, without bins"),
    "nll": ("Log loss", "penalizes confident errors most"),
    "brier": ("Brier score", "mean squared distance from 0 or 1"),
}


def make_visible(data: Any) -> Any:
    """Make control characters visible in all texts in dicts and lists, since HTML does not allow them all."""
    if isinstance(data, str):
        return visible(data, keep="\n\t")
    if isinstance(data, Mapping):
        return {make_visible(key): make_visible(value) for key, value in data.items()}
    return [make_visible(part) for part in data] if isinstance(data, (list, tuple)) else data


def number(value: float | None, digits: int = 4) -> str:
    """Format a number with `digits` decimals and a typographic minus sign; None as a dash."""
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")


def count(value: int | None) -> str:
    """Format a whole number with commas between thousands; None as a dash."""
    return "–" if value is None else f"{value:,}"


def percent(value: float | None, digits: int = 1) -> str:
    """Format a share (0 to 1) in percent with `digits` decimals; None as a dash."""
    return "–" if value is None else f"{100 * value:.{digits}f}\u00a0%"


def format_score(value: float) -> str:
    """Format a probability to three digits; only 0 and 1 themselves are shown as "0.000" and "1.000"."""
    if 0 < value < 0.0005:
        return "<0.001"
    return ">0.999" if 0.9995 <= value < 1 else f"{value:.3f}"


def change(share: float) -> str:
    """Format a relative change (-0.5 for half) in percent, with its sign."""
    return f"{100 * share:+.0f}\u00a0%".replace("-", "−")


def tie(text: str) -> str:
    """Put a no-break space between each number and its percent sign."""
    return text.replace(" %", "\u00a0%")


def bounds(row: Mapping[str, Any], kind: str, digits: int = 4) -> str:
    """Format "LOW to HIGH" from row["<kind>_low"] and row["<kind>_high"] with `digits` decimals; "" if one is missing."""
    low, high = row.get(f"{kind}_low"), row.get(f"{kind}_high")
    return "" if low is None or high is None else f"{low:.{digits}f} to {high:.{digits}f}"
