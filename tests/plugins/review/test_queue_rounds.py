"""Queue -> annotation tool -> answers -> figures, for each tool, kind of label, with a map of labels and without: those of the full gold, or a refusal."""

import json

import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_calib.cli.shared.examples import read_examples
from spacy_calib.errors import CalibError
from tests.answers import ARRAYS, EXPORTS, marked, parts_of, records_in, write
from tests.cli.conftest import calib, docs_in, entity_docs, fitted_to, ok, refuses, revive_recognizer, save_docs
from tests.made import category_docs, revive_categorizer

N_DOCS = 40
KINDS = {"entities": "ner", "tags": "tagger", "categories": "textcat"}
# Component's label -> the gold's. One is called as another label of the component, another has no counterpart.
MAPS = {
    "entities": {"PER": "LOC", "LOC": "PLACE", "ORG": ""},
    "tags": {"NOUN": "NN", "ADP": "DET", "DET": "DET"},
    "categories": {"film": "music", "music": "Musik"},
}


def in_gold_names(doc: Doc, table: dict[str, str]) -> Doc:
    """The gold Doc with the labels of another scheme."""
    doc.set_ents([Span(doc, ent.start, ent.end, name) for ent in doc.ents if (name := table.get(ent.label_, ent.label_))])
    for token in doc:
        token.tag_ = table.get(token.tag_, token.tag_)
    doc.cats = {table.get(name, name): value for name, value in doc.cats.items()}
    return doc


@pytest.fixture(scope="module", params=[(kind, mapped) for kind in KINDS for mapped in (False, True)], ids=str)
def round_trip(request, tmp_path_factory):
    """(kind, a calibrated pipeline, gold in the names of its map, spans of a gold Doc as people mark them)."""
    kind, mapped = request.param
    folder = tmp_path_factory.mktemp("round")
    of_texts = kind == "categories"
    (revive_categorizer() if of_texts else revive_recognizer("ner")).to_disk(folder / "model")
    table = MAPS[kind] if mapped else {}
    for name, n, seed in (("dev", 120, 41), ("test", N_DOCS, 42)):
        docs = category_docs(n, seed) if of_texts else entity_docs(n, seed)
        save_docs(folder / f"{name}.spacy", [in_gold_names(doc, table) for doc in docs])
    options = ["--map", ",".join(f"{label}={name}" for label, name in table.items())] if mapped else []
    model = fitted_to(folder / "fitted", folder / "model", folder / "dev.spacy", "-C", KINDS[kind], *options)
    return kind, model, folder / "test.spacy"


def marks_of(kind, doc):
    if kind == "categories":
        return [max(doc.cats, key=doc.cats.get)]
    tokens = [(token.idx, token.idx + len(token), token.tag_) for token in doc]
    return tokens if kind == "tags" else [(ent.start_char, ent.end_char, ent.label_) for ent in doc.ents]


def labels_in(marks):
    return {mark if isinstance(mark, str) else mark[2] for mark in marks}


def gold_by_text(file):
    return {doc.text.strip(): doc for doc in docs_in(file)}


def exported(tool, answered, tmp_path):
    """The file that a tool exports. answered: Of each record (the record, whether it was accepted)."""
    told = [EXPORTS[tool](number, *one) for number, one in enumerate(answered)]
    return write(tmp_path / f"answers{'.json' if tool in ARRAYS else '.jsonl'}", told, array=tool in ARRAYS)


def queue_in(tool, tmp_path, command, *options):
    """The records of a queue."""
    queue = tmp_path / ("queue.json" if tool in ARRAYS else "queue.jsonl")
    ok(calib(command, *options, "--format", tool, "--output", queue, "--force"))
    return records_in(queue)


def figures(model, data):
    (told,) = json.loads(ok(calib("evaluate", model, data, "--format", "json")).printed, object_hook=without_names).values()
    return told


_BY_GOLD: dict[tuple, dict] = {}


def figures_of_gold(model, path, docs):
    """The figures of a pipeline on these Docs, computed once: most tools get the same queue."""
    key = (model, *(doc.text for doc in docs))
    if key not in _BY_GOLD:
        _BY_GOLD[key] = figures(model, save_docs(path, docs))
    return _BY_GOLD[key]


@pytest.mark.parametrize("tool", EXPORTS)
def test_whole_documents_give_the_figures_of_the_full_gold(tool, round_trip, tmp_path):
    kind, model, test = round_trip
    gold = gold_by_text(test)
    records = queue_in(tool, tmp_path, "rank", model, test, "--to-adapt", "-n", N_DOCS)
    assert len(records) == len(gold)
    docs = [gold[parts_of(record)[0].strip()] for record in records]
    marked_records = [marked(tool, record, marks_of(kind, doc)) for record, doc in zip(records, docs, strict=True)]
    answers = exported(tool, marked_records, tmp_path)
    by_answers, by_gold = figures(model, answers), figures_of_gold(model, tmp_path / "gold.spacy", docs)
    if tool == "prodigy" and kind == "categories":  # it asks about one category of each text
        by_answers, by_gold = ({"accuracy": one["accuracy"]} for one in (by_answers, by_gold))
    assert by_answers == by_gold
    labels = {label for record in records for label in shown_labels(tool, record)}
    assert labels <= labels_in(mark for doc in gold.values() for mark in marks_of(kind, doc))


def without_names(part):
    """Figures, but for what a document is called, and which sentences of the fit are in the texts: answers have no sentences."""
    return {key: part[key] for key in part.keys() - {"unit", "by", "seen", "trusted", "comparison"}}


def shown_labels(tool, record):
    """What a record of a queue suggests."""
    if tool == "label-studio":
        values = [one["value"] for one in record["predictions"][0]["result"]]
        return [label for value in values for label in value.get("labels") or value["choices"]]
    if tool == "doccano":
        return [one if isinstance(one, str) else one[2] for one in record["label"]]
    suggested = record.get("spans", record.get("label"))
    if tool == "argilla":
        suggested = record["suggestions"].get("label", {"value": []})["value"]
    return [suggested] if isinstance(suggested, str) else [one if isinstance(one, str) else one["label"] for one in suggested]


def test_a_batch_of_docs_has_the_labels_of_the_gold(round_trip, tmp_path):
    kind, model, test = round_trip
    ok(calib("rank", model, test, "--to-adapt", "-n", N_DOCS, "--output", tmp_path / "batch.spacy"))
    gold, marks = ([mark for doc in docs_in(file) for mark in marks_of(kind, doc)] for file in (test, tmp_path / "batch.spacy"))
    assert marks
    assert labels_in(marks) <= labels_in(gold)


@pytest.mark.parametrize("tool", EXPORTS)
def test_answers_to_doubtful_ones_are_refused(tool, round_trip, tmp_path):
    _, model, test = round_trip
    records = queue_in(tool, tmp_path, "rank", model, test, "--top", 5)
    answers = exported(tool, [(record, True) for record in records], tmp_path)
    with pytest.raises(CalibError, match=r"\[C690\] (\d) of the \1 texts in .* chosen by their scores"):
        read_examples(spacy.load(model), answers, False)


@pytest.mark.parametrize(
    "command",
    [
        ("fit", "MODEL", "ANSWERS", "OUT", "--component", "tagger"),
        ("fit", "MODEL", "GOLD", "OUT", "--component", "tagger", "--gold", "ANSWERS"),
        ("adapt", "MODEL", "ANSWERS", "OUT"),
        ("evaluate", "MODEL", "ANSWERS"),
        ("threshold", "MODEL", "ANSWERS", "--precision", "0.5"),
        ("audit", "MODEL", "ANSWERS"),
    ],
    ids=str,
)
def test_every_command_that_reads_gold_refuses_doubtful_texts(
    command, calibrated, calibrated_ner, test_file, entity_test, tmp_path
):
    model, gold = (calibrated_ner, entity_test) if command[0] == "threshold" else (calibrated, test_file)
    batch = tmp_path / "batch.spacy"
    ok(calib("rank", model, gold, "--unit", "document", "-n", 5, "--output", batch))
    paths = {"MODEL": model, "ANSWERS": batch, "GOLD": gold, "OUT": tmp_path / "out"}
    refuses(calib(*(paths.get(word, word) for word in command)), "5 of the 5 texts in")
    assert not (tmp_path / "out").exists()
