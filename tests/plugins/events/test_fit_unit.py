"""`calib fit --unit sentence`, and what `evaluate` and `info` say of it."""

from __future__ import annotations

import json

import pytest
import spacy

from ...cli.conftest import calib, json_of, ok, refuses, save_docs
from ...cli.test_adapt_command import odd_docs
from ...cli.test_privacy import found_in, with_secrets


@pytest.fixture(scope="module")
def asking(model, dev, tmp_path_factory):
    output = tmp_path_factory.mktemp("asking") / "out"
    outcome = ok(calib("fit", model, dev, output, "--component", "tagger", "--unit", "sentence", "--method", "platt"))
    assert "calib_event: whole sentences (event: all labels right)" in outcome.text
    assert "(chosen)" in outcome.text
    return output


def test_evaluate_shows_forecast_and_product(asking, test_file, tmp_path):
    outcome = ok(calib("evaluate", asking, test_file, "--output", tmp_path / "out.json"))
    assert "product of calibrated scores" in outcome.text
    assert "Squared loss of the forecast minus that of the product" in outcome.text
    (event,) = json.loads((tmp_path / "out.json").read_text())["calib"]["events"]
    assert [row["name"] for row in event["rows"]] == ["raw", "product", "forecast"]


def test_info_names_the_event(asking, calibrated):
    assert json_of("info", asking)["calib"]["events"]["calib_event"]["event"] == "all labels right"
    assert "whole sentences" in calib("info", asking).text
    assert "events" not in json_of("info", calibrated)["calib"]


def test_a_fit_without_unit_leaves_out_the_older_event_pipe(asking, dev, test_file, tmp_path):
    outcome = ok(calib("fit", asking, dev, tmp_path / "out", "--method", "platt", "--always"))
    assert "give --unit to fit one to the new scores" in outcome.text
    assert "calib_event" not in spacy.load(tmp_path / "out").pipe_names
    options = ("--unit", "sentence", "--method", "platt", "--format", "json")
    again = ok(calib("fit", asking, test_file, tmp_path / "again", *options))
    info = json.loads(again.printed)["event"]
    assert info["called"] == ["sentence", "sentences"]
    assert "is left out" not in again.text
    nlp, older = spacy.load(tmp_path / "again"), spacy.load(asking).get_pipe("calib_event").info
    assert nlp.pipe_names.count("calib_event") == 1
    assert nlp.get_pipe("calib_event").info.state() == info != older.state()


def test_an_event_pipe_stays_if_its_scores_do(asking, dev, tmp_path):
    """Another component is fitted, or the calibration that was there is the better one."""
    ok(calib("fit", asking, dev, tmp_path / "other", "-C", "morphologizer", "--attr", "morph", "--method", "platt"))
    nlp, older = spacy.load(tmp_path / "other"), spacy.load(asking).get_pipe("calib_event").to_bytes()
    assert nlp.get_pipe("calib_event").to_bytes() == older
    assert nlp.get_pipe("morph").fitted


def test_stock_removes_the_event_pipe_too(asking, tmp_path):
    assert "'calib' was removed; 'calib_event' was removed" in ok(calib("stock", asking, tmp_path / "stock")).text
    assert not {"calib", "calib_event"} & {*spacy.load(tmp_path / "stock").pipe_names}


@pytest.mark.parametrize("unit", ["paragraph", ""])
def test_a_unit_that_nothing_fits(model, dev, tmp_path, unit):
    outcome = calib("fit", model, dev, tmp_path / "out", "--unit", unit)
    refuses(outcome, f"Option --unit must be one of sentence, tree, but '{unit}' was given.")
    assert "calib_right): sentence, tree" in calib("fit", "--help").text


@pytest.mark.parametrize("component", ["tagger", "trainable_lemmatizer"])
def test_no_words_of_the_gold_are_written(model, dev, component, tmp_path):
    gold = with_secrets(dev, tmp_path / "gold.spacy")
    options = ("-C", component, "--method", "isotonic", "--unit", "sentence", "--silent")
    ok(calib("fit", model, gold, tmp_path / "out", *options))
    assert found_in(tmp_path / "out") == []


def test_no_sentences(changed_model, dev, tmp_path):
    without = changed_model(lambda nlp: nlp.remove_pipe("senter"))
    refuses(calib("fit", without, dev, tmp_path / "out", "--unit", "sentence", "--method", "platt"), "add a parser, a senter")
    assert not (tmp_path / "out").exists()


def test_of_what_has_no_labels_of_tokens(spancat_model, span_gold, tmp_path):
    outcome = calib("fit", spancat_model, span_gold, tmp_path / "out", "--component", "spancat", "--unit", "sentence")
    refuses(outcome, "Option --unit sentence is for the labels of tokens")


def test_adapting_says_how_true_the_forecasts_are_then(asking, tmp_path):
    odd = save_docs(tmp_path / "odd.spacy", odd_docs(6))
    outcome = ok(calib("adapt", asking, odd, tmp_path / "out"))
    assert "calib_event: whole sentences (event: all labels right)" in outcome.text
    assert "The forecasts were not fitted again, but read the adapted scores" in outcome.text
    told = json_of("adapt", asking, odd, tmp_path / "again")["events"]["calib_event"]
    assert told["units"] > 20
    assert 0 < told["expected"] < 0.5
    before, after = (spacy.load(path).get_pipe("calib_event").info for path in (asking, tmp_path / "out"))
    assert before == after
