"""Labels that component and gold seem to use differently, as `fit`, `info`, `evaluate` and the page show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...pairs.label_map import map_to_paste
from ...types import OUTSIDE
from ..shared.screen import TableColumn, msg, show_rows, whole

# Maximum number of rows to show.
SHOWN = 10
_COLUMNS = (
    TableColumn("File", "file", lambda number: str(number + 1)),  # only if there are several gold files; the first is DATA
    TableColumn("Predicted", "said", align="l", width=26),
    TableColumn("Gold", "gold", align="l", width=26),
    TableColumn("Tokens", "tokens", whole),
    TableColumn("Of confident predictions", "of", whole),
)


def suggested_map(conventions: Sequence[Mapping[str, Any]]) -> str:
    """Return a --map for labels that mostly have another gold label, and that the gold never uses; "" without any."""
    return map_to_paste(
        {
            row["said"]: row["gold"]
            for row in conventions
            if 2 * row["tokens"] > row["of"] and not row["in_gold"] and row["gold"] != OUTSIDE
        }
    )


def page_conventions(conventions: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    """Return for the HTML page the first SHOWN "rows", and the --map that all rows suggest, "map"."""
    rows = conventions or ()
    return {"rows": list(rows[:SHOWN]), "map": suggested_map(rows)}


def show_conventions(conventions: Sequence[Mapping[str, Any]] | None) -> None:
    """Print the confidently predicted labels that often have another gold label, and the suggested --map."""
    if not conventions:
        return
    msg.divider("Looks like another convention")
    show_rows(conventions[:SHOWN], _COLUMNS if any(row["file"] for row in conventions) else _COLUMNS[1:])
    if len(conventions) > SHOWN:
        msg.text(f"... and {len(conventions) - SHOWN:,} more, with fewer tokens.")
    label_map = suggested_map(conventions)
    if label_map:
        msg.text(f"To use the labels of the gold: --map {label_map}")
