"""Puts small faults into the package, one at a time, and asks whether the tests that run the changed line notice.

    python scripts/mutation.py [FILE OR FOLDER ...] [--sample 150] [--seed 0] [--jobs 2]

A mutant is the module with one expression changed: < to <=, + to -, and to or, a number to the next one, min to max, a condition to its
opposite. First the tests of its room are run unchanged, for rooms that are reached through pipes or commands also the tests of these and
those elsewhere that import the module or are named after its room, and it is noted which of them run which line and for how long. Then each
mutant is run in a copy of the checkout against the tests that run its line, those of the mirrored file first, as many as take --seconds; it
is killed where one fails (or hangs). A survivor is a fault that no test sees, or a change without any effect: read it. Mutation tools mutate
annotations too and change files in place; what is left of them after that is no more than this.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = tuple(
    f"spacy_calib/{room}"
    for room in ("pairs", "calibration", "metrics", "context", "doc", "sources", "arrays", "statistics", "sequence")
)
# Room -> tests elsewhere that run its lines: those of the pipe that stands on it, or of the commands that read its files.
THROUGH = dict.fromkeys(("context", "doc", "sources", "statistics", "sequence"), ("pipe",)) | {
    "arrays": ("cli/test_fit_scores.py", "cli/test_score_models.py")
}
# Folders whose tests run most of what they run in other processes.
ELSEWHERE = ("tests/spark", "tests/docs", "tests/scripts")
COPIED = ("spacy_calib", "spacy_calib.egg-info", "tests", "setup.cfg", "pyproject.toml")
_PAIRS = [("Lt", "LtE"), ("Gt", "GtE"), ("Eq", "NotEq"), ("In", "NotIn"), ("Is", "IsNot"), ("Add", "Sub"), ("Mult", "Div"), ("And", "Or"),
          ("BitAnd", "BitOr")]  # fmt: skip
OPERATORS = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])} | {
    "Pow": "Mult",
    "FloorDiv": "Mult",
    "USub": "UAdd",
}
_CALLS = [("min", "max"), ("minimum", "maximum"), ("any", "all"), ("sum", "mean"), ("floor", "ceil"), ("argmin", "argmax")]
NAMES = {one: other for pair in _CALLS for one, other in (pair, pair[::-1])}
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
                other = getattr(ast, OPERATORS[type(op).__name__])()
                yield ast.Compare(node.left, [*node.ops[:i], other, *node.ops[i + 1 :]], node.comparators)
    elif isinstance(node, (ast.BinOp, ast.BoolOp, ast.AugAssign, ast.UnaryOp)):
        kind = type(node.op).__name__
        if kind in ("Not", "Invert"):
            yield node.operand  # type: ignore[union-attr]
        elif kind in OPERATORS:
            other = getattr(ast, OPERATORS[kind])()
            yield type(node)(**{field: getattr(node, field) for field in node._fields} | {"op": other})
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
    found = []
    for place, node in enumerate(runs(ast.parse((ROOT / path).read_text(encoding="utf-8")))):
        for which, new in enumerate(alternatives(node)):
            before, after = (ast.unparse(ast.fix_missing_locations(one)).split("\n")[0] for one in (node, new))
            found.append(Mutant(path, node.lineno, f"{before}  ->  {after}", place, which))  # type: ignore[attr-defined]
    return found


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


# Which tests run which lines: this module is a plugin of pytest in the run of the unchanged tests.

_LINES = "SPACY_CALIB_MUTATION_LINES"


class Tracer:
    """Notes which lines of the package each test runs. Those that are run while something is set up are noted for its whole file.

    root (Path): Of the checkout. output (Path): A JSON file: "seconds" of the processor that each test took, and "lines" of each test or file, as "path:line".
    """

    def __init__(self, root: Path, output: Path):
        self.root, self.output = f"{root}{os.sep}", output
        self.seconds: dict[str, float] = {}
        self.now: set[tuple[str, int]] = set()
        self.ran: dict[str, set[tuple[str, int]]] = defaultdict(set)
        self.ours: dict[str, bool] = {}
        threading.settrace(self.trace)
        sys.settrace(self.trace)

    def trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        name = frame.f_code.co_filename
        ours = self.ours.get(name)
        if ours is None:
            ours = self.ours[name] = name.startswith(f"{self.root}spacy_calib")
        return self.line if ours else None

    def line(self, frame: FrameType, event: str, arg: Any) -> Any:
        self.now.add((frame.f_code.co_filename, frame.f_lineno))
        return self.line

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self.now = self.ran[item.nodeid.partition("::")[0]]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        self.now = self.ran[item.nodeid]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.seconds[nodeid] = -time.process_time()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.seconds[nodeid] += time.process_time()

    def pytest_sessionfinish(self) -> None:
        sys.settrace(None)
        lines = {test: [f"{name.removeprefix(self.root)}:{line}" for name, line in ran] for test, ran in self.ran.items()}
        self.output.write_text(json.dumps({"seconds": self.seconds, "lines": lines}), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    if _LINES in os.environ:
        config.pluginmanager.register(Tracer(Path.cwd(), Path(os.environ[_LINES])))


def tests_near(path: str) -> list[str]:
    """The folders and files of tests that may run a module's lines."""
    inside = Path(path).relative_to("spacy_calib").with_suffix("")
    room, dotted = inside.parts[0], ".".join(("spacy_calib", *inside.parts))
    folders = [f"tests/{one}" for one in (room, *THROUGH.get(room, ())) if (ROOT / "tests" / one).exists()]
    if room not in THROUGH:
        return folders
    found = [
        file.relative_to(ROOT).as_posix()
        for file in sorted((ROOT / "tests").rglob("test_*.py"))
        if file.stem == f"test_{room}" or dotted in file.read_text(encoding="utf-8").replace(" import ", ".")
    ]
    named = tuple(f"{folder}/" for folder in (*folders, *ELSEWHERE))
    return [*folders, *(file for file in found if not file.startswith(named))]


class Ran(NamedTuple):
    """What the unchanged tests did. seconds (dict): Of each test, in the order in which they were run. lines (dict): See Tracer."""

    seconds: dict[str, float]
    lines: dict[str, set[str]]

    def tests_of(self, mutant: Mutant, most: float) -> dict[str, float]:
        """Test -> its seconds: of those that run the mutant's line (where it is run as the module is imported: any line of the module), the
        mirrored file first, then the room's, as many as take no more than so many seconds, and one at least.
        """
        inside = Path(mutant.path).relative_to("spacy_calib").with_suffix("")
        mirror = f"tests/{(inside.parent / f'test_{inside.name}').as_posix()}.py"
        running = self._running({f"{mutant.path}:{mutant.line}"})
        if not running:
            start = f"{mutant.path}:"
            running = self._running({line for ran in self.lines.values() for line in ran if line.startswith(start)})
        of_file: dict[str, float] = defaultdict(float)
        for test in running:
            of_file[test.partition("::")[0]] += self.seconds[test]

        def rank(test: str) -> tuple[bool, bool, float, str]:
            file = test.partition("::")[0]
            return file != mirror, not file.startswith(f"tests/{inside.parts[0]}/"), of_file[file], file

        chosen: dict[str, float] = {}
        for test in sorted(running, key=rank):
            if not chosen or sum(chosen.values()) + self.seconds[test] <= most:
                chosen[test] = self.seconds[test]
        return chosen

    def _running(self, lines: set[str]) -> list[str]:
        return [
            test
            for test in self.seconds
            if lines & self.lines.get(test, set()) or lines & self.lines.get(test.partition("::")[0], set())
        ]


def run_tests(copy: Path, tests: Sequence[str], seconds: float, **more: str) -> str:
    """What is printed where a test of the copy does not pass, else "". seconds (float): Of processor time, which a loaded machine does not
    lengthen; ten times as many by the clock.
    """
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", *tests]
    paths = os.pathsep.join([str(copy), *([str(ROOT / "scripts")] if more else [])])
    settings = {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", **more}
    limited = ["bash", "-c", f'ulimit -t {int(seconds)}; exec "$@"', "bash", *command]
    try:
        done = subprocess.run(
            limited, cwd=copy, env={**os.environ, **settings}, capture_output=True, text=True, timeout=10 * seconds
        )
    except subprocess.TimeoutExpired:
        return "It hangs."
    return done.stdout + done.stderr + f"Ended with {done.returncode}." if done.returncode else ""


def run_unchanged(copy: Path, tests: Sequence[str], output: Path) -> Ran:
    """What they do, written to a file; where it is there, it is only read. RAISES SystemExit: they do not pass."""
    if not output.exists():
        said = run_tests(copy, tests, 3600, PYTEST_PLUGINS="mutation", **{_LINES: str(output)})
        if said:
            sys.exit(f"The tests fail before anything is changed: {' '.join(tests)}\n{said[-2000:]}")
    found = json.loads(output.read_text(encoding="utf-8"))
    return Ran(found["seconds"], {test: set(lines) for test, lines in found["lines"].items()})


def make_copy(folder: Path) -> Path:
    """The parts of the checkout that the tests need."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif (ROOT / name).exists():
            shutil.copy(ROOT / name, folder / name)
    return folder


def judge(chosen: list[Mutant], jobs: int, seconds: float, minutes: float, lines: Path | None) -> dict[Mutant, bool]:
    """Mutant -> whether it was killed, for those begun within so many minutes. seconds (float): Of tests for each. lines (Path | None): See
    `run_unchanged`.

    RAISES SystemExit: tests fail before anything is changed.
    """
    end = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as held:
        copies: queue.Queue[Path] = queue.Queue()
        for job in range(jobs):
            copies.put(make_copy(Path(os.path.realpath(held), str(job))))
        near = list(dict.fromkeys(test for one in chosen for test in tests_near(one.path)))
        ran = run_unchanged(copies.queue[0], near, lines or Path(held, "lines.json"))

        def is_killed(mutant: Mutant) -> bool | None:
            copy, tests = copies.get(), ran.tests_of(mutant, seconds)
            try:
                if time.monotonic() > end:
                    return None
                (copy / mutant.path).write_text(source_of(mutant), encoding="utf-8")
                killed = bool(tests and run_tests(copy, list(tests), 60 + 5 * sum(tests.values())))
                shutil.copy(ROOT / mutant.path, copy / mutant.path)
                said = "killed" if killed else "survived" if tests else "run by no test"
                print(f"{said}: {mutant.path}:{mutant.line}: {mutant.change} ({len(tests)} tests)", flush=True)
                return killed
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(jobs) as pool:
            found = zip(chosen, pool.map(is_killed, chosen), strict=True)
            return {mutant: killed for mutant, killed in found if killed is not None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("paths", nargs="*", default=ROOMS, help="Modules, or folders with modules")
    parser.add_argument("--sample", type=int, default=150, help="Mutants that are drawn")
    parser.add_argument("--seed", type=int, default=0, help="Of the drawing")
    parser.add_argument("--jobs", type=int, default=2, help="Copies that run at once")
    parser.add_argument("--seconds", type=float, default=40, help="Of tests that a mutant is run against")
    parser.add_argument("--minutes", type=float, default=60, help="After which no other mutant is begun")
    parser.add_argument(
        "--lines", type=Path, help="File of which test runs which lines: kept for another run of the same tests"
    )
    options = parser.parse_args()
    places = [ROOT / path for path in options.paths]
    files = [file for place in places for file in ([place] if place.suffix == ".py" else sorted(place.rglob("*.py")))]
    made = [mutant for file in files for mutant in mutants(file.relative_to(ROOT).as_posix())]
    chosen = random.Random(options.seed).sample(made, min(options.sample, len(made)))
    began = time.monotonic()
    killed = judge(chosen, options.jobs, options.seconds, options.minutes, options.lines)
    print("\n\n| room | mutants | killed | survived | score |\n|---|---|---|---|---|")
    rooms = sorted({mutant.path.split("/")[1] for mutant in killed})
    for room in [*rooms, "all"]:
        own = [dead for mutant, dead in killed.items() if room in ("all", mutant.path.split("/")[1])]
        print(f"| {room} | {len(own)} | {sum(own)} | {len(own) - sum(own)} | {100 * sum(own) / max(1, len(own)):.0f} % |")
    print(f"\n{len(killed)} of {len(made)} mutants, seed {options.seed}, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
