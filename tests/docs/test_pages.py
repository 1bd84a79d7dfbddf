"""README.md and every page of the site are run, and lead to places that exist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import srsly
from thinc.api import Config

from spacy_calib.factory import DEFAULT_CONFIG
from tests.docs.pages import DOCS, PAGES, ROOT, Block, Run, at_the_top, blocks_of, holds

NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
ADDRESS = "https://github.com/spacy-calib/spacy-calib/"
OPTIONS = set(re.findall(r"`(--[a-z-]+)`", (DOCS / "reference" / "commands.md").read_text(encoding="utf8")))
every_page = pytest.mark.parametrize("name", NAMES)
# A page is run with the one that goes on in its folder.
CONTINUED = {f"docs/tutorials/{previous}" for page in PAGES for previous in at_the_top(page, "continues")}
# Run by test_own_marginals.py, and by tests/spark, which have what they need.
ELSEWHERE = {"docs/how-to/own-marginals.md", "docs/how-to/spark.md"}


def headings(page: Path) -> set[str]:
    """The anchors of a page, as GitHub and the site name them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf8"), flags=re.M | re.S)
    titles = re.findall(r"^#+ (.+)$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"`|\*", "", title).lower()).strip().replace(" ", "-") for title in titles}


def links(page: Path) -> list[str]:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf8"), flags=re.M | re.S)
    return re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|href)="([^"]+)"', text)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ELSEWHERE | CONTINUED])
def test_a_page_runs(name, provide, tmp_path, monkeypatch):
    page = ROOT / name
    if name.startswith("docs/tutorials/"):
        monkeypatch.chdir(tmp_path)  # a tutorial makes all that it needs
    elif any(block.language in ("bash", "python") for block in blocks_of(page)):
        monkeypatch.syspath_prepend(provide(at_the_top(page, "needs")))  # a reader's files can be imported
    Run().page(page)


@every_page
def test_a_page_leads_to_places_that_exist(name):
    page = ROOT / name
    for link in links(page):
        path, _, anchor = link.partition("#")
        if path.startswith(ADDRESS):
            found = re.fullmatch(rf"{ADDRESS}(?:blob|tree)/main/(.+)", path)
            target = ROOT / found[1] if found else None
        elif path.startswith("https://raw.githubusercontent.com/spacy-calib/spacy-calib/main/"):
            target = ROOT / path.split("/main/", 1)[1]
        elif path.startswith(("https:", "http:")):
            continue
        else:
            target = page.parent / path if path else page
        if target is None:
            continue
        assert target.exists(), f"{name}: {link}"
        assert not anchor or anchor in headings(target), f"{name}: {link}"


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "docs/how-it-works.md"])
def test_modules_that_a_page_names_exist(name):
    text = re.sub(r"^```.*?^```$", "", (ROOT / name).read_text(encoding="utf8"), flags=re.M | re.S)
    named = re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:/|\.py))`", text)
    assert len(named) > 5
    for path in set(named) - {"site/", "htmlcov/", "demo/"}:  # which `make` makes
        assert (ROOT / "spacy_calib" / path).exists() or (ROOT / path).exists(), path


def test_every_page_is_in_the_navigation():
    named = re.findall(r"[\w-]+(?:/[\w-]+)*\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf8"))
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    assert set(named) == pages | {"contributing.md", "changelog.md"}


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf8").splitlines()) <= 160


def test_the_config_page_shows_the_default_config():
    (block,) = (block for block in blocks_of(DOCS / "reference" / "config.md") if block.language == "ini")
    shown = Config().from_str(block.text)["components"]["calib"]
    assert shown.pop("factory") == "calib"
    shown["scorer"].pop("n_bins")
    assert shown == DEFAULT_CONFIG


def test_the_page_of_the_commands_is_what_they_say():
    """Else run `make reference`. In a process of its own: others may have registered something here."""
    command = [sys.executable, ROOT / "scripts" / "docs_commands.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr


def test_the_project_of_the_page_is_one(tmp_path):
    (block,) = (block for block in blocks_of(DOCS / "how-to" / "production.md") if block.title == "project.yml")
    (tmp_path / "project.yml").write_text(block.text)
    commands = srsly.read_yaml(tmp_path / "project.yml")["commands"]
    options = set(re.findall(r"(?<= )--[a-z-]+", " ".join(line for command in commands for line in command["script"])))
    assert options <= OPTIONS


def test_options_that_pages_speak_of_exist():
    """`--name` in running text is an option of one of our commands."""
    for name in NAMES:
        text = (ROOT / name).read_text(encoding="utf8")
        for option in re.findall(r"`(--[a-z][a-z-]+)[` ]", text):
            assert option in OPTIONS | {"--help"}, f"{name}: {option}"


def test_the_method_that_contributing_adds_works():
    """Its file, as the diff has it: a line is learned exactly, and a weight of two is a pair twice."""
    diff = next(block for block in blocks_of(ROOT / "CONTRIBUTING.md") if "recalibrators/line.py" in block.text)
    added = [line[1:] for line in diff.text.splitlines() if line.startswith("+") and not line.startswith("+++")]
    names: dict[str, Any] = {
        "__name__": "spacy_calib.calibration.recalibrators.line",
        "__package__": "spacy_calib.calibration.recalibrators",
    }
    exec("\n".join(added), names)
    scores, hits = np.array([0.2, 0.2, 0.6, 0.6]), np.array([0, 1, 1, 1])
    assert names["make_line"]().fit(scores, hits).predict([0.2, 0.4, 0.6, 1.0]) == pytest.approx([0.5, 0.75, 1.0, 1.0])
    twice = names["make_line"]().fit(np.append(scores, 0.2), np.append(hits, 0)).predict([0.3])
    assert names["make_line"]().fit(scores, hits, weights=[2.0, 1.0, 1.0, 1.0]).predict([0.3]) == pytest.approx(twice)


@pytest.mark.parametrize("wrong", ["of 60 tokens", "0.9 and more"])
def test_what_is_not_printed_is_noticed(wrong):
    block = Block(ROOT / "README.md", "text", "", "prints", f"Calibrated on\n...\n{wrong}\n", 1)
    with pytest.raises(AssertionError, match="this is not printed"):
        Run(printed="Calibrated on 80 tokens, of 70 tokens 0.5 and more").compare(block)


def test_numbers_may_differ_a_little_and_words_not():
    assert holds(["Raw", "0.150", "of", "1,857", "pairs"], ["0.151", "of", "1,860", "pairs"])
    assert not holds(["Raw", "0.150", "of", "1,857", "pairs"], ["0.150", "of", "1,857", "tokens"])
    assert not holds(["Raw", "0.150"], ["0.250"])
