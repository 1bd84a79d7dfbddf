"""Outputs of `spacy calib evaluate`, by the suffix of their path: numbers, a page, pictures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ..shared.command import check_option
from ..shared.outputs import PICTURES, is_stream

NUMBERS, PAGES = (".json",), (".htm", ".html")


class Section(NamedTuple):
    """A section that is added to the tables.

    pipe, unit (str): The table that it is added to: "tokens", "documents" or "entities" of a pipe; without a pipe it is only
    printed, after all tables. key (str): Its key in JSON. rows (Any): Plain data. show (Callable | None): (rows, plural noun of
    the units) -> None, prints it.
    """

    pipe: str
    unit: str
    key: str
    rows: Any
    show: Callable[[Any, str], None] | None = None


def kind_of(path: Path) -> str:
    """Return what is written to a path: "numbers", "page", or "pictures" (also into a folder). RAISES C056: another suffix."""
    suffix = path.suffix.lower()
    if is_stream(path) or suffix in NUMBERS:
        return "numbers"
    if suffix in PAGES:
        return "page"
    endings = ", ".join((*NUMBERS, *PAGES, *PICTURES))
    check_option(
        "--output", suffix in PICTURES or not suffix or path.is_dir(), f"a file that ends in {endings}, or a folder", path
    )
    return "pictures"
