"""Commands over many texts: the words of a text are let go with it, and what is told is the same."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from spacy_calib.cli.shared import run as run_module
from spacy_calib.cli.shared import scoring
from spacy_calib.doc import zones
from tests.cli.conftest import calib
from tests.conftest import made_up_sentences

COMMANDS = {
    "watch": ("--window", 20),
    "count": ("--query", "NOUN", "--query", "text=dog"),
    "expect": (),
    "rank": ("--top", 12),
    "select": ("--top", 9),
}


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """90 texts, each with a word of its own; the last 9 are there before, too."""
    path = tmp_path_factory.mktemp("long") / "texts.jsonl"
    sentences = made_up_sentences(90, 5)
    lines = [
        {"text": " ".join([*(word for word, _ in sentence), f"new{i - 60 * (i > 80)}"]), "id": i}
        for i, sentence in enumerate([*sentences[:81], *sentences[21:30]])
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def short_zones(monkeypatch):
    """Zones of 8 texts, from the first one on; what is given has the pipeline as "nlp" when a command ran."""
    seen = SimpleNamespace()
    opened = run_module.open_model

    def open_model(*arguments, **settings):
        seen.nlp = opened(*arguments, **settings)
        seen.nlp.batch_size = 8
        seen.before = set(seen.nlp.vocab.strings)
        return seen.nlp

    monkeypatch.setattr(zones, "LEARNED_FROM", 0)
    monkeypatch.setattr(zones, "IN_ZONE", 8)
    monkeypatch.setattr(run_module, "open_model", open_model)
    return seen


def told(command, *arguments, options=None):
    outcome = calib(command, *arguments, *(COMMANDS[command] if options is None else options), "--format", "json")
    assert outcome.code == 0, outcome.text
    return json.loads(outcome.printed)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_word_stays_and_all_is_told(calibrated, texts, command, request):
    wanted = told(command, calibrated, texts)
    seen = request.getfixturevalue("short_zones")
    found = told(command, calibrated, texts)
    assert close(found, wanted)
    added = set(seen.nlp.vocab.strings) - seen.before
    assert not any(word.startswith("new") for word in added)
    assert len(added) < 20


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("expect", ()),
        ("expect", ("--per-doc",)),
        ("rank", ("--top", 12)),
        ("rank", ("--top", 5, "--unit", "sentence", "--by", "entropy")),
        ("rank", ("--top", 30, "--repeats")),
        ("select", ("--top", 9)),
        ("select", ("--top", 4, "--unit", "doc", "--by", "expected-errors", "--per-word")),
    ],
)
def test_texts_in_blocks_tell_what_they_tell_together(calibrated, texts, command, options, request, monkeypatch):
    wanted = told(command, calibrated, texts, options=options)
    request.getfixturevalue("short_zones")
    monkeypatch.setattr(scoring, "BLOCK", 100)
    assert close(told(command, calibrated, texts, options=options), wanted)


def close(found, wanted):
    """The same, but for the last digits of floats: texts stand in other batches."""
    if isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(close(found[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(close, found, wanted))
    return found == (pytest.approx(wanted, abs=1e-5) if isinstance(wanted, float) else wanted)
