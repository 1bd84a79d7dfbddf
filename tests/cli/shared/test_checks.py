"""Whole numbers out of range: one sentence, before a pipeline is loaded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spacy_calib.cli import COMMANDS, load_command
from tests.cli.conftest import calib, refuses

ARGUMENTS = {
    "fit": ["no_model", "DATA", "OUT"],
    "adapt": ["no_model", "DATA", "OUT"],
    "threshold": ["no_model", "DATA", "--precision", 0.9],
    "count": ["no_model", "DATA", "--query", "NN"],
    "view": ["no_model"],
}


def whole_numbers() -> list[tuple[str, str]]:
    """(command, option) of every option that takes one."""
    of_command = {name: load_command(name).parameters for name in COMMANDS}
    return [(name, option.flag) for name, options in of_command.items() for option in options if option.kind is int]


def test_the_options_are_found():
    found = {option for _, option in whole_numbers()}
    assert found >= {"--seed", "--bins", "--groups", "--n-process", "--max-words", "--gpu-id"}


@pytest.mark.parametrize(("given", "wanted"), [(10**20, "at most"), (-5, "at least")])
@pytest.mark.parametrize(("command", "option"), whole_numbers())
def test_a_number_out_of_range(command, option, given, wanted, dev, tmp_path):
    values = {"DATA": dev, "OUT": tmp_path / "out"}
    arguments = [values.get(value, value) for value in ARGUMENTS.get(command, ["no_model", "DATA"])]
    outcome = calib(command, *arguments, option, given)
    refuses(outcome, f"but {given} was given.")
    assert re.search(rf"Option {option} must be {wanted} -?[\d,]+, but", outcome.text)
    assert not Path(tmp_path / "out").exists()
