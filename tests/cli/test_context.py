"""Scores that look at the rest of the document, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import spacy

from spacy_calib.cli.fitting.context import in_words
from spacy_calib.cli.fitting.settings import DEFAULTS, pipe_settings
from tests.cli.conftest import calib, refuses

LENGTHS = Path(__file__).with_name("plugin_lengths.py")
ALWAYS = {"@calib_contexts": "spacy-calib.Context.v1", "when": "always"}
NO_WORSE = {**ALWAYS, "when": "no_worse"}


@pytest.mark.parametrize(
    ("options", "context"),
    [
        ({}, NO_WORSE),
        ({"method": "auto"}, NO_WORSE),
        ({"method": "isotonic"}, None),
        ({"groups": 3}, None),
        ({"method": "isotonic", "context": True}, ALWAYS),
        ({"context": True}, ALWAYS),
        ({"context": False}, None),
    ],
)
def test_context_comes_with_auto_and_otherwise_where_it_is_asked_for(options, context):
    assert pipe_settings(None, options)[1]["context"] == context


@pytest.mark.parametrize(
    ("held", "options", "context"),
    [
        (None, {}, None),
        (None, {"method": "auto"}, NO_WORSE),
        ({**ALWAYS, "features": ["entropy"]}, {"method": "isotonic"}, {**ALWAYS, "features": ["entropy"]}),
        ({**NO_WORSE, "features": ["entropy"]}, {"context": True}, {**ALWAYS, "features": ["entropy"]}),
    ],
)
def test_what_a_pipe_has_already_stays_unless_an_option_says_otherwise(held, options, context):
    assert pipe_settings(("calib", {**DEFAULTS, "context": held}), options)[1]["context"] == context


@pytest.fixture(scope="module")
def with_lengths(registered_until_the_end, model, dev, gold, tmp_path_factory) -> Path:
    """A pipeline whose context looks at a feature of a user's own, forms counted in other gold."""
    path = tmp_path_factory.mktemp("context") / "lengths"
    given = ["--context", "--components.calib.context.features", '["*","lengths.v1"]', "--train-data", dev, "--code", LENGTHS]
    outcome = calib("fit", model, dev, path, "--method", "isotonic", *given)
    assert outcome.code == 0, outcome.text
    return path


def test_info_tells_each_feature_in_words(with_lengths, tmp_path):
    outcome = calib("info", with_lengths, "--code", LENGTHS, "-o", tmp_path / "info.json")
    for part in (
        "Context kept: held-out log loss",
        "the document's mean confidence",
        "lengths.v1",
        "Most telling:",
        "counted on dev.spacy",
    ):
        assert part in outcome.text
    held = json.loads((tmp_path / "info.json").read_text())["calib"]["context"]
    assert held["weights"][-1]["feature"] == "lengths.v1"
    assert held["weights"][-1]["leading"] != 0


def test_a_pipeline_with_a_feature_that_is_not_there(with_lengths, tmp_path):
    from catalogue import REGISTRY

    kept = {key: REGISTRY.pop(key) for key in list(REGISTRY) if key[-1] == "lengths.v1"}
    try:
        refuses(calib("info", with_lengths), "The feature 'lengths.v1' of the context is not registered")
    finally:
        REGISTRY.update(kept)


def test_scores_of_a_loaded_pipeline_look_at_its_features(with_lengths):
    calib_pipe = spacy.load(with_lengths).get_pipe("calib")
    assert [feature.registered for feature in calib_pipe.tokens.context.features][-1] == "lengths.v1"


def test_auto_says_whether_it_took_context(model, dev, tmp_path):
    few = ["--components.calib.selection.n_groups", "[1]", "--components.calib.selection.n_folds", "2"]
    outcome = calib("fit", model, dev, tmp_path / "out", *few)
    assert outcome.code == 0, outcome.text
    about = spacy.load(tmp_path / "out").get_pipe("calib").fit_info.context
    assert (about["when"], "Context kept" in outcome.text) == ("no_worse", about["kept"])
    assert calib("fit", tmp_path / "out", dev, tmp_path / "without", *few, "--no-context", "--silent").code == 0
    assert spacy.load(tmp_path / "without").get_pipe("calib").fit_info.context is None


def test_weights_in_words():
    one = {"what": "the document's mean confidence", "leading": 0.41, "others": -0.2}
    assert (
        in_words(one)
        == "the document's mean confidence: +.41 for one standard deviation more, the likeliest tag is likelier right"
    )
