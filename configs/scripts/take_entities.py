"""Lay the splits of an entity corpus where a project wants them: FORM<TAB>TAG rows, an empty line after each sentence.

python take_entities.py NAME ASSETS OUTPUT

From $SPACY_CALIB_DATA/NAME/{train,dev,test}.conll.gz where that variable is set, else made from the files of the corpus's own
project in ASSETS. OUTPUT gets train.conll, dev.conll and test.conll. NAME is wnut17 or wikineural_en.
"""

import gzip
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import typer
from wasabi import msg

SPLITS = ("train", "dev", "test")
# The file of each split, and how many tenths of its sentences are the split's: 1 is every tenth (the tenth first), 9 the rest.
SOURCES = {
    "wnut17": {"train": ("wnut17train.conll", 10), "dev": ("emerging.dev.conll", 10), "test": ("emerging.test.annotated", 10)},
    "wikineural_en": {"train": ("val.conllu", 9), "dev": ("val.conllu", 1), "test": ("test.conllu", 10)},
}


def read_sentences(path: Path) -> Iterator[list[str]]:
    """The rows of each sentence, cut down to their last two columns; a line of nothing but white space ends a sentence."""
    rows: list[str] = []
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.strip():
                rows.append("\t".join(line.rstrip("\n").split("\t")[-2:]))
            elif rows:
                yield rows
                rows = []
    if rows:
        yield rows


def belongs(index: int, tenths: int) -> bool:
    """Whether the sentence of this index (from 0) is one of that many tenths of its file."""
    return tenths == 10 or (index % 10 == 9) == (tenths == 1)


def main(name: str, assets: Path, output: Path) -> None:
    """Take the splits of NAME from the data folder or from ASSETS, and write them to OUTPUT."""
    if name not in SOURCES:
        msg.fail(f"There is no corpus '{name}'; there are {', '.join(SOURCES)}.", exits=1)
    data = os.environ.get("SPACY_CALIB_DATA")
    if data:
        found = {split: Path(data) / name / f"{split}.conll.gz" for split in SPLITS}
        hint = f"SPACY_CALIB_DATA must be the whole path of a folder that holds {name}; unset it to use the assets."
    else:
        found = {split: assets / file for split, (file, _) in SOURCES[name].items()}
        hint = "Run 'python -m spacy project assets' first, or set SPACY_CALIB_DATA."
    for path in found.values():
        if not path.is_file():
            msg.fail(f"The corpus is not there: {path}", hint, exits=1)
    output.mkdir(parents=True, exist_ok=True)
    for split, path in found.items():
        if data:
            with gzip.open(path, "rb") as source, (output / f"{split}.conll").open("wb") as target:
                shutil.copyfileobj(source, target)
            continue
        with (output / f"{split}.conll").open("w", encoding="utf-8") as file:
            for i, rows in enumerate(read_sentences(path)):
                if belongs(i, SOURCES[name][split][1]):
                    file.write("\n".join(rows) + "\n\n")
    msg.good(f"Took {name} from {next(iter(found.values())).parent}")


if __name__ == "__main__":
    typer.run(main)
