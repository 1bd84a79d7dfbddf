"""The share of a computation that is done grows from 0 to 1, however it is divided."""

import pytest

from spacy_calib.pairs.progress import UNREPORTED, Progress


def reported(run) -> list[tuple[float, str]]:
    """What `run` reports to a Progress over a whole computation."""
    calls: list[tuple[float, str]] = []
    run(Progress(lambda share, stage: calls.append((pytest.approx(share), stage))))
    return calls


def test_steps_take_equal_shares():
    assert reported(lambda whole: list(whole.track("abcd"))) == [(0.0, ""), (0.25, ""), (0.5, ""), (0.75, ""), (1.0, "")]


def test_the_number_of_steps_of_an_iterator_is_given():
    assert [share for share, _ in reported(lambda whole: list(whole.track(iter("ab"), 2)))] == [0.0, 0.5, 1.0]
    # More steps than announced stay at the end, fewer jump to it.
    assert [share for share, _ in reported(lambda whole: list(whole.track(iter("abc"), 2)))] == [0.0, 0.5, 1.0, 1.0]
    assert [share for share, _ in reported(lambda whole: list(whole.track(iter("a"), 2)))] == [0.0, 1.0]
    assert [share for share, _ in reported(lambda whole: list(whole.track([])))] == [1.0]


def test_parts_of_parts_and_named_stages():
    def run(whole):
        reading, fitting = whole.parts(1, 3, stages=["Reading", "Fitting"])
        assert list(reading.track("ab")) == ["a", "b"]
        first, last = fitting.parts(1, 2)
        first.update(0.5)
        list(last.track("a"))

    # Fitting goes from 1/4 to 1, its first part to 1/2; the middle of that is 3/8.
    assert reported(run) == [
        (0.0, "Reading"), (0.125, "Reading"), (0.25, "Reading"), (0.375, "Fitting"), (0.5, "Fitting"), (1.0, "Fitting"),
    ]  # fmt: skip


def test_an_empty_part_takes_no_share():
    def run(whole):
        nothing, everything = whole.parts(0, 1)
        assert nothing.parts() == []
        nothing.update(1.0)
        everything.update(1.0)

    assert [share for share, _ in reported(run)] == [0.0, 1.0]


def test_the_default_reports_nothing():
    assert list(UNREPORTED.track("ab")) == ["a", "b"]
    UNREPORTED.parts(1, 1)[0].update(0.5)
