"""UD English EWT as the documentation has it: dev and test, converted by `spacy convert -n 10`."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

from tests.cli.conftest import spacy_command
from tests.conftest import made_once


def write_ewt(shared_data: Path, folder: Path) -> None:
    """Write dev.spacy and test.spacy into a folder."""
    for name, content in made_once("ewt", lambda: _convert(shared_data / "ud_english_ewt")).items():
        (folder / name).write_bytes(content)


def _convert(source: Path) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for split in ("dev", "test"):
            (folder / f"{split}.conllu").write_bytes(gzip.decompress((source / f"{split}.conllu.gz").read_bytes()))
            assert spacy_command("convert", "-c", "conllu", "-n", "10", folder / f"{split}.conllu", folder).code == 0
        return {path.name: path.read_bytes() for path in folder.glob("*.spacy")}
