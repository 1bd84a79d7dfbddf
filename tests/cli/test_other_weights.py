from pathlib import Path

import pytest
import spacy

from tests.cli.conftest import calib, json_of, ok
from tests.conftest import examples_for

pytestmark = pytest.mark.filterwarnings("ignore:.*CW04")


@pytest.fixture
def trained_since(calibrated, tmp_path) -> Path:
    nlp = spacy.load(calibrated)
    with nlp.select_pipes(enable=["tok2vec", "tagger"]):
        nlp.update(examples_for(nlp, 4, seed=5), sgd=nlp.resume_training())
    nlp.to_disk(tmp_path / "trained_since")
    return tmp_path / "trained_since"


def test_what_each_command_says(trained_since, calibrated, test_file, tmp_path):
    assert "OTHER THAN AT THE FIT" in calib("info", trained_since).text
    assert "those of the fit" in calib("info", calibrated).text
    for command in (["evaluate", "-o", tmp_path / "page.html"], ["expect"]):
        outcome = ok(calib(command[0], trained_since, test_file, *command[1:]))
        assert "OTHER WEIGHTS" in outcome.text
    assert "OTHER WEIGHTS" in (tmp_path / "page.html").read_text(encoding="utf8")


def test_expect_does_not_say_like_the_fit_data(trained_since, calibrated, test_file):
    outcome = calib("expect", trained_since, test_file)
    assert "Like the fit data" not in outcome.text
    assert "DO NOT TRUST" in outcome.text
    result = json_of("expect", trained_since, test_file)
    assert result["weights_changed"] is True
    assert result["trusted"] is False
    assert result["drift"]["verdict"] == "fitted with other weights"
    assert json_of("evaluate", calibrated, test_file)["calib"]["weights_changed"] is False
