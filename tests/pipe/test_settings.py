"""Settings are written once: what spaCy shows, checks and saves of them is made from there."""

import inspect
from dataclasses import fields

import pytest
import spacy
from confection import ConfigValidationError

from spacy_calib.errors import CalibError
from spacy_calib.pipe.factory import DEFAULT_CONFIG, PipeSettings, make_calib
from tests.cli.conftest import revive_recognizer

NAMES = [one.name for one in fields(PipeSettings)]


def test_config_factory_and_pipe_have_the_same_settings():
    assert list(DEFAULT_CONFIG) == NAMES
    assert list(inspect.signature(make_calib).parameters) == ["nlp", "name", *NAMES]
    nlp = spacy.blank("xx")
    calib = nlp.add_pipe("calib")
    assert set(NAMES) <= set(dir(calib))
    assert set(nlp.config["components"]["calib"]) == {"factory", *NAMES}
    plain = {name: value for name, value in DEFAULT_CONFIG.items() if not isinstance(value, dict)}
    assert {name: getattr(calib, name) for name in plain} == plain
    assert calib.source.component == DEFAULT_CONFIG["source"]["component"]


@pytest.mark.parametrize(
    "wrong",
    [{"attr": ["calib"]}, {"threshold": "low"}, {"normalize": "all"}, {"grouping": 3}, {"scorer": "best"}, {"groups": 3}],
)
def test_spacy_refuses_values_of_another_type_and_settings_that_there_are_not(wrong):
    with pytest.raises(ConfigValidationError):
        spacy.blank("xx").add_pipe("calib", config=wrong)


@pytest.mark.parametrize("wrong", [{"threshold": 1.0}, {"event": "near"}, {"attr": "a b"}])
def test_values_out_of_range_are_refused(wrong):
    with pytest.raises(CalibError, match="C001|C056"):
        spacy.blank("xx").add_pipe("calib", config=wrong)


def test_the_source_must_be_given_outside_of_configs():
    from spacy_calib.pipe.component import Calibrator

    with pytest.raises(TypeError, match="source"):
        Calibrator(spacy.blank("xx"))


def test_a_pipe_of_entities_needs_no_settings(tmp_path):
    """`add_pipe("calib_ent")` reads `ner` under its own prefix, and is saved and loaded so."""
    nlp = revive_recognizer("ner")
    pipe = nlp.add_pipe("calib_ent")
    assert (pipe.attr, pipe.source.component, type(pipe.source).__name__) == ("calib_ent", "ner", "NerSource")
    nlp.to_disk(tmp_path / "saved")
    again = spacy.load(tmp_path / "saved").get_pipe("calib_ent")
    assert (again.attr, again.source.component) == ("calib_ent", "ner")
    with pytest.warns(UserWarning, match="CW01"):
        doc = nlp("Anna left")
    assert all(0 <= ent._.calib_ent_score <= 1 for ent in doc.ents)
