"""`spacy calib watch`: windows of texts through the real command, merged, and drawn."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest
import spacy
from spacy.tokens import DocBin
from spacy.vocab import Vocab

from spacy_calib import CalibError, Monitor
from spacy_calib.cli.api import report
from spacy_calib.cli.watch import watch
from spacy_calib.expect.windows import ONE
from tests.cli.conftest import bare_docs, calib, entity_docs, ok, refuses, save_docs
from tests.conftest import made_up_sentences
from tests.expect.streams import few_draws  # noqa: F401


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """A function that writes made-up texts, with a date each, and gives the file."""
    folder = tmp_path_factory.mktemp("texts")

    def write(name, n, seed=5, dates=("2026-01-01",)):
        held = [" ".join(word for word, _ in sentence) for sentence in made_up_sentences(n, seed)]
        lines = [{"text": text, "meta": {"when": dates[i % len(dates)]}} for i, text in enumerate(held)]
        path = folder / name
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    return write


@pytest.fixture(scope="module")
def days(calibrated, texts, tmp_path_factory):
    """Windows of two files of texts, with the results."""
    folder = tmp_path_factory.mktemp("windows")
    found = []
    for i, name in enumerate(("monday", "tuesday")):
        file = texts(f"{name}.jsonl", 40, seed=i)
        found.append(watch(str(calibrated), file, window=30, output=folder / f"{name}.jsonl"))
    return folder, found


def windows_in(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_windows_of_documents(days, calibrated, tmp_path):
    folder, (monday, _) = days
    assert windows_in(folder / "monday.jsonl") == monday["windows"]
    assert [(line["part"], line["at"], line["documents"]) for line in monday["windows"]] == [
        ("monday.jsonl", 1, 30), ("monday.jsonl", 2, 10),
    ]  # fmt: skip
    assert (monday["documents"], monday["alarms"], monday["new_alarms"], monday["window"]) == (40, 0, 0, 30)
    assert all(line["low"] < line["expected"] < line["high"] for line in monday["windows"])


def test_windows_are_those_of_a_monitor(days, calibrated, texts):
    nlp = spacy.load(calibrated)
    monitor = Monitor(nlp, window=30, part="monday.jsonl")
    for line in windows_in(texts("monday.jsonl", 40, seed=0)):
        monitor.update(nlp(line["text"]))
    assert monitor.lines() == days[1][0]["windows"]


def test_windows_of_several_files_are_read_back_in_any_order(days, calibrated, tmp_path):
    folder, (monday, tuesday) = days
    both = watch(str(calibrated), folder)
    other = watch(str(calibrated), folder / "tuesday.jsonl", merge=[folder / "monday.jsonl"])
    assert both["windows"] == other["windows"] == [*monday["windows"], *tuesday["windows"]]
    outcome = calib("watch", calibrated, folder, "-o", tmp_path / "all.jsonl")
    assert outcome.code == 0
    assert "No alarm in 4 windows (at most one false alarm in 1,000 windows" in outcome.text
    assert windows_in(tmp_path / "all.jsonl") == both["windows"]


def test_windows_by_date(calibrated, texts, tmp_path):
    file = texts("dated.jsonl", 9, dates=("2026-01-01", "2026-03-31", "2026-01-31"))
    outcome = calib("watch", calibrated, file, "--by", "when", "--every", "month", "-o", tmp_path / "w.jsonl")
    assert outcome.code == 0, outcome.text
    assert [(line["part"], line["at"], line["documents"]) for line in windows_in(tmp_path / "w.jsonl")] == [
        ("", "2026-01", 6), ("", "2026-02", 0), ("", "2026-03", 3),
    ]  # fmt: skip
    assert "2026-02 0 0 - - no texts" in outcome.text
    more = watch(str(calibrated), file, by="when", every="month", merge=[tmp_path / "w.jsonl"])
    assert [line["documents"] for line in more["windows"]] == [12, 0, 6]


def test_other_texts_give_an_alarm_and_an_exit_code(days, calibrated, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("the the the the a a a .\n" * 60)
    outcome = calib("watch", calibrated, other, "--window", 30, "--fail-on", "alarm", "--merge", days[0])
    assert outcome.code == 1
    assert "ALARM: differs from the fit data (scores" in outcome.text
    assert "2 of 6 windows give an alarm" in outcome.text
    assert calib("watch", calibrated, other, "--silent").code == 0
    # Old alarms do not fail a new day.
    watch(str(calibrated), other, window=30, output=tmp_path / "old.jsonl")
    outcome = calib("watch", calibrated, days[0] / "monday.jsonl", "--merge", tmp_path / "old.jsonl", "--fail-on", "alarm")
    assert (outcome.code, "2 of 4 windows give an alarm" in outcome.text) == (0, True)


def test_texts_of_the_fit_are_told(calibrated, dev, days):
    outcome = calib("watch", calibrated, dev)
    assert "37 of 37 texts (100 % of the words) are among those that the pipe was fitted on" in outcome.text
    assert days[1][0]["seen"] is None or not days[1][0]["seen"]["many"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ({"text": "a dog"}, "there is none"),
        ({"text": "a dog", "when": "soon"}, "'soon': no date"),
        ({"text": "a dog", "when": "2026"}, "'2026': no day in it"),
        ({"text": "a dog", "when": [1]}, "[1]: no date"),
    ],
)
def test_dates_that_cannot_be_read_are_refused_before_the_work(line, why, calibrated, tmp_path, monkeypatch):
    path = tmp_path / "texts.jsonl"
    path.write_text(json.dumps({"text": "a", "when": "2026-01-01"}) + "\n" + json.dumps(line) + "\n")
    monkeypatch.setattr("spacy_calib.cli.shared.run.Run.open", None)
    refuses(
        calib("watch", calibrated, path, "--by", "when"),
        f"line 2 of {path} has no date under 'when' that tells its day ({why})"[:60],
    )
    with pytest.raises(CalibError, match="C242") as error:
        watch(str(calibrated), path, by="when")
    assert why in str(error.value)


def test_each_value_of_a_key_is_a_stream_of_its_own(calibrated, test_file, tmp_path):
    docs = list(DocBin().from_disk(test_file).get_docs(Vocab()))
    for number, doc in enumerate(docs):
        doc.user_data.update({"shop": "north" if number % 4 else "south"} if number else {})
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "filed.spacy")
    north = save_docs(tmp_path / "north.spacy", [doc for doc in docs if doc.user_data.get("shop") == "north"])
    outcome = ok(
        calib("watch", calibrated, tmp_path / "filed.spacy", "--by", "shop", "--window", 20, "-o", tmp_path / "w.jsonl")
    )
    lines = [json.loads(line) for line in (tmp_path / "w.jsonl").read_text().splitlines()]
    windows = [(line["part"], line["at"], line["documents"]) for line in lines]
    assert windows == [("north", 1, 20), ("north", 2, 20), ("north", 3, 20), ("south", 1, 19), ("without shop", 1, 1)]
    assert "north 1" in outcome.text
    ok(calib("watch", calibrated, north, "--part", "north", "--window", 20, "-o", tmp_path / "n.jsonl"))
    alone = [json.loads(line) for line in (tmp_path / "n.jsonl").read_text().splitlines()]
    assert [line["counts"] for line in alone] == [line["counts"] for line in lines[:3]]


def test_what_has_no_dates_is_refused(calibrated, dev):
    refuses(calib("watch", calibrated, dev, "--by", "when"), "has no dates")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--window", 5, "--by", "when", "--every", "day"], "Option --every must be left out beside --window"),
        (["--window", 5, "--by", "when", "--part", "a"], "Option --part must be left out where each value of --by is a stream"),
        (["--window", 5, "--by", "shop"], "No document has anything under the key 'shop'"),
        (["--every", "week"], "Option --every must be left out without --by"),
        (["--rate", 0], "Option --rate must be"),
        (["--fail-on", "rain"], "Option --fail-on must be alarm"),
        (["--merge", "MONDAY", "--window", 7], "Windows of 7 documents cannot be added to windows of 30 documents"),
        (["--merge", "MONDAY", "--merge", "MONDAY"], "were given twice"),
        (["--merge", "TEXTS"], "There is no window to read in line 1 of"),
    ],
)
def test_options_that_cannot_be(options, sentence, calibrated, days, texts):
    named = {"MONDAY": days[0] / "monday.jsonl", "TEXTS": texts("plain.jsonl", 2)}
    outcome = calib("watch", calibrated, texts("some.jsonl", 2), *(named.get(option, option) for option in options))
    refuses(outcome, sentence)


def test_windows_of_another_pipe_and_spoilt_ones_are_refused(days, calibrated_ner, calibrated, tmp_path):
    refuses(calib("watch", calibrated_ner, days[0]), "The windows belong to another pipe")
    spoilt = shutil.copy(days[0] / "monday.jsonl", tmp_path / "spoilt.jsonl")
    refuses(calib("watch", calibrated, spoilt, "--window", 5), "Option --window must be left out where DATA holds windows")
    with open(spoilt, "a") as file:
        file.write("\n{\n")
    refuses(calib("watch", calibrated, spoilt), "There is no window to read in line 4 of")


def test_a_pipe_without_a_record_cannot_watch(calibrated, test_file, tmp_path):
    nlp = spacy.load(calibrated)
    pipe = nlp.get_pipe("calib")
    pipe.learned = replace(pipe.learned, record=None)
    nlp.to_disk(tmp_path / "old")
    refuses(calib("watch", tmp_path / "old", test_file), "keeps no record of the documents")


@pytest.mark.filterwarnings("ignore:.*CW04")
def test_other_weights_leave_no_verdict(calibrated, test_file, tmp_path):
    nlp = spacy.load(calibrated)
    for node in nlp.get_pipe("tagger").model.walk():
        if node.has_param("b"):
            node.set_param("b", node.get_param("b") + 0.1)
    nlp.to_disk(tmp_path / "trained")
    outcome = calib("watch", tmp_path / "trained", test_file)
    assert "OTHER WEIGHTS" in outcome.text
    assert "fitted with other weights" in outcome.text


def test_a_picture_over_time(days, calibrated, tmp_path):
    pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")
    found = watch(str(calibrated), days[0], output=tmp_path / "w.svg")
    assert [one["part"] for one in found["windows"]] == ["monday.jsonl"] * 2 + ["tuesday.jsonl"] * 2
    picture = (tmp_path / "w.svg").read_bytes()
    assert b"<svg" in picture
    assert (
        watch(str(calibrated), days[0] / "monday.jsonl", merge=[days[0] / "tuesday.jsonl"], output=tmp_path / "m.svg")[
            "documents"
        ]
        == found["documents"]
    )


def test_windows_in_the_report(days, calibrated, calibrated_ner, test_file, entity_test, tmp_path):
    contents = report(str(calibrated), test_file, watch=days[0] / "monday.jsonl", output=tmp_path / "page.html")
    assert contents["watch"]["name"] == "tagger on monday.jsonl"
    page = (tmp_path / "page.html").read_text()
    assert "Over time: tagger on monday.jsonl" in page
    assert "None of 2 windows gives an alarm." in page
    refuses(
        calib("evaluate", calibrated_ner, entity_test, "--watch", days[0], "-o", tmp_path / "other.html"),
        "The windows belong to another pipe",
    )


def test_entities_are_counted_and_expected(calibrated_ner):
    nlp = spacy.load(calibrated_ner)
    docs, monitor = list(nlp.pipe(bare_docs(nlp, entity_docs(30, 23, nlp.vocab)))), Monitor(nlp)
    for doc in docs:
        monitor.update(doc)
    (window,) = monitor.snapshot()["windows"]
    scores = [span._.calib_score for doc in docs for span in doc.ents]
    assert window["counts"]["spans"] == window["entities"]["predicted"] == len(scores) > 0
    assert window["counts"]["spans_expected"] / ONE == pytest.approx(sum(scores), abs=1e-4)
    assert window["entities"]["f"]["low"] < window["entities"]["f"]["expected"] < window["entities"]["f"]["high"]
    assert window["counts"]["outside"] > 0
