"""What goes to annotation tools: entities that were not accepted, and batches in the formats that queues have."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest
import spacy

from spacy_calib.calibration.cutoffs import Cutoffs
from tests.answers import ARRAYS, parts_of
from tests.cli.conftest import annotated, calib, docs_in, ok, refuses, save_docs
from tests.made import category_docs, revive_categorizer
from tests.sentences import says


@pytest.fixture(scope="module")
def accepting(calibrated_ner, tmp_path_factory):
    """The recognizer with a cut-off of .7."""
    path = tmp_path_factory.mktemp("accepting") / "pipeline"
    nlp = spacy.load(calibrated_ner)
    nlp.get_pipe("calib_ent").spans.cutoffs = Cutoffs(0.9, 0.95, "all", {"all": 0.7})
    nlp.to_disk(path)
    return path


@pytest.fixture(scope="module")
def texts(entity_test, tmp_path_factory):
    """The texts of the gold without it."""
    path = tmp_path_factory.mktemp("texts") / "texts.txt"
    docs = docs_in(entity_test)
    path.write_text("\n".join(doc.text for doc in docs))
    return path


def ranked(model, data, *options):
    return json.loads(ok(calib("rank", model, data, "--format", "json", "--repeats", *options)).printed)


@pytest.mark.parametrize("of_gold", [True, False])
def test_entities_below_their_cut_off_make_a_queue(of_gold, accepting, entity_test, texts):
    """Of plain texts as many as are asked for are held, and the rest counted."""
    data, options = (entity_test, ()) if of_gold else (texts, ("--top", 1000))
    every, found = ranked(accepting, data, *options), ranked(accepting, data, "--not-accepted", *options)
    assert every["accepted"] == 0
    assert 0 < found["accepted"] < len(every["ranked"])
    assert all(record["score"] < 0.7 for record in found["ranked"])
    below = [record["focus"] for record in every["ranked"] if record["score"] < 0.7]
    assert [record["focus"] for record in found["ranked"]] == below
    assert found["accepted"] == len(every["ranked"]) - len(below)
    if of_gold:
        spans = [ent for doc in annotated(accepting, data) for ent in doc.ents]
        assert sorted(ent.text for ent in spans if ent._.calib_accept is False) == sorted(below)
    shown = ok(calib("rank", accepting, data, "--not-accepted", "--repeats")).text
    assert f"Left out: {found['accepted']:,} accepted (--not-accepted)" in shown


def test_what_has_no_cut_off_cannot_be_below_one(calibrated, calibrated_ner, accepting, entity_test, test_file):
    refuses(calib("rank", calibrated_ner, entity_test, "--not-accepted"), "The pipe 'calib_ent' has no cut-offs")
    refuses(calib("rank", calibrated, test_file, "--not-accepted"), says("C065"))
    given = (accepting, entity_test, "--not-accepted", "--unit", "token")
    refuses(calib("rank", *given), "Option --not-accepted must be left out with --unit token")


@pytest.fixture(scope="module")
def categorizing(tmp_path_factory):
    """(a calibrated text categorizer, texts without gold)."""
    folder = tmp_path_factory.mktemp("categorizing")
    revive_categorizer().to_disk(folder / "model")
    dev = save_docs(folder / "dev.spacy", category_docs(120, 41))
    ok(calib("fit", folder / "model", dev, folder / "fitted", "-C", "textcat", "-m", "isotonic", "--silent"))
    (folder / "texts.txt").write_text("\n".join(doc.text for doc in category_docs(40, 43)))
    return folder / "fitted", folder / "texts.txt"


def batches(name, model, data, tmp_path, *options):
    """(the rows of `select`, the records of the same batch in a format)."""
    rows = json.loads(ok(calib("select", model, data, "--format", "json", "-n", 7, *options)).printed)["rows"]
    path = tmp_path / "batch.json"
    outcome = ok(calib("select", model, data, "-n", 7, *options, "--format", name, "--output", path))
    assert f"The batch: {path}" in outcome.text
    text = path.read_text(encoding="utf8")
    return rows, json.loads(text) if name in ARRAYS else [json.loads(line) for line in text.splitlines()]


LABELS = {
    "prodigy": lambda one: {(span["start"], span["end"], span["label"]) for span in one["spans"]},
    "label-studio": lambda one: {
        (made["value"]["start"], made["value"]["end"], made["value"]["labels"][0]) for made in one["predictions"][0]["result"]
    },
    "doccano": lambda one: {tuple(label) for label in one["label"]},
    "argilla": lambda one: {tuple(span.values()) for span in one["suggestions"]["label"]["value"]},
}


@pytest.mark.parametrize(
    ("name", "unit"), [("prodigy", "document"), ("label-studio", "sentence"), ("doccano", "sentence"), ("argilla", "document")]
)
def test_a_batch_goes_to_annotation_tools(name, unit, accepting, texts, tmp_path):
    rows, records = batches(name, accepting, texts, tmp_path, "--unit", unit)
    assert [parts_of(one)[0] for one in records] == [row["text"] for row in rows]
    for record, row in zip(records, rows, strict=True):
        assert LABELS[name](record) == {(one["start"], one["end"], one["label"]) for one in row["marks"]}
    if name == "label-studio":
        labels = {label.get("value") for label in ET.parse(tmp_path / "batch.labels.xml").iter("Label")}
        assert labels == {"PER", "LOC", "ORG"}


def test_a_batch_says_why(accepting, texts, tmp_path):
    rows, records = batches("prodigy", accepting, texts, tmp_path)
    for record, row in zip(records, rows, strict=True):
        reason = row["reason"]
        assert (record["meta"]["focus"], record["meta"]["rank"]) == (reason["word"], row["rank"])
        assert record["meta"]["alternatives"].startswith(f"{reason['tag']} {reason['probability']:.2f}")


def test_a_batch_of_documents_with_categories(categorizing, tmp_path):
    rows, records = batches("prodigy", *categorizing, tmp_path)
    assert [(one["text"], one["label"]) for one in records] == [(row["text"], row["reason"]["label"]) for row in rows]
    (_, choices), (_, suggested) = (batches(name, *categorizing, tmp_path, "--force") for name in ("label-studio", "argilla"))
    assert [one["suggestions"]["label"]["value"] for one in suggested] == [row["reason"]["label"] for row in rows]
    assert [one["predictions"][0]["result"][0]["value"]["choices"] for one in choices] == [
        [row["reason"]["label"]] for row in rows
    ]


def test_a_suffix_of_another_format_is_refused(accepting, texts, tmp_path):
    given = (accepting, texts, "--format", "prodigy", "--output", tmp_path / "batch.spacy")
    refuses(calib("select", *given), "Option --output must be a file that ends in .jsonl or .json with --format prodigy")
    given = (accepting, texts, "--format", "label-studio", "--output", tmp_path / "batch.json")
    (tmp_path / "batch.labels.xml").write_text("years of work")
    refuses(calib("select", *given), "batch.labels.xml exists already")
