"""What scripts/long_runs.py can run."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import typer

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module("long_runs")


def test_every_variant_names_options_of_its_command(script):
    commands = typer.main.get_command(script.calib_cli).commands
    for one in (*script.VARIANTS, *(f"{name} {' '.join(given)}" for name, given in script.COMMANDS.items())):
        name, *given = one.split()
        known = {flag for option in commands[name].params for flag in option.opts}
        assert {part for part in given if part.startswith("--")} <= known


def test_commands_may_have_options_of_their_own(script):
    asked = ["nlp.pipe", "count", "rank --order random", "variants"]
    assert script.commands_of(asked) == ["nlp.pipe", "count", "rank --order random", *script.VARIANTS]
    with pytest.raises(SystemExit, match="'report --title x' is none of count, expect,"):
        script.commands_of(["report --title x"])
