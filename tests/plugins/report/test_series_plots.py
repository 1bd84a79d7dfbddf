"""The picture of counts."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")

from spacy_calib.plugins.report.series_plots import plot_counts


def counts(*groups, name="PERSON"):
    rows = [
        {"group": group, "tokens": 500, "raw": 2 + i, "expected": 2.5 + i, "low": 1.0 + i, "high": 4.0 + i}
        for i, group in enumerate(groups)
    ]
    return {"name": name, "query": "PERSON", "unit": "entity", "rows": rows}


def result(*queries, by="year", per=None, gold=None):
    return {"by": by, "confidence": 0.9, "per": per, "gold": gold, "queries": queries}


def test_years_stand_where_they_are_and_a_gap_breaks_the_line():
    figure = plot_counts(result(counts("1990", "1991", "1995"), counts("1990", "1991", "1995")))
    first, second = figure.axes
    assert [line.get_xdata().tolist() if hasattr(line.get_xdata(), "tolist") else list(line.get_xdata()) for line in first.lines] == [
        [1990, 1991], [1995], [1990, 1991, 1995],
    ]  # fmt: skip
    assert (first.get_title(loc="left"), second.get_xlabel()) == ("PERSON (entities)", "year")
    assert [note.get_text() for note in first.texts] == ["— expected, 90 % interval", "× found"]
    assert first.get_ylim()[0] == 0


def test_names_stand_side_by_side():
    ax = plot_counts(result(counts("letters", "news", "$peeches"), by="genre")).axes[0]
    assert [list(line.get_xdata()) for line in ax.lines] == [[0, 1, 2], [0, 1, 2]]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["letters", "news", r"\$peeches"]


def test_a_name_is_the_title_and_the_band_is_explained():
    figure = plot_counts(result(counts("1990", "1991", name="Persons"), gold=5))
    assert figure.axes[0].get_title(loc="left") == "Persons"
    caption = figure.get_supxlabel().replace("\n", " ")
    assert caption == "The band contains the true number in 90 of 100 cases, as 5 labelled documents correct it."
    assert "texts like those of the fit" in plot_counts(result(counts("1990"))).get_supxlabel().replace("\n", " ")


def test_the_band_of_draws_promises_nothing_about_the_parser():
    caption = plot_counts(result(counts("1990") | {"drawn": True})).get_supxlabel().replace("\n", " ")
    assert caption == "The band contains 90 of 100 samples of the coreference clusters; errors of the parser are not included."


def test_what_explains_the_band_is_as_wide_as_the_picture():
    figure = plot_counts(result(counts("1990", "1991")))
    figure.draw_without_rendering()
    held = figure._supxlabel.get_window_extent()
    assert 0 <= held.x0 < held.x1 <= figure.bbox.width


def test_rates_are_for_so_many_tokens():
    figure = plot_counts(result(counts("1990", "1991"), per=1000))
    assert list(figure.axes[0].lines[0].get_ydata()) == [5.0, 7.0]  # 2.5 and 3.5 of 500 tokens
    assert figure.get_supylabel() == "for each 1,000 tokens"
