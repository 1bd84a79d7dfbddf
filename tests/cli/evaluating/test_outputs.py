"""Which writer is asked for what; the sentence where none is installed."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from spacy_calib.cli.evaluate_command import evaluate
from spacy_calib.cli.evaluating import outputs
from spacy_calib.cli.evaluating.outputs import ENTRY_POINTS, Writer, find_requests, option_functions
from spacy_calib.errors import CalibError
from tests.sentences import says

pages = Writer(lambda evaluation, paths: None, lambda paths: [path / "index" for path in paths])


def tables(evaluation, paths, *, deep: Any = None):
    return None


def install(monkeypatch, *names: str) -> None:
    """Install writers of this module, and nothing else: each is named by "suffix=object"."""
    points = [EntryPoint(name, f"{__name__}:{thing}", ENTRY_POINTS) for name, thing in (word.split("=") for word in names)]
    monkeypatch.setattr(outputs, "entry_points_of", lambda group: tuple(points))


def asked(*paths: str) -> list[tuple[Writer, list[str]]]:
    return [(request.writer, list(map(str, request.paths))) for request in find_requests([Path(path) for path in paths], {})]


def test_a_writer_gets_all_its_files_at_once_and_the_longest_suffix_wins(monkeypatch):
    install(monkeypatch, ".page=pages", ".leaf=pages", ".tiny.page=tables")
    first, second = asked("a.page", "b.tiny.page", "c.LEAF")
    assert first == (pages, ["a.page", "c.LEAF"])
    assert second == (Writer(tables, second[0].files), ["b.tiny.page"])
    (request,) = find_requests([Path("a.page")], {})
    assert request.files() == [Path("a.page/index")]


def test_a_folder_is_what_exists_as_one_or_has_no_suffix(monkeypatch, tmp_path):
    install(monkeypatch, "folder=pages")
    (tmp_path / "v1.2").mkdir()
    assert asked("plots", str(tmp_path / "v1.2"), ".page") == [(pages, ["plots", str(tmp_path / "v1.2"), ".page"])]


def test_without_files_and_options_nobody_is_asked(monkeypatch):
    install(monkeypatch, ".page=pages", "more=tables")
    assert find_requests([], {}) == []


def test_what_cannot_be_imported_is_refused_where_it_is_needed_alone(monkeypatch):
    install(monkeypatch, ".page=pages", ".broken=nothing_of_this_name")
    assert option_functions() == [pages.write]
    assert asked("a.page") == [(pages, ["a.page"])]
    with pytest.raises(CalibError, match=r"\[C105\] The writer of .broken of `evaluate` cannot be used"):
        asked("a.broken")


@pytest.mark.parametrize(("name", "suffix"), [("page.html", ".html"), ("a.SVG", ".svg"), ("plots", "folder")])
def test_a_core_without_writers_names_the_plugin(monkeypatch, tmp_path, calibrated, test_file, name, suffix):
    install(monkeypatch)
    sentence = says("C749", suffix=suffix, package="spacy_calib.plugins.report")
    with pytest.raises(CalibError, match=sentence):
        evaluate(str(calibrated), test_file, output=tmp_path / name)
    with pytest.raises(CalibError, match="must be a file that ends in .json, but a.rose was given"):
        asked("a.rose")


def test_the_sentence_names_what_the_plugins_write():
    """What is installed and what the list says are the same."""
    from importlib.metadata import distribution

    from spacy_calib.plugins import OUTPUTS

    points = [point for point in distribution("spacy-calib").entry_points if point.group == ENTRY_POINTS]
    files = {point.name for point in points if point.name.startswith(".") or point.name == outputs.FOLDER}
    assert files in ({name for names in OUTPUTS.values() for name in names}, set())
