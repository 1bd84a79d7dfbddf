"""Slices on the screen: how true scores are in parts of the data."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ..shared.screen import Column, msg, number, show_rows, whole

_three = partial(number, digits=3)
_COLUMNS = (
    Column("", "off", lambda off: "OFF" if off else "", align="l"),
    Column("Slice", "slice", align="l"),
    Column("Documents", "documents", whole),
    Column("Labels", "n", whole),
    Column("Mean score", "score", _three),
    Column("Right", "right", _three),
    Column("Gap", "", lambda row: f"{row['gap']:+.3f}"),
    Column("95 % interval", "", lambda row: "-" if row["low"] is None else f"{row['low']:+.3f} to {row['high']:+.3f}"),
    Column("Error", "calibrated", _three),
    Column("Floor 95 %", "floor95", _three),
)


def show_slices(table: Mapping[str, Any], units: str) -> None:
    """Print how true scores are in each slice. units (str): What has the labels: "tokens"."""
    rows, small = table["rows"], table["too_small"]
    if rows:
        msg.text(f"Where scores are off, by {table['by']} (of the {units} with their likeliest label):")
        show_rows(rows, _COLUMNS)
        off = sum(row["off"] for row in rows)
        msg.text(
            f"{_of(off, len(rows))} surely off; of those that are called so, {100 * table['rate']:g} % at most are so by chance, on average. "
            "A gap above 0: scores are too high."
        )
    if small:
        from ...metrics.slices import FEWEST_DOCUMENTS, FEWEST_UNITS

        what = f"with fewer than {FEWEST_UNITS} {units} or {FEWEST_DOCUMENTS} documents"
        msg.text(f"{small:,} {'more' if rows else 'slices'} {what} {'is' if small == 1 and rows else 'are'} not judged.")


def _of(off: int, n: int) -> str:
    return f"{off or 'None'} of {n:,} slice{'s' if n > 1 else ''} {'is' if off < 2 else 'are'}"
