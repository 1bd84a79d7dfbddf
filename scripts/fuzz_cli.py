"""Run made-up command lines over all commands in one process: every failure must be a sentence, never a traceback.

    python scripts/fuzz_cli.py --cases 2000
    python scripts/fuzz_cli.py --lines fuzz_failed.jsonl

Each line takes one command, its arguments and up to four of its options. Values are mostly of the right kind (small made-up
pipelines, gold, files of annotation tools), else strange ones: empty, huge, negative, not a number, no path, JSON, other files.
`damaged-N-PATH` is a copy of PATH with bytes changed by seed N. The last word of a line may name a standard output that cannot be
written. Each pipeline is loaded once, and lines get copies of it; files that a line changed are restored.

Bad is an exception that is no exit, Python's traceback in the output, and exit status 1 without a sentence. Bad lines are saved
in a file for `--lines`, which runs the lines of such a file instead. A line passed the parser if the command itself was called.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import pickle
import random
import shutil
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import spacy
import typer
from frame import ROOT, make_parser
from spacy.cli._util import app
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.util import fix_random_seed
from tools.fuzz_state import damaged_bytes

from spacy_calib.cli import LazyCommands
from spacy_calib.cli.shared.command import check_values

sys.path.insert(0, str(ROOT))
made_up_sentences = importlib.import_module("tests.conftest").made_up_sentences

STRANGE = [
    "", " ", "0", "-1", "1", "2", "1.5", "nan", "inf", "1e300", "9" * 30, "a" * 300, "x", "é\u202e", "a\nb", "--", "-", "{}", "[]", "null", "true",
    '{"x": 1}', '[{"_": {"a": 1}}]', '[{"TAG": "NOUN"}]', '[{"OP": "*"}]', "PERSON", "PERSON,ORG", "tagger", "ner", "calib", "all", "isotonic", "auto", "json",
    "by-doc", "*", "a..b", "=", "a=b", "PERSON=PER", "missing", "missing/x", "gold.spacy", "texts.jsonl", "empty.spacy", "broken.spacy", "plain",
    "..x", "...", ".", "..", "/dev/null", "../up", "out.json", "out.html", "out.csv", "out.xyz", "sub/out.json", "\x00", "\udcff", "--nothing",
]  # fmt: skip
NAMES = {"dog": "PERSON", "cat": "PERSON", "duck": "GPE"}
PIPELINES = ["plain", "tags", "ents"]
FITTED = ["tags", "tags", "tags", "ents", "ents", "ents", "plain"]
GOLD = ["gold.spacy"] * 6 + ["texts.jsonl", "gold.conllu", "."]
# What an option that is a number or a word mostly gets, by the name of its parameter; others that name their words get one of them.
LIKELY: dict[str, list[str]] = {
    "component": ["tagger", "ner"], "attr": ["calib", "calib_ent"], "seed": ["1"],
    "precision": ["0.5"], "recall": ["0.5"], "method": ["platt", "isotonic"], "n_process": ["1"], "gpu_id": ["-1"], "columns": ["text=text"],
    "code": ["code.py"], "label_map": ["PERSON=PER", "PERSON=PERSON,GPE=GPE"], "card": ["universal"], "tags": ["NOUN", "PERSON"],
    "config": ["plain/config.cfg"], "unit": ["sentence", "token", "entity", "document"], "train_data": ["gold.spacy"], "gold": ["gold.spacy"],
    "exclude": ["gold.spacy"], "apply": ["cut_offs.json", "out.json"], "plot": ["out.svg"], "by": ["source", "label", "pos"], "fail_on": ["drop", "any"],
}  # fmt: skip
CLOSED, FULL = OUTPUTS = (">&-", ">/dev/full")
DAMAGED = "damaged-"
COMMAND = typer.main.get_command(app)


def gold_docs(nlp: Language, n: int, seed: int) -> list[Doc]:
    """The tests' sentences of words that a tagger may well take for something else, with nouns as entities."""
    docs = []
    for sentence in made_up_sentences(n, seed):
        doc = Doc(nlp.vocab, words=[word for word, _ in sentence], tags=[tag for _, tag in sentence])
        doc.set_ents(
            [Span(doc, i, i + 1, NAMES[word]) for i, (word, tag) in enumerate(sentence) if tag == "NOUN" and word in NAMES]
        )
        docs.append(doc)
    return docs


def make_inputs() -> None:
    """Write pipelines and gold into the current folder."""
    fix_random_seed(0)
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer", config={"punct_chars": ["."]})
    for name in ("tagger", "ner"):
        nlp.add_pipe(name, config={"model": {"tok2vec": {"width": 32, "depth": 2, "embed_size": 200}}})
    docs = gold_docs(nlp, 60, 0)
    examples = [Example(nlp.make_doc(doc.text), doc) for doc in docs]
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(15):
        nlp.update(examples, sgd=optimizer)
    nlp.to_disk("plain")
    DocBin(docs=docs[:30]).to_disk("gold.spacy")
    DocBin().to_disk("empty.spacy")
    Path("broken.spacy").write_bytes(b"\x80no DocBin")
    Path("code.py").write_text("", encoding="utf8")
    Path("texts.jsonl").write_text("".join(f'{{"text": "{doc.text.strip()}"}}\n' for doc in docs[:10]), encoding="utf8")
    lines = [f"{i}\t{t.text}\t_\t_\t{t.tag_}\t_\t_\t_\t_\t_" for doc in docs[:5] for i, t in enumerate(doc, 1)]
    Path("gold.conllu").write_text("\n".join(lines) + "\n\n", encoding="utf8")
    shutil.copytree(ROOT / "tests" / "data" / "tools", "tools")
    for line in (
        ["fit", "plain", "gold.spacy", "tags", "--component", "tagger", "--method", "platt"],
        ["fit", "plain", "gold.spacy", "ents", "--component", "ner", "--method", "platt"],
        ["threshold", "ents", "gold.spacy", "--precision", "0.1", "-o", "cut_offs.json"],
    ):
        if run(line) != (0, ""):
            raise RuntimeError(f"the input of the made-up lines cannot be made: {line}")


def command_line(commands: LazyCommands, rng: random.Random) -> list[str]:
    """One command with values, most of them of the right kind."""
    name = rng.choice(sorted(commands))
    arguments = [param for param in commands[name].params if param.param_type_name == "argument"]
    options = [param for param in commands[name].params if param.param_type_name == "option" and param.name != "help"]
    chosen = [param for param in options if param.required] + rng.sample(
        options, min(len(options), rng.choice([0, 1, 1, 2, 4]))
    )
    line = [name]
    models = PIPELINES if name in ("fit", "pretrained") else FITTED
    gold = GOLD if rng.random() < 0.8 else [f"tools/{file}" for file in sorted(os.listdir("tools"))]
    for param in arguments:
        pool = {"model": models, "data": gold, "output": [f"made{rng.randrange(10**6)}"]}.get(param.name, STRANGE)
        value = rng.choice(pool if rng.random() < 0.95 else STRANGE)
        line.append(f"{DAMAGED}{rng.randrange(10**6)}-{value}" if param.name != "output" and rng.random() < 0.06 else value)
    for param in chosen:
        line.append(rng.choice(param.opts))
        if not param.is_flag:
            line += [rng.choice(likely_values(param) if rng.random() < 0.75 else STRANGE) for _ in range(max(1, param.nargs))]
    if name == "fit" and rng.random() < 0.4:
        setting = rng.choice(["grouping", "context", "source", "x", "selection.methods", "attr"])
        line += [f"--components.calib.{setting}", rng.choice(STRANGE)]
    if name == "threshold":
        line += ["--precision", rng.choice(["0.2", "0.5", "2"])]
    if rng.random() < 0.03:
        del line[rng.randrange(1, len(line))]
    return [*line, rng.choice(OUTPUTS)] if rng.random() < 0.03 else line


def likely_values(param: Any) -> list[str]:
    """Values that an option takes."""
    if param.name in LIKELY:
        return LIKELY[param.name]
    if "|" in (param.metavar or ""):
        return str(param.metavar).strip("[]").split("|")
    return {int: ["1", "2", "5"], float: ["0.5", "0.9"], Path: ["out.json", "out.html", "gold.spacy"]}.get(
        param.bare_type(), STRANGE
    )


def damage(word: str) -> None:
    """Write the file or pipeline of a word `damaged-N-PATH`, where there is such a PATH."""
    seed, _, name = word.removeprefix(DAMAGED).partition("-")
    rng, path, copy = random.Random(seed), Path(name), Path(word)
    with contextlib.suppress(OSError, ValueError):
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(path, copy) if name in PIPELINES else shutil.copy(path, copy)
        file = rng.choice(sorted(file for file in copy.rglob("*") if file.is_file())) if name in PIPELINES else copy
        file.write_bytes(damaged_bytes(file.read_bytes(), rng))


def files_below(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of change of each file."""
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if not path.is_dir()
    }


def load_copies(load: Any) -> Any:
    """Return a loader as `load` that reads each of PIPELINES once, and then gives copies: no line disturbs the next."""
    pickles: dict[str, bytes] = {}

    def load_copy(name: Any, **settings: Any) -> Language:
        if name not in PIPELINES:
            return load(name, **settings)
        key = repr((name, settings, files_below(Path(name))))
        if key not in pickles:
            pickles[key] = pickle.dumps(load(name, **settings))
        return pickle.loads(pickles[key])

    return load_copy


def run(line: Sequence[str]) -> tuple[int, str]:
    """Run a command line in this process. RETURNS: (exit status, what is bad about it or "")."""
    for word in line:
        if word.startswith(DAMAGED):
            damage(word)
    screen, status, wrong = io.TextIOWrapper(io.BytesIO(), encoding="utf8", errors="surrogateescape"), 0, ""
    ending = line[-1] if line[-1] in OUTPUTS else ""
    output = open(FULL[1:], "w", encoding="utf8") if ending == FULL else None if ending else screen  # noqa: SIM115
    stdin = mock.patch.object(sys, "stdin", io.StringIO())
    with stdin, contextlib.redirect_stderr(screen), contextlib.redirect_stdout(output):
        try:
            COMMAND(["calib", *(line[:-1] if ending else line)], prog_name="python -m spacy")
        except SystemExit as end:
            status, cause = int(end.code or 0), end.__context__ and end.__context__.__cause__
            if cause and "spacy_calib" in traceback.extract_tb(cause.__traceback__)[-1].filename:
                wrong = f"{cause!r} as a sentence"
        except Exception as error:
            status, wrong = 1, f"{error!r} at {traceback.extract_tb(error.__traceback__)[-1]}"
    screen.flush()
    text = screen.buffer.getvalue().decode("utf8", "replace")
    if "Traceback (most recent call last)" in text:
        wrong = "a traceback"
    return status, wrong or ("no sentence" if status == 1 and "✘" not in text else "")


def fuzz(cases: Sequence[int | list[str]], folder: Path) -> tuple[Counter[str], dict[str, list[list[str]]], int]:
    """Run lines, or those of seeds, in a folder. RETURNS: (how they ended, what was bad -> its lines, how many passed the parser)."""
    folder_before, work_folder, whole = Path.cwd(), folder / "here", folder / "whole"
    work_folder.mkdir(parents=True)
    os.chdir(work_folder)
    one_salt = mock.patch("spacy_calib.pipe.fitting.token_hex", lambda n: "00" * n)  # equal files for equal seeds
    no_server = mock.patch("http.server.HTTPServer.serve_forever", return_value=None)
    loaded_once = mock.patch("spacy.util.load_model", load_copies(spacy.util.load_model))
    counter = mock.patch("spacy_calib.cli.shared.command.check_values", side_effect=check_values)
    commands, messages, bad = LazyCommands(), Counter[str](), dict[str, list[list[str]]]()
    try:
        with one_salt, no_server, loaded_once, counter as checks:
            make_inputs()
            shutil.copytree(work_folder, whole)
            checks.reset_mock()
            for case in cases:
                line = command_line(commands, random.Random(case)) if isinstance(case, int) else case
                status, wrong = run(line)
                messages[f"{line[0]} {status}"] += 1
                if wrong:
                    bad.setdefault(wrong[:200], []).append(line)
                shutil.rmtree(folder / "up", ignore_errors=True)
                if files_below(work_folder) != files_below(whole):
                    for path in work_folder.iterdir():
                        shutil.rmtree(path) if path.is_dir() else path.unlink()
                    shutil.copytree(whole, work_folder, dirs_exist_ok=True)
            return messages, bad, checks.call_count
    finally:
        os.chdir(folder_before)


def main(arguments: list[str] | None = None) -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="of the first case")
    parser.add_argument("--lines", type=Path, help="run the lines of this file instead, a JSON list each")
    parser.add_argument("--failed", type=Path, default=Path("fuzz_failed.jsonl"), help="where bad lines are saved")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    cases: Sequence[Any] = range(options.seed, options.seed + options.cases)
    if options.lines:
        cases = [json.loads(line) for line in options.lines.read_text(encoding="utf8").splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        messages, bad, n_called = fuzz(cases, Path(folder))
    print(f"{len(cases):,} command lines, {n_called:,} past the parser ({n_called / len(cases):.0%}); by exit status: ")
    print(", ".join(f"{name}: {n}" for name, n in sorted(messages.items())))
    for wrong, lines in bad.items():
        print(f"  {len(lines)}: {wrong}\n      {lines[0]}")
    if bad:
        options.failed.write_text("".join(f"{json.dumps(line)}\n" for lines in bad.values() for line in lines), encoding="utf8")
    print(f"{sum(map(len, bad.values()))} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
