"""Labels that differ between component and gold by convention, as `fit`, `info`, `evaluate` and the page show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...pairs.label_map import map_to_paste
from ...types import OUTSIDE
from ..shared.screen import Column, msg, show_rows, whole

# So many are shown.
SHOWN = 10
_COLUMNS = (
    Column("File", "file", lambda number: str(number + 1)),  # where the gold has several; the first is DATA
    Column("Component says", "said", align="l"),
    Column("Gold says", "gold", align="l"),
    Column("Tokens", "tokens", whole),
    Column("Of those it is sure of", "of", whole),
)


def suggested_map(conventions: Sequence[Mapping[str, Any]]) -> str:
    """The --map for labels that the gold mostly calls otherwise, "" without any; labels that the gold has too are left out."""
    return map_to_paste(
        {
            row["said"]: row["gold"]
            for row in conventions
            if 2 * row["tokens"] > row["of"] and not row["in_gold"] and row["gold"] != OUTSIDE
        }
    )


def conventions_of(conventions: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    """What a page shows of them: the first "rows", and the "map" to paste."""
    found = conventions or ()
    return {"rows": list(found[:SHOWN]), "map": suggested_map(found)}


def show_conventions(conventions: Sequence[Mapping[str, Any]] | None) -> None:
    """Print the tags that the gold often calls otherwise though the component is confident, and the --map."""
    if not conventions:
        return
    msg.divider("Looks like another convention")
    show_rows(conventions[:SHOWN], _COLUMNS if any(row["file"] for row in conventions) else _COLUMNS[1:])
    if len(conventions) > SHOWN:
        msg.text(f"... and {len(conventions) - SHOWN:,} more, with fewer tokens.")
    pasted = suggested_map(conventions)
    if pasted:
        msg.text(f"To go by the names of the gold: --map {pasted}")
