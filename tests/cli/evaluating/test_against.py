"""`spacy calib evaluate --against OTHER`: two pipelines on the same gold."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import spacy
from spacy.tokens import DocBin
from spacy.vocab import Vocab

from spacy_calib.cli.evaluating import evaluation
from spacy_calib.cli.evaluating.against import verdict
from tests.cli.conftest import calib, docs_in, json_of, ok, refuses, save_docs
from tests.conftest import gold_doc, made_up_sentences, revive
from tests.made import category_docs, revive_categorizer
from tests.sentences import says


@pytest.fixture(scope="module")
def worse(trained_bytes, dev, tmp_path_factory):
    """The small pipeline with a tagger that mixes up two tags, calibrated."""
    folder, nlp = tmp_path_factory.mktemp("worse"), revive(trained_bytes)
    for layer in nlp.get_pipe("tagger").model.walk():
        if layer.name == "softmax":
            weights = layer.get_param("W").copy()
            weights[[0, 1]] = weights[[1, 0]]
            layer.set_param("W", weights)
    nlp.to_disk(folder / "raw")
    ok(calib("fit", folder / "raw", dev, folder / "model", "--method", "isotonic", "--silent"))
    return folder / "model"


@pytest.fixture(scope="module")
def filed(tmp_path_factory):
    """Gold whose sentences are filed under "kind"."""
    docs = [gold_doc(Vocab(), sentence) for sentence in made_up_sentences(120, seed=4)]
    for number, doc in enumerate(docs):
        doc.user_data["kind"] = "long" if len(doc) > 4 else "short" if number else "one"
    path = tmp_path_factory.mktemp("filed") / "gold.spacy"
    DocBin(docs=docs, store_user_data=True).to_disk(path)
    return path


def told(*arguments):
    (table,) = json_of("evaluate", *arguments).values()
    return table


def test_the_better_one_is_named_on_screen_and_in_json_by_slice_too(calibrated, worse, filed, tmp_path):
    numbers = tmp_path / "numbers.json"
    outcome = ok(calib("evaluate", calibrated, filed, "--against", worse, "--by", "kind", "-o", numbers))
    (table,) = json.loads(numbers.read_text()).values()
    held = table["against"]
    accuracy, loss, error = held["rows"]
    assert (accuracy["better"], loss["figure"], error["figure"]) == ("model", "log_loss", "smce")
    assert accuracy["model"] == pytest.approx(table["accuracy"], abs=0.02)
    assert error["model"] == pytest.approx(table["errors"][0]["calibrated"])
    assert held["units"] == table["tokens"]
    assert held["left_out"] == {"model": 0, "other": 0}
    assert "Against model: tokens" in outcome.text
    assert f"OTHER is worse: {-100 * accuracy['difference']:.1f} % fewer of the tokens are right" in outcome.text
    rows = held["slices"]["rows"]
    assert {row["slice"] for row in rows} == {"long", "short"}
    assert rows[0]["surely"]
    assert rows[0]["difference"] < 0
    assert "WORSE" in outcome.text
    assert "Not compared: 1 with fewer than 30 units or 2 documents" in outcome.text
    turned = told(worse, filed, "--against", calibrated)["against"]["rows"]
    assert turned[0]["better"] == "other"
    assert turned[0]["difference"] == pytest.approx(-accuracy["difference"])
    assert turned[0]["low"] == pytest.approx(-accuracy["high"], abs=0.02)


def test_raw_scores_stand_where_nothing_is_fitted(model, calibrated, test_file):
    for one, other, calibrated_ones in (
        (calibrated, model, (True, False)),
        (model, calibrated, (False, True)),
        (model, model, (False, False)),
    ):
        held = told(one, test_file, "--against", other)["against"]
        assert held["calibrated"] == dict(zip(("model", "other"), calibrated_ones, strict=True))
        accuracy, loss, error = held["rows"]
        assert accuracy["difference"] == 0
        assert held["verdict"].startswith("Equally many tokens are right by both; the scores of OTHER are ")
        assert [loss["better"], error["better"]] == [
            {(True, False): "model", (False, True): "other", (False, False): None}[calibrated_ones]
        ] * 2
    outcome = ok(calib("evaluate", calibrated, test_file, "--against", model))
    assert "OTHER: raw scores, as no fitted pipe reads the component." in outcome.text


def test_entities_have_precision_recall_and_f(ner_model, calibrated_ner, entity_test):
    for one, other in ((calibrated_ner, ner_model), (ner_model, calibrated_ner)):
        table = told(one, entity_test, "--against", other, "--component", "ner")
        rows = {row["figure"]: row for row in table["entities"]["against"]["rows"]}
        assert set(rows) == {"precision", "recall", "f", "smce"}
        nlp = spacy.load(ner_model)
        scores = nlp.evaluate(list(spacy.training.Corpus(entity_test)(nlp)))
        for ours, theirs in (("precision", "ents_p"), ("recall", "ents_r"), ("f", "ents_f")):
            assert rows[ours]["model"] == rows[ours]["other"] == pytest.approx(scores[theirs], abs=1e-6)
        raw = "model" if one is ner_model else "other"
        entities = table["entities"]["errors"][0]
        assert rows["smce"][raw] == pytest.approx(entities["raw"], abs=1e-6)
    printed = ok(calib("evaluate", calibrated_ner, entity_test, "--against", ner_model)).text
    assert "F of the entities is the same; the scores of OTHER are" in printed


def test_what_cannot_be_compared_is_one_sentence(calibrated, changed_model, test_file, tmp_path):
    def asked(other, *more):
        return calib("evaluate", calibrated, test_file, "--against", other, *more)

    refuses(asked(tmp_path / "gone"), "gone")
    (tmp_path / "folder").mkdir()
    for other in (tmp_path / "folder", test_file):  # before the gold is looked for
        refuses(calib("evaluate", calibrated, tmp_path / "no.spacy", "--against", other), f"load the pipeline '{other}'")
    refuses(asked(spacy_blank(tmp_path / "blank")), "tagger")

    def rename(nlp):
        tagger = nlp.get_pipe("tagger")
        tagger.cfg["labels"] = [f"X-{label}" for label in tagger.cfg["labels"]]

    refuses(asked(changed_model(rename)), "share no label (ADJ, DET, NOUN, PUNCT, VERB; X-ADJ, X-DET, X-NOUN, X-PUNCT, X-VERB)")


def test_nothing_in_common_is_one_sentence(calibrated_ner, entity_test, monkeypatch, tmp_path):
    few = save_docs(tmp_path / "few.spacy", docs_in(entity_test)[:10])
    read, arguments = evaluation.score_pipeline, ("evaluate", calibrated_ner, few, "--against", calibrated_ner)
    cases = [
        (lambda side: {"layer": "tag"}, says("C615", layer="ner", given="tag")),
        (lambda side: {"event": "overlap"}, says("C618", called="entity", event="exact")),
        (lambda side: {"corpus": replace(side.corpus, calibrated=side.corpus.calibrated * np.nan)}, says("C617")),
    ]  # fmt: skip
    for changed, sentence in cases:
        monkeypatch.setattr(
            evaluation, "score_pipeline", lambda *given, how=changed: replace(side := read(*given), **how(side))
        )
        refuses(calib(*arguments), sentence)


def test_labels_that_one_alone_knows_are_told(calibrated, changed_model, test_file):
    def rename(nlp):
        tagger = nlp.get_pipe("tagger")
        tagger.cfg["labels"] = [label.replace("ADJ", "JJ") for label in tagger.cfg["labels"]]

    outcome = ok(calib("evaluate", calibrated, test_file, "--against", changed_model(rename)))
    assert "The labels of 'tagger' differ: only MODEL has ADJ and only OTHER has JJ." in outcome.text


def spacy_blank(path):
    spacy.blank("xx").to_disk(path)
    return path


def row(figure, difference, low, high, better=None):
    return {
        "figure": figure,
        "model": 0.5,
        "other": 0.5 + difference,
        "difference": difference,
        "low": low,
        "high": high,
        "better": better,
    }


def test_the_verdict_is_a_plain_sentence():
    truer = row("smce", -0.1, -0.2, -0.05, "other")
    cases = [
        ([row("accuracy", 0.012, 0.008, 0.016, "other"), truer], "OTHER is better: 1.2 % more of the tokens are right (0.8 to 1.6); the scores of OTHER are better calibrated"),
        ([row("accuracy", -0.012, -0.016, -0.008, "model")], "OTHER is worse: 1.2 % fewer of the tokens are right (0.8 to 1.6)"),
        ([row("accuracy", 0.001, -0.002, 0.004)], "Neither is clearly better: by OTHER +0.1 % of the tokens are right (-0.2 to +0.4)"),
        ([row("accuracy", 0.001, None, None)], "A single document cannot show which is better"),
        ([row("f", 0.02, 0.01, 0.03, "other")], "OTHER is better: F of the tokens is 2.0 % higher (1.0 to 3.0)"),
        ([], ""),
    ]  # fmt: skip
    for rows, sentence in cases:
        assert verdict(rows, "tokens").startswith(sentence), sentence


def test_documents_with_categories_are_compared(tmp_path):
    model, test = tmp_path / "model", save_docs(tmp_path / "test.spacy", category_docs(80, 42))
    revive_categorizer().to_disk(model)
    held = told(model, test, "--against", model)["against"]
    assert held["units"] == 80
    assert [row["difference"] for row in held["rows"]] == [0, 0, 0]
    assert held["verdict"].startswith("Equally many documents are right by both")
