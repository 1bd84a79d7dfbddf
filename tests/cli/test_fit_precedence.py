"""Where the settings of `spacy calib fit` come from: option, dotted setting, config file, the pipeline's own pipe, defaults."""

import copy

import pytest
import spacy

from spacy_calib.cli.fitting.new_calib import old_block
from spacy_calib.cli.fitting.settings import DEFAULTS, merge_settings, pipe_settings
from spacy_calib.cli.shared.options import split_overrides
from spacy_calib.errors import CalibError
from spacy_calib.pipe.factory import BLOCKS, DEFAULT_CONFIG
from tests.cli.conftest import calib, ok, refuses, setting
from tests.conftest import revive

TFG, BETA, HISTOGRAM = "spacy-calib.TFG.v1", "spacy-calib.Beta.v1", "spacy-calib.Histogram.v1"
BY_HAND = {"grouping": {"@calib_groupings": TFG, "n_groups": 3}, "recalibrator": {"@calib_recalibrators": BETA}}
AUTO = {"n_groups": [3]}
OWN = {**DEFAULT_CONFIG, **BY_HAND, "threshold": 0.02}


@pytest.fixture
def by_hand(changed_model):
    """A pipeline with a calib pipe that somebody put there, not fitted."""
    return changed_model(lambda nlp: nlp.add_pipe("calib", after="tagger", config={**BY_HAND, "threshold": 0.02}))


def fitted(path, name="calib"):
    return spacy.load(path).get_pipe(name)


def settings_of(options, overrides=None, base=OWN):
    return pipe_settings(("calib", base), options, overrides)[1]


def test_the_block_of_the_pipeline_is_the_default(by_hand, dev, tmp_path):
    outcome = ok(calib("fit", by_hand, dev, tmp_path / "out"))
    assert "Settings that were not given are those of the pipeline's calib pipe 'calib'" in outcome.text
    pipe = fitted(tmp_path / "out")
    assert (len(pipe.tokens.maps.groups), pipe.fit_info.method, pipe.threshold) == (3, BETA, 0.02)


def test_an_option_and_a_dotted_setting_replace_single_settings_of_it(by_hand, dev, tmp_path):
    dotted = ["--components.calib.grouping.n_groups", 2, "--components.calib.normalize"]
    ok(calib("fit", *dotted[:2], by_hand, dev, tmp_path / "out", setting("threshold", 0.05), dotted[2], "--silent"))
    pipe = fitted(tmp_path / "out")
    assert (len(pipe.tokens.maps.groups), pipe.fit_info.method, pipe.threshold, pipe.normalize) == (2, BETA, 0.05, True)
    # What was fitted is the default of the next fit.
    ok(calib("fit", tmp_path / "out", dev, tmp_path / "again", "--silent"))
    assert fitted(tmp_path / "again").fit_info.table == pipe.fit_info.table


@pytest.mark.parametrize(("given", "status", "sentence"), [
    (["--gruops", 3], 2, "--gruops"),
    (["--components", 3], 2, "--components"),
    (["-Z"], 2, "-Z"),
    (["one_too_many"], 2, "one_too_many"),
    (["--components.tagger.threshold", 0.1], 1, "--components.tagger.threshold is no setting of the pipe 'calib', which is being fitted"),
    (["--training.dropout", 0.1], 1, "its settings begin with --components.calib."),
    (["--components.calib", 3], 1, "--components.calib is no setting"),
    (["--components.calib.", 3], 1, "--components.calib. is no setting"),
    (["--components.calib.treshold", 0.1], 1, "treshold"),
    (["--components.calib.grouping.n_gruops", 3], 1, "n_gruops"),
    (["--components.calib.grouping.n_groups", "many"], 1, "many"),
    (["--components.calib.scaling.ridge", 0.1], 1, "scaling is {'ridge': 0.1}, but must be a block with @calib_scalings"),
    (["--components.calib.scaling", ""], 1, "scaling is '', but must be a block with @calib_scalings"),
    (["--components.calib.normalize", "kept"], 1, "calib -> normalize: at root: 'kept' is not <class 'bool'>"),
    (["--components.calib.source", "null"], 1, "source is None, but must be a block with @calib_sources"),
    (["--components.calib.source.component", 3], 1, "'3'"),
])  # fmt: skip
def test_what_is_mistyped_is_refused_and_nothing_is_written(given, status, sentence, model, dev, tmp_path):
    refuses(calib("fit", model, dev, tmp_path / "out", *given), sentence, code=status)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("base", [OWN, DEFAULTS])
def test_settings_are_not_changed_in_place(base):
    before = copy.deepcopy(base)
    settings_of({"groups": 7, "method": "histogram", "component": "tagger"}, {"components.calib.tag_offsets": True}, base)
    assert base == before


def test_without_a_pipe_the_defaults_count():
    name, settings = pipe_settings(None, {})
    assert (name, settings) == ("calib", DEFAULTS)


def test_an_option_counts_before_a_dotted_setting():
    settings = settings_of({"groups": 7}, {"components.calib.grouping.n_groups": 6, "components.calib.threshold": 0.3})
    assert (settings["grouping"]["n_groups"], settings["threshold"]) == (7, 0.3)


def test_other_settings_of_a_function_stay_with_it_and_go_with_it():
    binned = {**OWN, "recalibrator": {"@calib_recalibrators": HISTOGRAM, "n_bins": None, "bin_size": 50}}
    assert settings_of({}, base=binned)["recalibrator"]["bin_size"] == 50
    assert settings_of({"method": "histogram"}, base=binned)["recalibrator"]["bin_size"] == 50
    seven = {"components.calib.scorer.n_bins": 7}
    assert settings_of({"method": "histogram"}, seven)["recalibrator"] == {"@calib_recalibrators": HISTOGRAM, "n_bins": 7}
    assert settings_of({}, seven, base=binned)["recalibrator"] == binned["recalibrator"]
    assert settings_of({"method": "beta"}, base=binned)["recalibrator"] == {"@calib_recalibrators": BETA}
    assert settings_of({"method": "histogram"})["recalibrator"] == {"@calib_recalibrators": HISTOGRAM, "n_bins": 10}
    other = {"components.calib.recalibrator.@calib_recalibrators": BETA}
    assert settings_of({}, other, base=binned)["recalibrator"] == {"@calib_recalibrators": BETA}


@pytest.mark.parametrize(("options", "overrides", "stays"), [
    ({}, {}, True),
    ({}, {"components.calib.threshold": 0.1}, True),
    ({"method": "auto"}, {}, True),
    ({}, {"components.calib.selection.n_groups": [4]}, True),
    ({"method": "isotonic"}, {}, False),
    ({"groups": 4}, {}, False),
    ({}, {"components.calib.scaling.@calib_scalings": "spacy-calib.VectorScaling.v1"}, False),
    ({}, {"components.calib.tag_offsets": True}, False),
    ({}, {"components.calib.grouping.n_groups": 4}, False),
    ({}, {"components.calib.selection": None}, False),
])  # fmt: skip
def test_a_choice_on_the_data_ends_where_its_parts_are_given_by_hand(options, overrides, stays):
    settings = settings_of(options, overrides, base={**OWN, "selection": AUTO})
    assert (settings["selection"] is not None) == stays
    if stays:
        assert settings["selection"] == {**AUTO, "n_groups": overrides.get("components.calib.selection.n_groups", [3])}


@pytest.mark.parametrize(
    ("block", "setting", "registered"),
    [("grouping", "n_groups", "TFG"), ("recalibrator", "n_bins", "Histogram"), ("scaling", "ridge", "MatrixScaling")],
)
def test_what_auto_chooses_cannot_be_given_beside_it(block, setting, registered):
    given = {
        f"components.calib.{block}.{setting}": 4,
        f"components.calib.{block}.{BLOCKS[block]}": f"spacy-calib.{registered}.v1",
    }
    with pytest.raises(CalibError, match=f"--components.calib.{block}.* must be left out with --method auto"):
        settings_of({"method": "auto"}, given)


def test_neither_can_groups_and_tag_offsets():
    for options, overrides in (({"groups": 3}, {}), ({}, {"components.calib.tag_offsets": True})):
        with pytest.raises(CalibError, match="must be left out with --method auto, which chooses it"):
            settings_of({"method": "auto", **options}, overrides)


def test_a_config_stands_in_place_of_the_pipelines_block(by_hand, dev, tmp_path):
    block = '[components]\n\n[components.calib]\nfactory = "calib"\n\n[components.calib.grouping]\n@calib_groupings = "spacy-calib.SCW.v1"\n'
    (tmp_path / "fit.cfg").write_text(block)
    options = ["--config", tmp_path / "fit.cfg", "--method", "platt"]
    ok(calib("fit", by_hand, dev, tmp_path / "out", *options, "--silent"))
    pipe = fitted(tmp_path / "out")
    assert (len(pipe.tokens.maps.groups), pipe.fit_info.method, pipe.threshold) == (1, "spacy-calib.Platt.v1", 0.01)


@pytest.mark.parametrize(("attr", "component", "name"), [
    (None, None, "first"), (None, "tagger", "second"), (None, "senter", None), ("sure", None, "third"),
    ("sure", "tagger", "third"), ("new", None, None), ("new", "tagger", None),
])  # fmt: skip
def test_the_pipe_is_found_by_its_prefix_or_by_what_it_reads(attr, component, name, trained_bytes):
    nlp = revive(trained_bytes)
    for pipe, prefix, source in (
        ("second", "other", "tagger"),
        ("first", "calib", "morphologizer"),
        ("third", "sure", "tagger"),
    ):
        read = {"@calib_sources": "spacy-calib.Softmax.v1", "component": source}
        nlp.add_pipe("calib", name=pipe, config={"attr": prefix, "source": read})
    found = old_block(nlp, attr, component)
    assert (found and found[0]) == name
    if found:
        assert "factory" not in found[1]
        assert found[1]["attr"] == nlp.get_pipe(name).attr


def test_the_first_pipe_of_the_default_component_counts_where_none_has_the_default_prefix(trained_bytes):
    nlp = revive(trained_bytes)
    nlp.add_pipe("calib", name="other", config={"attr": "other"})
    assert old_block(nlp)[0] == "other"


@pytest.mark.parametrize(("args", "plain", "settings"), [
    (["a", "--b", "c"], ["a", "--b", "c"], {}),
    (["--b.c", "1", "a"], ["a"], {"b.c": 1}),
    (["a", "--b.c=NaN", "d"], ["a", "d"], {"b.c": "NaN"}),
    (["a", "--b.c", "--d"], ["a", "--d"], {"b.c": True}),
    (["--out=a.b", "--x", "--b.@c", "d.v1"], ["--out=a.b", "--x"], {"b.@c": "d.v1"}),
    (["a.b", "-c", "x.cfg", "--", "--b.c", "1"], ["a.b", "-c", "x.cfg", "--", "--b.c", "1"], {}),
])  # fmt: skip
def test_dotted_settings_are_taken_out_of_a_command_line(args, plain, settings):
    assert split_overrides(args) == (plain, settings)


def test_a_block_is_made_where_there_was_none():
    given = {("scaling", "ridge"): 0.1, ("scaling", "@calib_scalings"): "spacy-calib.VectorScaling.v1"}
    made = merge_settings({"scaling": None}, given)
    assert made == {"scaling": {"@calib_scalings": "spacy-calib.VectorScaling.v1", "ridge": 0.1}}
