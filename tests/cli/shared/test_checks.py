"""Whole numbers out of range: one sentence, before a pipeline is loaded."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from spacy_calib.cli import command_names, load_command
from tests.cli.conftest import calib, refuses
from tests.sentences import says

ARGUMENTS = {
    "fit": ["no_model", "DATA", "OUT"],
    "adapt": ["no_model", "DATA", "OUT"],
    "threshold": ["no_model", "DATA", "--precision", 0.9],
    "view": ["no_model"],
}


def arguments_of(command: str, data: Path, folder: Path) -> list[Any]:
    """What the command line needs besides options."""
    values = {"DATA": data, "OUT": folder / "out"}
    return [values.get(value, value) for value in ARGUMENTS.get(command, ["no_model", "DATA"])]


def whole_numbers() -> list[tuple[str, str]]:
    """(command, option) of every option that takes one."""
    of_command = {name: load_command(name).parameters for name in command_names()}
    return [(name, option.word) for name, options in of_command.items() for option in options if option.kind is int]


def test_the_options_are_found():
    options = {option for _, option in whole_numbers()}
    assert options >= {"--seed", "--bins", "--groups", "--n-process", "--gpu-id"}


def with_both(first: str, second: str) -> list[str]:
    """The commands that have both options."""
    options = whole_numbers()
    return [command for command, option in options if option == first and (command, second) in options]


def test_the_commands_are_found():
    assert set(with_both("--gpu-id", "--n-process")) >= {"fit", "adapt", "evaluate", "expect", "rank"}


@pytest.mark.parametrize("command", with_both("--gpu-id", "--n-process"))
def test_several_processes_on_a_gpu(command, dev, tmp_path):
    refuses(
        calib(command, *arguments_of(command, dev, tmp_path), "--gpu-id", 0, "--n-process", 2),
        says("C057", gpu=0, n_process=2),
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("value", "limit"), [(10**20, "at most"), (-5, "at least")])
@pytest.mark.parametrize(("command", "option"), whole_numbers())
def test_a_number_out_of_range(command, option, value, limit, dev, tmp_path):
    outcome = calib(command, *arguments_of(command, dev, tmp_path), option, value)
    refuses(outcome, f"but {value} was given.")
    assert re.search(rf"Option {option} must be {limit} -?[\d,]+, but", outcome.text)
    assert not (tmp_path / "out").exists()
