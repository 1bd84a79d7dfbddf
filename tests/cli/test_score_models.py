"""`evaluate` and `rank` of a calibrator and a file of scores: the same figures as from arrays, and no option of pipelines."""

from __future__ import annotations

import json

import numpy as np
import pytest

from spacy_calib import TagCalibrator
from spacy_calib.cli.api import report
from tests.cli.conftest import calib, refuses
from tests.scores import LABELS, made_scores, rows_of, write_csv


@pytest.fixture
def matrix_file(tmp_path):
    """The scores as a matrix, without words or gold for the third unit of each document; the documents are not in order."""
    made = made_scores()
    turned = np.argsort(np.arange(600) % 50, kind="stable")
    y = np.where(np.arange(600) % 50 == 2, "", made.y)
    np.savez(tmp_path / "wide.npz", P=made.P[turned], labels=LABELS, y=y[turned], documents=made.documents[turned])
    return tmp_path / "wide.npz"


def test_evaluate_shows_the_figures_of_the_report(score_file, score_calibrator, matrix_file):
    made = made_scores()
    y = np.where(np.arange(600) % 50 == 2, "", made.y)
    wanted = TagCalibrator.from_disk(score_calibrator).calibration_report(made.P, y, made.documents, n_bins=5)
    for file in (score_file, matrix_file):
        outcome = calib("evaluate", score_calibrator, file, "--format", "json", "--bins", 5)
        found = json.loads(outcome.printed)["scores.calibrator"]
        assert found["component"] == "scores"
        assert found["seen"] is None
        for key in ("tokens", "pairs", "accuracy", "by"):
            assert found[key] == wanted[key], key
        rows = ([*one["errors"], *one["change"].values()] for one in (found, wanted))
        for row, expected in zip(*rows, strict=True):
            assert row == pytest.approx(expected, abs=1e-12)
    assert "588 tokens" in calib("evaluate", score_calibrator, score_file).text


def test_rank_puts_units_into_order(score_file, score_calibrator, matrix_file):
    found = json.loads(calib("rank", score_calibrator, score_file, "--format", "json", "--top", 3).printed)
    assert (found["units"], found["known"], found["unit"]) == (600, 588, "token")
    first = found["ranked"][0]
    assert first["focus"] in ("green", "ideas", "sleep", "furiously", "today")
    assert first["text"] == "green ideas sleep furiously today"
    assert first["score"] <= found["ranked"][1]["score"]
    named = json.loads(calib("rank", score_calibrator, matrix_file, "--format", "json", "--top", 600).printed)
    assert named["ranked"][0]["focus"].startswith("unit ")
    assert " of " in named["ranked"][0]["focus"]
    assert sorted(one["score"] for one in named["ranked"]) == [one["score"] for one in named["ranked"]]
    assert len(named["ranked"]) == 600
    whole = json.loads(calib("rank", score_calibrator, score_file, "--format", "json", "--unit", "sentence").printed)
    assert whole["units"] == 120


def test_equal_words_without_sentences_are_no_repeats(score_calibrator, tmp_path):
    rows = [{name: row[name] for name in row if name != "sentence"} for row in rows_of(made_scores())]
    path = write_csv(tmp_path / "a.csv", rows)
    found = json.loads(calib("rank", score_calibrator, path, "--format", "json").printed)
    assert (found["repeats"], len(found["ranked"])) == (0, 600)


def test_the_page_tells_whose_scores_they_are(score_file, score_calibrator):
    found = report(score_calibrator, score_file)
    assert found["title"] == "How true are the scores of scores.calibrator?"
    assert found["made"]["Pipe scores.calibrator"] == "method spacy-calib.Isotonic.v1; scores from 0.01"
    assert found["made"]["Data"] == "scores.csv, 12 documents with scores"
    (view,) = found["views"]
    assert (view["name"], view["unit"], view["table"]["tokens"]) == ("scores: tokens", "tokens", 588)


def test_rank_needs_no_gold_and_the_others_do(score_calibrator, tmp_path):
    rows = [{**row, "gold": ""} for row in rows_of(made_scores())]
    path = write_csv(tmp_path / "a.csv", rows)
    assert calib("rank", score_calibrator, path).code == 0
    for name in ("out.json", "out.html"):
        outcome = calib("evaluate", score_calibrator, path, "--output", tmp_path / name)
        refuses(outcome, "a.csv has no gold, which is needed to learn and to judge; add a column gold")


@pytest.mark.parametrize(
    ("command", "options", "sentence"),
    [
        ("evaluate", ["--attr", "x"], "Option --attr must be left out for scores in files, but x was given"),
        ("evaluate", ["--gold-preproc"], "Option --gold-preproc must be left out for scores in files"),
        ("rank", ["--n-process", 2], "Option --n-process must be left out for scores in files"),
        ("evaluate", ["--watch", "SCORES", "--output", "page.html"], "Option --watch must be left out for scores in files"),
        ("rank", ["--unit", "entity"], "The pipe 'scores.calibrator' calibrates 'scores', which finds no entities"),
        ("rank", ["--output", "SCORES"], "Option --output must be none of the files that are read"),
        ("evaluate", ["--output", "MODEL"], "Option --output must be a file that ends in .json, .html"),
        ("evaluate", ["--bins", 5000], "fewer than the 5000 bins"),
    ],
)
def test_what_files_cannot_do_is_refused(command, options, sentence, score_file, score_calibrator):
    values = {"SCORES": score_file, "MODEL": score_calibrator}
    extra = ["--format", "jsonl"] if command == "rank" and "--output" in options else []
    given = [values.get(option, option) for option in options]
    refuses(calib(command, score_calibrator, score_file, *given, *extra), sentence)


def test_files_that_do_not_go_together_are_refused(score_file, score_calibrator, dev, tmp_path):
    refuses(calib("evaluate", score_calibrator, dev), "Option DATA must be a file that ends in one of .csv, .tsv")
    refuses(calib("evaluate", score_file, score_file), "scores.csv (not a whole file of ours")
    refuses(calib("evaluate", score_calibrator, tmp_path / "no.csv"), "Data not found")
    other = write_csv(tmp_path / "other.csv", [{"tag": "PRON", "score": 0.5, "gold": "PRON"}])
    refuses(calib("evaluate", score_calibrator, other), "There is no tag 'PRON' among the classes; they are: ADJ, ADV")


@pytest.mark.parametrize("command", ["expect", "select", "info", "threshold", "watch"])
def test_other_commands_say_what_goes_with_it(command, score_calibrator, dev):
    extra = {"threshold": ["--precision", "0.9"]}.get(command, [])
    data = [] if command == "info" else [dev]
    outcome = calib(command, score_calibrator, *data, *extra)
    refuses(outcome, "it is a file; a calibrator of scores goes with evaluate and rank")
