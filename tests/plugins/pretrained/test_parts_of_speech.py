"""Parts of speech as sums over a morphologizer's labels, and their cards."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_calib import CalibError, pretrained
from spacy_calib.annotations import plain_name
from spacy_calib.pairs.scores import DenseScores
from spacy_calib.plugins.pretrained import applying
from spacy_calib.plugins.pretrained.card import find_card
from spacy_calib.plugins.pretrained.parts_of_speech import PosSource
from spacy_calib.sources.heads import SoftmaxSource
from tests.plugins.pretrained.test_french import NAME, untrained

__all__ = ["untrained"]
CARD = f"{NAME}-pos"


class Morphologizer:
    labels = ("Number=Sing|POS=NOUN", "POS=VERB", "Number=Plur|POS=NOUN", "Number=Plur")


def test_probabilities_of_one_part_of_speech_add_up(monkeypatch):
    scores = DenseScores(np.array([[0.5, 0.2, 0.25, 0.05]]))
    monkeypatch.setattr(SoftmaxSource, "read", lambda self, pipe, docs: scores)
    pipe = Morphologizer()
    marginals = PosSource().read(pipe, []).marginals_above(0.01)
    assert PosSource().labels(pipe) == ("NOUN", "VERB")
    assert marginals.tags.tolist() == [0, 1]
    assert marginals.scores == pytest.approx([0.75, 0.2])  # a label without a part of speech is left out


def test_both_pipes_stand_in_one_pipeline(untrained, monkeypatch):
    monkeypatch.setattr(applying, "check_scores", lambda *_: None)
    with pytest.warns(UserWarning, match=r"\[CW75\].*'morphologizer'"):
        pretrained(pretrained(untrained), by="pos")
    assert untrained.pipe_names == ["morphologizer", "calib_pos", "calib"]
    assert pretrained(pretrained(untrained, by="pos")).pipe_names == ["morphologizer", "calib_pos", "calib"]
    pos, features = untrained.get_pipe("calib_pos"), untrained.get_pipe("calib")
    assert plain_name(pos.fit_info.layer) == "pos"
    assert set(pos.labels) >= {"NOUN", "VERB", "PROPN"}
    assert len(features.labels) > 150
    doc = Doc(untrained.vocab, words=["elle", "part"], pos=["PRON", "VERB"])
    doc.tensor = untrained.get_pipe("morphologizer").model.get_ref("tok2vec").predict([doc])[0]
    assert all(0 < token._.calib_pos_score < 1 for token in pos(doc))
    again = spacy.blank("fr").from_config(untrained.config).from_bytes(untrained.to_bytes())
    assert again.get_pipe("calib_pos").fit_info.pretrained["card"].endswith("-pos")


def test_only_cards_of_parts_of_speech_are_taken():
    with pytest.raises(CalibError, match=r"\[C834\].*fr_core_news_sm 3.8.0 \(morphologizer\)"):
        pretrained(spacy.blank("en"), by="pos")
    with pytest.raises(CalibError, match=r"\[C001\] by must be 'pos' or None"):
        pretrained(spacy.blank("fr"), by="lemma")


def test_the_stock_pipeline_gets_scores():
    pytest.importorskip(NAME)
    doc = pretrained(pretrained(NAME), by="pos")("Les élèves sont partis hier soir.")
    assert all(0 < token._.calib_pos_score < 1 for token in doc)
    assert any(token._.calib_score is not None for token in doc)


def test_scores_are_below_raw_on_each_source_left_out_and_nearly_calibrated():
    for name in (CARD, "fr_core_news_md-pos"):
        rows = find_card(name).data["left_out"]
        assert [row["source"] for row in rows] == ["GSD", "French PUD", "ParisStories"]
        assert all(row["calibrated"]["ece"] < min(0.032, row["raw"]["ece"]) for row in rows)
