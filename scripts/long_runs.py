"""Is memory flat over very many short documents?

    python scripts/long_runs.py --documents 1000000
    python scripts/long_runs.py --documents 100000 --commands count rank
    python scripts/long_runs.py --documents 100000 --commands variants "select --order margin --max-words 500"

Makes up short documents in which new words keep coming, trains a small tagger on some and calibrates it, and runs `calib count`, `expect`,
`rank --top 100` and `select --top 100` over all of them, each in a process of its own. --commands takes any of these, a command with options of
its own, in quotes ({gold} stands for labelled documents, {folder} for one to write to), or "variants": those below, some of which keep numbers of every document
or unit; or "nlp.pipe", which is spaCy without spacy-calib, in memory zones of 1,000 documents. A component in front of the tagger counts the documents
and looks at the resident memory of the process. A row says the most of it while the first tenth of the documents was read, while the third was, and while the last
was; by how much the last is above the first; the bytes a document from the third tenth to the last; and the most at any time: the sums are told at the end.
Exit code 1: the last tenth of one needs more than --most above the first.
Among the first documents are those from which the tokenizer learns (10,000), and the first blocks of scores (262,144 tokens each). Memory is at its height when the
third block is read, which is after 120,000 of these documents: commands that look at blocks (rank, select, expect) have to be looked at from the third tenth of a million on; their last
tenth is above the first by more than --most.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import io
import json
import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import spacy
import typer
from frame import head, peak_mib, resident_mib, row
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example

import spacy_calib
from spacy_calib.cli import calib_cli, command_names
from spacy_calib.doc.zones import LEARNED_FROM, memory_zone

WORDS = {
    "DT": ["the", "a", "this"], "JJ": ["old", "red", "light"], "NN": ["dog", "duck", "run"], "VB": ["sees", "eats", "light"],
}  # fmt: skip
PATTERN = ("DT", "JJ", "NN", "VB", "DT", "NN")
NEW = 0.5  # of the nouns: words that were never there before
COMMANDS: dict[str, list[str]] = {
    "count": ["--query", "NN"],
    "expect": [],
    "rank": ["--top", "100"],
    "select": ["--top", "100"],
}
# Those that write a queue of all units grow with it; some others keep numbers of every document or unit, see docs/research/benchmarks.md.
VARIANTS = (
    "expect --gold {gold}", "rank --order random --top 100", "rank --top 100 --format label-studio --output {folder}/queue.json",
    "rank --output {folder}/queue.jsonl", "select --order random", "select --max-words 1000", "select --per-doc 1",
    "select --exclude {gold}", "select --for adapt", "count --query NN --query JJ",
)  # fmt: skip
_SAMPLES, _OF_A_ZONE = 200, 1000
ALONE = "nlp.pipe"


class Seen:
    """What the component in front saw of the running command: it keeps a few numbers, so that it does not grow itself.

    every (int): Documents between two looks. documents (int): Read so far. memory (list[float]): MiB at each look.
    """

    def begin(self, every: int) -> None:
        self.every, self.documents, self.memory = every, 0, list[float]()


_SEEN = Seen()
_SEEN.begin(1)


class Needed(NamedTuple):
    """What one command needed: seconds, and MiB in the first tenth, in the third, in the last, and at most."""

    command: str
    seconds: float
    first: float
    third: float
    last: float
    most: float

    @property
    def more(self) -> float:
        return self.last / self.first - 1

    def a_document(self, n: int) -> float:
        """Bytes that each of n documents took, from the third tenth to the last."""
        return (self.last - self.third) * 2**20 / (0.7 * n)


@Language.component("long_runs_memory")
def look_at_memory(doc: Doc) -> Doc:
    """Notes the resident memory now and then."""
    if _SEEN.documents % _SEEN.every == 0:
        _SEEN.memory.append(resident_mib())
    _SEEN.documents += 1
    return doc


def sentence(rng: random.Random, number: int) -> list[tuple[str, str]]:
    """(word, tag) of one document; its number makes new words of it."""
    tags = PATTERN[: rng.randint(3, len(PATTERN))]
    return [(f"x{number:x}" if tag == "NN" and rng.random() < NEW else rng.choice(WORDS[tag]), tag) for tag in tags]


def write_texts(path: Path, n: int) -> None:
    rng = random.Random(1)
    with path.open("w", encoding="utf-8") as lines:
        for number in range(n):
            lines.write(json.dumps({"text": " ".join(word for word, _ in sentence(rng, number)), "id": number}) + "\n")


def make_pipeline(folder: Path) -> Path:
    """A tagger trained on made-up sentences, a tenth of whose labels are wrong; calibrated on others."""
    spacy.util.fix_random_seed(0)
    nlp, rng = spacy.blank("en"), random.Random(0)

    def gold(n: int, first: int) -> list[Doc]:
        made = [sentence(rng, first + i) for i in range(n)]
        tags = [[tag if rng.random() < 0.9 else "NN" for _, tag in one] for one in made]
        return [Doc(nlp.vocab, words=[word for word, _ in one], tags=said) for one, said in zip(made, tags, strict=True)]

    nlp.add_pipe("long_runs_memory")
    nlp.add_pipe("tagger")
    examples = [Example(nlp.make_doc(doc.text), doc) for doc in gold(200, 10**9)]
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(4):
        nlp.update(examples, sgd=optimizer)
    nlp.to_disk(folder / "model")
    DocBin(docs=gold(300, 2 * 10**9)).to_disk(folder / "dev.spacy")
    calib(["fit", str(folder / "model"), str(folder / "dev.spacy"), str(folder / "calibrated"), "--silent"], 1)
    return folder / "calibrated"


def calib(arguments: Sequence[str], every: int) -> None:
    """RAISES SystemExit: the command failed, with what it printed."""
    _SEEN.begin(every)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = typer.main.get_command(calib_cli)(list(arguments), standalone_mode=False)
    if code:
        raise SystemExit(printed.getvalue())


def spacy_alone(pipeline: Path, texts: Path, every: int) -> None:
    """The same texts through the tagger, whose Docs are let go."""
    nlp = spacy.load(pipeline, exclude=["calib"])
    _SEEN.begin(every)
    with texts.open(encoding="utf-8") as lines:
        read = (json.loads(line)["text"] for line in lines)
        collections.deque(nlp.pipe(islice(read, LEARNED_FROM)), maxlen=0)
        while some := list(islice(read, _OF_A_ZONE)):
            with memory_zone(nlp):
                collections.deque(nlp.pipe(some), maxlen=0)


def one_run(run: Callable[[int], None], n: int) -> tuple[float, float, float, float]:
    """Run something in this process that looks at memory every so many documents: (MiB in the first tenth, in the third, in the last, at most)."""
    run(max(1, n // _SAMPLES))
    tenth = max(1, len(_SEEN.memory) // 10)
    first, third, last = (max(_SEEN.memory[place : place + tenth]) for place in (0, 2 * tenth, len(_SEEN.memory) - tenth))
    return first, third, last, peak_mib()


def in_child(call: Callable[[], Any]) -> Any:
    """What a function gives in a process of its own. RAISES SystemExit: it failed."""
    context = multiprocessing.get_context("fork")
    told, tell = context.Pipe(False)
    process = context.Process(target=lambda: tell.send(call()))
    process.start()
    tell.close()
    try:
        return told.recv()
    except EOFError:
        raise SystemExit(1) from None
    finally:
        process.join()


def measure(asked: str, pipeline: Path, texts: Path, n: int) -> Needed:
    """asked (str): A command, and what options it has of its own. RAISES SystemExit: it failed."""
    start = time.perf_counter()
    command, *own = asked.split()
    run = partial(spacy_alone, pipeline, texts)
    if command != ALONE:
        options = [part.format(folder=texts.parent, gold=texts.parent / "dev.spacy") for part in own or COMMANDS[command]]
        run = partial(calib, [command, str(pipeline), str(texts), *options])
    found = in_child(lambda: one_run(run, n))
    return Needed(asked, time.perf_counter() - start, *found)


def commands_of(given: Sequence[str]) -> list[str]:
    """What is to run. RAISES SystemExit: it is no command over texts, or none of this spacy-calib."""
    asked = [one for name in given for one in (VARIANTS if name == "variants" else (name,))]
    for one in asked:
        if one != ALONE and (one.split()[0] not in COMMANDS or one.split()[0] not in command_names()):
            raise SystemExit(f"{one!r} is none of {', '.join((*COMMANDS, ALONE, 'variants'))}, with options or without")
    return asked


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Memory over very many short documents")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--commands", nargs="+", default=[ALONE, *(name for name in COMMANDS if name in command_names())])
    parser.add_argument("--most", type=float, default=0.05, help="By how much the last tenth may be above the first")
    options = parser.parse_args(arguments)
    commands, n = commands_of(options.commands), options.documents
    head("| command | seconds | MiB, first tenth | third | last | more | bytes a document | MiB, most |")
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pipeline, texts = in_child(lambda: make_pipeline(folder)), folder / "texts.jsonl"
        write_texts(texts, n)
        for command in commands:
            one = measure(command, pipeline, texts, n)
            rows.append(one)
            memory = (f"{mib:.0f}" for mib in (one.first, one.third, one.last))
            row(command, f"{one.seconds:.0f}", *memory, f"{one.more:+.1%}", f"{one.a_document(n):.0f}", f"{one.most:.0f}")
    print(f"{n:,} documents; spaCy {spacy.__version__}, spacy-calib {spacy_calib.__version__}")
    return int(any(one.more > options.most for one in rows))


if __name__ == "__main__":
    sys.exit(main())
