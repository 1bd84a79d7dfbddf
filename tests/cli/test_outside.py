"""An installed package adds a command, a reader of gold, a metric and a source: each is used by the real command line, in processes of its own."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Outcome, docs_in, install, ok, refuses, spacy_process

OUTSIDE = Path(__file__).with_name("outside")


@pytest.fixture(scope="module")
def packages(tmp_path_factory) -> Path:
    """A folder on the path with the package, and what `pip install` writes beside it."""
    folder = tmp_path_factory.mktemp("packages")
    shutil.copytree(OUTSIDE, folder / "outside", ignore=shutil.ignore_patterns("__pycache__"))
    install(folder, "outside", (OUTSIDE / "entry_points.txt").read_text(encoding="utf8"))
    return folder


def calib_with(packages: Path, *arguments: object) -> Outcome:
    return spacy_process("calib", *arguments, cwd=packages, path=packages)


def save_slashes(gold: Path, path: Path) -> Path:
    """The words and tags of a DocBin, as the reader of the package reads them."""
    lines = [" ".join(f"{token.text}/{token.tag_}" for token in doc) for doc in docs_in(gold)]
    path.write_text("\n".join(lines), encoding="utf8")
    return path


@pytest.fixture(scope="module")
def fitted_outside(packages, model, dev, tmp_path_factory) -> Path:
    """A pipeline fitted on a file that only the reader of the package reads."""
    folder = tmp_path_factory.mktemp("outside")
    data = save_slashes(dev, folder / "dev.slash")
    ok(calib_with(packages, "fit", model, data, folder / "fitted", "--method", "isotonic", "--silent"))
    return folder / "fitted"


def evaluation(packages: Path, model: Path, data: Path, output: Path) -> dict[str, Any]:
    ok(calib_with(packages, "evaluate", model, data, "--output", output))
    return json.loads(output.read_text(encoding="utf8"))


def test_its_command_stands_in_the_help_and_reads_gold(packages, test_file, tmp_path):
    assert "tally Count the documents of a file of gold" in ok(calib_with(packages, "--help")).text
    data = save_slashes(test_file, tmp_path / "test.slash")
    assert ok(calib_with(packages, "tally", data)).text == "80 documents"


def test_its_reader_gives_fit_and_evaluate_what_a_docbin_gives(packages, fitted_outside, model, dev, test_file, tmp_path):
    ok(calib_with(packages, "fit", model, dev, tmp_path / "fitted", "--method", "isotonic", "--silent"))
    by_reader = evaluation(packages, fitted_outside, save_slashes(test_file, tmp_path / "test.slash"), tmp_path / "reader.json")
    by_docbin = evaluation(packages, tmp_path / "fitted", test_file, tmp_path / "docbin.json")
    assert figures(by_reader) == figures(by_docbin)


def figures(table: dict[str, Any]) -> Any:
    """All numbers of an evaluation."""
    if isinstance(table, dict):
        return {key: figures(value) for key, value in table.items() if key not in ("data", "model", "file", "path")}
    return [figures(value) for value in table] if isinstance(table, list) else table if isinstance(table, float) else None


def test_a_folder_of_its_files_is_read_where_there_is_no_docbin(packages, test_file, tmp_path):
    save_slashes(test_file, tmp_path / "test.slash")
    assert ok(calib_with(packages, "tally", tmp_path)).text == "80 documents"


def test_its_metric_is_in_evaluate_and_its_source_is_chosen_by_fit(packages, fitted_outside, test_file):
    assert "Mean spread" in ok(calib_with(packages, "evaluate", fitted_outside, test_file)).text
    config = (fitted_outside / "config.cfg").read_text(encoding="utf8")
    assert '@calib_sources = "outside.Cautious.v1"' in config


@pytest.mark.parametrize(("name", "text", "sentence"), [
    ("a.rose", "x", "its name does not end in .spacy, .conllu, .broken, .number, .slash, .words, .jsonl, .jsonl.gz or .json"),
    ("a.broken", "x", "The reader of .broken files cannot be used: outside.nowhere:read cannot be imported (ModuleNotFoundError"),
    ("a.number", "x", "The reader of .number files cannot be used: outside.slash_file:SEPARATOR cannot be imported (it is no function: '/')"),
    ("a.slash", "the/DET dog", "a.slash cannot be read by outside.slash_file:slash_docs (ValueError"),
    ("a.words", "x", "a.words cannot be read by outside.slash_file:words_of (TypeError: it gives str, not a Doc with the vocab"),
    ("a.spacy", "x", "a.spacy is not a readable DocBin"),  # ours are not replaced
])  # fmt: skip
def test_a_file_that_cannot_be_read_is_one_sentence(name, text, sentence, packages, tmp_path):
    (tmp_path / name).write_text(text, encoding="utf8")
    refuses(calib_with(packages, "tally", tmp_path / name), sentence)


def test_a_package_that_is_gone_is_named(fitted_outside, test_file, tmp_path):
    outcome = spacy_process("calib", "evaluate", fitted_outside, test_file, cwd=tmp_path)
    assert outcome.code == 1
    assert "outside.Cautious.v1" in outcome.text
    assert "Traceback" not in outcome.printed
