"""`spacy calib init-config`: all settings of a calib pipe as a file that `fit --config` takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from thinc.api import Config

from spacy_calib.cli.fitting.settings import settings_from_file
from spacy_calib.cli.init_config import config_text
from spacy_calib.pipe.factory import DEFAULT_CONFIG
from tests.cli.conftest import calib, refuses

CONFIGS = Path(__file__).parents[2] / "configs"


def block(text: str, name: str = "calib") -> dict:
    return Config().from_str(text)["components"][name]


def test_every_setting_of_the_pipe_and_of_its_parts_is_there():
    outcome = calib("init-config", "-", "--method", "histogram")
    assert outcome.code == 0
    held = block(outcome.printed)
    assert set(held) == {"factory", *DEFAULT_CONFIG}
    assert held["recalibrator"] == {"@calib_recalibrators": "spacy-calib.Histogram.v1", "n_bins": 10, "bin_size": None}
    assert held["source"]["component"] == "tagger"


@pytest.mark.parametrize("method", ["isotonic", "histogram", "scaling-binning"])
def test_the_configs_of_the_repository_are_what_it_writes(method):
    """What they leave out has the default."""
    held = block(calib("init-config", "-", "--method", method).printed)
    _, settings = settings_from_file(CONFIGS / f"tfg_{method.replace('-', '_')}.cfg")
    assert held == block(config_text("calib", settings))


def test_fit_takes_what_it_wrote(model, dev, tmp_path):
    config = tmp_path / "mine.cfg"
    wrote = calib("init-config", config, "--method", "platt", "--components.calib.grouping.n_groups", "2")
    assert wrote.code == 0
    assert f"--config {config}" in wrote.text.replace("\n", "")
    outcome = calib("fit", model, dev, tmp_path / "out", "--config", config)
    assert outcome.code == 0, outcome.printed
    fitted = Config().from_disk(tmp_path / "out" / "config.cfg")["components"]["calib"]
    assert fitted["grouping"]["n_groups"] == 2
    assert fitted["recalibrator"]["@calib_recalibrators"] == "spacy-calib.Platt.v1"


def test_an_older_file_is_kept_without_force(tmp_path):
    config = tmp_path / "mine.cfg"
    config.write_text("old")
    refuses(calib("init-config", config), "exists already")
    assert config.read_text() == "old"
    assert calib("init-config", config, "--force", "--silent").printed == ""
    assert block(config.read_text())["factory"] == "calib"


def test_a_setting_that_no_pipe_has_is_refused(tmp_path):
    refuses(calib("init-config", tmp_path / "mine.cfg", "--components.calib.groups", "3"), "no setting 'groups'")
    assert not (tmp_path / "mine.cfg").exists()


def test_what_is_not_registered_is_refused_with_what_is():
    outcome = calib("init-config", "-", "--components.calib.grouping.@calib_groupings", "rose")
    refuses(outcome, "The setting grouping of the pipe must be a function of the registry calib_groupings, but 'rose' is none")
    assert "spacy-calib.OneVsRest.v1, spacy-calib.SCW.v1" in outcome.text
