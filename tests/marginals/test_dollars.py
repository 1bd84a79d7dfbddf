"""Labels with dollar signs: spaCy doubles them each time that it writes a config, and never halves them again."""

from __future__ import annotations

import pytest
import spacy

from spacy_calib import CalibError

LABELS = ["$", "PRP$", "WP$", "NN", "''"]


def pipeline(labels: list[str]) -> spacy.Language:
    nlp = spacy.blank("xx")
    nlp.add_pipe("calib", config={"source": {"@calib_sources": "spacy-calib.DocTensor.v1", "labels": labels}})
    return nlp


def test_labels_with_dollar_signs_are_the_same_after_any_number_of_saves(tmp_path):
    """PRP$ became PRP$$, PRP$$$$, ...: tokens with these tags got None, and accuracy was reported too low."""
    nlp = pipeline(LABELS)
    for number in range(3):
        nlp.to_disk(tmp_path / str(number))
        nlp = spacy.load(tmp_path / str(number))
        assert nlp.get_pipe("calib").source.labels(None) == tuple(LABELS)
        assert nlp.config["components"]["calib"]["source"]["labels"] == LABELS
    configs = {(tmp_path / str(number) / "config.cfg").read_text(encoding="utf8") for number in range(3)}
    assert len(configs) == 1


def test_other_labels_of_a_config_are_not_overwritten(tmp_path):
    pipeline(LABELS).get_pipe("calib").to_disk(tmp_path)
    calib = pipeline(["A", "B", "C", "D", "E"]).get_pipe("calib").from_disk(tmp_path)
    assert calib.source.labels(None) == ("A", "B", "C", "D", "E")


def test_a_label_that_no_config_can_hold_is_refused():
    """The pipeline was saved, and could not be loaded."""
    with pytest.raises(CalibError, match=r"C111.*'\$\{x\}' cannot be kept in a config"):
        pipeline(["NN", "${x}"])
