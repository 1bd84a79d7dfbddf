"""Is memory flat over very many short documents?

    python scripts/long_runs.py --documents 1000000

Makes up short documents in which new words keep coming, trains a small tagger on some and calibrates it, and runs `calib watch`, `count`, `expect`,
`rank --top 100`, `select` and, where it is there, `apply` over all of them, each in a process of its own. The resident memory of that process is looked
at ten times a second; a row says the most of it while the first tenth of the documents was read, while the last was, and at the end (the sums are told
then), and by how much the last tenth is above the first. How far a command is, is told by where it stands in the file of texts (Linux only). Exit code 1:
one is more than --most above.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

TAGS = {
    "DT": ["the", "a", "this"],
    "JJ": ["old", "red", "light"],
    "NN": ["dog", "duck", "run"],
    "VB": ["sees", "eats", "light"],
}
PATTERN = ("DT", "JJ", "NN", "VB", "DT", "NN")
NEW = 0.1  # of the nouns: words that were never there before
COMMANDS: dict[str, list[str]] = {
    "watch": [],
    "count": ["--query", "NN"],
    "expect": [],
    "rank": ["--top", "100"],
    "select": ["--top", "100"],
    "apply": ["{output}"],
}
_EVERY = 0.1  # seconds


class Row(NamedTuple):
    """What one command needed: seconds, and MiB in the first tenth, the last, and at the end."""

    command: str
    seconds: float
    first: float
    last: float
    end: float

    @property
    def more(self) -> float:
        return self.last / self.first - 1


def sentence(rng: random.Random, number: int) -> list[tuple[str, str]]:
    """(word, tag) of one document; its number makes new words of it."""
    words = [(rng.choice(TAGS[tag]), tag) for tag in PATTERN[: rng.randint(3, len(PATTERN))]]
    return [
        (f"{word}{number:x}{'s' * i}" if tag == "NN" and rng.random() < NEW else word, tag)
        for i, (word, tag) in enumerate(words)
    ]


def write_texts(path: Path, n: int) -> None:
    rng = random.Random(1)
    with path.open("w", encoding="utf-8") as lines:
        for number in range(n):
            text = " ".join(word for word, _ in sentence(rng, number))
            lines.write(json.dumps({"text": text, "id": number}) + "\n")


def make_pipeline(folder: Path) -> Path:
    """A tagger trained on made-up sentences, calibrated on others."""
    import spacy
    from spacy.tokens import Doc, DocBin
    from spacy.training import Example

    from spacy_calib.cli import app

    nlp, rng = spacy.blank("en"), random.Random(0)

    def gold(n: int, first: int) -> list[Doc]:
        made = [sentence(rng, first + i) for i in range(n)]
        return [
            Doc(nlp.vocab, words=[w for w, _ in one], tags=[t if rng.random() < 0.9 else "NN" for _, t in one]) for one in made
        ]

    nlp.add_pipe("tagger")
    examples = [Example(nlp.make_doc(doc.text), doc) for doc in gold(200, 10**9)]
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(4):
        nlp.update(examples, sgd=optimizer)
    nlp.to_disk(folder / "model")
    DocBin(docs=gold(300, 2 * 10**9)).to_disk(folder / "dev.spacy")
    with contextlib.redirect_stdout(io.StringIO()):
        run(app, ["fit", str(folder / "model"), str(folder / "dev.spacy"), str(folder / "calibrated"), "--silent"])
    return folder / "calibrated"


def run(app: object, arguments: Sequence[str]) -> None:
    """RAISES SystemExit: the command failed."""
    import typer

    try:
        typer.main.get_command(app)(list(arguments), standalone_mode=False)  # type: ignore[arg-type]
    except SystemExit as end:
        if end.code:
            raise


def in_child(arguments: Sequence[str]) -> None:
    from spacy_calib.cli import app

    with contextlib.redirect_stdout(io.StringIO()):
        run(app, arguments)


def resident(process: int) -> float:
    """MiB."""
    with open(f"/proc/{process}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
