"""The spaCy projects of HMM against CRF: their steps fit together, and their scripts take the options that they are given."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import srsly
from weasel.schemas import ProjectConfigSchema, validate

CONFIGS = Path(__file__).parents[2] / "configs"
PROJECTS = ("hmm_crf", "ark_twpos")


@pytest.mark.parametrize("name", PROJECTS)
def test_project_is_valid_and_names_files_that_are_there(name):
    project = srsly.read_yaml(CONFIGS / name / "project.yml")
    assert validate(ProjectConfigSchema, project) == []
    commands = {command["name"]: command for command in project["commands"]}
    assert project["workflows"]["all"] == list(commands)
    made: set[str] = set()
    for command in commands.values():
        for needed in command["deps"]:
            assert needed in made or (CONFIGS / name / needed).is_file(), f"{command['name']} needs {needed}"
        made.update(command["outputs"])


@pytest.mark.parametrize("name", PROJECTS)
def test_readme_names_every_command(name):
    readme = (CONFIGS / name / "README.md").read_text(encoding="utf8")
    project = srsly.read_yaml(CONFIGS / name / "project.yml")
    assert all(f"| `{command['name']}` |" in readme for command in project["commands"])


def test_options_of_the_scripts_exist():
    folder = CONFIGS.parent / "scripts"
    shared = (folder / "frame.py").read_text(encoding="utf8")
    texts = {name: (folder / name).read_text(encoding="utf8") + shared for name in ("hmm_crf_table.py", "study_tag_pairs.py")}
    for project in PROJECTS:
        for command in srsly.read_yaml(CONFIGS / project / "project.yml")["commands"]:
            for line in map(shlex.split, command["script"]):
                script = Path(line[1]).name
                if script in texts:
                    unknown = [word for word in line if word.startswith("--") and f'add_argument("{word}"' not in texts[script]]
                    assert not unknown, f"{script} has no {unknown}"
