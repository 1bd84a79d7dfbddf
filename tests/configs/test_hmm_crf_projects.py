"""The spaCy projects of HMM against CRF: their steps fit together, and their scripts take the options that they are given."""

from __future__ import annotations

import shlex
from pathlib import Path

import srsly

from tests.configs import CONFIGS

PROJECTS = ("hmm_crf", "ark_twpos")


def test_options_of_the_scripts_exist():
    folder = CONFIGS.parent / "scripts"
    shared = (folder / "frame.py").read_text(encoding="utf8")
    texts = {"hmm_crf_table.py": (folder / "hmm_crf_table.py").read_text(encoding="utf8") + shared}
    for project in PROJECTS:
        for command in srsly.read_yaml(CONFIGS / project / "project.yml")["commands"]:
            for line in map(shlex.split, command["script"]):
                script = Path(line[1]).name
                if script in texts:
                    unknown = [word for word in line if word.startswith("--") and f'add_argument("{word}"' not in texts[script]]
                    assert not unknown, f"{script} has no {unknown}"
