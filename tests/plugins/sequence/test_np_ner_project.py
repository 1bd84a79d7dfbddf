"""The spaCy project for the confidence of sequence learners: its commands are ones that the script takes."""

from __future__ import annotations

import shlex
from pathlib import Path

from sequence_confidence import make_options
from weasel.util import load_project_config

PROJECT = Path(__file__).parents[3] / "configs" / "np_ner"


def test_its_commands_are_of_the_script():
    project = load_project_config(PROJECT)
    commands = {command["name"]: command for command in project["commands"]}
    assert project["workflows"]["all"] == list(commands) == ["check", "run", "tables"]
    for name, command in commands.items():
        for line in command["script"]:
            program, script, *words = shlex.split(line)
            assert (program, script) == ("python", command["deps"][0])
            given = make_options().parse_args(words)
            assert (given.command, given.corpora) == (name, ["np", "spanish"])
    assert make_options().parse_args(["run"]).rounds == project["vars"]["rounds"] == 10
