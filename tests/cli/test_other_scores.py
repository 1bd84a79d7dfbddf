"""Scores of other components through the command line: a source named by dotted settings, and what the commands make of it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.util import import_file

from tests.cli.conftest import calib, refuses, save_docs

pytestmark = pytest.mark.usefixtures("registered_until_the_end")
CODE = Path(__file__).with_name("plugin_scores.py")
WORDS = ["Ann", "Rome", "Kim", "tree", "house", "of", "lights"]
SOURCE = "--components.calib.source."
KINDS = {
    "spans": ("SpanScores", "_.trust"),
    "tokens": ("TokenScores", "_.trust"),
    "documents": ("DocScores", "_.trust"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A pipeline of one component that leaves scores, and gold: what was found is right as often as the square of its score says."""
    folder = tmp_path_factory.mktemp("other_scores")
    plugin = import_file("python_code", CODE)
    nlp = spacy.blank("xx")
    nlp.add_pipe("guess")
    nlp.to_disk(folder / "model")
    rng = random.Random(0)
    for name in ("dev", "test"):
        docs = []
        for _ in range(100):
            words = [rng.choice(WORDS) for _ in range(rng.randint(4, 8))]
            found, gold = plugin.guess(Doc(nlp.vocab, words=words)), Doc(nlp.vocab, words=words)
            right = [ent for ent in found.ents if rng.random() < ent._.trust**2]
            gold.set_ents([Span(gold, ent.start, ent.end, ent.label) for ent in right], default="outside")
            for token, own in zip(found, gold, strict=True):
                own.tag_ = token.tag_ if rng.random() < token._.trust**2 else {"X": "NOUN", "NOUN": "X"}[token.tag_]
            even = rng.random() < found._.trust["even"] ** 2
            gold.cats = {"even": float(even), "odd": float(not even)}
            docs.append(gold)
        save_docs(folder / f"{name}.spacy", docs)
    return folder


def fit(place: Path, kind: str, output: Path, *more: object, score: str = ""):
    name, where = KINDS[kind]
    settings = (f"{SOURCE}@calib_sources", f"spacy-calib.{name}.v1", f"{SOURCE}component", "guess")
    given = () if score is None else (f"{SOURCE}score", score or where)
    return calib("fit", place / "model", place / "dev.spacy", output, *settings, *given, "--code", CODE, *more)


@pytest.fixture(scope="module")
def calibrated(place) -> dict[str, Path]:
    for kind in KINDS:
        outcome = fit(place, kind, place / kind, "--method", "isotonic")
        assert outcome.code == 0, outcome.text
    return {kind: place / kind for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", ["evaluate", "rank", "expect"])
def test_commands_read_what_such_a_pipe_says(calibrated, place, kind, command):
    outcome = calib(command, calibrated[kind], place / "test.spacy", "--code", CODE)
    assert outcome.code == 0, outcome.text
    if command == "evaluate":
        assert "(guess)" in outcome.text


def test_cut_offs_of_entities(calibrated, place, tmp_path):
    outcome = calib(
        "threshold", calibrated["spans"], place / "test.spacy", "--precision", "0.5", "--apply", tmp_path / "m", "--code", CODE
    )
    assert outcome.code == 0, outcome.text
    doc = spacy.load(tmp_path / "m")("Ann saw Rome and Kim")
    assert {ent._.calib_accept for ent in doc.ents} <= {True, False}
    assert [ent._.calib_raw for ent in doc.ents] == [ent._.trust for ent in doc.ents]


def test_what_is_missed_cannot_be_bounded_where_nothing_is_said_of_tokens_outside(calibrated, place, tmp_path):
    """Cut-offs were found among the tokens of found entities alone, and a promise was made for all."""
    test = place / "test.spacy"
    refuses(calib("threshold", calibrated["spans"], test, "--recall", "0.9", "--code", CODE), "component 'guess' gives none")
    outcome = fit(place, "spans", tmp_path / "m", f"{SOURCE}outside", "true", "--method", "isotonic")
    assert outcome.code == 0, outcome.text
    outcome = calib("threshold", tmp_path / "m", test, "--recall", "0.9", "--code", CODE)
    assert outcome.code == 0, outcome.text


def test_adapted_to_other_texts(calibrated, place, tmp_path):
    outcome = calib("adapt", calibrated["spans"], place / "test.spacy", tmp_path / "m", "--code", CODE)
    assert outcome.code == 0, outcome.text
    assert spacy.load(tmp_path / "m").get_pipe("calib").labels == ("O", "NAME")


def test_a_function_by_a_dotted_setting(place, tmp_path):
    outcome = fit(
        place, "spans", tmp_path / "m", f"{SOURCE}score.@calib_scores", "plugin.Percent.v1", "--method", "isotonic", score=None
    )
    assert outcome.code == 0, outcome.text
    doc = spacy.load(tmp_path / "m")("Ann saw Rome")
    assert [ent._.calib_raw for ent in doc.ents] == [0.5 * ent._.trust for ent in doc.ents]


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ((f"{SOURCE}labels", '["PERSON"]'), "[C284] The source knows none of the labels"),
        ((f"{SOURCE}labels", "[]"), "labels must be a list of distinct labels"),
        (("--normalize", "kept"), "The setting normalize weighs the labels of a token against each other"),
        (("--sets", "0.2"), "The setting sets weighs"),
    ],
)
def test_refusals(place, tmp_path, more, sentence):
    refuses(fit(place, "spans", tmp_path / "m", *more), sentence.removeprefix("[C284] "))
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("score", "sentence"),
    [("_.nothing", "The extension Span._.nothing does not exist; register it"), ("scores", "score must be '_.NAME'")],
)
def test_scores_that_are_not_there(place, tmp_path, score, sentence):
    refuses(fit(place, "spans", tmp_path / "m", score=score), sentence)
