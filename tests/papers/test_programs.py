"""Each program has its options; those that no project of configs runs do their work on little data."""

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from papers import event_table, polarity_table
from papers.__main__ import PROGRAMS
from spacy.tokens import DocBin

from tests.conftest import gold_doc, made_up_sentences

PAPERS = Path(__file__).parents[2] / "scripts" / "papers"


def test_every_program_can_be_named():
    with_main = {path.stem for path in PAPERS.glob("[a-z]*.py") if "def main(" in path.read_text(encoding="utf8")}
    assert with_main == set(PROGRAMS)
    unknown = subprocess.run([sys.executable, str(PAPERS), "nothing"], capture_output=True, text=True)
    assert unknown.returncode == 1
    assert unknown.stderr.startswith("Name one of these programs first: coref_table, ")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_says_what_it_is_for(name, capsys):
    with pytest.raises(SystemExit) as end:
        importlib.import_module(f"papers.{name}").main(["--help"])
    assert end.value.code == 0
    assert f"scripts/papers {name} " in capsys.readouterr().out


def test_the_table_of_sentences(nlp, tmp_path, capsys):
    nlp.to_disk(tmp_path / "pipeline")
    for name, seed in (("fit", 2), ("test", 3)):
        docs = [gold_doc(nlp.vocab, sentence) for sentence in made_up_sentences(60, seed)]
        DocBin(docs=docs).to_disk(tmp_path / f"{name}.spacy")
    arguments = [str(tmp_path / name) for name in ("pipeline", "fit.spacy", "test.spacy")]
    assert event_table.main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("All tags right: 60 sentences, ")
    losses = {line.split(" | ")[0].strip("| "): float(line.split(" | ")[1]) for line in lines[4:]}
    assert len(losses) == 5
    assert all(0 < loss < 1 for loss in losses.values())


def test_the_table_of_categories(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    words = {True: ["good", "fine", "plot"], False: ["bad", "dull", "plot"]}

    def read(split: str) -> polarity_table.Snippets:
        positive = rng.random(60) < 0.5
        texts = [" ".join(rng.choice(words[bool(one) ^ bool(rng.random() < 0.2)], 4)) for one in positive]
        return polarity_table.Snippets(texts, positive)

    monkeypatch.setattr(polarity_table, "read", read)
    arguments = ["--cache", str(tmp_path), "--epochs", "1", "--sizes", "20", "--plot", str(tmp_path / "polarity.png")]
    assert polarity_table.main(arguments) in (0, 1)
    printed = capsys.readouterr().out
    for model in (polarity_table.NB, polarity_table.LR, polarity_table.TEXTCAT):
        assert printed.count(f"| {model} | raw |") == printed.count(f"| {model} | calibrated |") == 1
    assert (tmp_path / "polarity.png").stat().st_size > 0
