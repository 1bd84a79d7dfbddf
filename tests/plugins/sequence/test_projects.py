"""The spaCy projects of sequence learners: their commands are ones that their scripts take."""

from __future__ import annotations

import shlex
from pathlib import Path

import ocr_events
import pytest
import sequence_confidence
from weasel.util import load_project_config

CONFIGS = Path(__file__).parents[3] / "configs"


@pytest.mark.parametrize(
    ("name", "commands", "make_options"),
    [
        ("np_ner", ["check", "run", "tables"], sequence_confidence.make_options),
        ("ocr_letters", ["likelihood", "hinge"], ocr_events.make_options),
    ],
)
def test_commands_of_a_project_have_valid_options_of_its_script(name, commands, make_options):
    project = load_project_config(CONFIGS / name)
    assert project["workflows"]["all"] == [command["name"] for command in project["commands"]] == commands
    for command in project["commands"]:
        for line in command["script"]:
            program, script, *words = shlex.split(line)
            assert (program, script) == ("python", command["deps"][0])
            options = make_options().parse_args(words)
            if name == "np_ner":
                assert (options.command, options.corpora) == (command["name"], ["np", "spanish"])
            else:
                assert (options.loss, [str(options.output)]) == (command["name"], command["outputs"])
    if name == "np_ner":
        assert make_options().parse_args(["run"]).rounds == project["vars"]["rounds"] == 10
