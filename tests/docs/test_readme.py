"""The README is run: its Python blocks, its config, its commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from spacy.cli._util import app
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from thinc.api import Config
from typer.models import OptionInfo
from typer.testing import CliRunner

from spacy_calib.cli.fit import FitOptions, pipe_settings
from spacy_calib.cli.shared.command import declared
from spacy_calib.factory import DEFAULT_CONFIG
from tests.conftest import TOK2VEC, examples_for, gold_doc, made_up_sentences, revive

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.S)


NAMES = {"dog": "ANIMAL", "cat": "ANIMAL", "duck": "ANIMAL", "light": "THING", "saw": "THING"}


def with_entities(doc: Doc) -> Doc:
    """Some nouns are entities; which type the others would be of, nobody knows."""
    doc.set_ents(
        [Span(doc, t.i, t.i + 1, NAMES[t.text]) for t in doc if t.tag_ == "NOUN" and t.text in NAMES], default="outside"
    )
    return doc


def add_recognizer(nlp: Language) -> None:
    """A recognizer with an embedding of its own, trained for a moment."""
    recognizer = nlp.add_pipe("ner", config={"model": {"tok2vec": TOK2VEC}})
    examples = examples_for(nlp, 60, seed=1)
    for example in examples:
        with_entities(example.reference)
    recognizer.initialize(lambda: examples, nlp=nlp)
    optimizer = nlp.create_optimizer()
    for _ in range(12):
        recognizer.update(examples, sgd=optimizer)


@pytest.fixture(scope="module")
def workplace(trained_bytes, tmp_path_factory):
    """A folder where the README's names exist: a pipeline in the place of en_core_web_sm, and gold data."""
    folder = tmp_path_factory.mktemp("readme")
    nlp = revive(trained_bytes)
    add_recognizer(nlp)
    nlp.to_disk(folder / "en_core_web_sm")
    for name, n, seed in (("dev", 80, 2), ("test", 60, 3), ("train", 100, 4), ("cutoffs", 80, 5)):
        docs = [with_entities(gold_doc(nlp.vocab, sentence)) for sentence in made_up_sentences(n, seed)]
        DocBin(docs=docs).to_disk(folder / f"{name}.spacy")
    return folder


@pytest.fixture
def inside(workplace, monkeypatch):
    monkeypatch.chdir(workplace)
    return workplace


def spacy_commands() -> list[str]:
    lines = "\n".join(blocks("bash")).splitlines()
    return [line.split("#")[0].strip() for line in lines if line.startswith("python -m spacy")]


def test_commands_run_in_order(inside):
    commands = spacy_commands()
    assert len(commands) >= 4
    for command in commands:
        arguments = shlex.split(command.removeprefix("python -m spacy"))
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, (command, result.output, result.exception)
    assert (inside / "metrics.json").is_file()


def test_python_blocks_run(inside, capsys):
    if not (inside / "calibrated").exists():
        test_commands_run_in_order(inside)
    found = blocks("python")
    assert len(found) >= 3
    for block in found:
        exec(compile(block, "README.md", "exec"), {})
    assert capsys.readouterr().out


def test_presidio_block_runs(inside, capsys):
    pytest.importorskip("presidio_analyzer", reason="the extra `presidio` is not installed")
    if not (inside / "sure").exists():
        test_commands_run_in_order(inside)
    (block,) = blocks("python presidio")
    exec(compile(block, "README.md", "exec"), {})


def test_config_block_is_the_default_config():
    (block,) = blocks("ini")
    shown = Config().from_str(block)["components"]["calib"]
    assert shown.pop("factory") == "calib"
    shown["scorer"].pop("n_bins")
    assert shown == DEFAULT_CONFIG


def test_every_fit_option_is_in_the_table():
    documented = set(re.findall(r"`(--[a-z-]+)`", README))
    flags = {option.flag for option in declared(FitOptions) if isinstance(option.info, OptionInfo)}
    assert len(flags) > 25
    assert flags <= documented


def test_defaults_in_the_table_are_the_defaults():
    _, settings = pipe_settings(None, {})
    assert settings["threshold"] == 0.01
    assert settings["grouping"]["n_groups"] == 5
    assert settings["scorer"]["n_bins"] == 10
    assert settings["source"]["component"] == "tagger"


def test_links_inside_the_readme_lead_somewhere():
    headings = {
        re.sub(r"[^a-z0-9 -]", "", line.lstrip("# ").lower()).replace(" ", "-")
        for line in README.splitlines()
        if line.startswith("#")
    }
    for anchor in re.findall(r"\]\(#([a-z0-9-]+)\)", README):
        assert anchor in headings, anchor
    for path in re.findall(r"!?\[[^\]]*\]\((?!#|https?:)([^)]+)\)", README):
        assert (Path(__file__).parents[2] / path).exists(), path
