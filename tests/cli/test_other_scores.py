"""Scores of other components through the command line: a source named by dotted settings, and what the commands make of it."""

import random
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.util import import_file

from tests.cli.conftest import calib, json_of, ok, refuses, save_docs, scores_at, setting
from tests.sentences import says

pytestmark = pytest.mark.usefixtures("registered_until_the_end")
CODE = Path(__file__).with_name("plugin_scores.py")
WORDS = ["Ann", "Rome", "Kim", "tree", "house", "of", "lights"]
SOURCE = "--components.calib.source."
KINDS = {"spans": ("SpanScores", "_.trust"), "tokens": ("TokenScores", "_.trust"), "documents": ("DocScores", "_.trust")}


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
    settings += (f"{SOURCE}score", score or where)
    return calib("fit", place / "model", place / "dev.spacy", output, *settings, "--code", CODE, *more)


@pytest.fixture(scope="module")
def calibrated(place) -> dict[str, Path]:
    for kind in KINDS:
        ok(fit(place, kind, place / kind, "--method", "isotonic"))
    return {kind: place / kind for kind in KINDS}


def test_cut_offs_of_entities(calibrated, place, tmp_path):
    options = ("--precision", "0.5", "--apply", tmp_path / "m", "--code", CODE)
    cutoff = json_of("threshold", calibrated["spans"], place / "test.spacy", *options)["cutoffs"]["all"]
    doc = spacy.load(tmp_path / "m")("Ann saw Rome and Kim")
    assert [ent._.calib_accept for ent in doc.ents] == [ent._.calib_score >= cutoff for ent in doc.ents]
    assert [ent._.calib_raw for ent in doc.ents] == [ent._.trust for ent in doc.ents]


def test_what_is_missed_cannot_be_bounded_where_nothing_is_said_of_tokens_outside(calibrated, place, tmp_path):
    test = place / "test.spacy"
    refuses(calib("threshold", calibrated["spans"], test, "--recall", "0.9", "--code", CODE), says("C308", component="guess"))
    ok(fit(place, "spans", tmp_path / "m", f"{SOURCE}outside", "true", "--method", "isotonic"))
    ok(calib("threshold", tmp_path / "m", test, "--recall", "0.9", "--code", CODE))


def test_an_extension_that_computes_scores(place, tmp_path):
    ok(fit(place, "spans", tmp_path / "m", "--method", "isotonic", score="_.half_trust"))
    doc = spacy.load(tmp_path / "m")("Ann saw Rome")
    assert [ent._.calib_raw for ent in doc.ents] == [0.5 * ent._.trust for ent in doc.ents]


def fit_shortly(place: Path, output: Path, *options: object):
    return calib("fit", place / "model", place / "dev.spacy", output, "--method", "isotonic", "--code", CODE, *options)


def test_get_further_scores_documents(place, tmp_path):
    """Categories are right as often as the second score says, of which the first knows nothing."""
    plugin, nlp, rng = import_file("python_code", CODE), spacy.load(place / "model"), random.Random(1)
    for name in ("dev", "test"):
        docs = []
        for number in range(120):
            doc = plugin.guess(nlp.make_doc(f"{name} text {number}"))
            even = rng.random() < doc.user_data.pop("known")
            doc.cats = {"even": float(even), "odd": float(not even)}
            docs.append(doc)
        save_docs(tmp_path / f"{name}.spacy", docs)
    options = ("-C", "guess", "--code", CODE)
    told: dict[str, dict[str, float]] = {}
    for score in ("_.trust", "_.trust,known"):
        ok(calib("fit", place / "model", tmp_path / "dev.spacy", tmp_path / "m", *scores_at("Doc", score), "--force", *options))
        told[score] = json_of("evaluate", tmp_path / "m", tmp_path / "test.spacy", "--code", CODE)["calib"]["scores"]["nll"]
    shown = calib("info", tmp_path / "m", "--code", CODE)
    assert "In addition to the score of the top label the fit uses known." in shown.text
    doc = spacy.load(tmp_path / "m")("test text 7")
    assert doc._.calib_raw == max(doc._.trust.values())
    assert told["_.trust"]["raw"] == told["_.trust,known"]["raw"]
    assert told["_.trust,known"]["calibrated"] < told["_.trust"]["calibrated"] - 0.05


@pytest.mark.parametrize(("options", "sentence"), [
    ((*scores_at("Doc", "_.trust,known"), f"{SOURCE}exclusive", "false"), says("C740", given="known")),
    (
        (setting("source.@calib_sources", "cats"),),
        "must be a function of the registry calib_sources, but 'cats' is not registered",
    ),
    ((setting("source.score", "_.trust"),), "The pipeline has no component 'tagger'"),
    ((*scores_at("Span"), setting("source.way", "kbv")), "unexpected argument: 'way'"),
    (scores_at("Span", "trust"), says("C285", where="doc.spans['trust'].attrs['scores']")),
    (scores_at("Token", "_.nothing"), "The extension Token._.nothing does not exist"),
    (scores_at("Token", "nothing"), "Nothing in the fit data has a score at doc.user_data['nothing']"),
    (scores_at("Token", ""), "Nothing in the fit data has a score at doc.user_data['']"),
    ((*scores_at("Span"), "-C", "other"), "The pipeline has no component 'other'"),
])  # fmt: skip
def test_settings_that_make_no_sense(place, tmp_path, options, sentence):
    refuses(fit_shortly(place, tmp_path / "m", *options), sentence)
    assert not (tmp_path / "m").exists()


def test_a_component_that_none_reads_by_itself_says_how_its_scores_are_read(place, tmp_path):
    outcome = fit_shortly(place, tmp_path / "m", "-C", "guess")
    refuses(outcome, "Component 'guess' (function) cannot be calibrated")
    refuses(
        outcome,
        "SpanScores.v1, TokenScores.v1 or DocScores.v1 (--components.calib.source.@calib_sources spacy-calib.SpanScores.v1)",
    )
