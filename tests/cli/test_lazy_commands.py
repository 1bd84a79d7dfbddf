"""A command is imported when it is used: `python -m spacy ...` stays quick, and other packages can add commands."""

import inspect
import json
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import docs_commands
import pytest
from typer.core import TyperGroup
from typer.main import get_command

from spacy_calib.cli import COMMANDS, ENTRY_POINTS, calib_cli
from tests.cli.conftest import calib, install, refuses
from tests.forked import alone

# Older versions of typer suggest no command.
SUGGESTS = "suggest_commands" in inspect.signature(TyperGroup).parameters
PRINT_MODULES = """
import json, runpy, sys

sys.argv = ["spacy", *sys.argv[1:]]
try:
    runpy.run_module("spacy", run_name="__main__", alter_sys=True)
except SystemExit as end:
    assert not end.code, end.code
print(json.dumps(sorted(name for name in sys.modules if name.split(".")[0] in ("spacy_calib", "greenhouse"))))
"""
GREENHOUSE = '''"""`calib water`: water the plants of a pipeline.

The first line above is the line of help.
"""

from typing import Annotated

from spacy_calib.cli.shared.command import argument, command


@command(example="rose")
def water(plant: Annotated[str, argument("PLANT", "Which one")]) -> str:
    """
    Water a plant.
    """
    print(f"watered {plant}")
    return plant
'''


def in_a_new_process(*arguments: str, code: str = PRINT_MODULES, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run `python -m spacy` with these arguments, then print which modules were imported."""
    paths = [] if path is None else [path]
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=alone(*paths, PYTHONIOENCODING="utf8"), check=True)


def imported_modules(*arguments: str, path: Path | None = None) -> set[str]:
    return set(json.loads(in_a_new_process(*arguments, path=path).stdout.splitlines()[-1]))


@pytest.fixture
def greenhouse(tmp_path):
    """A folder as `pip install` leaves it: a package with a command, and the entry points beside it."""
    package = tmp_path / "greenhouse"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported too early')\n")
    (package / "water.py").write_text(GREENHOUSE)
    (tmp_path / "watering.py").write_text(GREENHOUSE)
    (tmp_path / "plain.py").write_text('"""A plain function."""\n\n\ndef plain():\n    return 1\n')
    entries = (
        "broken = greenhouse.water:water", "fit = watering:water", "missing = nowhere.water:water", "plain = plain:plain",
        "water = watering:water",
    )  # fmt: skip
    install(tmp_path, "greenhouse", "\n".join(["[spacy_calib_commands]", *entries, ""]))
    return tmp_path


def test_commands_of_spacy_import_nothing_that_calibrates():
    imported = imported_modules("info")
    assert "spacy_calib.cli" in imported
    rooms = ("calibration", "metrics", "context", "gold", "sources", "pipe", "plugins")
    assert not [name for name in imported if name.split(".")[1:2] and name.split(".")[1] in rooms]


def test_the_list_of_commands_imports_no_command(greenhouse):
    done = in_a_new_process("calib", "--help", path=greenhouse)
    imported = set(json.loads(done.stdout.splitlines()[-1]))
    assert not {f"spacy_calib.cli.{name}" for name in COMMANDS} & imported
    assert not {"greenhouse", "spacy_calib.cli.shared.run"} & imported
    rows = [line.split(maxsplit=1) for line in done.stdout.partition("Commands:")[2].splitlines()]
    shown = {row[0]: row[1].strip() for row in rows if len(row) == 2}
    assert [name for name in shown if name in COMMANDS] == list(COMMANDS)
    assert {name: shown[name] for name in COMMANDS} == COMMANDS
    water = "`calib water`: water the plants of a pipeline"
    assert shown["broken"] == shown["water"] == water  # read from the source: the package is not imported
    assert shown["plain"] == "A plain function"
    assert "  missing" in done.stdout


def test_a_command_of_another_package_replaces_none_of_ours(greenhouse, monkeypatch):
    monkeypatch.syspath_prepend(greenhouse)
    assert COMMANDS["fit"] in calib("--help").text
    assert "--train-data" in calib("fit", "--help").text


@pytest.mark.parametrize(("name", "why"), [
    ("broken", "greenhouse.water:water cannot be imported (RuntimeError: imported too early)"),
    ("missing", "nowhere.water:water cannot be imported (ModuleNotFoundError: No module named 'nowhere')"),
    ("plain", "plain:plain cannot be imported (it is not made by @command of spacy_calib.cli.shared.command)"),
])  # fmt: skip
def test_a_package_that_cannot_be_imported_is_one_sentence(name, why, greenhouse, monkeypatch):
    monkeypatch.syspath_prepend(greenhouse)
    refuses(calib(name), f"The command `calib {name}` cannot be used: {why}")


def test_an_unknown_command_is_refused_with_a_suggestion():
    outcome = calib("evalute", "model", "data")
    refuses(outcome, "No such command 'evalute'", code=2)
    assert not SUGGESTS or "Did you mean 'evaluate'" in outcome.text


def test_the_shell_completes_names_of_commands(greenhouse, monkeypatch):
    monkeypatch.syspath_prepend(greenhouse)
    group = get_command(calib_cli)
    context = group.make_context("calib", ["info"])
    items = [item for start in ("ev", "wate") for item in group.shell_complete(context, start)]
    assert [(item.value, item.help) for item in items] == [("evaluate", COMMANDS["evaluate"]), ("water", "Water a plant.")]


def test_the_reference_has_commands_of_other_packages(greenhouse, monkeypatch):
    monkeypatch.syspath_prepend(greenhouse)
    monkeypatch.setattr(
        "spacy_calib.cli.added_commands", lambda: {"water": EntryPoint("water", "watering:water", ENTRY_POINTS)}
    )
    page = docs_commands.page()
    assert "| [`calib water`](#calib-water) | `calib water`: water the plants of a pipeline |" in page
    assert "## calib water" in page
    assert page.count("## calib ") == len(COMMANDS) + 1
