"""Dates and the periods that hold them."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.plugins.counts.periods import PERIODS, find_period, name_period


@pytest.mark.parametrize(
    ("given", "every", "period"),
    [("2026-11-22", "day", "2026-11-22"), ("2026-11-22T23:59:00+02:00", "day", "2026-11-22"), ("2026-11-22 08:00", "week", "2026-W47"),
     ("2027-01-01", "week", "2026-W53"), (" 2026-11 ", "month", "2026-11"), (1945, "year", "1945"), ("1945", "decade", "1940s")],
)  # fmt: skip
def test_the_period_of_a_date(given, every, period):
    assert find_period(given, every) == period


@pytest.mark.parametrize(
    ("given", "every"),
    [("2026-11", "day"), (1945, "month"), ("2026-13-01", "day"), ("2026-02-30", "month"), ("soon", "day"), (None, "day"), (True, "year"),
     (20261122, "day"), ("22.11.2026", "day"), ("2026-11-22x", "day"), ("0000-01-01", "day")],
)  # fmt: skip
def test_what_is_no_date_is_refused(given, every):
    with pytest.raises(ValueError):
        find_period(given, every)


@given(days=st.tuples(*[st.dates(date(1000, 1, 1), date(9999, 12, 31))] * 2), every=st.sampled_from(PERIODS))
def test_the_names_of_periods_sort_in_the_order_of_time(days, every):
    first, last = sorted(days)
    assert name_period(first, every) <= name_period(last, every)
