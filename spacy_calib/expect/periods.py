"""Dates -> periods: days, weeks, months, years, decades. The names of periods sort in the order of time."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

PERIODS = ("day", "week", "month", "year", "decade")
# A year, month and day; the time of day and the time zone behind it do not count.
_DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[T ]\d\d.*)?)?)?", re.DOTALL)
# How many parts of a date a period needs.
_NEEDED = {"day": 3, "week": 3, "month": 2, "year": 1, "decade": 1}


def period_of(given: Any, every: str) -> str:
    """The period of a date: "2026-11-22", "2026-W47", "2026-11", "2026", "2020s". every (str): One of PERIODS.

    given (Any): A year as a number, or an ISO 8601 text: "2026-11-22", with a time or without, or "2026-11" or "2026"
        if that tells the period. RAISES ValueError: no such date, or too little of one.
    """
    text = str(given) if isinstance(given, int) and not isinstance(given, bool) else given
    found = _DATE.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None:
        raise ValueError("no date")
    parts = [int(part) for part in found.groups() if part is not None]
    day = date(*(parts + [1, 1])[:3])
    if len(parts) < _NEEDED[every]:
        raise ValueError(f"no {every} in it")
    return named(day, every)


def named(day: date, every: str) -> str:
    """The period that holds a day."""
    if every == "week":
        year, week, _ = day.isocalendar()
        return f"{year:04}-W{week:02}"
    if every == "decade":
        return f"{day.year // 10 * 10:04}s"
    return day.isoformat()[: {"day": 10, "month": 7, "year": 4}[every]]
