"""scripts/study_bins.py, study_sample_size.py and study_tag_pairs.py, run as a user runs them, on little data."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import spacy
from analysis.studies import Bins, bin_study
from analysis.synthetic import Synthetic
from spacy.tokens import DocBin
from spacy.training import Corpus

from tests.conftest import gold_doc, made_up_sentences

SCRIPTS = Path(__file__).parents[2] / "scripts"
NAMES = ("study_common", "study_bins", "study_sample_size", "study_tag_pairs")
PNG = b"\x89PNG"


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


def test_the_study_of_bins_prints_writes_and_draws(tmp_path, capsys):
    from study_bins import main

    output, plot = tmp_path / "bins.json", tmp_path / "bins.png"
    arguments = ["--n", "200", "--counts", "2", "10", "--sizes", "50", "--truth", "identity", "power:2", "--repeats", "3",
                 "--draws", "10", "--beta", "2", "1", "--seed", "4"]  # fmt: skip
    assert main([*arguments, "--output", str(output), "--plot", str(plot)]) == 0
    captured = capsys.readouterr()
    rows = json.loads(output.read_text())
    assert list(rows) == ["identity", "power:2"]
    bins = [Bins("count", 2), Bins("count", 10), Bins("size", 50)]
    expected = bin_study(Synthetic(2, 1, "power", 2), 200, bins, 3, 10, 4)
    assert rows["power:2"] == [vars(row) for row in expected]
    cells = table_rows(captured.out)
    assert [line[2] for line in cells] == 2 * ["2 adaptive bins", "10 adaptive bins", "bins of 50"]
    assert cells[3][4] == f"{expected[0].mean:.4f}"
    assert captured.out.count("Least rmse: ") == 2
    assert plot.read_bytes().startswith(PNG)


def test_the_study_of_sizes_is_quiet_when_asked(tmp_path, capfd):
    from study_sample_size import main

    output, plot = tmp_path / "sizes.json", tmp_path / "sizes.png"
    arguments = ["--n", "50", "100", "--truth", "step:0.1", "--repeats", "2", "--draws", "50", "--bootstrap", "--silent"]
    assert main([*arguments, "--output", str(output), "--plot", str(plot)]) == 0
    rows = json.loads(output.read_text())["step:0.1"]
    assert [(row["n"], row["bins"]) for row in rows] == [(n, kind) for n in (50, 100) for kind in ("count", "size", "root")]
    assert all(0 <= row["bootstrap_coverage"] <= 1 for row in rows)
    assert plot.read_bytes().startswith(PNG)
    assert capfd.readouterr() == ("", "")


def test_the_study_of_tag_pairs_prints_writes_and_draws(model, data, tmp_path, capsys):
    from study_tag_pairs import main

    output, plot = tmp_path / "pairs.json", tmp_path / "pairs.png"
    assert main([str(model), str(data), "--bins", "5", "--output", str(output), "--plot", str(plot)]) == 0
    rows = json.loads(output.read_text())
    assert [(row["event"], row["scores"]) for row in rows] == [
        ("single tags", "raw"), ("single tags", "calibrated"), ("pairs, product", "raw"), ("pairs, product", "calibrated"),
    ]  # fmt: skip
    assert rows[0]["events"] == rows[1]["events"]
    assert rows[2]["events"] == rows[3]["events"] > 100
    assert all(0 <= row["low"] <= row["high"] and row["floor"] < row["floor95"] for row in rows)
    cells = table_rows(capsys.readouterr().out)
    assert [line[5] for line in cells] == [f"{row['error']:.4f}" for row in rows]
    assert plot.read_bytes().startswith(PNG)


def test_a_recognizer_is_judged_by_its_beam_too(tmp_path, capfd):
    from study_tag_pairs import main

    from tests.cli.conftest import calib, entity_docs, save_recognizer

    model = save_recognizer("ner", tmp_path / "ner")
    for name, seed in (("dev", 22), ("test", 23)):
        DocBin(docs=entity_docs(40, seed)).to_disk(tmp_path / f"{name}.spacy")
    assert calib("fit", model, tmp_path / "dev.spacy", tmp_path / "sure", "-C", "ner", "--silent").code == 0
    capfd.readouterr()
    output, plot = tmp_path / "pairs.json", tmp_path / "pairs.png"
    arguments = ["--beam-width", "4", "--silent", "--output", str(output), "--plot", str(plot)]
    assert main([str(tmp_path / "sure"), str(tmp_path / "test.spacy"), *arguments]) == 0
    rows = json.loads(output.read_text())
    assert [row["event"] for row in rows[4:]] == ["single types", "pairs, product", "pairs, joint"]
    assert {row["scores"] for row in rows[4:]} == {"beam"}
    assert plot.read_bytes().startswith(PNG)
    assert capfd.readouterr() == ("", "")


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
    rows = json.loads(output.read_text())[4:]
    assert [(row["event"], row["scores"]) for row in rows] == [
        ("pairs, joint", "raw"), ("pairs, joint", "calibrated"), ("pairs, product", "raw"),
        ("pairs, product", "of calibrated tags"), ("pairs, product", "calibrated"),
    ]  # fmt: skip
    assert len({(row["events"], row["right"]) for row in rows}) == 1  # the same events
    assert rows[1]["log_loss"] < rows[0]["log_loss"]
    assert all(row["by_group"] is not None and row["low"] <= row["high"] for row in rows)


@pytest.mark.parametrize(
    ("script", "arguments", "message"),
    [
        ("study_bins", ["--n", "0"], "n must be a whole number of at least 1, but 0 was given."),
        ("study_bins", ["--truth", "cubic"], "map must be one of identity, power, logistic, step, but 'cubic' was given."),
        ("study_bins", ["--sizes", "0"], "value must be a whole number of at least 1, but 0 was given."),
        ("study_sample_size", ["--repeats", "0"], "repeats must be a whole number of at least 1, but 0 was given."),
        ("study_tag_pairs", ["nowhere", "x.spacy"], "Cannot load the pipeline 'nowhere'"),
        ("study_tag_pairs", ["nowhere", "x.spacy", "--bins", "0"], "Option --bins must be at least 1, but 0 was given."),
        ("study_tag_pairs", ["MODEL", "x.spacy"], "Data not found: x.spacy."),
        ("study_tag_pairs", ["MODEL", "DATA", "--threshold", "0.001"], "Option --threshold must be at least 0.01"),
        ("study_tag_pairs", ["MODEL", "DATA", "--threshold", "0.9999"], "No two consecutive tokens"),
        ("study_tag_pairs", ["MODEL", "DATA", "--beam-width", "4"], "Option --beam-width is for entity recognizers"),
        ("study_tag_pairs", ["MODEL", "DATA", "--fit", "DATA"], "Option --fit is for sequence models"),
    ],
)
def test_faults_are_one_sentence(script, arguments, message, request):
    import importlib

    names = {"MODEL": "model", "DATA": "data"}
    given = [str(request.getfixturevalue(names[one])) if one in names else one for one in arguments]
    with pytest.raises(SystemExit) as caught:
        importlib.import_module(script).main(["--silent", *given])
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("script", "arguments", "message"),
    [
        ("study_bins", ["--truth", "power:x"], "--truth wants MAP or MAP:STRENGTH with a number, but 'power:x' was given"),
        ("study_bins", ["--counts", "--sizes"], "--counts and --sizes are both empty"),
        ("study_sample_size", ["--counts", "--sizes", "--roots"], "--counts, --sizes and --roots are all empty"),
    ],
)
def test_options_that_say_nothing_are_refused(script, arguments, message, capsys):
    import importlib

    with pytest.raises(SystemExit):
        importlib.import_module(script).main(arguments)
    assert message in capsys.readouterr().err
