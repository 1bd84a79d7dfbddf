"""Output of `calib count`: the lines of a CSV file, and the printed tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from ...cli.shared.evidence import show_drift_of_counts, show_other_weights
from ...cli.shared.screen import TableColumn, msg, number, show_rows, whole
from ...pairs.documents import pluralize

# Columns of the CSV file.
COLUMNS = (
    *("name", "query", "unit", "group", "documents", "tokens", "raw", "expected", "low", "high"),
    *("raw_expected", "raw_low", "raw_high"),
)


def format_csv(result: dict[str, Any], raw: bool = False) -> Iterator[str]:
    """Yield the lines of a CSV file: a row for each group of each query, or one for all texts if there are no groups.

    raw (bool): Whether to leave cells as they are that a spreadsheet would take for a formula.
    """
    from ...errors.visible import csv_lines

    lines = (
        [query["name"], query["query"], query["unit"], *(row[name] for name in COLUMNS[3:])]
        for query in result["queries"]
        for row in (query["rows"] or [query["total"]])
    )
    return csv_lines(COLUMNS, lines, raw=raw)


def show_counts(result: dict[str, Any]) -> None:
    """Print a table for each query, and how far to trust the counts."""
    per = result["per"]
    show_other_weights(result["weights_changed"])
    for query in result["queries"]:
        msg.divider(f"{query['name']} ({pluralize(query['unit'])}{'' if per is None else f' for each {per:,} tokens'})")
        rows = [*query["rows"], {**query["total"], "group": "all"}]
        show_rows([_as_rates(row, per) for row in rows], _make_columns(result["by"] or "Texts", result["confidence"], per))
        if not query["matched"]:
            msg.warn(
                "Nothing satisfies this query in any of the texts, and no score makes it possible: check how it is written."
            )
        elif not (query["effects"] or result["gold"]) and query["total"]["low"] < query["total"]["high"]:
            msg.text("The fit did not measure how such counts differ by document: the interval takes units as independent.")
    if result["gold"] is None:
        for drift in result["drift"].values():
            show_drift_of_counts(drift, [query for query in result["queries"] if query["centre"] == "found"])
    else:
        among = result["gold_among"]
        note = f"; {among:,} of them are among the texts, and are counted by their labels" if among else ""
        msg.text(f"Corrected by {result['gold']:,} labelled documents{note}.")


def _make_columns(title: str, confidence: float, per: int | None) -> tuple[TableColumn, ...]:
    """Return the columns of a query's table. per (int | None): Tokens of a rate; None for counts."""
    digits = 0 if per is None else 2
    return (
        TableColumn(title, "group", align="l"),
        TableColumn("Documents", "documents", whole),
        TableColumn("Tokens", "tokens", whole),
        TableColumn("Found", "raw", whole if per is None else partial(number, digits=2)),
        TableColumn("Expected", "expected", partial(number, digits=1 if per is None else 2)),
        TableColumn(
            f"{100 * confidence:g} % interval", "", lambda row: f"{number(row['low'], digits)} to {number(row['high'], digits)}"
        ),
    )


def _as_rates(row: dict[str, Any], per: int | None) -> dict[str, Any]:
    """Return a row with rates per number of tokens in place of counts; None leaves the counts."""
    counts = ("raw", "expected", "low", "high")
    return row if per is None else {**row, **{name: row[name] * per / row["tokens"] for name in counts}}
