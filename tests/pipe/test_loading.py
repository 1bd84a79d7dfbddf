"""A pipeline whose components nothing registers."""

import pytest
import spacy

from spacy_calib import CalibError
from spacy_calib.pipe.pipeline import load_pipeline


def test_a_component_that_nothing_registers_is_named(tmp_path):
    spacy.blank("xx").to_disk(tmp_path)
    config = (tmp_path / "config.cfg").read_text().replace("pipeline = []", 'pipeline = ["whisper"]')
    (tmp_path / "config.cfg").write_text(f'{config}\n[components.whisper]\nfactory = "whisper"\n')
    with pytest.raises(CalibError, match=r"C050.*'whisper'; install the package that does, or give a Python file .*--code"):
        load_pipeline(str(tmp_path))
