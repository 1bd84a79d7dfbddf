"""Puts small faults into the package, one at a time, and asks whether the tests beside the changed module notice.

    python scripts/tools/mutation.py [FILE OR FOLDER ...] [--sample 60] [--seed 0] [--jobs 2] [--files 3]

A mutant is the module with one expression changed: < to <=, + to -, and to or, a number to the next one, min to max, a condition to its
opposite. Each is run in a fork of this process, which has imported what the package stands on but not the package, in a copy of the checkout,
against the tests of the mirrored file, of files that import the module, and of those named after it, as many as --files; where there are none,
against those of its room that speak of it. It is killed where one fails (or takes too long, which an endless loop does). These tests run
unchanged first. A survivor is a fault that no test near it sees, or a change without any effect: read it, and run it with more --files. Mutation
tools mutate annotations too and change files in place; what is left of them after that is no more than this.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Folders whose tests run most of what they run in other processes, or run everything.
ELSEWHERE = ("spark", "docs", "scripts", "browser")
COPIED = ("spacy_calib", "tests", "scripts", "configs", "docs", "setup.cfg", "pyproject.toml")
# Imported before the forks, which need not import them again.
UNDERNEATH = ("spacy", "hypothesis", "scipy.optimize", "scipy.sparse", "scipy.stats", "sklearn.linear_model", "typer")
_PAIRS = [("Lt", "LtE"), ("Gt", "GtE"), ("Eq", "NotEq"), ("In", "NotIn"), ("Is", "IsNot"), ("Add", "Sub"), ("Mult", "Div"), ("And", "Or"),
          ("BitAnd", "BitOr")]  # fmt: skip
OPERATORS = {name: new_name for pair in _PAIRS for name, new_name in (pair, pair[::-1])} | {
    "Pow": "Mult",
    "FloorDiv": "Mult",
    "USub": "UAdd",
}
_CALLS = [("min", "max"), ("minimum", "maximum"), ("any", "all"), ("sum", "mean"), ("floor", "ceil"), ("argmin", "argmax")]
NAMES = {name: new_name for pair in _CALLS for name, new_name in (pair, pair[::-1])}
WORDS = {"left": "right", "right": "left"}


class Mutant(NamedTuple):
    """path (str): Of the module, from the root. line (int). change (str): What became what. place, which (int): The expression, in the
    order of `runs`, and the one of its alternatives.
    """

    path: str
    line: int
    change: str
    place: int
    which: int


def alternatives(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in the place of an expression."""
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            if type(op).__name__ in OPERATORS:
                new_name = getattr(ast, OPERATORS[type(op).__name__])()
                yield ast.Compare(node.left, [*node.ops[:i], new_name, *node.ops[i + 1 :]], node.comparators)
    elif isinstance(node, (ast.BinOp, ast.BoolOp, ast.AugAssign, ast.UnaryOp)):
        kind = type(node.op).__name__
        if kind in ("Not", "Invert"):
            yield node.operand  # type: ignore[union-attr]
        elif kind in OPERATORS:
            new_name = getattr(ast, OPERATORS[kind])()
            yield type(node)(**{field: getattr(node, field) for field in node._fields} | {"op": new_name})
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield ast.Constant(not node.value)
        elif isinstance(node.value, (int, float)):
            yield ast.Constant(node.value + 1)
        elif node.value in WORDS:
            yield ast.Constant(WORDS[node.value])
    elif isinstance(node, ast.Name) and node.id in NAMES:
        yield ast.Name(NAMES[node.id], node.ctx)
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield ast.Attribute(node.value, NAMES[node.attr], node.ctx)
    elif isinstance(node, (ast.If, ast.IfExp)):
        yield type(node)(
            **{field: getattr(node, field) for field in node._fields} | {"test": ast.UnaryOp(ast.Not(), node.test)}
        )


def runs(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node that is run: annotations are not."""
    for name, value in ast.iter_fields(tree):
        if name not in ("annotation", "returns", "decorator_list"):
            for child in value if isinstance(value, list) else [value]:
                typing = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
                if isinstance(child, ast.AST) and not typing:
                    yield child
                    yield from runs(child)


def mutants(path: str) -> list[Mutant]:
    """All mutants of a module."""
    matches = []
    for place, node in enumerate(runs(ast.parse((ROOT / path).read_text(encoding="utf-8")))):
        for which, new in enumerate(alternatives(node)):
            before, after = (ast.unparse(ast.fix_missing_locations(name)).split("\n")[0] for name in (node, new))
            matches.append(Mutant(path, node.lineno, f"{before}  ->  {after}", place, which))  # type: ignore[attr-defined]
    return matches


def source_of(mutant: Mutant) -> str:
    """The whole module, changed."""
    tree = ast.parse((ROOT / mutant.path).read_text(encoding="utf-8"))
    old = list(runs(tree))[mutant.place]
    return ast.unparse(ast.fix_missing_locations(_Replace(old, list(alternatives(old))[mutant.which]).visit(tree)))


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST):
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else self.generic_visit(node)


# Running

# Assertions of plugins that were imported before the fork are not rewritten.
_OPTIONS = ["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", "-W", "ignore:Module already imported"]


def test_files() -> dict[Path, str]:
    """Text of the files of tests, by their place below the root."""
    files = (file.relative_to(ROOT) for file in sorted((ROOT / "tests").rglob("test_*.py")))
    return {file: (ROOT / file).read_text(encoding="utf-8") for file in files if not {*file.parts} & {*ELSEWHERE}}


def tests_near(path: str, texts: dict[Path, str], n_files: int) -> list[str]:
    """The files of tests that may notice a change of a module, the mirrored one first."""
    module = Path(path).relative_to("spacy_calib").with_suffix("")
    dotted_name, name = ".".join(("spacy_calib", *module.parts)), f"test_{module.name}.py"
    mirror = Path("tests") / module.parent / name
    matches = [file for file, text in texts.items() if file.name == name or dotted_name in text.replace(" import ", ".")]
    if not matches:
        room = [file for file in texts if file.parts[1] == module.parts[0]]
        matches = [file for file in room if module.name.split("_")[0] in texts[file]] or room
    return [file.as_posix() for file in sorted(matches, key=lambda file: file != mirror)[:n_files]]


def make_copy(folder: Path) -> Path:
    """The parts of the checkout that the tests need."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif (ROOT / name).exists():
            shutil.copy(ROOT / name, folder / name)
    return folder


def fork_tests(copy: Path, tests: Sequence[str], seconds: int) -> int:
    """Begin to run tests of a copy. seconds (int): Of processor time, which a loaded machine does not lengthen. RETURNS (int): The process."""
    process = os.fork()
    if process:
        return process
    spent = int(resource.getrusage(resource.RUSAGE_SELF).ru_utime) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (spent, spent + 5))
    sys.dont_write_bytecode = True
    os.environ.update(PYTHONPATH=str(copy), PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1")
    os.chdir(copy)
    sys.path[:0] = [str(copy)]
    code = 1
    try:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            code = int(pytest.main([*_OPTIONS, *tests]))
    finally:
        os._exit(code)


class Job(NamedTuple):
    """A process that runs tests. mutant (Mutant | None): None for the unchanged package. copy (Path): Where."""

    mutant: Mutant | None
    tests: list[str]
    copy: Path


def run_all(todo: Sequence[tuple[Mutant | None, list[str]]], copies: list[Path], seconds: int) -> Iterator[tuple[Job, int]]:
    """Each job and the code that it ended with, as they end."""
    todo_left, running = list(todo)[::-1], dict[int, Job]()
    while todo_left or running:
        while todo_left and copies:
            job = Job(*todo_left.pop(), copies.pop())
            if job.mutant is not None:
                (job.copy / job.mutant.path).write_text(source_of(job.mutant), encoding="utf-8")
            running[fork_tests(job.copy, job.tests, seconds)] = job
        process, status = os.wait()
        job = running.pop(process)
        if job.mutant is not None:
            shutil.copy(ROOT / job.mutant.path, job.copy / job.mutant.path)
        copies.append(job.copy)
        yield job, os.waitstatus_to_exitcode(status)


def judge(sample: Sequence[Mutant], options: argparse.Namespace) -> dict[Mutant, bool]:
    """Mutant -> whether it was killed. RAISES SystemExit: tests fail before anything is changed."""
    texts, matches = test_files(), {}
    near_tests = {mutant: tests_near(mutant.path, texts, options.files) for mutant in sample}
    with tempfile.TemporaryDirectory() as folder:
        copies = [make_copy(Path(os.path.realpath(folder), str(job))) for job in range(options.jobs)]
        base_jobs = [(None, [file]) for file in sorted({file for files in near_tests.values() for file in files})]
        for job, code in run_all(base_jobs, copies, 5 * options.seconds):
            if code not in (0, 5):
                sys.exit(f"The tests fail before anything is changed: {job.tests[0]} ended with {code}")
        for job, code in run_all(list(near_tests.items()), copies, options.seconds):
            assert job.mutant is not None
            matches[job.mutant] = code not in (0, 5)
            outcome = {0: "survived", 5: "run by no test"}.get(code, "killed")
            print(f"{outcome}: {job.mutant.path}:{job.mutant.line}: {job.mutant.change} ({' '.join(job.tests)})", flush=True)
    return matches


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("paths", nargs="*", default=["spacy_calib"], help="Modules, or folders with modules")
    parser.add_argument("--sample", type=int, default=60, help="Mutants that are drawn")
    parser.add_argument("--seed", type=int, default=0, help="Of the drawing")
    parser.add_argument("--jobs", type=int, default=2, help="Copies that run at once")
    parser.add_argument("--files", type=int, default=3, help="Of tests that a mutant is run against")
    parser.add_argument("--seconds", type=int, default=60, help="Of the processor that these may take")
    options = parser.parse_args()
    if "spacy_calib" in sys.modules:  # forks would have it as it is
        print(subprocess.run([sys.executable, *sys.argv], stdout=subprocess.PIPE, text=True, check=True).stdout)
        return
    places = [ROOT / path for path in options.paths]
    files = [file for place in places for file in ([place] if place.suffix == ".py" else sorted(place.rglob("*.py")))]
    all_mutants = [mutant for file in files for mutant in mutants(file.relative_to(ROOT).as_posix())]
    sample = random.Random(options.seed).sample(all_mutants, min(options.sample, len(all_mutants)))
    for name in UNDERNEATH:
        importlib.import_module(name)
    began = time.monotonic()
    is_killed = judge(sample, options)
    n = sum(is_killed.values())
    print(
        f"{n} of {len(is_killed)} killed, of {len(all_mutants)} mutants, seed {options.seed}, {time.monotonic() - began:.0f} s"
    )


if __name__ == "__main__":
    main()
