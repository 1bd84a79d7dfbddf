"""The page of `spacy calib evaluate` from the command line to the file."""

import json
from pathlib import Path

import pytest
import spacy

from spacy_calib import report
from tests.cli.conftest import calib, in_pairs, ok, refuses
from tests.docstrings import run_examples


@pytest.fixture(scope="module")
def written(calibrated, test_file, tmp_path_factory):
    """(outcome, file) of one run with the plainest options."""
    path = tmp_path_factory.mktemp("report") / "page" / "report.html"
    return calib("evaluate", calibrated, test_file, "--output", path), path


def test_evaluate_writes_a_page_and_prints_its_file(written):
    outcome, path = written
    assert outcome.code == 0, outcome.text
    assert "tagger: tokens" in outcome.text
    assert "mean (GMCE)" in outcome.text
    assert "report.html" in outcome.text
    page = path.read_text(encoding="utf8")
    assert page.startswith("<!DOCTYPE html>")
    assert "How well calibrated are the scores of xx_pipeline?" in page
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]


def test_the_example_runs(calibrated, test_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("calibrated").symlink_to(calibrated)
    Path("test.spacy").symlink_to(test_file)
    run_examples(report)
    assert Path("page.html").exists()


def test_the_figures_are_those_of_evaluate(calibrated, test_file, tmp_path):
    ok(calib("evaluate", calibrated, test_file, "--output", tmp_path / "e.json", "--silent"))
    (of_pipe,) = json.loads((tmp_path / "e.json").read_text()).values()
    (view,) = report(str(calibrated), test_file)["views"]
    for key in ("tokens", "pairs", "accuracy", "errors", "scores", "change"):
        assert view["table"][key] == of_pipe[key]
    assert view["bins"] == of_pipe["bins"]


def test_a_metric_registered_elsewhere_is_on_the_page(register, calibrated, test_file, tmp_path):
    def make():
        def share_of_hits(scores, hits):
            return hits.mean()

        share_of_hits.short, share_of_hits.title = "hits", "Share of <hits>"
        return share_of_hits

    register("calib_metrics", "elsewhere.Hits.v1", make)
    (view,) = report(str(calibrated), test_file, tmp_path / "page.html")["views"]
    names = [row["name"] for row in view["figures"]]
    assert names == ["smce", "gmce", "ece", "nll", "brier", "smece", "hits"]
    row = view["figures"][-1]
    assert row["raw"] == row["calibrated"] == view["table"]["scores"]["hits"]["raw"] > 0
    assert row["raw_low"] is row["calibrated_low"] is row["floor"] is None
    page = (tmp_path / "page.html").read_text(encoding="utf8")
    assert '<th scope="row">Share of &lt;hits&gt;<small></small></th>' in page


def test_the_page_names_no_folder(written, calibrated, test_file):
    _, path = written
    page = path.read_bytes()
    for folder in (calibrated.parent, test_file.parent, path.parent):
        assert str(folder).encode() not in page


def test_the_options_are_those_of_the_table_and_nothing_is_printed(calibrated, test_file, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    contents = report(str(calibrated), test_file, groups=2)
    assert capsys.readouterr().out == ""
    (view,) = contents["views"]
    assert len(view["groups"]) == 2
    assert list(tmp_path.iterdir()) == []  # without an output there is no page


def test_tokens_and_entities_of_every_pipe(two_pipes, entity_test, tmp_path):
    contents = report(str(two_pipes), entity_test, tmp_path / "r.html")
    views = [(view["pipe"], view["unit"]) for view in contents["views"]]
    assert sorted(views) == [("calib", "tokens"), ("calib_ent", "entities"), ("calib_ent", "tokens")]
    assert (tmp_path / "r.html").read_text(encoding="utf8").count('<a href="#name-') == 3
    only = report(str(two_pipes), entity_test, component="calib")
    assert [view["attr"] for view in only["views"]] == ["calib"]
    entities = next(view for view in contents["views"] if view["unit"] == "entities")
    assert entities["event"] == "exact"
    assert {row["tag"] for row in entities["tags"]} <= {"PER", "LOC", "ORG"}
    assert all(error["carried"] != error["gold"] or " " in error["text"] for error in entities["errors"])


def test_two_pipes_of_one_component_are_told_apart(calibrated, dev, test_file, tmp_path):
    options = ["--attr", "other", "--groups", 1, "-m", "isotonic", "--silent"]
    ok(calib("fit", calibrated, dev, tmp_path / "m", *options))
    views = report(str(tmp_path / "m"), test_file)["views"]
    assert sorted(view["name"] for view in views) == ["tagger: tokens (calib)", "tagger: tokens (other)"]


@pytest.mark.filterwarnings("ignore:.*gives no scores")
def test_a_disabled_component_does_not_stop_the_others(model, dev, test_file, tmp_path):
    ok(calib("fit", model, dev, tmp_path / "one", "-m", "isotonic", "--silent"))
    dev = in_pairs(dev, tmp_path / "dev.spacy")
    ok(calib("fit", tmp_path / "one", dev, tmp_path / "both", "-C", "senter", "--attr", "sent", "-m", "isotonic"))
    nlp = spacy.load(tmp_path / "both")
    nlp.disable_pipe("senter")
    nlp.to_disk(tmp_path / "two")
    contents = report(str(tmp_path / "two"), test_file)
    assert [view["pipe"] for view in contents["views"]] == ["calib"]
    assert "Not evaluated: pipe sent." in contents["skipped"][0]
    refuses(calib("evaluate", tmp_path / "two", test_file, "-C", "sent", "-o", tmp_path / "x.html"), "'senter' is disabled")
