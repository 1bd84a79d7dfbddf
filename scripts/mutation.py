"""Puts small faults into the numerical core, one at a time, and asks whether the tests beside the module notice.

    python scripts/mutation.py [FILE OR FOLDER ...] [--sample 150] [--seed 0] [--jobs 2]

A mutant is the module with one expression changed: < to <=, + to -, and to or, a number to the next one, min to max, a condition to its
opposite. It is run in a copy of the checkout against the tests of its room that import the module, the mirrored file first, and is killed
where one fails (or hangs). A survivor is a fault that no test sees, or a change without any effect: read it. Mutation tools mutate
annotations too and change files in place; what is left of them after that is no more than this.
"""

from __future__ import annotations

import argparse
import ast
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("spacy_calib/pairs", "spacy_calib/calibration", "spacy_calib/metrics")
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


def tests_of(path: str) -> list[str]:
    """The tests of the module's room that import it, the mirrored file first; all of the room where none does."""
    inside = Path(path).relative_to("spacy_calib").with_suffix("")
    room = ROOT / "tests" / inside.parts[0]
    dotted = ".".join(("spacy_calib", *inside.parts))
    mirror = ROOT / "tests" / inside.parent / f"test_{inside.name}.py"
    found = [
        file for file in sorted(room.rglob("test_*.py")) if dotted in file.read_text(encoding="utf-8").replace(" import ", ".")
    ]
    family = [file for file in [mirror.with_name("test_family.py")] if file.exists()]
    wanted = dict.fromkeys([mirror, *family, *found] if mirror.exists() else [*family, *found])
    return [file.relative_to(ROOT).as_posix() for file in wanted] or [room.relative_to(ROOT).as_posix()]


def is_killed(copy: Path, tests: list[str], limit: float) -> bool:
    """Whether a test of the copy fails or takes too long."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", *tests]
    settings = {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, cwd=copy, env={**os.environ, **settings}, capture_output=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def make_copy(folder: Path) -> Path:
    """The parts of the checkout that the tests need."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif (ROOT / name).exists():
            shutil.copy(ROOT / name, folder / name)
    return folder


def judge(chosen: list[Mutant], jobs: int, limit: float, seconds: float, green: bool) -> dict[Mutant, bool]:
    """Mutant -> whether it was killed, for those begun within so many seconds. RAISES SystemExit: tests fail before anything is changed."""
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as held:
        copies: queue.Queue[Path] = queue.Queue()
        for job in range(jobs):
            copies.put(make_copy(Path(held, str(job))))

        def run(tests: list[str], mutant: Mutant | None) -> bool | None:
            copy = copies.get()
            try:
                if time.monotonic() > end:
                    return None
                if mutant is None:
                    return is_killed(copy, tests, 10 * limit)
                (copy / mutant.path).write_text(source_of(mutant), encoding="utf-8")
                killed = is_killed(copy, tests, limit)
                shutil.copy(ROOT / mutant.path, copy / mutant.path)
                if not killed:
                    print(f"survived: {mutant.path}:{mutant.line}: {mutant.change}", flush=True)
                return killed
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(jobs) as pool:
            every = sorted({test for mutant in chosen for test in tests_of(mutant.path)})
            if not green and run(every, None):
                sys.exit(f"The tests fail before anything is changed: {' '.join(every)}")
            found = zip(chosen, pool.map(lambda one: run(tests_of(one.path), one), chosen), strict=True)
            return {mutant: killed for mutant, killed in found if killed is not None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("paths", nargs="*", default=ROOMS, help="Modules, or folders with modules")
    parser.add_argument("--sample", type=int, default=150, help="Mutants that are drawn")
    parser.add_argument("--seed", type=int, default=0, help="Of the drawing")
    parser.add_argument("--jobs", type=int, default=2, help="Copies that run at once")
    parser.add_argument("--limit", type=float, default=120, help="Seconds after which a mutant hangs")
    parser.add_argument("--minutes", type=float, default=60, help="After which no other mutant is begun")
    parser.add_argument("--green", action="store_true", help="The tests are known to pass: do not run them unchanged first")
    options = parser.parse_args()
    files = [
        file
        for path in options.paths
        for file in ([ROOT / path] if path.endswith(".py") else sorted((ROOT / path).rglob("*.py")))
    ]
    made = [mutant for file in files for mutant in mutants(file.relative_to(ROOT).as_posix())]
    chosen = random.Random(options.seed).sample(made, min(options.sample, len(made)))
    began = time.monotonic()
    killed = judge(chosen, options.jobs, options.limit, 60 * options.minutes, options.green)
    print("\n\n| room | mutants | killed | survived | score |\n|---|---|---|---|---|")
    rooms = sorted({mutant.path.split("/")[1] for mutant in killed})
    for room in [*rooms, "all"]:
        own = [dead for mutant, dead in killed.items() if room in ("all", mutant.path.split("/")[1])]
        print(f"| {room} | {len(own)} | {sum(own)} | {len(own) - sum(own)} | {100 * sum(own) / max(1, len(own)):.0f} % |")
    print(f"\n{len(killed)} of {len(made)} mutants, seed {options.seed}, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
