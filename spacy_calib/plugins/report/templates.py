"""The HTML and CSS files of this folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any


def file_text(name: str) -> str:
    """Return the text of a file of this folder."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def render_template(name: str, filters: Mapping[str, Callable[..., str]] | None = None, **values: Any) -> str:
    """Fill in a template of this folder; values are escaped. filters (Mapping): Name -> function, for the template."""
    from jinja2 import Environment

    env = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    env.filters |= filters or {}
    return env.from_string(file_text(name)).render(**values)
