"""Render the contents of a report as one HTML file without external resources, with escaped texts."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from ...errors.visible import visible
from ...pairs.seen_texts import format_overlap_warning
from ...pipe.record.drift import OTHER_WEIGHTS_SENTENCE
from .plot_data import error_marks

# Characters that end a script element or begin a comment, and line ends of JavaScript that JSON allows.
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
MAX_ERROR_ROWS = 40
_CURVE = ("pairs", "scores", "right", "low", "high", "histogram")


def render_report(contents: Mapping[str, Any]) -> str:
    """Return the page as HTML.

    contents (Mapping): "title", "model", "data", "made" (term -> description of the run), "skipped" (list[str]: sentences on
    what is not evaluated), "views" (by `view_contents`, each with "component" and "name").
    """
    from jinja2 import Environment

    contents = make_visible(contents)
    scripts = [_file(name).replace("</script", "<\\/script").replace("<!--", "<\\!--") for name in ("pictures.js", "page.js")]
    env = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    env.filters |= {format_.__name__: format_ for format_ in (number, count, percent, bounds, tie, change, score)}
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    sources = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return env.from_string(_file("page.html.j2")).render(
        **{name: value for name, value in contents.items() if name != "views"},
        policy=f"default-src 'none'; script-src {sources}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'",
        style=_file("page.css"),
        scripts=scripts,
        views=[
            {
                **view,
                "cut": MAX_ERROR_ROWS - 2 if len(view["table"]["errors"]) > MAX_ERROR_ROWS else None,
                "alarm": OTHER_WEIGHTS_SENTENCE if view["weights_changed"] else format_overlap_warning(view["seen"]),
            }
            for view in contents["views"]
        ],
        page_data=script_json({"views": [_for_script(view) for view in contents["views"]]}),
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
    """Replace control characters in all texts, since HTML does not allow them all."""
    if isinstance(data, str):
        return visible(data, keep="\n\t")
    if isinstance(data, Mapping):
        return {make_visible(key): make_visible(value) for key, value in data.items()}
    return [make_visible(part) for part in data] if isinstance(data, (list, tuple)) else data


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def script_json(data: Any) -> Any:
    """Return JSON for a script element, as markup."""
    from markupsafe import Markup

    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return Markup(text)


def _for_script(view: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers that the script draws: curves rounded to four digits, and errors of the groups."""
    curves, errors, slices = view["curves"], view["table"]["errors"], view["slices"]["rows"] if view.get("slices") else []
    if len(errors) > MAX_ERROR_ROWS:  # the last is the mean
        errors = [*errors[: MAX_ERROR_ROWS - 1], errors[-1]]
    return {
        "errors": error_marks(errors),
        "slices": [{"name": row["slice"], **row} for row in slices[:MAX_ERROR_ROWS]],
        "columns": _CURVE,
        "all": _compact(curves["all"]),
        "top": curves["top"] and _compact(curves["top"]),
        "coverage": {key: [round(value, 4) for value in values] for key, values in view["coverage"].items()},
        "groups": {name: _compact(pair) for name, pair in curves["groups"].items()},
        "tags": {name: _compact(pair) for name, pair in curves["tags"].items()},
    }


def _compact(pair: Mapping[str, Any]) -> list[list[list[float]]]:
    return [[[round(value, 4) for value in pair[kind][key]] for key in _CURVE] for kind in ("raw", "calibrated")]


def number(value: float | None, digits: int = 4) -> str:
    """Format a figure, or a dash."""
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")


def count(value: int | None) -> str:
    """Format a whole number with thousands marked, or a dash."""
    return "–" if value is None else f"{value:,}"


def percent(value: float | None, digits: int = 1) -> str:
    """Format a share in percent, or a dash."""
    return "–" if value is None else f"{100 * value:.{digits}f}\u00a0%"


def score(value: float) -> str:
    """Format a probability to three digits; only 0 and 1 themselves are shown as "0.000" and "1.000"."""
    if 0 < value < 0.0005:
        return "<0.001"
    return ">0.999" if 0.9995 <= value < 1 else f"{value:.3f}"


def change(share: float) -> str:
    """Format a relative change in percent, with its sign."""
    return f"{100 * share:+.0f}\u00a0%".replace("-", "−")


def tie(text: str) -> str:
    """Keep a number and its percent sign on one line."""
    return text.replace(" %", "\u00a0%")


def bounds(row: Mapping[str, Any], kind: str, digits: int = 4) -> str:
    """Format the interval of a figure, or ""."""
    low, high = row.get(f"{kind}_low"), row.get(f"{kind}_high")
    return "" if low is None or high is None else f"{low:.{digits}f} to {high:.{digits}f}"
