"""A fitted pipeline scores with few modules: what fits, evaluates or plugs in is not imported."""

import re

from tests.docs.pages import ROOT
from tests.loaded import loaded_modules, traced_files


def test_of_plugins_only_factories_are_imported(calibrated):
    names = {name for name in loaded_modules(calibrated) if name.startswith("spacy_calib.plugins.")}
    assert {name.split(".")[3] for name in names if name.count(".") > 2} == {"factory"}


def test_contributing_lists_the_modules_that_a_doc_runs_through(calibrated):
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf8")
    section = page.partition("## One Doc, module by module")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\S+\.py)` \|", section, re.M) == traced_files(calibrated)
