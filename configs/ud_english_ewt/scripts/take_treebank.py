"""Lay the three splits of the treebank where the project wants them, as plain CoNLL-U.

python scripts/take_treebank.py ASSETS OUTPUT

From $SPACY_CALIB_DATA/ud_english_ewt/{train,dev,test}.conllu.gz where that variable is set, else from the assets' folder.
"""

import gzip
import os
import shutil
from pathlib import Path

import typer
from wasabi import msg

SPLITS = ("train", "dev", "test")


def main(assets: Path, output: Path) -> None:
    """Take the splits from the data folder or from ASSETS, and write them to OUTPUT."""
    data = os.environ.get("SPACY_CALIB_DATA")
    if data:
        found = {split: Path(data) / "ud_english_ewt" / f"{split}.conllu.gz" for split in SPLITS}
        hint = "SPACY_CALIB_DATA must be the whole path of a folder that holds ud_english_ewt; unset it to use the assets."
    else:
        found = {split: assets / f"en_ewt-ud-{split}.conllu" for split in SPLITS}
        hint = "Run 'python -m spacy project assets' first, or set SPACY_CALIB_DATA."
    for path in found.values():
        if not path.is_file():
            msg.fail(f"The treebank is not there: {path}", hint, exits=1)
    output.mkdir(parents=True, exist_ok=True)
    for split, path in found.items():
        with (gzip.open if data else open)(path, "rb") as source, (output / f"{split}.conllu").open("wb") as target:
            shutil.copyfileobj(source, target)
    msg.good(f"Took the treebank from {next(iter(found.values())).parent}")


if __name__ == "__main__":
    typer.run(main)
