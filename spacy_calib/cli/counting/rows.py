"""Counts as rows: for the screen, for JSON and for a spreadsheet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...corpus.spreadsheet import csv_lines
from ...expect.effects import Effects
from .gather import Answered, Gathered

COLUMNS = (
    *("name", "query", "unit", "group", "documents", "tokens", "raw", "expected", "low", "high"),
    *("raw_expected", "raw_low", "raw_high"),
)


def in_order(groups: Sequence[str]) -> list[str]:
    """Each group once: numbers by their size, before names by their letters."""

    def place(name: str) -> tuple[bool, float, str]:
        try:
            return False, float(name), name
        except ValueError:
            return True, 0.0, name

    return sorted(set(groups), key=place)


def rows_of(
    held: Gathered, place: int, effects: Effects | None, confidence: float, labelled: Gathered | None, by: bool, verdict: str
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """(a row for each group, the row of all documents) of the query at a place. labelled (Gathered | None): What corrects the counts.
    verdict (str): Whether the texts are like the fit data, see `Drift`.
    """
    answered, names = held.answered[place], np.array([*held.groups, None], dtype=object)[:-1]
    known = None if labelled is None else labelled.known(place)
    gold = None if labelled is None else held.gold_in(labelled, place)

    def row(group: str, own: Any) -> dict[str, Any]:
        if known is None or gold is None:
            found = answered.estimate(own, effects, confidence, verdict)
        else:
            found = answered.corrected(own, held.sizes, known, confidence, gold)
        counts = {"group": group, "documents": len(own), "tokens": int(held.sizes[own].sum()), **found._asdict()}
        return {**counts, **answered.by_raw(own, confidence)}

    rows = [row(name, np.flatnonzero(names == name)) for name in in_order(held.groups)] if by else []
    return rows, row("", np.arange(len(held.groups)))


def result_of(
    answered: Answered, name: str, effects: Effects | None, rows: list[dict[str, Any]], total: dict[str, Any], centre: str
) -> dict[str, Any]:
    """What is told of one query. name (str): What it is called. centre (str): See `centre_of`, or "labels"."""
    return {
        "name": name,
        "query": answered.query.text,
        "unit": answered.query.unit,
        "matched": answered.matched,
        "drawn": answered.draws is not None,
        "centre": centre,
        "effects": None if effects is None else effects.state(),
        "rows": rows,
        "total": total,
    }


def csv_of(result: dict[str, Any], raw: bool = False) -> Iterator[str]:
    """The lines of a CSV file: a row for each group of each query, or for all texts where there are none. raw (bool): See `csv_lines`."""
    lines = (
        [one["name"], one["query"], one["unit"], *(row[name] for name in COLUMNS[3:])]
        for one in result["queries"]
        for row in (one["rows"] or [one["total"]])
    )
    return csv_lines(COLUMNS, lines, raw=raw)
