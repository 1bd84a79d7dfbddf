"""Pipelines whose components are registered by a package that nobody has imported."""

import json
import sys
from pathlib import Path

import pytest
import spacy

from spacy_calib import CalibError
from spacy_calib.pipe.pipeline import load_pipeline

REGISTERS = """
from spacy.language import Language

@Language.component("{component}")
def shout(doc):
    doc.user_data["shouted"] = doc.text.upper()
    return doc
"""


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """(name of the component, folder of a pipeline with it, folder of packages)."""

    def save(component: str, package: str, name: str) -> Path:
        packages = tmp_path / "packages"
        (packages / package).mkdir(parents=True)
        (packages / package / "__init__.py").write_text(REGISTERS.format(component=component))
        (packages / package / "meta.json").write_text(json.dumps({"lang": "xx", "name": "shouting", "version": "1.0.0"}))
        nlp = spacy.blank("xx", meta={"name": name})
        nlp.to_disk(tmp_path / "pipeline")
        config = (tmp_path / "pipeline" / "config.cfg").read_text()
        config = config.replace("pipeline = []", f'pipeline = ["{component}"]')
        (tmp_path / "pipeline" / "config.cfg").write_text(f'{config}\n[components.{component}]\nfactory = "{component}"\n')
        monkeypatch.syspath_prepend(packages)
        return tmp_path / "pipeline"

    before = set(sys.modules)
    yield save
    for module in set(sys.modules) - before:
        if module.startswith("two_"):
            del sys.modules[module]


def test_the_package_of_the_pipeline_is_imported(saved):
    """As with spaCy's own loading of a package: "xx_shouting" may be in a package of another name."""
    folder = saved("two_shout", "two_spacy_xx_shouting", "shouting")
    assert load_pipeline(str(folder))("loud").user_data["shouted"] == "LOUD"


def test_a_package_of_another_pipeline_is_not(saved):
    folder = saved("two_whisper", "two_other", "whispering")
    with pytest.raises(CalibError, match=r"C050.*'two_whisper'; install the package that does, or give a Python file .*--code"):
        load_pipeline(str(folder))
    assert "two_other" not in sys.modules
