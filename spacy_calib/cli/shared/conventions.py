"""Labels that differ between component and gold by convention, as `fit`, `info`, `evaluate` and the page show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .screen import Column, msg, show_rows, whole

# So many are shown.
SHOWN = 10
_COLUMNS = (
    Column("File", "file", lambda number: str(number + 1)),  # where the gold has several; the first is DATA
    Column("Component says", "said", align="l"),
    Column("Gold says", "gold", align="l"),
    Column("Tokens", "tokens", whole),
    Column("Of those it is sure of", "of", whole),
)


def map_to_paste(conventions: Sequence[Mapping[str, Any]]) -> str:
    """Return the value of --map for labels that the gold mostly calls otherwise, or ""."""
    mostly = {row["said"]: row["gold"] for row in conventions if 2 * row["tokens"] > row["of"]}
    return ",".join(f"{label}={gold}" for label, gold in mostly.items() if not set(",=") & set(label + gold))


def conventions_of(conventions: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    """Return the first "rows", and the "map" to paste, for a page."""
    rows = conventions or ()
    return {"rows": list(rows[:SHOWN]), "map": map_to_paste(rows)}


def show_conventions(conventions: Sequence[Mapping[str, Any]] | None) -> None:
    """Print the tags that the gold often calls otherwise though the component is confident, and the --map."""
    if not conventions:
        return
    msg.divider("Looks like another convention")
    show_rows(conventions[:SHOWN], _COLUMNS if any(row["file"] for row in conventions) else _COLUMNS[1:])
    if len(conventions) > SHOWN:
        msg.text(f"... and {len(conventions) - SHOWN:,} more, with fewer tokens.")
    map_text = map_to_paste(conventions)
    if map_text:
        msg.text(f"To go by the names of the gold: --map {map_text}")
