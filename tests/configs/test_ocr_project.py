"""The spaCy project for events of whole words: its commands are ones that the script takes."""

from __future__ import annotations

import shlex
from pathlib import Path

import srsly
from ocr_events import make_options
from weasel.schemas import ProjectConfigSchema, validate
from weasel.util import load_project_config

PROJECT = Path(__file__).parents[2] / "configs" / "ocr_letters"


def test_project_is_valid_and_its_commands_are_of_the_script():
    assert validate(ProjectConfigSchema, srsly.read_yaml(PROJECT / "project.yml")) == []
    project = load_project_config(PROJECT)
    commands = {command["name"]: command for command in project["commands"]}
    assert project["workflows"]["all"] == list(commands) == ["likelihood", "hinge"]
    for name, command in commands.items():
        assert all((PROJECT / path).is_file() for path in command["deps"])
        (line,) = command["script"]
        program, script, *words = shlex.split(line)
        assert (program, script) == ("python", command["deps"][0])
        given = make_options().parse_args(words)
        assert given.loss == name
        assert [str(given.output)] == command["outputs"]
