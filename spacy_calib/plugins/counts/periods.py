"""Dates -> periods: days, weeks, months, years, decades. The names of periods sort by time."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

PERIODS = ("day", "week", "month", "year", "decade")
# A year, month and day; the time of day and the time zone behind it do not count.
_DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[T ]\d\d.*)?)?)?", re.DOTALL)
# How many parts of a date a period needs.
_NEEDED = {"day": 3, "week": 3, "month": 2, "year": 1, "decade": 1}


def period_of(value: Any, period: str) -> str:
    """Return the period of a date: "2026-11-22", "2026-W47", "2026-11", "2026", "2020s". period (str): One of PERIODS.

    value (Any): A year as a number, or an ISO 8601 text, with a time or without, or "2026-11" or "2026" if that suffices.
    RAISES ValueError: no such date.
    """
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    match = _DATE.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise ValueError("no date")
    parts = [int(part) for part in match.groups() if part is not None]
    day = date(*(parts + [1, 1])[:3])
    if len(parts) < _NEEDED[period]:
        raise ValueError(f"no {period} in it")
    return name_period(day, period)


def name_period(day: date, period: str) -> str:
    """Return the period that holds a day."""
    if period == "week":
        year, week, _ = day.isocalendar()
        return f"{year:04}-W{week:02}"
    if period == "decade":
        return f"{day.year // 10 * 10:04}s"
    return day.isoformat()[: {"day": 10, "month": 7, "year": 4}[period]]
