"""`fit` of files of scores."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from spacy_calib import TagCalibrator
from spacy_calib.cli.fit import fit
from tests.cli.conftest import calib, refuses
from tests.scores import LABELS, made_scores, rows_of, write_csv


def rows_in(path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_file_is_calibrated_as_arrays_are(score_calibrator):
    made = made_scores()
    y = np.where(np.arange(600) % 50 == 2, "", made.y)
    wanted = TagCalibrator("isotonic", classes=LABELS).fit(made.P, y, made.documents).transform(made.P)
    assert np.array_equal(TagCalibrator.from_disk(score_calibrator).transform(made.P), wanted)


def test_fit_says_what_it_did(score_file, tmp_path):
    outcome = calib("fit", score_file, tmp_path / "a", "--method", "platt")
    assert outcome.code == 0
    assert "Calibrated 5 tags on 588 units with gold" in outcome.text
    assert "Held-out log loss: 0." in outcome.text
    made = json.loads(calib("fit", score_file, tmp_path / "b", "--format", "json", "--groups", 2, "--components.calib.scorer.n_bins", 4, "--method",
                            "histogram", "--tag-offsets", "--scaling", "temperature", "--normalize", "kept").printed)  # fmt: skip
    assert (made["units"], made["documents"], made["labels"]) == (588, 12, LABELS)
    assert made["held_out"]["verdict"] == "better"
    calibrator = TagCalibrator.from_disk(tmp_path / "b")
    given = calibrator.get_params()
    assert (given["method"].n_bins, given["n_groups"], given["normalize"], given["threshold"]) == (4, 2, True, 0.01)
    assert len(calibrator.groups_) == 2
    assert calibrator.calibration_.scaling is not None


def test_auto_is_what_counts_where_nothing_is_named(score_file, tmp_path):
    few = write_csv(tmp_path / "few.csv", rows_in(score_file)[:300])
    outcome = calib("fit", few, tmp_path / "a")
    assert "Too little data to choose a method" in outcome.text
    assert TagCalibrator.from_disk(tmp_path / "a").method == "auto"


def test_from_python(score_file, tmp_path):
    assert fit(None, score_file, tmp_path / "a", method="isotonic").classes_.tolist() == LABELS


def test_gold_on_no_row_is_told_or_refused(tmp_path):
    rows = rows_of(made_scores())
    for row in rows:
        row["gold"] = "PRON" if row["unit"] in ("0", "1") else row["gold"]
    few = write_csv(tmp_path / "few.csv", rows)
    outcome = calib("fit", few, tmp_path / "a", "--method", "platt")
    assert outcome.code == 0
    assert "24 units (4.1 %) have a gold tag that no row has (PRON); all their pairs count as misses" in outcome.text
    for row in rows:
        row["gold"] = "PRON" if int(row["unit"]) < 20 else row["gold"]
    many = write_csv(tmp_path / "many.csv", rows)
    refuses(calib("fit", many, tmp_path / "b"), "are on no row (PRON); give rows")
    assert not (tmp_path / "b").exists()
    assert calib("fit", many, tmp_path / "b", "--allow-unknown", "--method", "platt", "--silent").code in (0, 1)


def test_scores_have_no_pipeline_and_gold_has_one(model, dev, score_file, tmp_path):
    beside = "MODEL must be left out where DATA is a file of scores"
    refuses(calib("fit", model, score_file, tmp_path / "a"), beside)
    missing = calib("fit", dev, tmp_path / "a", "--map", "labels.tsv")
    refuses(missing, "MODEL must be given, as DATA is no file of scores")
    assert calib("fit", score_file).code == 2


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--context"], "Option --context must be left out for scores in files"),
        (["--gold-preproc"], "Option --gold-preproc must be left out for scores in files"),
        (["--components.calib.threshold", 0.1], "Option --components.calib.threshold must be left out for scores"),
        (["--method", "nope"], "Option --method must be one of auto, identity, temperature"),
        (["--scaling", "nope"], "Option --scaling must be one of"),
        (["--method", "auto", "--groups", 3], "Option --groups must be left out beside --method auto"),
        (["--threshold", 2], "Option --threshold must be at least 0 and below 1"),
        (["--normalize", "all"], "Option --normalize must be one of none, kept, other"),
        (["--code", "nowhere.py"], "nowhere.py"),
    ],
)
def test_options_out_of_range_are_refused(options, sentence, score_file, tmp_path):
    refuses(calib("fit", score_file, tmp_path / "a", *options), sentence)
    assert not (tmp_path / "a").exists()


def test_no_file_is_lost(score_file, tmp_path):
    there = tmp_path / "there.csv"
    there.write_text("years of work")
    refuses(calib("fit", score_file, there, "--force"), "OUTPUT must be a file that ends otherwise than files of scores")
    refuses(calib("fit", tmp_path / "no.csv", tmp_path / "a"), "Data not found")
    assert there.read_text() == "years of work"
    assert not list(tmp_path.glob(".*"))


def test_scores_that_get_worse_are_not_written(tmp_path):
    # In the first half of the documents the high scores are right, in the other half wrong: what one teaches misleads the other.
    rows = [
        {"document": i // 50, "unit": i % 50, "tag": tag, "score": score, "gold": "A" if i < 500 else "B"}
        for i in range(1000)
        for tag, score in (("A", 0.6), ("B", 0.4))
    ]
    path = write_csv(tmp_path / "a.csv", rows)
    refuses(calib("fit", path, tmp_path / "out", "--method", "isotonic"), "Isotonic calibrated on 1000 tokens loses more")
    assert not (tmp_path / "out").exists()
