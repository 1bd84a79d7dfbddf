"""The name, and prefix, that a fit gives to a pipe that the pipeline has not got yet."""

import pytest
import spacy

from spacy_calib.cli.fitting.new_calib import block_to_fit, new_block, put_calib
from spacy_calib.cli.fitting.settings import DEFAULTS, settings_from_file


def names(nlp, *components):
    return [new_block(nlp, None, {"component": component}, None)[0] for component in components]


@pytest.fixture
def nlp():
    nlp = spacy.blank("xx")
    for factory, name in (
        ("tagger", "tagger"),
        ("ner", "ner"),
        ("beam_ner", "other-names"),
        ("parser", "parser"),
        ("textcat", "textcat"),
    ):
        nlp.add_pipe(factory, name=name)
    return nlp


def test_tags_are_calib_and_entities_calib_ent(nlp):
    assert names(nlp, "tagger", "ner", "other-names", "parser", "textcat") == [
        "calib", "calib_ent", "calib_ent", "calib", "calib",
    ]  # fmt: skip
    name, settings = new_block(nlp, None, {"component": "ner"}, None)
    assert settings == {**DEFAULTS, "attr": name}


def test_a_name_of_another_component_is_not_taken(nlp):
    nlp.add_pipe("calib", config={"source": {"@calib_sources": "spacy-calib.Parser.v1", "component": "parser"}})
    nlp.add_pipe(
        "calib",
        name="calib_ent",
        config={"attr": "calib_ent", "source": {"@calib_sources": "spacy-calib.Ner.v1", "component": "ner"}},
    )
    expected = ["calib_tagger", "calib_ent", "calib_other_names", "calib", "calib_textcat"]
    assert names(nlp, "tagger", "ner", "other-names", "parser", "textcat") == expected


def test_where_the_scores_come_from_says_what_is_of_entities(nlp):
    arrays = {
        "components.calib.source.@calib_sources": "spacy-calib.DocTensor.v1",
        "components.calib.source.labels": ["O", "PER"],
    }
    assert new_block(nlp, None, {}, {**arrays, "components.calib.source.layer": "ner"})[0] == "calib_ent"
    assert new_block(nlp, None, {}, {**arrays, "components.calib.source.layer": "tag"})[0] == "calib"


def test_settings_of_the_block_calib_are_those_of_the_pipe_that_is_fitted(nlp):
    for name in ("calib", "calib_ent"):
        _, block = block_to_fit(nlp, None, {"component": "ner"}, {f"components.{name}.threshold": 0.5})
        assert (block[0], block[1]["attr"], block[1]["threshold"]) == ("calib_ent", "calib_ent", 0.5)


def test_the_only_pipe_of_a_pipeline_without_a_tagger_is_fitted_again():
    nlp = spacy.blank("xx")
    nlp.add_pipe("ner")
    nlp.add_pipe(
        "calib",
        name="calib_ent",
        config={"attr": "calib_ent", "source": {"@calib_sources": "spacy-calib.Ner.v1", "component": "ner"}},
    )
    own, (name, _) = block_to_fit(nlp, None, {}, None)
    assert (own, name) == ("calib_ent", "calib_ent")


@pytest.mark.parametrize(("block", "expected"), [
    ('[components.names]\nfactory = "calib_ent"', {"attr": "calib_ent", "source": "spacy-calib.Ner.v1"}),
    ('[components.names]\nfactory = "calib_ent"\nattr = "names"', {"attr": "names", "source": "spacy-calib.Ner.v1"}),
    ('[components.calib]\nfactory = "calib"', {"source": None}),
])  # fmt: skip
def test_a_config_may_name_either_factory(block, expected, tmp_path):
    path = tmp_path / "calib.cfg"
    path.write_text(f"[components]\n{block}\n")
    name, settings = settings_from_file(path)
    assert name == ("calib" if expected["source"] is None else "names")
    assert settings.get("attr") == expected.get("attr")
    assert settings["source"].get("@calib_sources") == expected["source"]
    assert settings["source"]["component"] == ("tagger" if expected["source"] is None else "ner")


def test_a_pipe_that_replaces_another_has_its_factory(nlp):
    nlp.add_pipe("calib_ent")
    settings = {key: value for key, value in nlp.get_pipe_config("calib_ent").items() if key != "factory"}
    put_calib(nlp, "calib_ent", settings, None)
    assert nlp.get_pipe_meta("calib_ent").factory == "calib_ent"
