"""Scores that look at the rest of the document, from the command line."""

from pathlib import Path

import pytest
import spacy

from spacy_calib.cli.fitting.fit_output import context_line
from spacy_calib.cli.fitting.settings import DEFAULTS, pipe_settings
from tests.cli.conftest import CONTEXT, NO_CONTEXT, calib, json_of, ok

ALWAYS = {"@calib_contexts": "spacy-calib.Context.v1", "when": "always"}
NO_WORSE = {**ALWAYS, "when": "no_worse"}
WHEN_ALWAYS, NEVER = {"components.calib.context.when": "always"}, {"components.calib.context": None}


@pytest.mark.parametrize(("options", "overrides", "context"), [
    ({}, {}, NO_WORSE),
    ({"method": "auto"}, {}, NO_WORSE),
    ({"method": "isotonic"}, {}, None),
    ({"groups": 3}, {}, None),
    ({"method": "isotonic"}, WHEN_ALWAYS, ALWAYS),
    ({}, WHEN_ALWAYS, ALWAYS),
    ({}, NEVER, None),
    ({"method": "auto"}, NEVER, None),
    ({"method": "isotonic"}, {"components.calib.context.shrink": 0.5}, {**NO_WORSE, "shrink": 0.5}),
])  # fmt: skip
def test_context_comes_with_auto_and_otherwise_where_it_is_asked_for(options, overrides, context):
    assert pipe_settings(None, options, overrides)[1]["context"] == context


@pytest.mark.parametrize(("held", "options", "overrides", "context"), [
    (None, {}, {}, None),
    (None, {"method": "auto"}, {}, NO_WORSE),
    (None, {"method": "auto"}, NEVER, None),
    ({**ALWAYS, "features": ["neighbours"]}, {"method": "isotonic"}, {}, {**ALWAYS, "features": ["neighbours"]}),
    ({**NO_WORSE, "features": ["neighbours"]}, {}, WHEN_ALWAYS, {**ALWAYS, "features": ["neighbours"]}),
])  # fmt: skip
def test_what_a_pipe_has_already_stays_unless_an_option_says_otherwise(held, options, overrides, context):
    assert pipe_settings(("calib", {**DEFAULTS, "context": held}), options, overrides)[1]["context"] == context


@pytest.fixture(scope="module")
def with_neighbours(model, dev, gold, tmp_path_factory) -> Path:
    """A pipeline whose context looks at one feature alone."""
    path = tmp_path_factory.mktemp("context") / "neighbours"
    given = [CONTEXT, "--components.calib.context.features", '["neighbours"]', "--train-data", gold / "train.spacy"]
    ok(calib("fit", model, dev, path, "--method", "isotonic", *given))
    return path


def test_info_tells_each_feature_in_words(with_neighbours):
    outcome = calib("info", with_neighbours)
    for part in (
        "log loss of held-out documents from",
        "Features of the context",
        "the previous and the next tag",
        "confidence in the previous token",
        "have another top tag by the calibrated scores",
    ):
        assert part in outcome.text
    held = json_of("info", with_neighbours)["calib"]["context"]
    assert held["columns"] == ["confidence in the previous token", "confidence in the next token"]
    assert held["forms"] > 0


def test_auto_says_whether_it_took_context(model, dev, tmp_path):
    few = ["--components.calib.selection.n_groups", "[1]"]
    outcome = ok(calib("fit", model, dev, tmp_path / "out", *few))
    about = spacy.load(tmp_path / "out").get_pipe("calib").fit_info.context
    assert (about["when"], "Context used" in outcome.text) == ("no_worse", about["kept"])
    ok(calib("fit", tmp_path / "out", dev, tmp_path / "without", *few, NO_CONTEXT, "--silent"))
    assert spacy.load(tmp_path / "without").get_pipe("calib").fit_info.context is None


@pytest.mark.parametrize(("when", "without", "with_context", "kept", "said"), [
    ("no_worse", 0.1946, 0.1932, True, "used: it lowers the log loss of held-out documents from 0.1946 to 0.1932"),
    ("no_worse", 0.1946, 0.1932, False, "not used: it lowers the log loss of held-out documents from 0.1946 to 0.1932, and another method has a lower one"),
    ("no_worse", 0.3897, 0.3951, False, "not used: it raises the log loss of held-out documents from 0.3897 to 0.3951"),
    ("always", 0.3897, 0.3951, True, "used as requested, though it raises the log loss of held-out documents from 0.3897 to 0.3951"),
])  # fmt: skip
def test_what_context_gains_is_told_from_without_to_with(when, without, with_context, kept, said):
    comparison = {"without": without, "with_context": with_context, "error": 0.0009}
    line = context_line({"when": when, "kept": kept, "why": "", "comparison": comparison})
    assert line.startswith(said)
    assert line.endswith("(standard error of the difference 0.00090)")


def test_what_is_learned_of_entities_is_told_and_saved(ner_model, entity_dev, tmp_path):
    fitted = ok(calib("fit", ner_model, entity_dev, tmp_path / "out", "-C", "ner", "--method", "isotonic", CONTEXT))
    assert "Context of entities used" in fitted.text
    outcome = calib("info", tmp_path / "out")
    for part in ("Context of entities used", "its length", "a label of group 1"):
        assert part in outcome.text
    held = json_of("info", tmp_path / "out")["calib_ent"]["spans"]["context"]
    assert held["kept"]
    pipe = spacy.load(tmp_path / "out").get_pipe("calib_ent")
    assert len(pipe.spans.context.model.weights) == len(held["weights"])


def test_span_categorizers_have_context_for_spans_alone(spancat_model, span_gold, tmp_path):
    dev = span_gold / "dev.spacy"
    outcome = ok(calib("fit", spancat_model, dev, tmp_path / "out", "-C", "spancat", "--method", "isotonic", CONTEXT))
    assert "Context not used: a token may have several labels" in outcome.text
    assert "Context of entities used" in outcome.text
    nlp = spacy.load(tmp_path / "out")
    assert nlp.get_pipe("calib").tokens.context.model_ is None
    doc = nlp("Ann lives in Paris .")
    spans = [span for group in doc.spans.values() for span in group]
    assert spans
    assert all(span._.calib_score not in (None, span._.calib_raw) for span in spans)
