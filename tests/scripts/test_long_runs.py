"""What scripts/long_runs.py can run."""

from __future__ import annotations

import long_runs
import pytest
import typer


def test_every_variant_names_options_of_its_command():
    commands = typer.main.get_command(long_runs.calib_cli).commands
    for one in (*long_runs.VARIANTS, *(f"{name} {' '.join(given)}" for name, given in long_runs.COMMANDS.items())):
        name, *given = one.split()
        known = {flag for option in commands[name].params for flag in option.opts}
        assert {part for part in given if part.startswith("--")} <= known


def test_commands_may_have_options_of_their_own():
    asked = ["nlp.pipe", "count", "rank --order random", "variants"]
    assert long_runs.commands_of(asked) == ["nlp.pipe", "count", "rank --order random", *long_runs.VARIANTS]
    with pytest.raises(SystemExit, match="'report --title x' is none of count, expect,"):
        long_runs.commands_of(["report --title x"])
