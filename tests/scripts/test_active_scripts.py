"""The parts of scripts/simulate_active_learning.py, and the whole on made-up data."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from tests.conftest import gold_doc, made_up_sentences

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture(autouse=True)
def simulation(monkeypatch):
    """The script, with the folder scripts/ as it is on the path when it runs."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import simulate_active_learning

    yield simulate_active_learning
    for name in ("simulate_active_learning", "frame"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("words", "reached", "wanted", "needed"),
    [
        ([100, 200, 400], [0.5, 0.7, 0.8], 0.6, 150),
        ([100, 200, 400], [0.5, 0.7, 0.8], 0.75, 300),
        ([100, 200, 400], [0.5, 0.7, 0.8], 0.8, 400),
        # it counts when it is reached for the first time, whatever follows
        ([100, 200, 300, 400], [0.5, 0.7, 0.6, 0.8], 0.7, 200),
        ([100, 200, 300, 400], [0.5, 0.7, 0.6, 0.8], 0.75, 350),
        ([100, 200], [0.5, 0.7], 0.4, 100),
        ([100, 200], [0.5, 0.7], 0.71, None),
    ],
)
def test_words_needed(simulation, words, reached, wanted, needed):
    assert simulation.words_needed(words, reached, wanted) == (None if needed is None else pytest.approx(needed))


def test_strategies(simulation):
    one = simulation.Strategy.parse("expected-errors:raw:per-word")
    assert (one.by, one.signal, one.per_word, one.needs_calibration) == ("expected-errors", "raw", True, False)
    assert simulation.Strategy.parse("margin").needs_calibration
    assert not simulation.Strategy.parse("random").needs_calibration
    for words in ("length", "margin:cooked", "margin:per-word", "rare-tag"):
        with pytest.raises(ValueError, match="no order of selection"):
            simulation.Strategy.parse(words)


def test_updates_are_as_many_as_asked_and_large_enough(simulation):
    vocab = spacy.blank("xx").vocab
    docs = [Doc(vocab, words=["w"] * n) for n in (3, 4, 5)]
    batches = list(simulation.updates(docs, 7, 6, random.Random(0)))
    assert len(batches) == 7
    assert all(sum(len(example.reference) for example in batch) >= 6 for batch in batches)
    assert {len(example.reference) for batch in batches for example in batch} == {3, 4, 5}


def test_quality(simulation):
    vocab = spacy.blank("xx").vocab
    gold, given = (Doc(vocab, words=list("abcd"), tags=list(tags)) for tags in ("NNVV", "NVVV"))
    assert simulation.quality([given], [gold]) == 0.75


def test_the_summary_by_hand(simulation):
    curves = [
        simulation.Curve("margin", 0, [100, 300], [5, 15], [0.5, 0.9]),
        simulation.Curve("margin", 1, [100, 300], [5, 15], [0.5, 0.7]),
        simulation.Curve("random", 0, [100, 300], [5, 15], [0.5, 0.7]),
        simulation.Curve("random", 1, [100, 300], [5, 15], [0.5, 0.5]),
    ]
    summary = simulation.summarize(curves, 400)
    assert summary["margin"]["last"] == {"mean": pytest.approx(0.8), "deviation": pytest.approx(0.02**0.5), "seeds": [0.9, 0.7]}
    # Random reached .7 and .5 with all: each order is held against its own seed.
    assert summary["margin"]["as_random"]["goals"] == pytest.approx([0.7, 0.5])
    assert summary["margin"]["as_random"]["seeds"] == pytest.approx([200, 100])
    assert summary["random"]["as_random"]["seeds"] == pytest.approx([300, 100])
    none_reached = simulation.Curve("margin", 0, [100, 300], [5, 15], [0.5, 0.6])
    needed = simulation.summarize([none_reached, curves[2]], 400)["margin"]["as_random"]
    assert simulation.as_text(needed, "{:,.0f}") == "not reached by 1 of 1"


def test_without_random_there_is_nothing_to_compare(simulation, capsys):
    summary = simulation.summarize([simulation.Curve("margin", 0, [100, 300], [5, 15], [0.5, 0.9])], 400)
    assert list(summary["margin"]) == ["last"]
    simulation.show(summary)
    assert "| margin | 0.9000 |" in capsys.readouterr().out


def save(path, docs):
    DocBin(docs=docs).to_disk(path)
    return path


def run(simulation, tmp_path, *options):
    parts = [item for part in ("train", "dev", "test") for item in (f"--{part}", str(tmp_path / f"{part}.spacy"))]
    small = [
        "--start",
        "5",
        "--round-words",
        "40",
        "--candidates",
        "30",
        "--steps",
        "3",
        "--update-words",
        "20",
        "--width",
        "8",
    ]
    files = ["--output", str(tmp_path / "curves.json"), "--plot", str(tmp_path / "curves.png")]
    assert simulation.main([*parts, *small, *files, *options]) == 0
    return json.loads((tmp_path / "curves.json").read_text())


def test_a_small_simulation(simulation, tmp_path, capsys, monkeypatch):
    summarize = simulation.summarize
    vocab = spacy.blank("xx").vocab
    for part, n, seed in (("train", 90, 1), ("dev", 60, 2), ("test", 20, 3)):
        save(tmp_path / f"{part}.spacy", [gold_doc(vocab, sentence) for sentence in made_up_sentences(n, seed)])
    orders = ["least-confident", "random"]
    curves = []
    monkeypatch.setattr(simulation, "summarize", lambda found, most: curves.extend(found) or summarize(found, most))
    tables = run(simulation, tmp_path, "--seeds", "1", "--max-words", "100", "--strategies", *orders)
    assert [one[0] for one in tables[0]["rows"]] == [curve.strategy for curve in curves] == orders
    first, second = curves
    # The same start for both, and never more words than allowed.
    assert (first.words[0], first.quality[0]) == (second.words[0], second.quality[0])
    for curve in (first, second):
        assert curve.sentences[0] == 5
        steps = [after - before for before, after in zip(curve.words, curve.words[1:], strict=False)]
        assert min(steps) > 0
        assert max(steps) <= 40
        assert curve.words[-1] <= 100
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert "Traceback" not in capsys.readouterr().err


def test_options_that_cannot_be(simulation, capsys):
    with pytest.raises(SystemExit) as stopped:
        simulation.main(["--strategies", "best"])
    assert stopped.value.code == 2
    assert "no order of selection" in capsys.readouterr().err
