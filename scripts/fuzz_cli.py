"""Run made-up command lines over all commands in one process: every failure must be a sentence, never a traceback.

    python scripts/fuzz_cli.py --cases 2000

Each line takes one command, its arguments and up to four of its options. Values are mostly of the right kind (small made-up
pipelines and gold), else strange ones: empty, huge, negative, not a number, no path, JSON, other files. Bad is an exception that
is no exit, and a line of Python's traceback in the output. A line passed the parser if the command itself was called.
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import spacy
from frame import make_parser
from made_up import ENTITIES, sentences
from spacy.cli._util import app
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.util import fix_random_seed
from typer.testing import CliRunner

from spacy_calib.cli import LazyCommands
from spacy_calib.cli.shared.command import Command

STRANGE = [
    "", " ", "0", "-1", "1", "2", "1.5", "nan", "inf", "1e300", "9" * 30, "a" * 300, "x", "é\u202e", "a\nb", "--", "-", "{}", "[]", "null", "true",
    '{"x": 1}', '[{"_": {"a": 1}}]', '[{"TAG": "NN"}]', '[{"OP": "*"}]', "PERSON", "PERSON,ORG", "tagger", "ner", "calib", "all", "isotonic", "auto", "json",
    "by-doc", "*", "a..b", "=", "a=b", "PERSON=PER", "missing", "missing/x", "gold.spacy", "texts.jsonl", "empty.spacy", "broken.spacy", "plain",
    "..x", "...", ".", "../up", "out.json", "out.html", "out.csv", "out.xyz", "sub/out.json",
]  # fmt: skip
PIPELINES = ["plain", "tags", "ents"]
GOLD = ["gold.spacy", "gold.spacy", "gold.spacy", "texts.jsonl", "gold.conllu"]
# What an option that is a number or a word mostly gets, by the name of its parameter.
LIKELY: dict[str, list[str]] = {
    "component": ["tagger", "ner"], "attr": ["calib", "calib_ent"], "format": ["json", "table"], "seed": ["1"], "query": ["PERSON", "NN", '[{"TAG": "NN"}]'],
    "precision": ["0.5"], "recall": ["0.5"], "method": ["platt", "isotonic"], "n": ["5"], "n_texts": ["5"], "n_process": ["1"], "gpu_id": ["-1"],
    "unit": ["token", "entity"], "against": PIPELINES, "code": ["code.py"], "map": ["PERSON=PER"],
}  # fmt: skip
# Options that would end the run, or take a process.
LEFT_OUT = {"help", "n_process", "gpu_id", "code"}


def gold_docs(nlp: Language, n: int, seed: int) -> list[Doc]:
    docs = []
    for sentence in sentences(n, seed):
        doc = Doc(nlp.vocab, words=[word.form for word in sentence], tags=[word.tag for word in sentence])
        names = ENTITIES["NNP"]
        doc.set_ents([Span(doc, i, i + 1, names[token.text]) for i, token in enumerate(doc) if token.text in names])
        docs.append(doc)
    return docs


def make_inputs(run: Any) -> None:
    """Write pipelines and gold into the current folder. run (Callable): Runs a command line."""
    fix_random_seed(0)
    nlp = spacy.blank("en")
    nlp.add_pipe("tagger")
    nlp.add_pipe("ner")
    docs = gold_docs(nlp, 60, 0)
    examples = [Example(nlp.make_doc(doc.text), doc) for doc in docs]
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(6):
        nlp.update(examples, sgd=optimizer)
    nlp.to_disk("plain")
    DocBin(docs=docs[:30]).to_disk("gold.spacy")
    DocBin().to_disk("empty.spacy")
    Path("broken.spacy").write_bytes(b"\x80no DocBin")
    Path("texts.jsonl").write_text("".join(f'{{"text": "{doc.text.strip()}"}}\n' for doc in docs[:10]), encoding="utf8")
    lines = [f"{i}\t{t.text}\t_\t_\t{t.tag_}\t_\t_\t_\t_\t_" for doc in docs[:5] for i, t in enumerate(doc, 1)]
    Path("gold.conllu").write_text("\n".join(lines) + "\n\n", encoding="utf8")
    for output, component in (("tags", "tagger"), ("ents", "ner")):
        run(["fit", "plain", "gold.spacy", output, "--component", component, "--method", "platt", "--silent"])
        assert Path(output).is_dir()


def command_line(commands: LazyCommands, rng: random.Random) -> list[str]:
    """One command with values, most of them of the right kind."""
    name = rng.choice(sorted(commands))
    arguments = [param for param in commands[name].params if param.param_type_name == "argument"]
    options = [param for param in commands[name].params if param.param_type_name == "option" and param.name not in LEFT_OUT]
    required = [param for param in options if param.required]
    others = [param for param in options if param not in required]
    chosen = required + rng.sample(others, min(len(others), rng.choice([0, 1, 1, 2, 4])))
    line = [name]
    for param in arguments:
        pool = {"model": PIPELINES, "data": GOLD, "output": [f"made{rng.randrange(10**6)}"]}.get(param.name, STRANGE)
        line.append(rng.choice(pool if rng.random() < 0.95 else STRANGE))
    for param in chosen:
        line.append(rng.choice(param.opts))
        if not param.is_flag:
            line += [rng.choice(likely_values(param) if rng.random() < 0.75 else STRANGE) for _ in range(max(1, param.nargs))]
    if name == "fit" and rng.random() < 0.4:
        line += [
            f"--components.calib.{rng.choice(['grouping', 'context', 'source', 'x', 'selection.methods', 'attr'])}",
            rng.choice(STRANGE),
        ]
    if rng.random() < 0.03:
        del line[rng.randrange(1, len(line))]
    return line


def likely_values(param: Any) -> list[str]:
    """Values that an option takes."""
    if param.name in LIKELY:
        return LIKELY[param.name]
    if param.bare_type() is int:
        return ["1", "2", "5"]
    if param.bare_type() is float:
        return ["0.5", "0.9"]
    return ["out.json", "out.html", "gold.spacy", "texts.jsonl"] if param.bare_type() is Path else STRANGE


class Runner:
    """Runs command lines in this process. n_called (int): How many passed the parser."""

    def __init__(self) -> None:
        self.runner, self.n_called = CliRunner(), 0
        checked = Command.check_arguments

        def counting(command: Any, *args: Any, **kwargs: Any) -> Any:
            self.n_called += 1
            return checked(command, *args, **kwargs)

        Command.check_arguments = counting  # type: ignore[assignment,method-assign]

    def __call__(self, line: list[str]) -> tuple[int, str]:
        """Return (exit status, what is bad about it or "")."""
        result = self.runner.invoke(app, ["calib", *line])
        error = result.exception
        if error is not None and not isinstance(error, SystemExit):
            return 1, f"{error!r} at {traceback.extract_tb(error.__traceback__)[-1]}"
        return result.exit_code, "a traceback" if "Traceback (most recent call last)" in result.output else ""


@contextlib.contextmanager
def no_server() -> Any:
    """Let servers end at once."""
    from http.server import HTTPServer

    serve = HTTPServer.serve_forever
    HTTPServer.serve_forever = lambda self, *_: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        HTTPServer.serve_forever = serve  # type: ignore[method-assign]


def fuzz(seeds: range, folder: Path) -> tuple[Counter[str], dict[str, list[list[str]]], int]:
    """Run the lines of these seeds in a folder. RETURNS: (how they ended, what was bad -> its lines, how many passed the parser)."""
    before = Path.cwd()
    (folder / "here").mkdir(parents=True)
    os.chdir(folder / "here")
    checked = Command.check_arguments
    try:
        with no_server():
            run = Runner()
            make_inputs(run)
            commands, seen, bad = LazyCommands(), Counter[str](), dict[str, list[list[str]]]()
            n_before = run.n_called
            for seed in seeds:
                line = command_line(commands, random.Random(seed))
                status, wrong = run(line)
                seen[f"{line[0]} {status}"] += 1
                if wrong:
                    bad.setdefault(wrong[:200], []).append(line)
            return seen, bad, run.n_called - n_before
    finally:
        Command.check_arguments = checked  # type: ignore[method-assign]
        os.chdir(before)


def main(arguments: list[str] | None = None) -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="of the first case")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        seen, bad, n_called = fuzz(range(options.seed, options.seed + options.cases), Path(folder))
    statuses = Counter[str]()
    for name, n in seen.items():
        statuses[name.split()[1]] += n
    print(
        f"{options.cases:,} command lines, {n_called:,} past the parser ({n_called / options.cases:.0%}); by exit status {dict(statuses)}"
    )
    print(", ".join(f"{name}: {n}" for name, n in sorted(seen.items())))
    for wrong, lines in bad.items():
        print(f"  {len(lines)}: {wrong}\n      {lines[0]}")
    print(f"{sum(map(len, bad.values()))} tracebacks")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
