"""The pictures of the report page: matplotlib's SVG, in the light or dark colours of the page's style sheet."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any

from ...errors import CalibError
from ...optional import figure_class, picture_bytes
from .plots import CALIBRATED_COLOR, RAW_COLOR, draw_picture

MAX_DRAWN = 12  # maximum number of groups, and of slices, with pictures of their own
# Colour in a picture -> variable of the style sheet; greys follow by their lightness.
_COLORS = {RAW_COLOR.lower(): "raw", CALIBRATED_COLOR.lower(): "calibrated"}
_GREYS = ((0x40, "ink"), (0x80, "quiet"), (0xD0, "line"), (0xF0, "floor"), (0x100, "ground"))
# What a picture shows, for those who do not see it; its numbers are in a table of the page.
_DIAGRAM = "Reliability diagram of {of}: share that is right against score, raw and calibrated."
_ERRORS = "Calibration error of {of}, raw and calibrated, with the 95 % interval and what chance would show."
_ALTERNATIVES = {
    **dict.fromkeys(("reliability", "top", "groups"), _DIAGRAM),
    **dict.fromkeys(("errors", "slices"), _ERRORS),
    "coverage": "Accuracy of {of} against the share that is kept, raw and calibrated.",
}


def page_pictures(view: Mapping[str, Any], prefix: str) -> dict[str, list[Any]]:
    """Return the pictures of a view as SVG elements.

    view (Mapping): From `contents.view_contents`. prefix (str): Begins every id, so that ids on a page differ. RETURNS (dict):
    "reliability", "top", "groups", "errors", "coverage", "slices" -> SVG of each picture, as markup; empty without matplotlib.
    """
    try:
        figure_class()
    except CalibError:
        return {}
    noun, pictures = view["noun"], view["pictures"]
    groups = [row for row in pictures["groups"] if row["pairs"]][:MAX_DRAWN]
    errors = view["table"]["errors"]  # rows of all pairs, of each group, and of their mean
    if len(errors) > MAX_DRAWN + 2:
        errors = [*errors[: 1 + MAX_DRAWN], errors[-1]]
    # A slice gets the keys of a row of errors, as it is drawn like a group.
    slices = [{"group": row["slice"], "name": row["slice"], **row} for row in (view["slices"] or {"rows": []})["rows"]]
    tops = pictures.get("top")
    drawings = {  # name -> (subject of the alternative text, rows to draw) of each picture with this name
        "reliability": [(f"all {noun}s", pictures["reliability"])],
        "top": [(f"the top {noun}s", tops)] if tops else [],
        "groups": [(f"{row['title']} of the {noun}s", [row]) for row in groups],
        "errors": [(f"each group of {noun}s", errors)],
        "coverage": [(f"the most confident {noun}s", pictures["coverage"])],
        "slices": [("each slice", slices[:MAX_DRAWN])] if slices else [],
    }
    return {
        name: [
            svg_element(draw_picture(name, rows, on_page=True), f"{prefix}-{name}-{i}-", _ALTERNATIVES[name].format(of=subject))
            for i, (subject, rows) in enumerate(subjects_and_rows)
        ]
        for name, subjects_and_rows in drawings.items()
    }


def svg_element(figure: Any, prefix: str, alternative: str) -> Any:
    """Return a figure as SVG markup for an HTML page. prefix (str): Begins every id. alternative (str): What it shows."""
    from markupsafe import Markup

    root = ET.fromstring(picture_bytes(figure, ".svg", text=True))
    parents = [(parent, child) for parent in root.iter() for child in parent]
    for parent, child in parents:
        if child.tag.endswith(("}metadata", "}style")):
            parent.remove(child)
    for element in root.iter():  # HTML needs no namespaces, and no white space between elements
        element.tag = element.tag.rpartition("}")[2]
        attributes = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
        element.attrib.clear()
        element.attrib |= {name: _adapt_attribute(name, value, prefix) for name, value in attributes.items()}
        if element.tag != "text":
            element.text = None
        element.tail = None
    width = root.attrib.pop("width").removesuffix("pt")  # 12 points are 1 rem
    del root.attrib["height"]
    root.attrib |= {"role": "img", "aria-label": alternative, "style": f"width: {float(width) / 12:.4g}rem"}
    return Markup(ET.tostring(root, encoding="unicode"))


def _adapt_attribute(name: str, value: str, prefix: str) -> str:
    """Adapt an SVG attribute's value to the page: ids get the prefix, colours become CSS variables, fonts are left out."""
    if name == "id":
        return prefix + value
    if name == "href":
        return value.replace("#", f"#{prefix}")
    if name == "clip-path":
        return value.replace("url(#", f"url(#{prefix}")
    if name != "style":
        return value
    return re.sub("#[0-9a-f]{6}", _css_variable, re.sub(r"font-family:[^;]*; ?", "", value))


def _css_variable(color: re.Match[str]) -> str:
    """Return the CSS variable for a colour in a picture, matched as "#d55e00" for instance; for greys by their lightness."""
    lightness = int(color[0][1:3], 16)  # the red part, which is as large as green and blue in a grey
    name = _COLORS.get(color[0]) or next(name for limit, name in _GREYS if lightness < limit)
    return f"var(--{name})"
