"""scripts/study_bins.py and study_tag_pairs.py, run as a user runs them, on little data."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin
from spacy.training import Corpus

from tests.conftest import gold_doc, made_up_sentences

SCRIPTS = Path(__file__).parents[2] / "scripts"
NAMES = ("study_bins", "study_tag_pairs", "frame")


@pytest.fixture(autouse=True)
def scripts(monkeypatch):
    """The folder scripts/ as it is on the path when one of them runs."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    yield
    for name in NAMES:
        sys.modules.pop(name, None)


@pytest.fixture
def model(fitted, tmp_path) -> Path:
    fitted.to_disk(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def data(fitted, tmp_path) -> Path:
    """60 gold sentences of the made-up language."""
    docs = [gold_doc(fitted.vocab, sentence) for sentence in made_up_sentences(60, 7)]
    DocBin(docs=docs).to_disk(tmp_path / "test.spacy")
    return tmp_path / "test.spacy"


def table_rows(printed: str) -> list[list[str]]:
    """The cells of the lines of all Markdown tables, without their heads."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in printed.splitlines() if line.startswith("|")]
    return [line for line in lines if not line[0].startswith(("---", "true error", "event"))]


def test_the_study_of_bins_prints_what_it_found(capsys):
    from study_bins import Synthetic, best, bin_study, by_count, by_size, main

    arguments = ["--n", "200", "--counts", "2", "10", "--sizes", "50", "--truth", "identity", "power:2", "--repeats", "3",
                 "--draws", "10", "--beta", "2", "1", "--seed", "4"]  # fmt: skip
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    expected = bin_study(Synthetic(2, 1, "power", 2), 200, [by_count(2), by_count(10), by_size(50)], 3, 10, 4)
    cells = table_rows(printed)
    assert [line[2] for line in cells] == 2 * ["2 adaptive bins", "10 adaptive bins", "bins of 50"]
    assert [line[4] for line in cells[3:]] == [f"{row['mean']:.4f}" for row in expected]
    assert printed.endswith(f"Least rmse: {best(expected)['bins']} ({best(expected)['rmse']:.4f})\n")


def test_the_study_of_bins_takes_several_sizes_of_samples(capsys):
    from study_bins import main

    arguments = [
        "--n",
        "50",
        "100",
        "--counts",
        "10",
        "--sizes",
        "20",
        "--truth",
        "step:0.1",
        "--repeats",
        "2",
        "--draws",
        "50",
    ]
    assert main(arguments) == 0
    cells = table_rows(capsys.readouterr().out)
    assert [line[1:3] for line in cells] == [[n, bins] for n in ("50", "100") for bins in ("10 adaptive bins", "bins of 20")]
    assert all(line[8].endswith(" %") for line in cells)


def test_the_study_of_tag_pairs_prints_and_writes(model, data, tmp_path, capsys):
    from study_tag_pairs import main

    output = tmp_path / "pairs.json"
    assert main([str(model), str(data), "--output", str(output)]) == 0
    (table,) = json.loads(output.read_text())
    rows = [dict(zip(table["titles"], cells, strict=True)) for cells in table["rows"]]
    assert [(row["event"], row["scores"]) for row in rows] == [
        ("single tags", "raw"), ("single tags", "calibrated"), ("pairs, product", "raw"), ("pairs, product", "calibrated"),
    ]  # fmt: skip
    assert rows[0]["events"] == rows[1]["events"]
    assert rows[2]["events"] == rows[3]["events"]
    assert int(rows[2]["events"].replace(",", "")) > 100
    for row in rows:
        low, high, floor, floor95 = map(float, re.findall(r"[\d.]+", f"{row['95 % interval']} {row['floor (95 %)']}"))
        assert 0 <= low <= high
        assert floor < floor95
    assert table_rows(capsys.readouterr().out) == table["rows"]


def test_a_sequence_model_is_judged_by_its_joint_marginals_too(tmp_path, capsys):
    from study_tag_pairs import main

    from tests.cli.conftest import calib

    nlp = spacy.blank("en")
    nlp.add_pipe("calib_hmm")
    for name, seed in (("train", 1), ("dev", 2), ("test", 3)):
        docs = [gold_doc(nlp.vocab, sentence) for sentence in made_up_sentences(40, seed)]
        DocBin(docs=docs).to_disk(tmp_path / f"{name}.spacy")
    nlp.initialize(lambda: list(Corpus(tmp_path / "train.spacy")(nlp)))
    nlp.to_disk(tmp_path / "hmm")
    dev, test, sure = tmp_path / "dev.spacy", tmp_path / "test.spacy", tmp_path / "sure"
    assert calib("fit", tmp_path / "hmm", dev, sure, "-C", "calib_hmm", "-m", "isotonic", "--silent").code == 0
    capsys.readouterr()
    output = tmp_path / "pairs.json"
    assert main([str(sure), str(test), "--fit", str(dev), "--gold-preproc", "--output", str(output)]) == 0
    assert "pairs, joint calibrated, less pairs, joint raw: log loss -" in capsys.readouterr().out
    (table,) = json.loads(output.read_text())
    rows = [dict(zip(table["titles"], cells, strict=True)) for cells in table["rows"][4:]]
    assert [(row["event"], row["scores"]) for row in rows] == [
        ("pairs, joint", "raw"), ("pairs, joint", "calibrated"), ("pairs, product", "raw"),
        ("pairs, product", "of calibrated tags"), ("pairs, product", "calibrated"),
    ]  # fmt: skip
    assert len({(row["events"], row["right"]) for row in rows}) == 1  # the same events
    assert float(rows[1]["log loss"]) < float(rows[0]["log loss"])
    assert all(row["by group"] != "-" for row in rows)


@pytest.mark.parametrize(
    ("script", "arguments", "message"),
    [
        ("study_bins", ["--n", "0"], "n must be a whole number of at least 1, but 0 was given."),
        ("study_bins", ["--truth", "cubic"], "map must be one of identity, power, step, but 'cubic' was given."),
        ("study_bins", ["--truth", "power:x"], "--truth wants MAP or MAP:STRENGTH with a number, but 'power:x' was given"),
        ("study_tag_pairs", ["nowhere", "x.spacy"], "Cannot load the pipeline 'nowhere'"),
        ("study_tag_pairs", ["MODEL", "x.spacy"], "Data not found: x.spacy."),
        ("study_tag_pairs", ["MODEL", "DATA", "--fit", "DATA"], "Option --fit is for sequence models"),
    ],
)
def test_faults_are_one_sentence(script, arguments, message, request):
    import importlib

    names = {"MODEL": "model", "DATA": "data"}
    given = [str(request.getfixturevalue(names[one])) if one in names else one for one in arguments]
    with pytest.raises(SystemExit) as caught:
        importlib.import_module(script).main(given)
    assert str(caught.value).startswith(message)


def test_no_bins_are_refused(capsys):
    from study_bins import main

    with pytest.raises(SystemExit):
        main(["--counts", "--sizes"])
    assert "--counts and --sizes are both empty" in capsys.readouterr().err
