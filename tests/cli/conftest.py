"""The command line in this process or in one of its own, and small pipelines and gold files for it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from spacy.cli._util import app
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from typer.testing import CliRunner

import spacy_calib.cli  # noqa: F401  (adds `calib` to the app of spaCy, as the entry point does for `python -m spacy`)
from tests.conftest import gold_doc, made_up_sentences, revive

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Outcome:
    """code (int): Exit status. printed (str): All that was printed, as it was."""

    code: int
    printed: str

    @property
    def text(self) -> str:
        """What was printed, without colours and on one line: the terminal's width must not matter."""
        return " ".join(_COLOURS.sub("", self.printed).split())


def calib(*arguments: object) -> Outcome:
    """`python -m spacy calib ...` in this process; an exception that gets out (a user's traceback) fails the test."""
    result = CliRunner().invoke(app, ["calib", *map(str, arguments)])
    if not isinstance(result.exception, (SystemExit, type(None))):
        raise result.exception
    return Outcome(result.exit_code, result.output)


def spacy_process(*arguments: object, cwd: Path) -> Outcome:
    """`python -m spacy ...` in a process of its own."""
    command = [sys.executable, "-m", "spacy", *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=quiet_environment())
    return Outcome(done.returncode, done.stdout.decode("utf8"))


def quiet_environment() -> dict[str, str]:
    return {**os.environ, "PYTHONIOENCODING": "utf8", "TOKENIZERS_PARALLELISM": "false"}


def refuses(outcome: Outcome, sentence: str, code: int = 1) -> None:
    """The command ended with this status and this part of a sentence, and without a traceback."""
    assert sentence in outcome.text
    assert "Traceback" not in outcome.printed
    assert outcome.code == code


def save_docs(path: Path, docs: list[Doc]) -> Path:
    DocBin(docs=docs).to_disk(path)
    return path


def save_gold(path: Path, n: int, seed: int, vocab: object = None) -> Path:
    """n made-up sentences with gold of every kind."""
    vocab = Language().vocab if vocab is None else vocab
    return save_docs(path, [gold_doc(vocab, sentence) for sentence in made_up_sentences(n, seed)])


@pytest.fixture(scope="session")
def model(trained_bytes, tmp_path_factory) -> Path:
    """A trained pipeline on disk: tok2vec, tagger, morphologizer, senter, trainable_lemmatizer. Not to be changed."""
    path = tmp_path_factory.mktemp("model") / "model"
    revive(trained_bytes).to_disk(path)
    return path


@pytest.fixture(scope="session")
def gold(tmp_path_factory) -> Path:
    """A folder with train.spacy (120 sentences), dev.spacy (120) and test.spacy (80). Not to be changed."""
    folder = tmp_path_factory.mktemp("gold")
    for name, n, seed in (("train", 120, 11), ("dev", 120, 12), ("test", 80, 13)):
        save_gold(folder / f"{name}.spacy", n, seed)
    return folder


@pytest.fixture(scope="session")
def dev(gold) -> Path:
    return gold / "dev.spacy"


@pytest.fixture(scope="session")
def test_file(gold) -> Path:
    return gold / "test.spacy"


@pytest.fixture(scope="session")
def calibrated(model, dev, tmp_path_factory) -> Path:
    """The pipeline with a calib pipe fitted on dev.spacy. Not to be changed: see `calibrated_copy`."""
    path = tmp_path_factory.mktemp("calibrated") / "calibrated"
    outcome = calib("fit", model, dev, path, "--silent")
    assert outcome.code == 0, outcome.text
    return path


@pytest.fixture
def calibrated_copy(calibrated, tmp_path) -> Path:
    return Path(shutil.copytree(calibrated, tmp_path / "calibrated_copy"))


@pytest.fixture
def changed_model(trained_bytes, tmp_path) -> Callable[[Callable[[Language], None]], Path]:
    """A function that changes the trained pipeline and gives the path where it saved it."""

    def change(alter: Callable[[Language], None]) -> Path:
        nlp = revive(trained_bytes)
        alter(nlp)
        nlp.to_disk(tmp_path / "changed_model")
        return tmp_path / "changed_model"

    return change
