"""The spaCy project for events of whole words: its commands are ones that the script takes."""

from __future__ import annotations

import shlex
from pathlib import Path

from ocr_events import make_options
from weasel.util import load_project_config

PROJECT = Path(__file__).parents[3] / "configs" / "ocr_letters"


def test_its_commands_are_of_the_script():
    project = load_project_config(PROJECT)
    commands = {command["name"]: command for command in project["commands"]}
    assert project["workflows"]["all"] == list(commands) == ["likelihood", "hinge"]
    for name, command in commands.items():
        (line,) = command["script"]
        program, script, *words = shlex.split(line)
        assert (program, script) == ("python", command["deps"][0])
        given = make_options().parse_args(words)
        assert given.loss == name
        assert [str(given.output)] == command["outputs"]
