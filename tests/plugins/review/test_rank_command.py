"""`spacy calib rank`: the table, the queues, the comparison with gold."""

import csv
import json

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_calib.plugins.review.rank_command import rank
from tests.cli.conftest import calib, json_of, ok, refuses


def run(*arguments):
    return ok(calib("rank", *arguments))


@pytest.fixture(scope="module")
def ranked(calibrated, test_file, tmp_path_factory):
    """Everything that was found on test.spacy."""
    path = tmp_path_factory.mktemp("ranked") / "all.json"
    run(calibrated, test_file, "--repeats", "--output", path, "--silent")
    return json.loads(path.read_text())


def test_the_most_doubtful_come_first_with_what_the_attributes_say(calibrated, test_file, ranked):
    scores = [record["score"] for record in ranked["ranked"]]
    assert scores == sorted(scores)
    assert ranked["units"] == len(scores)
    nlp = spacy.load(calibrated)
    golds = list(DocBin().from_disk(test_file).get_docs(nlp.vocab))
    for record in ranked["ranked"][:5]:
        (mark,) = record["marks"]
        doc = nlp(golds[record["doc"]].text)
        same = [token for token in doc if (token.text, token.tag_) == (record["focus"], mark["label"])]
        assert record["score"] in [pytest.approx(token._.calib_score, abs=1e-4) for token in same]
        assert set(record["alternatives"]) in [set(token._.calib_scores) for token in same]


def test_with_gold_it_tells_how_soon_the_errors_are_found(ranked):
    wrong = sum(record["right"] is False for record in ranked["ranked"])
    assert ranked["wrong"] == wrong > 0
    hits = [record["right"] is False for record in ranked["ranked"]]
    half = round(0.5 * len(hits))
    assert ranked["found"][ranked["shares"].index(0.5)] == pytest.approx(sum(hits[:half]) / wrong)
    assert 0 < ranked["average_precision"] <= 1


def test_only_the_chosen_order_is_printed(calibrated, test_file):
    def printed_orders(*options):
        lines = run(calibrated, test_file, *options).printed.splitlines()
        table = lines[next(i for i, line in enumerate(lines) if line.startswith("% of errors")) + 2 :]
        return [line[:22].strip() for line in table[: table.index("")]]

    assert printed_orders() == ["expected", "calibrated"]
    assert printed_orders("--order", "raw") == ["expected by calibrated", "raw"]


def test_texts_without_gold_have_an_expectation_and_no_comparison(calibrated, tmp_path):
    (tmp_path / "texts.txt").write_text("the dog runs\nthe old cat sees a bird\n")
    result = json_of("rank", calibrated, tmp_path / "texts.txt")
    assert result["wrong"] is None
    assert (result["average_precision"], result["found"]) == (None, None)
    assert len(result["expected"]) == len(result["shares"])
    words = [record["focus"] for record in result["ranked"]]
    assert sorted(words) == sorted(["the", "dog", "runs", "the", "old", "cat", "sees", "a", "bird"])
    table = run(calibrated, tmp_path / "texts.txt").text
    assert "Token Label In" in table
    assert "Right" not in table


def test_the_suffix_names_the_format(calibrated, test_file, tmp_path):
    run(calibrated, test_file, "--output", tmp_path / "q.csv", "--order", "margin", "--top", 4, "--silent")
    with (tmp_path / "q.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    doubts = [float(row["priority"]) for row in rows]
    assert len(rows) == 4
    assert doubts == sorted(doubts, reverse=True)
    refuses(calib("rank", calibrated, test_file, "--output", tmp_path / "q.txt"), "a file that ends in .json, .jsonl, .csv")
    assert not (tmp_path / "q.txt").exists()


def test_as_many_rows_as_were_asked_for(calibrated, test_file, tmp_path):
    def rows(*options):
        lines = run(calibrated, test_file, *options).printed.splitlines()
        return [line for line in lines if line[:3].strip().isdigit()]

    assert [len(rows()), len(rows("--top", 7)), len(rows("--top", 31))] == [20, 7, 31]
    text = run(calibrated, test_file, "--repeats", "--output", tmp_path / "q.csv").text
    assert f"... and 387 more in {tmp_path}" in text


def test_sentences_have_columns_of_their_own(calibrated, test_file):
    text = run(calibrated, test_file, "--unit", "sentence").text
    assert "# P(right) Sentence Right" in text
    assert "Label" not in text


def test_sentences_are_counted_in_their_document(calibrated, tmp_path):
    (tmp_path / "texts.txt").write_text("the dog runs .\nthe cat eats .\nthe duck runs .\n")
    result = rank(str(calibrated), tmp_path / "texts.txt")
    assert {record["doc"] for record in result["ranked"]} == {0, 1, 2}
    first = {(record["doc"], record["sentence"]) for record in result["ranked"] if record["focus"] == "the"}
    assert first == {(0, 0), (1, 0), (2, 0)}


def test_repeats_and_short_sentences_are_left_out_of_the_queue(calibrated, tmp_path):
    (tmp_path / "texts.txt").write_text("the dog saw the cat .\n------\nthe dog saw the cat .\nthis old duck eats .\n")

    def queue(*options):
        run(calibrated, tmp_path / "texts.txt", "--silent", "--force", "-o", tmp_path / "queue.json", *options)
        return json.loads((tmp_path / "queue.json").read_text())

    every, sentences = queue("--unit", "sentence", "--repeats"), queue("--unit", "sentence")
    assert (every["repeats"], every["too_short"]) == (0, sentences["too_short"])
    assert {record["text"] for record in sentences["ranked"]} == {record["text"] for record in every["ranked"]}
    assert len(sentences["ranked"]) + sentences["repeats"] == len(every["ranked"])
    assert sentences["too_short"] > 0 < sentences["repeats"]
    tokens = queue()
    assert tokens["repeats"] == 6
    for result in (every, sentences, tokens):  # figures are of what is shown
        assert result["units"] == len(result["ranked"])
        assert result["expected_wrong"] == pytest.approx(sum(1 - record["score"] for record in result["ranked"]))
    text = run(calibrated, tmp_path / "texts.txt", "--unit", "sentence").text
    assert f"Left out: {sentences['too_short']} of fewer than 3 words" in text
    assert f"Left out: {sentences['repeats']} repeats (--repeats keeps them)" in text
