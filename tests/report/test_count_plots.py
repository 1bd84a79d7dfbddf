"""The picture of counts."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")

from spacy_calib.report.count_plots import plot_counts


def counts(*groups):
    rows = [
        {"group": group, "raw": 2 + i, "expected": 2.5 + i, "low": 1.0 + i, "high": 4.0 + i} for i, group in enumerate(groups)
    ]
    return {"query": "PERSON", "unit": "entities", "rows": rows}


def test_years_stand_where_they_are_and_a_gap_breaks_the_line():
    figure = plot_counts([counts("1990", "1991", "1995"), counts("1990", "1991", "1995")], "year", 0.9)
    first, second = figure.axes
    assert [line.get_xdata().tolist() if hasattr(line.get_xdata(), "tolist") else list(line.get_xdata()) for line in first.lines] == [
        [1990, 1991], [1995], [1990, 1991, 1995],
    ]  # fmt: skip
    assert (first.get_title(loc="left"), second.get_xlabel()) == ("PERSON (entities)", "year")
    assert [note.get_text() for note in first.texts] == ["— expected, 90 % interval", "× found"]
    assert first.get_ylim()[0] == 0


def test_names_stand_side_by_side():
    ax = plot_counts([counts("letters", "news", "$peeches")], "genre").axes[0]
    assert [list(line.get_xdata()) for line in ax.lines] == [[0, 1, 2], [0, 1, 2]]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["letters", "news", r"\$peeches"]
