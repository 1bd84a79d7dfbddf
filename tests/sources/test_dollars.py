"""Labels with dollar signs: spaCy doubles them each time that it writes a config, and never halves them again."""

import json
from pathlib import Path

import pytest
import spacy
from thinc.api import Config

from spacy_calib import CalibError
from spacy_calib.cli.fitting.settings import settings_from_file
from spacy_calib.sources.scores_on_doc import TokenScoresSource

LABELS = ["$", "PRP$", "WP$", "NN", "''"]


def pipeline_with_labels(labels: list[str]) -> spacy.Language:
    nlp = spacy.blank("xx")
    nlp.add_pipe("calib", config={"source": {"@calib_sources": "spacy-calib.DocTensor.v1", "labels": labels}})
    return nlp


def through_disk(nlp: spacy.Language, folder: Path) -> spacy.Language:
    nlp.to_disk(folder)
    return spacy.load(folder)


def through_bytes(nlp: spacy.Language, folder: Path) -> spacy.Language:
    return pipeline_with_labels(LABELS).from_bytes(nlp.to_bytes())


def through_config_and_bytes(nlp: spacy.Language, folder: Path) -> spacy.Language:
    """As `spacy.util.load_model_from_config` and many a cloud function do: the config as text, and the rest as bytes."""
    return spacy.util.load_model_from_config(Config().from_str(nlp.config.to_str())).from_bytes(nlp.to_bytes())


@pytest.mark.parametrize("save_and_load", [through_disk, through_bytes, through_config_and_bytes])
def test_labels_with_dollar_signs_are_the_same_after_any_number_of_saves(tmp_path, save_and_load):
    """PRP$ became PRP$$, PRP$$$$, ...: tokens with these tags got None, and accuracy was reported too low."""
    nlp = pipeline_with_labels(LABELS)
    for number in range(3):
        nlp = save_and_load(nlp, tmp_path / str(number))
        assert nlp.get_pipe("calib").source.labels(None) == tuple(LABELS)
        assert nlp.config["components"]["calib"]["source"]["labels"] == LABELS
    assert len({path.read_text(encoding="utf8") for path in tmp_path.rglob("config.cfg")}) <= 1


WRITTEN = """[components]

[components.calib]
factory = "calib"

[components.calib.source]
@calib_sources = "spacy-calib.DocTensor.v1"
labels = {labels}
"""


@pytest.mark.parametrize("labels", ['["$"]', '["NN","PRP$"]', '["$$$"]', '["${x}"]'])
def test_a_config_with_a_dollar_sign_says_how_to_write_it(tmp_path, labels):
    (tmp_path / "own.cfg").write_text(WRITTEN.format(labels=labels))
    with pytest.raises(CalibError, match=r'C114.*own\.cfg.*double it.*labels = "labels\.json"'):
        settings_from_file(tmp_path / "own.cfg")


def test_the_two_ways_to_write_dollar_signs_that_it_names(tmp_path):
    (tmp_path / "labels.json").write_text(json.dumps(LABELS))
    for labels in (json.dumps(LABELS).replace("$", "$$"), '"labels.json"'):
        (tmp_path / "own.cfg").write_text(WRITTEN.format(labels=labels))
        _, settings = settings_from_file(tmp_path / "own.cfg")
        assert settings["source"]["labels"] == LABELS


def test_other_labels_of_a_config_are_not_overwritten(tmp_path):
    pipeline_with_labels(LABELS).get_pipe("calib").to_disk(tmp_path)
    calib = pipeline_with_labels(["A", "B", "C", "D", "E"]).get_pipe("calib").from_disk(tmp_path)
    assert calib.source.labels(None) == ("A", "B", "C", "D", "E")


def test_scores_on_the_doc_take_saved_labels_that_differ_in_dollar_signs_alone():
    source = TokenScoresSource(labels=["NN", "PRP$$"])
    assert [source.restore_labels(saved) for saved in (["NN", "PRP$"], ["NN", "PRP$"], ["NN", "VB"])] == [True, False, False]
    assert source.kept_labels() == ("NN", "PRP$")


def test_a_label_that_no_config_can_hold_is_refused():
    """The pipeline was saved, and could not be loaded."""
    with pytest.raises(CalibError, match=r"C111.*'\$\{x\}' cannot be stored in a config"):
        pipeline_with_labels(["NN", "${x}"])
