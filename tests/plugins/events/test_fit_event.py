"""`calib fit --event sentence`, and what `evaluate` and `info` say of it."""

from __future__ import annotations

import json

import pytest
import spacy

from spacy_calib.plugins.events.fit_event import show_followed

from ...cli.conftest import calib, refuses, save_docs
from ...cli.test_adapt_command import odd_docs


@pytest.fixture(scope="module")
def asking(model, dev, tmp_path_factory):
    output = tmp_path_factory.mktemp("asking") / "out"
    outcome = calib("fit", model, dev, output, "--component", "tagger", "--event", "sentence", "--method", "platt")
    assert outcome.code == 0, outcome.text
    assert "calib_event: whole sentences (event: all labels right)" in outcome.text
    assert "(chosen)" in outcome.text
    return output


def test_sentences_have_a_score_and_tokens_too(asking):
    nlp = spacy.load(asking)
    assert nlp.pipe_names[-1] == "calib_event"
    doc = nlp("the dog runs")
    assert all(0 <= sent._.calib_right <= 1 for sent in doc.sents)
    assert doc[0]._.calib_score is not None


def test_evaluate_shows_forecast_and_product(asking, test_file, tmp_path):
    outcome = calib("evaluate", asking, test_file, "--output", tmp_path / "out.json")
    assert outcome.code == 0, outcome.text
    assert "product of calibrated scores" in outcome.text
    assert "Squared loss of the forecast less that of the product" in outcome.text
    (event,) = json.loads((tmp_path / "out.json").read_text())["calib"]["events"]
    assert [row["name"] for row in event["rows"]] == ["raw", "product", "forecast"]


def test_info_names_it(asking, calibrated):
    outcome = calib("info", asking, "--format", "json")
    assert json.loads(outcome.printed)["calib"]["events"]["calib_event"]["event"] == "all labels right"
    assert "whole sentences" in calib("info", asking).text
    assert "events" not in json.loads(calib("info", calibrated, "--format", "json").printed)["calib"]


def test_a_fit_without_it_leaves_the_older_one_out(asking, dev, tmp_path):
    outcome = calib("fit", asking, dev, tmp_path / "out", "--method", "platt")
    assert outcome.code == 0
    assert "give --event to fit it again" in outcome.text
    assert "calib_event" not in spacy.load(tmp_path / "out").pipe_names
    again = calib("fit", asking, dev, tmp_path / "again", "--event", "sentence", "--method", "platt", "--format", "json")
    assert again.code == 0, again.text
    assert json.loads(again.printed)["event"]["called"] == ["sentence", "sentences"]


def test_no_sentences(changed_model, dev, tmp_path):
    without = changed_model(lambda nlp: nlp.remove_pipe("senter"))
    refuses(calib("fit", without, dev, tmp_path / "out", "--event", "sentence", "--method", "platt"), "add a parser, a senter")
    assert not (tmp_path / "out").exists()


def test_of_what_has_no_labels_of_tokens(spancat_model, span_gold, tmp_path):
    outcome = calib("fit", spancat_model, span_gold, tmp_path / "out", "--component", "spancat", "--event", "sentence")
    refuses(outcome, "The event sentence is about the labels of tokens")


def test_adapting_says_how_true_the_forecasts_are_then(asking, tmp_path):
    odd = save_docs(tmp_path / "odd.spacy", odd_docs(6))
    outcome = calib("adapt", asking, odd, tmp_path / "out")
    assert outcome.code == 0, outcome.text
    assert "calib_event: whole sentences (event: all labels right)" in outcome.text
    assert "The forecasts stay as they were fitted, and look at the adapted scores" in outcome.text
    again = calib("adapt", asking, odd, tmp_path / "again", "--format", "json")
    told = json.loads(again.printed)["events"]["calib_event"]
    assert told["units"] > 20
    assert 0 < told["expected"] < 0.5
    before, after = (spacy.load(path).get_pipe("calib_event").info for path in (asking, tmp_path / "out"))
    assert before == after


def test_adapting_without_gold_for_a_whole_sentence(capsys):
    told = {"called": ["sentence", "sentences"], "event": "all labels right", "units": 0, "expected": None, "right": None}
    show_followed("calib_event", told)
    assert "None of the sentences has gold throughout" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("component", ["morphologizer", "trainable_lemmatizer"])
def test_other_components(model, dev, tmp_path, component):
    outcome = calib("fit", model, dev, tmp_path / "out", "-C", component, "--event", "sentence", "--method", "platt")
    assert outcome.code == 0, outcome.text
    assert all(0 <= sent._.calib_right <= 1 for sent in spacy.load(tmp_path / "out")("the dog runs").sents)
