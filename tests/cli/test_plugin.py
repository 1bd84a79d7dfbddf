"""What is registered outside of the package is seen wherever ours is: command line, `auto`, `info`, JSON, table, page, errors, help."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import NO_CONTEXT, Outcome, calib, ok, refuses, setting, spacy_process
from tests.sentences import says

PLUGIN = Path(__file__).with_name("plugin_garden.py")

MILD = setting("scaling.@calib_scalings", "garden.Mild.v1")


def with_plugin(*arguments: object) -> Outcome:
    return calib(*arguments, "--code", PLUGIN)


pytestmark = pytest.mark.usefixtures("registered_until_the_end")


@pytest.fixture(scope="module")
def leveled(registered_until_the_end, model, dev, tmp_path_factory) -> Path:
    """A pipeline fitted with the recalibrator, the scaling and the grouping of the plugin."""
    path = tmp_path_factory.mktemp("plugin") / "leveled"
    grouping = ["--components.calib.grouping.@calib_groupings", "garden.Halves.v1"]
    ok(with_plugin("fit", model, dev, path, "--method", "level", MILD, *grouping))
    return path


def test_a_recalibrator_a_scaling_and_a_grouping_are_fitted_and_info_shows_them(leveled):
    (held,) = json.loads(with_plugin("info", leveled, "--format", "json").printed).values()
    assert held["method"] == "garden.Level.v1"
    assert held["scaling"]["name"] == "garden.Mild.v1"
    assert len(held["groups"]) == 2
    shown = with_plugin("info", leveled).text
    assert "Method level after mild (" in shown
    assert "garden.Mild.v1" in shown


def test_auto_compares_a_recalibrator_that_is_named(model, dev, tmp_path):
    named = ["--components.calib.selection.methods", '["level"]']
    ok(with_plugin("fit", model, dev, tmp_path / "auto", "--method", "auto", NO_CONTEXT, *named, "--silent"))
    (held,) = json.loads(with_plugin("info", tmp_path / "auto", "--format", "json").printed).values()
    assert "level, 1 group" in {trial["candidate"] for trial in held["selection"]["trials"]}
    assert "level, 1 group" in with_plugin("info", tmp_path / "auto").text


@pytest.mark.parametrize(("options", "named"), [
    (["--method", "rose"], ["level", "isotonic", "auto"]),
    ([setting("scaling.@calib_scalings", "rose")], ["garden.Mild.v1", "spacy-calib.VectorScaling.v1"]),
    (["--components.calib.grouping.@calib_groupings", "rose"], ["garden.Halves.v1", "spacy-calib.TFG.v1"]),
])  # fmt: skip
def test_errors_list_them(model, dev, tmp_path, options, named):
    outcome = with_plugin("fit", model, dev, tmp_path / "out", *options)
    refuses(outcome, "rose")
    assert [name for name in named if name not in outcome.text] == []


def test_a_state_that_names_a_part_of_a_missing_package_is_refused_with_its_name(model, dev, test_file, tmp_path):
    source = setting("source.@calib_sources", "spacy-calib.Softmax.v1")
    grouping = setting("grouping.@calib_groupings", "spacy-calib.SCW.v1")
    ok(with_plugin("fit", model, dev, tmp_path / "out", "--method", "level", NO_CONTEXT, source, grouping, "--silent"))
    outcome = spacy_process("calib", "evaluate", tmp_path / "out", test_file, cwd=tmp_path)
    refuses(outcome, "garden.Level.v1")  # the config names it: spaCy's E893
    config = (tmp_path / "out" / "config.cfg").read_text(encoding="utf8")
    (tmp_path / "out" / "config.cfg").write_text(config.replace("garden.Level.v1", "spacy-calib.Isotonic.v1"), encoding="utf8")
    outcome = spacy_process("calib", "evaluate", tmp_path / "out", test_file, cwd=tmp_path)
    refuses(outcome, says("C012", given="garden.Level.v1"))
