"""Move modules, names, resources and tests by a plan, and rewrite every mention of them. Run at the root of a clean checkout.

    python scripts/tools/move.py check PLAN.json     list the faults of a plan against the last commit
    python scripts/tools/move.py split PLAN.json     move names between modules at their old places; then ruff (I, F401, F821), commit
    python scripts/tools/move.py move PLAN.json      move files, rewrite imports, dotted names and paths; commit that alone, so that git follows
    python scripts/tools/move.py restamp COMMIT      give figures that were of the code of COMMIT the digest of today's code

A plan is a JSON object; each part may be missing:

    "split": {file: {file to move to: [names]}}    "about": {new file of a split: its docstring}
    "move": {path: new path} of any file           "rooms": {folder: docstring of its new __init__.py}    "drop": [files]

A test tests/A/test_b.py moves with its module A/b.py; other tests are named in "move". Drop the __init__.py of a folder whose modules go to several
places: what is moved is taken for the folder's new place. Restamp only where only places have changed, and the scores are equal.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

import srsly

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from code_digest import RECORD, digest_of, entries, stale
from tools.renames import Renames, bound_names, dotted, package_of, rewrite_imports
from tools.splitting import Splitter, top_names

PACKAGE, TESTS = "spacy_calib", "tests"
TEXTS = (
    "*.py", "*.md", "*.cfg", "*.toml", "*.yml", "*.yaml", "*.in", "*.ipynb", "*.json", "*.svg", "Makefile", "LICENSES_SOURCES", "*.cff",
)  # fmt: skip
# History and recordings keep old names; the drawing is made of the code, the record of figures is read as data.
UNCHANGED = re.compile(rf"CHANGELOG\.md|docs/house\.svg|docs/figures\.json|{TESTS}/recorded/|{PACKAGE}/.*\.json")


def git(*words: str) -> list[str]:
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout.splitlines()


# The plan


@dataclass(frozen=True)
class Plan:
    """What moves; see the docstring of this program."""

    split: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    about: Mapping[str, str] = field(default_factory=dict)
    move: Mapping[str, str] = field(default_factory=dict)
    rooms: Mapping[str, str] = field(default_factory=dict)
    drop: Sequence[str] = ()

    @classmethod
    def from_file(cls, path: Path) -> Plan:
        parts = json.loads(path.read_text(encoding="utf8"))
        return cls(**{name: part for name, part in parts.items() if name in cls.__dataclass_fields__})

    def all_moves(self, files: set[str]) -> dict[str, str]:
        """Path -> new path, with the tests that mirror moved modules."""
        mirrored = {test_of(old): test_of(new) for old, new in self.move.items() if old.startswith(PACKAGE)}
        return {**{old: new for old, new in mirrored.items() if old in files}, **self.move}

    def folders(self, files: set[str]) -> dict[str, str]:
        """Package -> its new place, of the packages all of whose modules move together."""
        places: dict[str, set[str]] = {}
        for old, new in self.move.items():
            places.setdefault(package_of(old), set()).add(package_of(new))
        return {
            folder: next(iter(targets))
            for folder, targets in places.items()
            if len(targets) == 1
            and f"{(path := folder.replace('.', '/'))}/__init__.py" in self.move
            and {name for name in files if name.startswith(f"{path}/") and name.endswith(".py")} <= {*self.move, *self.drop}
        }


def test_of(module: str) -> str:
    """The test of a module of the package: A/b.py -> tests/A/test_b.py."""
    folder, _, name = module.removeprefix(f"{PACKAGE}/").rpartition("/")
    return "/".join(part for part in (TESTS, folder, f"test_{name}") if part)


def faults(plan: Plan, files: set[str], split: bool) -> Iterator[str]:
    """A sentence for each fault of a plan. files (set): Those of the last commit, not of the folder. split (bool): Splits are to be made."""
    targets = {new for places in plan.split.values() for new in places}
    if split:
        for old, places in plan.split.items():
            if old not in files:
                yield f"split: {old} is not in the last commit."
                continue
            missing = {name for names in places.values() for name in names} - top_names(Path(old).read_text(encoding="utf8"))
            if missing:
                yield f"split: {old} defines no {', '.join(sorted(missing))} at its top."
        for new in sorted(targets - files - {*plan.about}):
            yield f"split: {new} is new: 'about' needs its docstring."
        for new in sorted((targets - files) & {*plan.move.values()}):
            yield f"split: {new} is a new place: name the old one, 'move' brings it there."
    moves = plan.all_moves(files := files | targets if split else files)
    for old in sorted({*moves, *plan.drop} - files):
        yield f"move: {old} is not in the last commit."
    for new, count in Counter(moves.values()).items():
        if count > 1:
            yield f"move: {count} files go to {new}."
        if new in files - {*moves, *plan.drop}:
            yield f"move: {new} exists already."


def doubts(plan: Plan, files: set[str]) -> Iterator[str]:
    """A sentence for each part of a plan that is possible, and perhaps not meant."""
    moves = plan.all_moves(files)
    after = (files - {*moves, *plan.drop}) | {*moves.values()}
    packages = {package_of(name) for name in after if name.endswith("/__init__.py")} | {*map(dotted, plan.rooms)}
    for package in sorted({package_of(new) for new in moves.values() if new.endswith(".py")} - packages):
        yield f"rooms: {package} has no __init__.py."
    for old, new in plan.move.items():
        places = {package_of(target) for name, target in plan.move.items() if package_of(name) == package_of(old)}
        if old.endswith("/__init__.py") and len(places) > 1:
            yield f"move: {package_of(old)} goes to {len(places)} places: what names the package will name {package_of(new)}."


# Splits


def split(plan: Plan, files: set[str]) -> list[str]:
    """Move names between modules. Returns what is left to do by hand."""
    names = {(dotted(old), name): dotted(new) for old, places in plan.split.items() for new in places for name in places[new]}
    modules = {dotted(name) for name in files if name.endswith(".py")} | {*names.values()}
    renames = Renames({}, names, modules, bound_names(files))
    notes = [note for old, places in plan.split.items() for note in Splitter(old, places, plan.about, renames).write()]
    # New files are added at once: `git clean` would delete them.
    git("add", "--all", *plan.split, *(new for places in plan.split.values() for new in places))
    _rewrite_files(renames, {}, {})
    _move_measured([(old, new) for old, places in plan.split.items() for new in places], renames.rewrite_text)
    moved = "|".join(sorted(name for _, name in names))
    return notes + _mentions(rf"""setattr\([^"']*["']({moved})["']()""", "is set by its name")


# Moves


def move(plan: Plan, files: set[str]) -> list[str]:
    """Move files and rewrite what mentions them. Returns what is left to do by hand."""
    moves, folders = plan.all_moves(files), plan.folders(files)
    modules = {dotted(old): dotted(new) for old, new in moves.items() if old.endswith(".py")}
    renames = Renames({**folders, **modules}, {}, {dotted(name) for name in files if name.endswith(".py")}, bound_names(files))
    for folder, about in plan.rooms.items():
        path = Path(folder, "__init__.py")
        if path.as_posix() not in moves.values() and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f'"""{about}"""\n' if about else "", encoding="utf8")
            git("add", path.as_posix())
    for old in plan.drop:
        git("rm", "-q", old)
    for old, new in moves.items():
        Path(new).parent.mkdir(parents=True, exist_ok=True)
        git("mv", old, new)
    _rewrite_files(renames, moves, folders)
    if Path("setup.cfg").exists():
        _move_package_data(moves)
    _move_measured([*moves.items()], _text_rewriter(renames, moves, folders))
    gone = _remove_left_folders({package_of(old).replace(".", "/") for old in [*moves, *plan.drop]})
    words = "|".join(sorted({Path(folder).name for folder in gone}))
    notes = [f"{new}: fixtures are seen by folder." for new in moves.values() if new.endswith("conftest.py")]
    # A path in pieces, or one that begins below the package.
    pattern = rf"""["'](?:{PACKAGE}|{TESTS})["'] / ["']({words})["']|["']({words})(?:/\w|\.\w+\.\w)"""
    return notes + (_mentions(pattern, "is gone") if gone else [])


def _rewrite_files(renames: Renames, moves: Mapping[str, str], folders: Mapping[str, str]) -> None:
    """Rewrite imports, dotted names and paths in every file that has them."""
    old_paths = {new: old for old, new in moves.items()}
    rewrite = _text_rewriter(renames, moves, folders)
    for name in git("ls-files", *TEXTS):
        if UNCHANGED.match(name):
            continue
        path = Path(name)
        text = before = path.read_text(encoding="utf8")
        if name.endswith(".py"):
            text = rewrite_imports(text, old_paths.get(name, name), name, renames)
        text = rewrite(text)
        if name.startswith(f"{PACKAGE}/") and name.endswith(".py"):
            text = renames.rewrite_own_strings(text, PACKAGE)
        if text != before:
            path.write_text(text, encoding="utf8")


def _text_rewriter(renames: Renames, moves: Mapping[str, str], folders: Mapping[str, str]) -> Callable[[str], str]:
    """A function that rewrites dotted names and paths of a text. Paths of the package may lack its name."""
    top = f"{PACKAGE}/"
    paths = {old.replace(".", "/"): new.replace(".", "/") for old, new in folders.items()} | {**moves}
    paths |= {
        old.removeprefix(top): new.removeprefix(top) for old, new in moves.items() if old.startswith(top) and old.count("/") > 1
    }
    by_length = sorted(map(re.escape, paths), key=len, reverse=True)
    pattern = re.compile(rf"(?<![\w/.-])({'|'.join(by_length)})(?!\w)") if paths else None

    def rewrite(text: str) -> str:
        text = renames.rewrite_text(text)
        return pattern.sub(lambda match: paths[match.group()], text) if pattern else text

    return rewrite


def _mentions(pattern: str, what: str) -> list[str]:
    """Lines of Python files that a person has to look at."""
    return [
        f"{name}:{number}: {match[1] or match[2]} {what}: {line.strip()}"
        for name in git("ls-files", "*.py")
        for number, line in enumerate(Path(name).read_text(encoding="utf8").splitlines(), 1)
        if (match := re.search(pattern, line)) and not line.lstrip().startswith(("from ", "import "))
    ]


def _remove_left_folders(folders: set[str]) -> list[str]:
    """Delete folders that hold nothing but compiled files: Python imports them as namespace packages, so that a stale import passes."""
    gone = []
    for folder in sorted(folders, key=len, reverse=True):
        path = Path(folder)
        if not git("ls-files", folder) and all("__pycache__" in file.parts for file in path.rglob("*") if file.is_file()):
            shutil.rmtree(path, ignore_errors=True)
            gone.append(folder)
    return gone


# Resources in setup.cfg


def _move_package_data(moves: Mapping[str, str]) -> None:
    """Patterns of package data follow the files that they match; a package keeps those that still match one."""
    path = Path("setup.cfg")
    text = path.read_text(encoding="utf8")
    section = re.search(r"^\[options\.package_data\]\n((?:[^\[\n].*\n)*)", text, re.M)
    if not section:
        return
    # Dotted names are rewritten by now: a package that moved whole has its new name already.
    patterns = {
        name.strip(): re.split(r",\s*", value.strip())
        for name, _, value in (line.partition("=") for line in section[1].splitlines())
    }
    lines: dict[str, list[str]] = {}
    for package, globs in patterns.items():
        folder = Path(package.replace(".", "/"))
        for glob in globs:
            tracked = git("ls-files", f"{folder.as_posix()}/")
            left = [name for name in tracked if Path(name).relative_to(folder).match(glob)]
            matched = {old: new for old, new in moves.items() if Path(old).is_relative_to(folder)}
            homes = [package_of(new) for old, new in matched.items() if Path(old).relative_to(folder).match(glob)]
            for home in [package] * bool(left or not homes) + homes:
                if glob not in lines.setdefault(home, []):
                    lines[home].append(glob)
    changed = "".join(f"{package} = {', '.join(globs)}\n" for package, globs in lines.items())
    path.write_text(text[: section.start(1)] + changed + text[section.end(1) :], encoding="utf8")


# Figures


def _move_measured(moves: Sequence[tuple[str, str]], rewrite: Callable[[str], str]) -> None:
    """Commands and measured rooms of the figures get their new names; digests stay (see `restamp`)."""
    if not RECORD.exists():
        return
    record = entries(Path())
    for entry in record:
        entry["command"] = rewrite(entry["command"])
        if "first" in entry:
            entry["first"] = [rewrite(command) for command in entry["first"]]
        rooms = list(dict.fromkeys(new for room in entry["measures"] for new in new_rooms(room, moves)))
        entry["measures"] = [room for room in rooms if room in entry["measures"] or not _is_inside(room, {*rooms} - {room})]
    srsly.write_json(RECORD, record)


def new_rooms(room: str, moves: Sequence[tuple[str, str]]) -> list[str]:
    """The rooms to measure instead of one: itself while it exists, else the places that its code went to.

    A module whose names were split is measured with the modules that they went to.
    """
    sign, path = ("-", f"{PACKAGE}/{room[1:]}") if room.startswith("-") else ("", f"{PACKAGE}/{room}")
    left = {old: new for old, new in moves if _is_inside(old, [path]) and new.endswith(".py")}
    places = [path] if git("ls-files", path) else []
    if not places and len(parents := {new.removesuffix(old.removeprefix(path)) for old, new in left.items()}) == 1:
        places = [*parents]  # a folder that moved whole
    elif not places or path.endswith(".py"):
        modules = {*left.values()}
        for folder in sorted({parent.as_posix() for new in modules for parent in Path(new).parents}):
            inside = {*git("ls-files", f"{folder}/*.py")}
            if len(inside & modules) > 1 and inside - {f"{folder}/__init__.py"} <= modules:
                places.append(folder)
                modules -= inside
        places += sorted(modules)
    return [sign + place.removeprefix(f"{PACKAGE}/") for place in places]


def _is_inside(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def restamp(commit: str) -> list[str]:
    """Give the figures whose digest was that of the code of a commit the digest of today's code. Returns their names."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        archive = subprocess.run(["git", "archive", commit, PACKAGE, RECORD.as_posix()], check=True, capture_output=True)
        with tarfile.open(fileobj=BytesIO(archive.stdout)) as tar:
            tar.extractall(root, filter="data")
        up_to_date = {entry["name"]: entry["code"] for entry in entries(root) if not stale(entry, root)}
    record = entries(Path())
    moved = [entry for entry in record if up_to_date.get(entry["name"]) == entry["code"] and stale(entry, Path())]
    for entry in moved:
        entry["code"] = digest_of(entry["measures"], Path())
    srsly.write_json(RECORD, record)
    return [entry["name"] for entry in moved]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("check", "split", "move", "restamp"))
    parser.add_argument("source", metavar="PLAN.json|COMMIT")
    options = parser.parse_args(arguments)
    if options.step == "restamp":
        print(f"Restamped: {', '.join(restamp(options.source)) or 'none'}.")
        return 0
    plan = Plan.from_file(Path(options.source))
    files = {*git("ls-tree", "-r", "--name-only", "HEAD")}
    found = [*faults(plan, files, options.step != "move")]
    if options.step != "check" and git("status", "--porcelain", "--untracked-files=no"):
        found.append("The checkout has changes: commit them first.")
    if found or options.step == "check":
        lines = [*found, *doubts(plan, files)]
        print(*lines, sep="\n", end="\n" * bool(lines))
        return 1 if found else 0
    notes = split(plan, files) if options.step == "split" else move(plan, files)
    print(*notes, sep="\n", end="\n" * bool(notes))
    print("Next: ruff check --select I,F401 --fix; ruff format; ruff check --select F821; reinstall, if setup.cfg has changed.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
