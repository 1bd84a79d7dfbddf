"""Name the day, week, month, year or decade of a date, so that names sort by time."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

PERIODS = ("day", "week", "month", "year", "decade")
# A year, month and day; a time of day and time zone may follow, and are ignored.
_DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[T ]\d\d.*)?)?)?", re.DOTALL)
# Number of parts of a date (year, month, day) that a period needs.
_N_PARTS = {"day": 3, "week": 3, "month": 2, "year": 1, "decade": 1}


def find_period(value: Any, period: str) -> str:
    """Return the name of a date's period: "2026-11-22", "2026-W47", "2026-11", "2026" or "2020s".

    value (Any): A year as a number; or an ISO 8601 date, with or without a time; or "2026-11" or "2026" if the period needs no
    more. period (str): One of PERIODS. RAISES ValueError: no date, or one without the parts that the period needs.
    """
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    match = _DATE.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise ValueError("no date")
    parts = [int(part) for part in match.groups() if part is not None]
    day = date(*(parts + [1, 1])[:3])
    if len(parts) < _N_PARTS[period]:
        raise ValueError(f"no {period} in it")
    return name_period(day, period)


def name_period(day: date, period: str) -> str:
    """Return the name of the period that contains a day. period (str): One of PERIODS."""
    if period == "week":
        year, week, _ = day.isocalendar()
        return f"{year:04}-W{week:02}"
    if period == "decade":
        return f"{day.year // 10 * 10:04}s"
    return day.isoformat()[: {"day": 10, "month": 7, "year": 4}[period]]
