"""Commands over many texts: the words of a text are let go with it, and what is told is the same."""

import json
from types import SimpleNamespace

import pytest

from spacy_calib.cli.shared import examples as examples_module
from spacy_calib.cli.shared import run as run_module
from tests.cli.conftest import calib, json_of, refuses
from tests.conftest import made_up_sentences


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
    """Zones of 8 texts; what is given has the pipeline as "nlp" when a command ran."""
    seen = SimpleNamespace()
    opened = run_module.open_model

    def open_model(*arguments, **settings):
        seen.nlp = opened(*arguments, **settings)
        seen.nlp.batch_size = 8
        seen.before = set(seen.nlp.vocab.strings)
        return seen.nlp

    monkeypatch.setattr(examples_module, "TEXTS_PER_ZONE", 8)
    monkeypatch.setattr(run_module, "open_model", open_model)
    return seen


@pytest.mark.parametrize(("command", "options", "changes"), [
    ("expect", (), {}), ("rank", ("--top", 12), {}),
    ("expect", (), {(run_module, "MIN_BLOCK_ROWS"): 100}),
    ("expect", ("--n-process", 2), {(examples_module, "_ZONES_PER_START"): 8}),  # workers begin anew with each zone
])  # fmt: skip
def test_no_word_stays_and_all_is_told(command, options, changes, calibrated, texts, request, monkeypatch):
    wanted = json_of(command, calibrated, texts, *options)
    seen = request.getfixturevalue("short_zones")
    for place, value in changes.items():
        monkeypatch.setattr(*place, value)
    assert close(json_of(command, calibrated, texts, *options), wanted)
    added = set(seen.nlp.vocab.strings) - seen.before
    assert not any(word.startswith("new") for word in added)
    assert len(added) < 20


def test_a_text_that_cannot_be_read_leaves_the_pipeline_as_it_was(calibrated, tmp_path, short_zones, monkeypatch):
    path = tmp_path / "texts.txt"
    path.write_text("".join(f"the dog sees new{i} .\n" for i in range(20)) + "x" * 30 + "\n")
    opened = run_module.open_model

    def with_limit(*arguments, **settings):
        nlp = opened(*arguments, **settings)
        nlp.max_length = 25
        return nlp

    monkeypatch.setattr(run_module, "open_model", with_limit)
    refuses(calib("expect", calibrated, path), "The text in line 21 of")
    assert not short_zones.nlp.vocab.in_memory_zone
    assert not any(word.startswith("new") for word in set(short_zones.nlp.vocab.strings) - short_zones.before)
    assert [token.text for token in short_zones.nlp("the new3 dog")] == ["the", "new3", "dog"]


def close(found, wanted):
    """The same, but for the last digits of floats: texts stand in other batches."""
    if isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(close(found[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(close, found, wanted))
    return found == (pytest.approx(wanted, abs=1e-5) if isinstance(wanted, float) else wanted)
