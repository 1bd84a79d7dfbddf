"""From clicks to a promise: the sample, its answers from each tool and in the terminal, the sentence, and the check, by the real commands."""

import csv
import io
import json
import os
import sys
import threading
import time
from collections import Counter

import numpy as np
import pytest
import spacy

from spacy_calib.calibration.thresholds import round_down
from spacy_calib.plugins.review.asking import ask_in_terminal
from spacy_calib.plugins.review.queue.tasks import Task, TaskSpan
from spacy_calib.plugins.review.rank_command import show_sample
from tests.answers import EXPORTS, answer, parts_of, records_in, write
from tests.cli.conftest import calib, entity_docs, json_of, ok, refuses, spacy_command
from tests.sentences import says

N_DOCS = 600


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Texts of their own, each with an id; and which entities are right in each: (id, text of the entity, label)."""
    path, right = tmp_path_factory.mktemp("texts") / "texts.jsonl", set()
    docs = entity_docs(N_DOCS, 77)
    path.write_text("".join(json.dumps({"text": doc.text, "id": f"d{i}"}) + "\n" for i, doc in enumerate(docs)))
    for i, doc in enumerate(docs):
        right |= {(f"d{i}", ent.text, ent.label_) for ent in doc.ents}
    return path, right


def is_right(right):
    """Whether a record of a queue asks about an entity that is right."""

    def judge(record):
        meta = parts_of(record)[1]
        return (meta["id"], meta["focus"], meta["asked"].split()[2]) in right

    return judge


@pytest.fixture(scope="module")
def queues(calibrated_ner, texts, tmp_path_factory):
    """Tool -> the queue of 250 entities that are drawn from all."""
    folder = tmp_path_factory.mktemp("queues")
    for tool in EXPORTS:
        options = ("--order", "random", "--unit", "entity", "--top", 250, "--format", tool, "--silent")
        ok(calib("rank", calibrated_ner, texts[0], *options, "--output", folder / f"{tool}.json"))
    return folder


@pytest.fixture(scope="module")
def promised(calibrated_ner, texts, queues, tmp_path_factory):
    """(the answers of Prodigy, the pipeline with the cut-off that they give, what was found)."""
    folder = tmp_path_factory.mktemp("promised")
    file = answer("prodigy", queues / "prodigy.json", is_right(texts[1]), folder / "answers.jsonl")
    options = ("--precision", 0.8, "--apply", folder / "accepting")
    return file, folder / "accepting", json_of("threshold", calibrated_ner, file, *options)


def test_the_sample_has_each_entity_with_the_same_chance_and_one_of_a_document(queues):
    records = records_in(queues / "prodigy.json")
    samples = [record["meta"]["sample"] for record in records]
    assert len(records) == 250
    assert len({sample["document"] for sample in samples}) > 240
    assert {sample["accepted"] for sample in samples} == {1.0}
    assert {sample["cutoff"] for sample in samples} == {None}
    assert len({(record["meta"]["doc"], record["meta"]["asked"], record["meta"]["sentence"]) for record in records}) == 250
    scores = [record["meta"]["score"] for record in records]
    assert scores != sorted(scores)


def test_the_cut_off_is_that_of_the_scores_in_the_queue_and_keeps_its_promise(calibrated_ner, texts, promised):
    file, accepting, result = promised
    records = records_in(file)
    scores = np.array([record["meta"]["sample"]["score"] for record in records])
    hits = np.array([record["answer"] == "accept" for record in records])
    (row,) = result["rows"]
    kept = scores >= row["cutoff"]
    assert row["cutoff"] in round_down(scores)
    assert (row["entities"], row["kept"]) == (250, int(kept.sum()))
    assert row["precision"] == pytest.approx(hits[kept].mean())
    assert result["sample"] == {
        "answers": 250,
        "documents": len({record["meta"]["doc"] for record in records}),
        "drawn_from": records[0]["meta"]["sample"]["drawn_from"],
        "accepted": pytest.approx(kept.mean()),
    }
    nlp = spacy.load(accepting)
    accepted = [
        (line["id"], ent.text, ent.label_) in texts[1]
        for line in map(json.loads, texts[0].read_text().splitlines())
        for ent in nlp(line["text"]).ents
        if ent._.calib_ent_accept
    ]
    assert np.mean(accepted) >= 0.8
    assert len(accepted) > 100


def test_the_sentence_is_on_the_screen_in_json_in_info_and_on_the_report_page(calibrated_ner, promised, entity_test, tmp_path):
    file, accepting, result = promised
    sample = result["sample"]
    sentence = (
        "Of the entities that this pipeline finds and accepts in texts like these, at least 80 % are right (95 % confidence; "
        f"250 answers in {sample['documents']} documents, drawn at random from {sample['drawn_from']}). It accepts about "
        f"{100 * sample['accepted']:.0f} % of the entities that it finds. Entities that it does not find are not in this number."
    )
    assert result["promise"] == sentence
    assert sentence in ok(calib("threshold", calibrated_ner, file, "--precision", 0.8)).text
    assert json_of("info", accepting)["calib_ent"]["promise"] == sentence
    assert sentence in ok(calib("info", accepting)).text
    ok(calib("evaluate", accepting, entity_test, "--output", tmp_path / "page.html", "--silent"))
    assert sentence in " ".join((tmp_path / "page.html").read_text().split())


@pytest.mark.parametrize("tool", EXPORTS)
def test_the_answers_of_every_tool_give_the_same(tool, calibrated_ner, texts, queues, promised, tmp_path):
    file = answer(tool, queues / f"{tool}.json", is_right(texts[1]), tmp_path / "answers.json")
    result = json_of("threshold", calibrated_ner, file, "--precision", 0.8)
    assert (result["cutoffs"], result["sample"]) == (promised[2]["cutoffs"], promised[2]["sample"])
    assert set(result["answers"].values()) == {0}


def test_people_who_disagree_skipped_doubled_and_missing_answers_are_counted(calibrated_ner, promised, tmp_path):
    records = [dict(record, _annotator_id="A") for record in records_in(promised[0])]
    accepted = [i for i, record in enumerate(records) if record["answer"] == "accept"]
    disputed, changed = accepted[:3], accepted[3:5]
    more = [dict(records[i], answer="reject", _annotator_id="B") for i in disputed]
    more += [dict(records[i], answer="reject") for i in changed]  # the same person, later
    for i in range(240, 250):
        records[i] = {**records[i], "answer": "ignore"}
    file = write(tmp_path / "answers.jsonl", [*records[:230], *records[233:], *more])
    result = json_of("threshold", calibrated_ner, file, "--precision", 0.8)
    assert result["answers"] == {"disputed": 3, "skipped": 10, "changed": 0, "doubled": 2, "unanswered": 0}
    assert result["sample"]["answers"] == 247
    text = ok(calib("threshold", calibrated_ner, file, "--precision", 0.8)).text
    assert "Answers: 3 disputed, 10 skipped, 2 doubled." in text
    right = sum(records[i]["answer"] == "accept" for i in (*range(230), *range(233, 250))) - 5
    low = json_of("threshold", calibrated_ner, file, "--precision", 0.01)["rows"][0]
    assert (low["kept"], round(low["precision"] * low["kept"])) == (247, right)


def test_questions_without_an_answer_are_left_out(calibrated_ner, texts, queues, tmp_path):
    """Argilla exports them, too; and whoever discards a record skips it."""
    file = answer("argilla", queues / "argilla.json", is_right(texts[1]), tmp_path / "answers.json")
    records = records_in(file)
    for record in records[200:]:
        record["responses"] = {}
    for record in records[:4]:
        record["responses"]["label"] = [{"value": None, "status": "discarded", "user_id": "u"}]
    write(file, records, array=True)
    result = json_of("threshold", calibrated_ner, file, "--precision", 0.5)
    assert result["answers"] == {"disputed": 0, "skipped": 4, "changed": 0, "doubled": 0, "unanswered": 50}
    assert result["sample"]["answers"] == 200


def test_files_that_promise_nothing_are_refused_in_a_sentence(calibrated_ner, texts, promised, queues, entity_test, tmp_path):
    records = records_in(promised[0])
    cut = tmp_path / "cut.jsonl"
    cut.write_text(promised[0].read_text()[:-40])
    refuses(calib("threshold", calibrated_ner, cut, "-p", 0.8), says("C692"))
    options = ("--unit", "entity", "--format", "prodigy", "--top", 60, "--silent", "--output", tmp_path / "doubtful.json")
    ok(calib("rank", calibrated_ner, texts[0], *options))
    doubtful = answer("prodigy", tmp_path / "doubtful.json", lambda record: True, tmp_path / "doubtful.jsonl")
    refuses(calib("threshold", calibrated_ner, doubtful, "-p", 0.8), says("C690"))
    mixed = write(tmp_path / "mixed.jsonl", [*records, *records_in(doubtful)])
    refuses(calib("threshold", calibrated_ner, mixed, "-p", 0.8), says("C792", n="250", others="60"))
    for record in records:
        record["meta"]["sample"]["calib"] = "another"
    refuses(calib("threshold", calibrated_ner, write(tmp_path / "other.jsonl", records), "-p", 0.8), says("C533"))
    records[3]["meta"]["sample"]["score"] = "high"
    refuses(calib("threshold", calibrated_ner, write(tmp_path / "bad.jsonl", records), "-p", 0.8), says("C692"))
    refuses(calib("threshold", calibrated_ner, promised[0], "-r", 0.8), says("C056", option="--recall"))
    refuses(calib("threshold", calibrated_ner, entity_test, "--check"), says("C532"))
    refuses(calib("threshold", calibrated_ner, promised[0], "--check"), says("C531"))


def test_a_precision_of_each_label_shares_the_error(calibrated_ner, promised):
    result = json_of("threshold", calibrated_ner, promised[0], "--precision", "PER=.7,LOC=.5")
    assert (result["per"], result["precision"], result["targets"]) == ("label", 0.5, {"PER": 0.7, "LOC": 0.5})
    assert set(result["cutoffs"]) == {"PER", "LOC"}
    assert "at least 70 % of PER and 50 % of LOC are right (95 % confidence for all together;" in result["promise"]
    for label, share in result["targets"].items():
        alone = json_of("threshold", calibrated_ner, promised[0], "-p", f"{label}={share}", "--confidence", 0.975)
        assert alone["cutoffs"][label] == pytest.approx(result["cutoffs"][label])


@pytest.mark.parametrize("given", ["PER=.7,PER=.8", "PER", "PER=x", "=.5,PER=.5", ".8,.9", "CITY=.7"])
def test_a_precision_that_cannot_be_read(given, calibrated_ner, promised):
    refuses(calib("threshold", calibrated_ner, promised[0], "--precision", given), says("C056", option="--precision"))


@pytest.fixture(scope="module")
def accepted(promised, texts, tmp_path_factory):
    """(the queue of 200 entities that are accepted, what was printed)."""
    path = tmp_path_factory.mktemp("accepted") / "queue.json"
    options = ("--accepted", "--order", "random", "--top", 200, "--format", "prodigy", "--output", path, "--seed", 5)
    return path, ok(calib("rank", promised[1], texts[0], *options)).text


def test_a_sample_of_what_is_accepted_keeps_the_cut_off_or_raises_it(promised, texts, accepted, tmp_path):
    (cutoff,) = promised[2]["cutoffs"].values()
    assert {record["meta"]["sample"]["cutoff"] for record in records_in(accepted[0])} == {cutoff}
    rng = np.random.default_rng(0)
    for share, kept in ((0.97, True), (0.84, False)):
        file = answer("prodigy", accepted[0], lambda record, share=share: rng.random() < share, tmp_path / "answers.jsonl")
        result = json_of("threshold", promised[1], file, "--precision", 0.8)
        if kept:
            assert result["cutoffs"]["all"] == cutoff  # not the lowest score of the sample
            assert result["sample"]["accepted"] == pytest.approx(records_in(file)[0]["meta"]["sample"]["accepted"])
        else:
            assert result["cutoffs"]["all"] is None or result["cutoffs"]["all"] >= cutoff
    file = answer("prodigy", accepted[0], lambda record: True, tmp_path / "answers.jsonl")
    assert json_of("threshold", promised[1], file, "--precision", 0.01)["cutoffs"]["all"] == cutoff


def test_the_promise_is_checked_on_new_answers(promised, accepted, tmp_path):
    numbers = iter(range(10**6))
    for n_wrong, verdict in ((10, "holds"), (70, "no longer"), (36, "unclear")):
        file = answer("prodigy", accepted[0], lambda record, n=n_wrong: next(numbers) % 200 >= n, tmp_path / "answers.jsonl")
        result = json_of("threshold", promised[1], file, "--check")
        (row,) = result["rows"]
        assert (row["answers"], row["right"], row["wanted"]) == (200, 200 - n_wrong, 0.8)
        assert result["verdict"] == row["verdict"] == verdict
        assert f"Does the promise hold? {verdict}" in ok(calib("threshold", promised[1], "--check", file)).text
    assert promised[2]["promise"] in ok(calib("threshold", promised[1], file, "--check")).text
    for options in (("-p", 0.8), ("-r", 0.8), ("-a", tmp_path / "out")):
        refuses(calib("threshold", promised[1], file, "--check", *options), says("C056"))


def test_how_many_answers_it_takes_is_told_before_the_first_one(calibrated_ner, texts, accepted):
    assert "are right; if the scores are calibrated: Probably" in accepted[1]
    assert "answers show that at least 80 % are right, as promised." in accepted[1]
    result = json_of("rank", calibrated_ner, texts[0], "--order", "random", "--unit", "entity", "--top", 2)["sample"]
    assert [row["precision"] for row in result["promises"]] == [0.7, 0.8, 0.9, 0.95]
    assert result["promises"][0]["answers"] in (30, 60, 120, 250, 500, 1000)
    assert result["promises"][-1]["answers"] is None
    text = ok(calib("rank", calibrated_ner, texts[0], "--order", "random", "--unit", "entity", "--top", 2)).text
    assert "At least 95 % right: out of reach with 1,000 answers." in text
    assert f"At least 70 % right: promised by probably {result['promises'][0]['answers']} answers, for" in text


def test_no_more_answers_are_promised_than_there_are_entities(capsys):
    rows = [{"precision": 0.7, "answers": 30, "accepted": 0.5}, {"precision": 0.8, "answers": 60, "accepted": 0.5}]
    show_sample({"units": 40, "sample": {"precision": 0.9, "documents": 1, "promises": rows}})
    text = " ".join(capsys.readouterr().out.split())
    assert "90.0 % of 40 entities in 1 document are right" in text
    assert "At least 70 % right: promised by probably 30 answers, for 50.0 % of the entities." in text
    assert "At least 80 % right: out of reach with 40 answers." in text


def test_a_sample_above_another_cut_off_cannot_check(calibrated_ner, promised, accepted, tmp_path):
    file = answer("prodigy", accepted[0], lambda record: True, tmp_path / "answers.jsonl")
    ok(calib("threshold", calibrated_ner, promised[0], "-p", 0.5, "-a", tmp_path / "lower", "--silent"))
    refuses(calib("threshold", tmp_path / "lower", file, "--check"), says("C534", name="calib_ent"))


def test_the_accepted_names_as_a_table(promised, texts, tmp_path):
    ok(calib("rank", promised[1], texts[0], "--accepted", "--output", tmp_path / "names.csv", "--silent"))
    content = (tmp_path / "names.csv").read_bytes()
    assert content.startswith(b"\xef\xbb\xbf")
    rows = list(csv.DictReader(content.decode("utf-8-sig").splitlines()))
    assert list(rows[0]) == ["text", "label", "score", "start", "end", "document"]
    scores = [float(row["score"]) for row in rows]
    assert scores == sorted(scores, reverse=True)
    (cutoff,) = promised[2]["cutoffs"].values()
    assert scores[-1] >= round(cutoff, 6)
    text_of = {line["id"]: line["text"] for line in map(json.loads, texts[0].read_text().splitlines())}
    assert all(text_of[row["document"]][int(row["start"]) : int(row["end"])] == row["text"] for row in rows)
    nlp = spacy.load(promised[1])
    found = Counter((doc_id, ent.text) for doc_id, text in text_of.items() for ent in nlp(text).ents if ent._.calib_ent_accept)
    assert found == Counter((row["document"], row["text"]) for row in rows)
    # A text with nothing below the cut-off.
    certain = next(
        row["document"] for row in rows if [ent._.calib_ent_accept for ent in nlp(text_of[row["document"]]).ents] == [True]
    )
    (tmp_path / "certain.jsonl").write_text(json.dumps({"text": text_of[certain]}))
    printed = ok(calib("rank", promised[1], tmp_path / "certain.jsonl", "--accepted")).text
    assert "1 entity, most certain first" in printed
    assert "below their cut-off" not in printed


def test_a_name_that_a_spreadsheet_would_run_is_guarded():
    from spacy_calib.plugins.review.queue.formats import to_names

    tasks = [task(0, text) for text in ("=1+1 Corp", "+49 GmbH", "-x Ltd", "@home", "Plain")]
    rows = list(csv.reader("".join(to_names(tasks)).removeprefix("\ufeff").splitlines()))
    assert [row[0] for row in rows[1:]] == ["'=1+1 Corp", "'+49 GmbH", "'-x Ltd", "'@home", "Plain"]


def test_options_that_do_not_go_together(calibrated_ner, texts, tmp_path):
    refuses(calib("rank", calibrated_ner, texts[0], "--accepted"), says("C531"))
    refuses(calib("rank", calibrated_ner, texts[0], "--accepted", "--not-accepted"), says("C056", option="--accepted"))
    refuses(calib("rank", calibrated_ner, texts[0], "--accepted", "--unit", "token"), says("C056", option="--accepted"))
    refuses(calib("rank", calibrated_ner, texts[0], "--ask"), says("C056", option="--output"))
    refuses(calib("rank", calibrated_ner, texts[0], "--ask", "-o", tmp_path / "a.csv"), says("C056", option="--output"))


def ask(model, texts, path, keys, *options):
    """`rank --ask` with keys on standard input."""
    return ok(spacy_command("calib", "rank", model, texts, "--order", "random", "--ask", "-o", path, *options, input=keys))


def test_the_walk_in_the_terminal(calibrated_ner, texts, promised, tmp_path):
    """Ask, undo, skip, quit, go on later, and find the cut-off of these answers."""
    path, right = tmp_path / "answers.jsonl", texts[1]
    first = ask(calibrated_ner, texts[0], path, "y\nn\nx\nu\nu\ns\nq\n")
    assert "1 of 250: is this" in first.text
    assert first.text.count("1 of 250: is this") == 2
    assert "1 of 250 questions are answered" in first.text
    assert [record["answer"] for record in records_in(path)] == ["ignore"]
    assert "0." not in first.text.split("y)es")[1]  # no score that suggests an answer
    questions = records_in_order(calibrated_ner, texts[0], tmp_path)
    keys = "".join("y\n" if is_right(right)(record) else "n\n" for record in questions)
    second = ask(calibrated_ner, texts[0], path, "u\n" + keys)
    assert "250 of 250 questions are answered" in second.text
    result = json_of("threshold", calibrated_ner, path, "--precision", 0.8)
    assert (result["cutoffs"], result["sample"]) == (promised[2]["cutoffs"], promised[2]["sample"])
    refuses(
        calib("rank", calibrated_ner, texts[0], "--order", "random", "--ask", "-o", path, "--seed", 9), says("C535", path=path)
    )
    ask(calibrated_ner, texts[0], path, "x\nu\nq\n", "--seed", 9, "--force", "--top", 30)
    assert len(records_in(path)) == 250  # nothing was answered anew
    ask(calibrated_ner, texts[0], path, "y\nq\n", "--seed", 9, "--force", "--top", 30)
    assert len(records_in(path)) == 1


def records_in_order(model, texts, tmp_path):
    options = ("--order", "random", "--unit", "entity", "--top", 250, "--format", "prodigy", "--silent")
    ok(calib("rank", model, texts, *options, "--output", tmp_path / "same.json"))
    return records_in(tmp_path / "same.json")


def task(number, text="Ann", before="Here is "):
    whole = f"{before}{text} again."
    start = len(before)
    span = TaskSpan(2, 2, start, start + len(text), "PER", 0.5)
    scores = dict.fromkeys(("score", "raw", "priority"), 0.5)
    return Task(
        text=whole, focus=text, tokens=[], spans=[span], unit="entity", has_one_label=True, sentence=0, start=2, end=3,
        doc=number, words=3, origin={"line": number + 1}, rank=number + 1, place=(start, start + len(text)),
        right=None, gold=None, alternatives={}, **scores,
    )  # fmt: skip


def test_a_terminal_gets_single_keys(monkeypatch, tmp_path):
    """A real one, a pseudo-terminal: no line end is needed."""
    pty = pytest.importorskip("pty")
    own, other = pty.openpty()
    termios = pytest.importorskip("termios")
    keys = []

    def press():
        while termios.tcgetattr(other)[3] & termios.ICANON:  # what is typed before it reads keys is dropped
            time.sleep(0.01)
        os.write(own, keys.pop(0))

    def echo(text="", nl=True):
        if not nl:  # a question
            threading.Thread(target=press).start()

    monkeypatch.setattr("spacy_calib.plugins.review.asking.typer.echo", echo)
    with os.fdopen(other, "r") as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        rounds = (
            ([b"y", b"q"], ["accept"]),
            ([b"n", b"u", b"?", b"\x04"], ["accept"]),
            ([b"N", b"s"], ["accept", "reject", "ignore"]),
        )
        for keys[:], answers in rounds:
            ask_in_terminal([task(number) for number in range(3)], tmp_path / "a.jsonl")
            assert [record["answer"] for record in records_in(tmp_path / "a.jsonl")] == answers
            assert keys == []
    os.close(own)


def test_texts_cannot_write_to_the_terminal(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert ask_in_terminal([task(0, before="\x1b[2Jclear ")], tmp_path / "a.jsonl") == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "clear >>>Ann<<< again." in shown


def test_a_later_skip_of_the_same_person_counts(calibrated_ner, promised, tmp_path):
    records = [dict(record, _annotator_id="A") for record in records_in(promised[0])]
    accepted = [i for i, record in enumerate(records) if record["answer"] == "accept"][:7]
    file = write(tmp_path / "answers.jsonl", [*records, *(dict(records[i], answer="ignore") for i in accepted)])
    result = json_of("threshold", calibrated_ner, file, "--precision", 0.01)
    assert result["answers"] == {"disputed": 0, "skipped": 7, "changed": 0, "doubled": 7, "unanswered": 0}
    others = json_of("threshold", calibrated_ner, promised[0], "--precision", 0.01)["rows"][0]
    assert round(result["rows"][0]["precision"] * 250) == round(others["precision"] * 250) - 7


def test_a_later_cancelled_annotation_counts(calibrated_ner, texts, queues, tmp_path):
    file = answer("label-studio", queues / "label-studio.json", is_right(texts[1]), tmp_path / "answers.json")
    tasks = records_in(file)
    for task in tasks[:5]:
        task["annotations"][1]["updated_at"] = "2026-01-01"
        task["annotations"].append({**task["annotations"][1], "id": 3, "was_cancelled": True, "updated_at": "2026-01-02"})
    result = json_of("threshold", calibrated_ner, write(file, tasks, array=True), "--precision", 0.5)
    assert result["answers"] == {"disputed": 0, "skipped": 5, "changed": 0, "doubled": 5, "unanswered": 0}


def test_what_nobody_marked_in_doccano_is_not_right(calibrated_ner, queues, tmp_path):
    """doccano exports a text that nobody has answered like any other."""
    untouched = [{"id": number, **record} for number, record in enumerate(records_in(queues / "doccano.json"), 1)]
    file = write(tmp_path / "answers.jsonl", untouched)
    refuses(calib("threshold", calibrated_ner, file, "--precision", 0.5, "--apply", tmp_path / "x"), says("C530"))


def test_an_entity_with_another_label_counts_as_changed(calibrated_ner, promised, tmp_path):
    records = records_in(promised[0])
    accepted = [i for i, record in enumerate(records) if record["answer"] == "accept"][:6]
    for i in accepted:
        records[i]["spans"] = [{**span, "label": "OTHER"} for span in records[i]["spans"]]
    result = json_of("threshold", calibrated_ner, write(tmp_path / "answers.jsonl", records), "--precision", 0.01)
    assert result["answers"] == {"disputed": 0, "skipped": 0, "changed": 6, "doubled": 0, "unanswered": 0}
