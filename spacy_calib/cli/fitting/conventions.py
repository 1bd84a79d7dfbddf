"""Show labels that component and gold seem to use differently, for `fit`, `info`, `evaluate` and the HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...pairs.label_map import map_to_paste
from ...types import OUTSIDE
from ..shared.screen import TableColumn, msg, show_rows, whole

# Maximum number of rows to show. A row is for one confidently predicted label and the other label that its gold often has.
SHOWN = 10
_COLUMNS = (
    TableColumn("File", "file", lambda number: str(number + 1)),  # only if there are several gold files; the first is DATA
    TableColumn("Predicted", "said", align="l", width=26),
    TableColumn("Gold", "gold", align="l", width=26),
    TableColumn("Tokens", "tokens", whole),
    TableColumn("Of confident predictions", "of", whole),
)


def suggested_map(conventions: Sequence[Mapping[str, Any]]) -> str:
    """Return a --map, "PERSON=PER", for predicted labels that the gold never uses and mostly replaces by another; "" for none.

    conventions (Sequence[Mapping]): Rows with a predicted label ("said"), a "gold" label, and numbers of tokens: "tokens" have
    both labels, "of" have a confident prediction of "said", and "in_gold" have "said" as their gold label.
    """
    rows = [row for row in conventions if 2 * row["tokens"] > row["of"] and not row["in_gold"] and row["gold"] != OUTSIDE]
    return map_to_paste({row["said"]: row["gold"] for row in rows})


def page_conventions(conventions: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    """Return {"rows": the first SHOWN of `conventions`, "map": the --map that all suggest} for the HTML page."""
    rows = conventions or ()
    return {"rows": list(rows[:SHOWN]), "map": suggested_map(rows)}


def show_conventions(conventions: Sequence[Mapping[str, Any]] | None) -> None:
    """Print `conventions`, confidently predicted labels that often have another gold label, and the suggested --map."""
    if not conventions:
        return
    msg.divider("Looks like another convention")
    has_files = any(row["file"] for row in conventions)  # file 0 is DATA
    show_rows(conventions[:SHOWN], _COLUMNS if has_files else _COLUMNS[1:])  # the first column is the file
    if len(conventions) > SHOWN:
        msg.text(f"... and {len(conventions) - SHOWN:,} more, with fewer tokens.")
    label_map = suggested_map(conventions)
    if label_map:
        msg.text(f"To use the labels of the gold: fit --map {label_map}")
