"""Dates and the periods that hold them."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.expect.periods import EVERY, first_day, following, named, period_of, periods_between


@pytest.mark.parametrize(
    ("given", "every", "period"),
    [
        ("2026-11-22", "day", "2026-11-22"),
        ("2026-11-22T23:59:00+02:00", "day", "2026-11-22"),
        ("2026-11-22 08:00", "week", "2026-W47"),
        ("2027-01-01", "week", "2026-W53"),
        (" 2026-11 ", "month", "2026-11"),
        (1945, "year", "1945"),
        ("1945", "decade", "1940s"),
    ],
)
def test_the_period_of_a_date(given, every, period):
    assert period_of(given, every) == period


@pytest.mark.parametrize(
    ("given", "every"),
    [("2026-11", "day"), (1945, "month"), ("2026-13-01", "day"), ("2026-02-30", "month"), ("soon", "day"), (None, "day"), (True, "year"),
     (20261122, "day"), ("22.11.2026", "day"), ("2026-11-22x", "day"), ("0000-01-01", "day")],
)  # fmt: skip
def test_what_is_no_date_is_refused(given, every):
    with pytest.raises(ValueError):
        period_of(given, every)


@given(day=st.dates(date(1000, 1, 1), date(9000, 1, 1)), every=st.sampled_from(EVERY))
def test_periods_follow_one_another_as_their_names_sort(day, every):
    period = named(day, every)
    assert named(first_day(period, every), every) == period
    after = following(period, every)
    assert after > period
    assert named(first_day(after, every) - timedelta(days=1), every) == period


def test_the_periods_between():
    assert list(periods_between("2025-11", "2026-02", "month", 9)) == ["2025-11", "2025-12", "2026-01", "2026-02"]
    assert list(periods_between("1940s", "2000s", "decade", 3)) == ["1940s", "1950s", "1960s"]
