"""What annotation tools import. Checked by hand with label-studio-sdk 2.1.2 (LabelInterface.validate_prediction), the importer of
doccano 1.8.4 and argilla 2.8.0 (`Record.from_dict`, `api_model`) too, which are too big to install for every run; what they ask for is asked for here.
"""

import csv
import io
import json
from dataclasses import replace

import pytest

from spacy_calib.cli.shared.records import read_records
from spacy_calib.errors import CalibError
from spacy_calib.plugins.review.queue.formats import WRITERS
from tests.made import corpus_of
from tests.plugins.review.queue.corpora import small
from tests.plugins.review.queue.test_tasks import tasks as tasks_in

AWKWARD = '<img src=x onerror=alert(1)> "quoted", Ünï\u2028code 😀'
KINDS = ["token", "sentence", "entity"]


def written(name, kind="token", corpus=None):
    corpus = small() if corpus is None else corpus
    tasks = tasks_in(corpus, kind)
    return tasks, "".join(WRITERS[name](tasks))


def records(text):
    return [json.loads(line) for line in text.split("\n") if line]


@pytest.mark.parametrize("kind", KINDS)
def test_prodigy_has_tokens_and_spans_that_agree(kind):
    _, text = written("prodigy", kind)
    for record in records(text):
        assert set(record) == {"text", "tokens", "spans", "meta"}
        rebuilt = ""
        for number, token in enumerate(record["tokens"]):
            assert token["id"] == number
            assert record["text"][token["start"] : token["end"]] == token["text"]
            rebuilt += token["text"] + " " * token["ws"]
        assert rebuilt == record["text"]
        for span in record["spans"]:
            assert record["tokens"][span["token_start"]]["start"] == span["start"]
            assert record["tokens"][span["token_end"]]["end"] == span["end"]
            assert span["label"]
        assert all(isinstance(value, (str, int, float)) for value in record["meta"].values())


@pytest.mark.parametrize("kind", KINDS)
def test_label_studio_predictions_fit_the_interface(kind):
    expected, text = written("label-studio", kind)
    tasks = json.loads(text)
    assert isinstance(tasks, list)
    for task, source in zip(tasks, expected, strict=True):
        (prediction,) = task["predictions"]
        assert prediction["score"] == pytest.approx(source.score, abs=1e-6)
        for region in prediction["result"]:
            assert (region["from_name"], region["to_name"], region["type"]) == ("label", "text", "labels")
            value = region["value"]
            assert task["data"]["text"][value["start"] : value["end"]] == value["text"]
            assert set(value["labels"]) <= {"D", "N", "V", "I", "PER", "ORG"}
        assert len({region["id"] for region in prediction["result"]}) == len(prediction["result"])


@pytest.mark.parametrize("kind", KINDS)
def test_doccano_has_a_text_and_its_labels(kind):
    tasks, text = written("doccano", kind)
    for record, task in zip(records(text), tasks, strict=True):
        assert record["text"] == task.text
        assert record["label"] == [[mark.start, mark.end, mark.label] for mark in task.spans]


@pytest.mark.parametrize("kind", KINDS)
def test_argilla_has_fields_suggestions_and_flat_metadata(kind):
    tasks, text = written("argilla", kind)
    found = json.loads(text)
    assert [one["id"] for one in found] == [str(task.rank) for task in tasks]
    for record, task in zip(found, tasks, strict=True):
        assert record.keys() == {"id", "fields", "metadata", "suggestions"}
        assert record["fields"] == {"text": task.text}
        assert record["suggestions"].keys() == ({"label"} if task.spans else set())
        suggested = record["suggestions"].get("label", {"value": [], "score": [], "agent": ""})
        assert suggested.keys() == {"value", "score", "agent"}
        assert suggested["score"] == pytest.approx([span.score for span in task.spans], abs=1e-6)
        for one, span in zip(suggested["value"], task.spans, strict=True):
            assert one == {"start": span.start, "end": span.end, "label": span.label}
        for value in record["metadata"].values():
            assert isinstance(value, (str, int, float)) or all(isinstance(one, str) for one in value)


def test_what_argilla_takes_for_no_value_is_written_as_json():
    corpus = corpus_of([[[("a", "A", {"A": 0.5})]]])
    origin = {"meta": {"by": None}, "file": "x", "ids": ["a", "b"], "of": None}
    (found,) = json.loads("".join(WRITERS["argilla"]([replace(next(iter(tasks_in(corpus, "token"))), origin=origin)])))
    assert found["metadata"].items() >= {"by": "null", "file": "x", "ids": ["a", "b"], "of": "null"}.items()


@pytest.mark.parametrize(("meta", "beside_ours"), [
    ({"source": "pond"}, {"source": "pond"}),
    *(({"source": "pond", name: "theirs"}, {"meta": {"source": "pond", name: "theirs"}}) for name in ("rank", "id", "focus")),
])  # fmt: skip
def test_what_came_with_a_text_goes_with_its_task_and_takes_the_place_of_nothing(meta, beside_ours):
    (task, *_) = tasks_in(small(), "token")
    origin = {"line": 2, "id": "x1", "meta": meta}
    texts = {name: "".join(write([replace(task, origin=origin)])) for name, write in WRITERS.items()}
    (studio,) = json.loads(texts["label-studio"])
    for found in (*(json.loads(texts[name])["meta"] for name in ("prodigy", "doccano")), studio["data"]["meta"]):
        assert found == {**found, "line": 2, "id": "x1", "rank": task.rank, "focus": task.focus, **beside_ours}
    (row,) = csv.DictReader(io.StringIO(texts["csv"]))
    assert json.loads(row["origin"]) == origin


def test_csv_has_a_row_for_each_task():
    tasks, text = written("csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["focus"] for row in rows] == [task.focus for task in tasks]
    assert (rows[1]["label"], rows[1]["gold"], rows[1]["right"]) == ("N", "V", "0")
    assert rows[1]["alternatives"] == "N:0.6 V:0.4"
    assert (rows[3]["gold"], rows[3]["right"]) == ("", "")


def test_labels_that_xml_cannot_hold_are_shown_in_config_and_predictions():
    label = 'A\0B\x1b"\n\ud800'
    corpus = corpus_of([[[("x", label, {label: 0.5})]]])
    _, text = written("label-studio", corpus=corpus)
    (found,) = [region["value"]["labels"] for task in json.loads(text) for region in task["predictions"][0]["result"]]
    assert found == ['A\\x00B\\x1b"\\n\\ud800']


def test_labels_that_a_spreadsheet_would_compute_are_guarded():
    corpus = corpus_of([[[("-LRB-", "-LRB-", {"-LRB-": 0.5}), ("\rx", "=1", {"=1": 0.5})]]])
    _, text = written("csv", corpus=corpus)
    rows = {row["label"]: row["alternatives"] for row in csv.DictReader(io.StringIO(text, newline=""))}
    assert rows == {"'-LRB-": "'-LRB-:0.5", "'=1": "'=1:0.5"}


@pytest.mark.parametrize("name", WRITERS)
def test_awkward_text_comes_back_whole(name):
    corpus = corpus_of([[[(AWKWARD, "A&<B>", {"A&<B>": 0.5}), ("x", "A&<B>", {"A&<B>": 0.9})]]])
    _, text = written(name, corpus=corpus)
    if name == "csv":
        found = [row["text"] for row in csv.DictReader(io.StringIO(text))]
    elif name == "label-studio":
        found = [task["data"]["text"] for task in json.loads(text)]
    elif name == "argilla":
        found = [record["fields"]["text"] for record in json.loads(text)]
    else:
        found = [record["text"] for record in records(text)]
    assert found == [f"{AWKWARD} x"] * 2


@pytest.mark.parametrize("name", WRITERS)
def test_tasks_are_written_as_they_come(name):
    """A million of them would not fit into memory."""
    read = []
    tasks, _ = written(name)
    pieces = WRITERS[name](read.append(task.rank) or task for task in tasks)
    first = next(pieces) + next(pieces)
    assert tasks[0].text.split()[0] in first
    assert len(read) <= 2
    empty = {"csv": first.splitlines()[0] + "\r\n", "label-studio": "[]\n", "argilla": "[]\n"}
    assert "".join(WRITERS[name]([])) == empty.get(name, "")


@pytest.mark.parametrize("text", ["-LRB- x", "=1+1", "'=1", 'He said: "Où,', "plain"])
def test_guarded_texts_come_back(text, tmp_path):
    tasks, found = written("csv", "sentence", corpus_of([[[(word, "A", {"A": 0.5}) for word in text.split()]]]))
    path = tmp_path / "batch.csv"
    path.write_bytes(found.encode("utf8"))
    assert [record["text"] for _, record in read_records(path)] == [task.text for task in tasks] == [text]


@pytest.mark.parametrize("data", [b"", b"word,tag\na,b\n", b"\xff\xfe\x00"])
def test_a_csv_without_texts_is_refused(tmp_path, data):
    path = tmp_path / "other.csv"
    path.write_bytes(data)
    with pytest.raises(CalibError, match=r"other\.csv"):
        list(read_records(path))
