"""Whole numbers out of range: one sentence, before a pipeline is loaded."""

import re
from pathlib import Path
from typing import Any

import pytest

from spacy_calib.cli import command_names
from tests.cli.conftest import calib, declared_kinds, refuses
from tests.sentences import says

ARGUMENTS = {
    "fit": ["no_model", "DATA", "OUT"], "adapt": ["no_model", "DATA", "OUT"],
    "threshold": ["no_model", "DATA", "--precision", 0.9], "view": ["no_model"],
}  # fmt: skip


def arguments_of(command: str, data: Path, folder: Path) -> list[Any]:
    """What the command line needs besides options."""
    values = {"DATA": data, "OUT": folder / "out"}
    return [values.get(value, value) for value in ARGUMENTS.get(command, ["no_model", "DATA"])]


def whole_numbers() -> list[tuple[str, str]]:
    """(command, option) of every option that takes one."""
    return [
        (name, f"--{option.replace('_', '-')}")
        for name in command_names()
        for option, kind in declared_kinds(name).items()
        if kind in ("int", "int | None")
    ]


def with_both(first: str, second: str) -> list[str]:
    """The commands that have both options."""
    options = whole_numbers()
    return [command for command, option in options if option == first and (command, second) in options]


@pytest.mark.parametrize("command", with_both("--gpu-id", "--n-process"))
def test_several_processes_on_a_gpu(command, dev, tmp_path):
    refuses(
        calib(command, *arguments_of(command, dev, tmp_path), "--gpu-id", 0, "--n-process", 2), says("C057", gpu=0, n_process=2)
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("value", [10**20, -5])
@pytest.mark.parametrize(("command", "option"), whole_numbers())
def test_a_number_out_of_range(command, option, value, dev, tmp_path):
    outcome = calib(command, *arguments_of(command, dev, tmp_path), option, value)
    assert outcome.code == 2
    assert re.search(
        rf"Invalid value for '{option}'.*: ", outcome.text
    )  # the rest of the sentence differs between releases of typer
    assert not (tmp_path / "out").exists()
