"""scripts/docs_site.py: what the hook of MkDocs makes of links. `make docs` builds the site itself."""

import importlib
import sys
from importlib.util import find_spec
from types import ModuleType

import pytest

from spacy_calib.about import __url__ as HOME

LINKS = {
    ("how-to/a.md", "[p](../../configs/train_morphologizer.cfg#x)"): f"[p]({HOME}/blob/main/configs/train_morphologizer.cfg#x)",
    ("how-to/a.md", "[p](../../configs)"): f"[p]({HOME}/tree/main/configs)",
    ("how-to/a.md", "[p](../../CONTRIBUTING.md#tests)"): "[p](../contributing.md#tests)",
    ("index.md", "[p](how-to/adapt.md#x) ![p](view.png)"): "[p](how-to/adapt.md#x) ![p](view.png)",
    ("contributing.md", "[p](docs/how-it-works.md)"): "[p](how-it-works.md)",
    ("changelog.md", "![p](docs/view.png) [c](CITATION.cff)"): f"![p](view.png) [c]({HOME}/blob/main/CITATION.cff)",
    ("index.md", "[p](https://spacy.io) [q](#a) [r](mailto:a@b.c)"): "[p](https://spacy.io) [q](#a) [r](mailto:a@b.c)",
    ("index.md", "[p](gone.md) [q](../scripts/gone.py)"): "[p](gone.md) [q](../scripts/gone.py)",
    (
        "index.md",
        '<picture><source media="(prefers-color-scheme: dark)" srcset="d.svg"><img src="l.svg" alt="p"></picture>',
    ): '<img src="l.svg#only-light" alt="p"><img src="d.svg#only-dark" alt="p">',
    ("index.md", "```python\nf[0](../setup.cfg)\n```"): "```python\nf[0](../setup.cfg)\n```",
}


@pytest.fixture
def hook(monkeypatch) -> ModuleType:
    """The hook, beside an empty MkDocs where that is not installed."""
    if find_spec("mkdocs") is None:
        for name, names in (("mkdocs", ""), ("mkdocs.exceptions", "PluginError"), ("mkdocs.structure.files", "File Files")):
            module = ModuleType(name)
            vars(module).update(dict.fromkeys(names.split(), object))
            monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.setitem(sys.modules, "mkdocs.structure", ModuleType("mkdocs.structure"))
    monkeypatch.delitem(sys.modules, "docs_site", raising=False)
    return importlib.import_module("docs_site")


@pytest.mark.parametrize(("page", "text"), LINKS)
def test_links_out_of_the_site_are_whole_addresses_and_others_lead_to_its_pages(hook, page, text):
    assert hook.links_of_site(text, page) == LINKS[page, text]


@pytest.mark.parametrize(("name", "home"), [
    ("spacy_calib.fit", "spacy_calib.cli.api.fit"),
    # Their module says spacy_calib.
    ("spacy_calib.TagCalibrator", "spacy_calib.plugins.arrays.tag_calibrator.TagCalibrator"),
    ("spacy_calib.CalibError", "spacy_calib.errors.CalibError"),
])  # fmt: skip
def test_a_public_name_is_documented_where_it_is_defined(hook, name, home):
    assert hook.home_of(name) == home


def test_llms_txt_says_what_spacy_does_not_have_and_where_the_pages_are(hook):
    config = {
        "site_name": "spacy-calib", "site_description": "Calibrated scores", "site_url": "https://a.b/", "nav": [{"Start": [{"Home": "index.md"}]}],
    }  # fmt: skip
    lines = hook.llms_txt(config).splitlines()
    assert lines[0] == "# spacy-calib"
    assert "`ent.score_`" in lines[4]
    assert lines[-1].startswith("- [Home](https://a.b/index.html): ")
    assert len(lines[-1]) > 60


def test_the_first_sentence_of_a_page_is_its_text_without_marks(hook, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- data: a as b -->\n\n# Title\n\n![picture](a.png)\n\nScores of [entities](x.md) are **right**. More.\n"
    )
    assert hook.first_sentence(page) == "Scores of entities are right."
