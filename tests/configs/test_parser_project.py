"""The spaCy project for a dependency parser: its config trains, and its steps fit together."""

import json
import shlex
from pathlib import Path

import pytest
from spacy.tokens import DocBin
from weasel.util import load_project_config

from tests.cli.conftest import calib, ok
from tests.configs import CONFIGS, check_config_learns
from tests.sources.parser import gold_examples, trained

PROJECT = CONFIGS / "ud_english_ewt_parser"


def save_trees(path: Path, n: int, seed: int) -> Path:
    nlp = trained()
    DocBin(docs=[example.reference for example in gold_examples(nlp, n, seed)]).to_disk(path)
    return path


def test_config_builds_a_parser_that_learns(tmp_path):
    paths = {f"paths.{name}": str(save_trees(tmp_path / f"{name}.spacy", 20, seed=1)) for name in ("train", "dev")}
    check_config_learns(CONFIGS / "train_parser.cfg", paths, "parser", 6, min_action_freq=1)


@pytest.mark.parametrize("event", ["head", "arc"])
def test_commands_of_the_project_run(tmp_path, monkeypatch, event):
    """Those that fit and evaluate, on a small parser and made-up trees."""
    for name, n in (("train", 30), ("dev", 60), ("test", 30)):
        (tmp_path / "corpus").mkdir(exist_ok=True)
        save_trees(tmp_path / "corpus" / f"{name}.spacy", n, seed=n)
    (tmp_path / "training").mkdir()
    trained().to_disk(tmp_path / "training" / "model-best")
    monkeypatch.chdir(tmp_path)
    project = load_project_config(PROJECT)
    lines = [
        line for command in project["commands"] if command["name"] in ("calib-fit", "evaluate") for line in command["script"]
    ]
    for line in lines:
        words = shlex.split(line)
        if words[3] == "calib" and f"calibrated/{event}" in words:
            few_words = ["--allow-seen"] if words[4] == "fit" else []  # made-up trees recur
            ok(calib(*words[4:], *few_words))
    (table,) = json.loads(Path(f"metrics/{event}.calib.json").read_text()).values()
    assert table["accuracy_is"] == ("UAS" if event == "head" else "LAS") + " with punctuation"
    assert table["entities"]["called"] == ["sentence", "sentences"]
    assert table["tokens"] == table["pairs"] > 100
