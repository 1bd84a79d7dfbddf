"""A parser on the command line: arcs and sentences in fit, evaluate, info, rank, stock; and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.tokens import DocBin

from spacy_calib.plugins.events.trees import TreeEvent
from spacy_calib.plugins.spark.score_rows import score_rows
from tests.cli.conftest import calib, ok, refuses, save_docs, scaling, setting
from tests.sentences import says
from tests.sources.parser import gold_examples, trained


@pytest.fixture(scope="module", autouse=True)
def few_trees():
    """Events of trees draw 20 of each sentence and not 100, which take seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TreeEvent.__init__, "__defaults__", (20,))
        yield


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with a small parser (model), gold (dev.spacy, test.spacy), and the parser with calibrated heads (sure)."""
    folder = tmp_path_factory.mktemp("arcs")
    nlp = trained()
    nlp.to_disk(folder / "model")
    for name, n, seed in (("dev", 60, 2), ("test", 40, 3)):
        DocBin(docs=[example.reference for example in gold_examples(nlp, n, seed)]).to_disk(folder / f"{name}.spacy")
    outcome = ok(calib("fit", folder / "model", folder / "dev.spacy", folder / "sure", "-C", "parser"))
    assert "predicted sentences" in outcome.text
    assert "(event: all heads right)" in outcome.text
    assert "The same for whole sentences" in outcome.text
    return folder


def test_the_fitted_parser_decodes_as_stock_does(place, tmp_path):
    stock, ours = spacy.load(place / "model"), spacy.load(place / "sure")
    assert ours.get_pipe_meta("parser").factory == "calib_parser"
    text = "dog saw king with duck . duck met dog"
    arcs = [[(token.head.i, token.dep_) for token in nlp(text)] for nlp in (stock, ours)]
    assert arcs[0] == arcs[1]
    ok(calib("stock", place / "sure", tmp_path / "stock"))
    assert spacy.load(tmp_path / "stock").get_pipe_meta("parser").factory == "parser"


def test_evaluate_and_info(place, tmp_path):
    outcome = ok(calib("evaluate", place / "sure", place / "test.spacy", "--output", tmp_path / "out.json"))
    assert "UAS with punctuation" in outcome.text
    assert "whole sentences (event: all heads right)" in outcome.text
    (table,) = json.loads((tmp_path / "out.json").read_text()).values()
    nlp = spacy.load(place / "sure")
    right = []
    for gold in DocBin().from_disk(place / "test.spacy").get_docs(nlp.vocab):
        doc = nlp(gold.text)
        right += [a.head.i == b.head.i for a, b in zip(doc, gold, strict=True)]
    assert table["accuracy"] == pytest.approx(np.mean(right))
    assert "Sentences" in calib("info", place / "sure").text


def test_the_page_speaks_of_sentences(place, tmp_path):
    ok(calib("evaluate", place / "sure", place / "test.spacy", "--output", tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text(encoding="utf8")
    assert "parser: sentences" in page
    assert "a sentence is right by the event all heads right" in page
    assert "predicted entities" not in page


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--event", "exact"], "Option --event must be head or arc for component 'parser', but 'exact' was given."),
        ([setting("sets.alpha", "0.1")], says("C287", setting="sets")),
        ([scaling("Vector")], says("C287", setting="scaling")),
    ],
)
def test_what_a_parser_refuses(place, tmp_path, options, sentence):
    refuses(calib("fit", place / "model", place / "dev.spacy", tmp_path / "out", "-C", "parser", *options), sentence)
    assert not (tmp_path / "out").exists()


def test_events_of_arcs_are_for_parsers(ner_model, entity_dev, tmp_path):
    outcome = calib("fit", ner_model, entity_dev, tmp_path / "out", "-C", "ner", "--event", "head")
    refuses(outcome, "Option --event must be exact or article or type or overlap for component 'ner', but 'head' was given.")


def test_second_pass(place, tmp_path):
    ok(calib("fit", place / "model", place / "dev.spacy", tmp_path / "twice", "-C", "parser", "--second-pass", "--silent"))
    pipelines = [spacy.load(place / "sure"), spacy.load(tmp_path / "twice")]
    assert pipelines[1].get_pipe_meta("parser").factory == "parser"
    inline, again = ([token._.calib_score for token in nlp("dog saw king with duck .")] for nlp in pipelines)
    assert again == pytest.approx(inline, abs=1e-4)


def test_gold_without_heads(place, tmp_path):
    nlp = trained()
    DocBin(docs=[nlp.make_doc("dog saw duck")]).to_disk(tmp_path / "bare.spacy")
    outcome = calib("fit", place / "model", tmp_path / "bare.spacy", tmp_path / "out", "-C", "parser")
    refuses(outcome, "The data has no gold head annotation for component 'parser'")


# P(every arc of a sentence is right)


@pytest.fixture(scope="module")
def trees(place) -> Path:
    output = place / "trees"
    outcome = ok(
        calib("fit", place / "model", place / "dev.spacy", output, "-C", "parser", "--unit", "tree", "--method", "platt")
    )
    assert "calib_event: whole trees (event: all arcs right)" in outcome.text
    assert "share of draws" in outcome.text
    return output


def test_trees_in_evaluate_info_and_rows(place, trees, tmp_path):
    nlp = spacy.load(trees)
    golds = list(DocBin().from_disk(place / "test.spacy").get_docs(nlp.vocab))[:6]
    data = save_docs(tmp_path / "few.spacy", golds)  # trees are drawn of each, four times
    ok(calib("evaluate", trees, data, "--output", tmp_path / "out.json"))
    (table,) = json.loads((tmp_path / "out.json").read_text()).values()
    (event,) = table["events"]
    assert event["rivals"] == ["product of raw scores", "share of draws"]
    assert {row["name"] for row in event["rows"]} == {"raw", "product", "forecast"}
    right = [all(token.head.i == gold[token.i].head.i for token in one) for gold in golds for one in nlp(gold.text).sents]
    assert (event["units"], event["right"]) == (len(right), pytest.approx(np.mean(right)))
    assert "whole trees" in calib("info", trees).text
    ok(calib("evaluate", trees, data, "--n-process", "2", "--output", tmp_path / "two.json"))
    (other,) = json.loads((tmp_path / "two.json").read_text()).values()
    for row, wanted in zip(other["events"][0]["rows"], event["rows"], strict=True):
        assert row == pytest.approx(wanted, abs=1e-6)  # trees are drawn again, of Docs from other processes
    assert len(score_rows(nlp.pipe(gold.text for gold in golds), "calib", "sentence")["right"]) == len(right)


def test_an_event_of_the_other_kind(place, model, dev, tmp_path):
    fit = ("fit", place / "model", place / "dev.spacy", tmp_path / "out", "-C", "parser", "--unit", "sentence")
    refuses(calib(*fit), "Option --unit sentence is for the labels of tokens, but 'parser' predicts arcs")
    other = ("fit", model, dev, tmp_path / "out", "-C", "tagger", "--unit", "tree")
    refuses(
        calib(*other), "Option --unit tree is for the arcs of a parser, but 'tagger' predicts labels of tokens; leave it out."
    )
    assert not (tmp_path / "out").exists()
