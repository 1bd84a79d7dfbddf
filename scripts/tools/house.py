"""The house, read from the code: the rooms of the core and the plug-ins, what imports what, and the numbers that have limits.

    python scripts/tools/house.py                      tree and numbers
    python scripts/tools/house.py --against ../before  the numbers of two checkouts, beside each other
    python scripts/tools/house.py --svg docs/house.svg the drawing

A room is a folder or a module at the top of the package, a plug-in one in `plugins/`. A room imports another if one of its modules does (imports for
type checkers alone do not count). A line of more than 128 characters counts as two. The lines of a function are counted without its docstring. Commands and
options are those of docs/reference/commands.md, which is written from the command line. The program ends with 1 where a limit is passed.
"""

from __future__ import annotations

import argparse
import ast
import configparser
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
# The rooms of the core in the order of the flow, which tests/test_imports.py holds: a room imports only rooms before it.
BASE = ("about", "errors", "schema", "types", "optional")
ROOMS = (
    *BASE, "pairs", "metrics", "annotations", "calibration", "context", "doc", "sources", "gold", "registry", "pipe", "cli", "__init__",
)  # fmt: skip
# Rooms that know numpy, scipy and scikit-learn, and no spaCy.
NUMERICAL = ("about", "errors", "schema", "types", "pairs", "metrics", "calibration", "context")
PLUGINS = "plugins"
LIMITS = {"lines": 350, "methods": 20, "function": 60}
# A longer line counts as two, so that a room does not become smaller by longer lines.
LINE_LENGTH = 128
# At most so much in all: what was there on 2026-11-27 and a little more, so that there is room to add something. A capability goes to the plug-ins.
TOTALS = {
    "entries at the top of the package": 20, "modules of the core": 208, "lines of the core": 32_500, "modules of plug-ins": 140,
    "lines of plug-ins": 20_350, "commands": 13, "options": 200, "lines of tests": 59_000, "lines of scripts": 16_850,
}  # fmt: skip
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Sized(NamedTuple):
    """name (str): Module, or module and name. size (int): Lines, or methods."""

    name: str
    size: int


@dataclass(frozen=True)
class Module:
    """One file. name (str): Its path in the package without the ending. about (str): First sentence of its docstring.

    lines (int): See `count_lines`. height (int): Lines in an editor, which the limit of a module is about.
    """

    name: str
    about: str
    lines: int
    height: int
    imports: frozenset[str]
    classes: tuple[Sized, ...]
    functions: tuple[Sized, ...]

    @property
    def room(self) -> str:
        """The room of the core, or plugins/NAME."""
        return room_of(self.name)


def room_of(name: str) -> str:
    """The room of a module: its first folder, of plug-ins the first two."""
    parts = name.split("/")
    return "/".join(parts[: 2 if parts[0] == PLUGINS else 1])


def is_plugin(room: str) -> bool:
    return room.startswith(f"{PLUGINS}/")


@dataclass(frozen=True)
class House:
    """The modules of a package, the files at its top that are no modules, and what is counted around it: name -> number.

    plugs (Mapping): Plug-in -> the groups of its entry points.
    """

    modules: tuple[Module, ...]
    others: tuple[str, ...]
    around: Mapping[str, int]
    plugs: Mapping[str, tuple[str, ...]]

    @property
    def rooms(self) -> list[str]:
        """Rooms of the core in the order of the flow; those that the order does not know come last."""
        rooms = {module.room for module in self.modules if not is_plugin(module.room)}
        return [room for room in ROOMS if room in rooms] + sorted(rooms - {*ROOMS})

    @property
    def plugins(self) -> list[str]:
        return sorted({module.room for module in self.modules if is_plugin(module.room)} - {f"{PLUGINS}/__init__"})

    def of(self, room: str) -> list[Module]:
        return [module for module in self.modules if module.room == room]

    def arrows(self) -> set[tuple[str, str]]:
        """(room, room that it imports), plug-ins among them."""
        rooms = {*self.rooms, *self.plugins}
        pairs = {(module.room, room_of(name)) for module in self.modules for name in module.imports}
        return {(room, other) for room, other in pairs if room != other and other in rooms}

    def core_arrows(self) -> set[tuple[str, str]]:
        """Those between rooms of the core."""
        return {pair for pair in self.arrows() if not any(map(is_plugin, pair))}

    def about(self, room: str) -> str:
        names = (f"{room}/__init__", room)
        return next(module.about for module in self.modules if module.name in names)


def read_house(package: Path) -> House:
    """Reads every module of a package from its syntax tree."""
    files = sorted(path for path in package.rglob("*.py") if "__pycache__" not in path.parts)
    others = [
        path.name
        for path in package.iterdir()
        if path.is_file() and path.suffix != ".py" or path.is_dir() and not _python(path)
    ]
    modules = tuple(_read_module(package, path) for path in files)
    return House(modules, tuple(sorted({*others} - {"__pycache__"})), _around(package.parent), read_plugs(package))


def read_plugs(package: Path) -> dict[str, tuple[str, ...]]:
    """Plug-in -> the groups of entry points that setup.cfg has for it."""
    config = configparser.ConfigParser(delimiters=("=",))
    config.read(package.parent / "setup.cfg", encoding="utf8")
    groups: dict[str, list[str]] = {}
    for group, lines in config["options.entry_points"].items() if "options.entry_points" in config else ():
        for name in re.findall(rf"= {package.name}\.{PLUGINS}\.(\w+)", lines):
            if group not in groups.setdefault(name, []):
                groups[name].append(group)
    return {name: tuple(found) for name, found in groups.items()}


def short_group(group: str) -> str:
    """The name of a group of entry points without its prefix: spacy_calib_sources -> sources."""
    return group.removeprefix("spacy_").removeprefix("calib_")


def _around(root: Path) -> dict[str, int]:
    """Commands, options, and lines of tests and scripts of a checkout."""
    page = root / "docs" / "reference" / "commands.md"
    lines = page.read_text(encoding="utf8").splitlines() if page.exists() else []
    found = {"commands": "## calib ", "options": "| `-"}
    counts = {name: sum(line.startswith(begin) for line in lines) for name, begin in found.items()}
    for folder in ("tests", "scripts"):
        files = (root / folder).rglob("*.py")
        counts[f"lines of {folder}"] = sum(count_lines(path.read_text(encoding="utf8")) for path in files)
    return counts


def count_lines(text: str) -> int:
    """Number of lines of a file; a line of more than LINE_LENGTH characters counts as two."""
    return sum(1 + (len(line) > LINE_LENGTH) for line in text.splitlines())


def _python(folder: Path) -> bool:
    return any(folder.rglob("*.py"))


def _read_module(package: Path, path: Path) -> Module:
    name = path.relative_to(package).with_suffix("").as_posix()
    text = path.read_text(encoding="utf8")
    tree = ast.parse(text)
    nodes = list(_runs(tree))
    classes = tuple(
        Sized(f"{name}.{node.name}", sum(isinstance(one, _FUNCTIONS) for one in node.body))
        for node in nodes
        if isinstance(node, ast.ClassDef)
    )
    functions = tuple(Sized(f"{name}.{node.name}", _lines_of(node)) for node in nodes if isinstance(node, _FUNCTIONS))
    about = (ast.get_docstring(tree) or "").split("\n\n")[0].replace("\n", " ")
    return Module(
        name, about, count_lines(text), text.count("\n"), frozenset(_imported(nodes, path, package)), classes, functions
    )


def _runs(node: ast.AST) -> Iterator[ast.AST]:
    """Every node below this one but those for type checkers alone."""
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)):
            yield child
            yield from _runs(child)


def _lines_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = node.body[0]
    docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    spared = (first.end_lineno or 0) - first.lineno + 1 if docstring else 0
    return (node.end_lineno or 0) - node.lineno + 1 - spared


def _imported(nodes: list[ast.AST], path: Path, package: Path) -> Iterator[str]:
    """Modules of the package that are imported, as paths in it."""
    for node in nodes:
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = path.parents[node.level - 1].relative_to(package).as_posix()
        place = "/".join(part for part in (base, (node.module or "").replace(".", "/")) if part not in ("", "."))
        if node.module and place != PLUGINS:
            yield place
        else:
            yield from (f"{place}/{alias.name}".lstrip("/") for alias in node.names)


# Numbers


def reached(arrows: set[tuple[str, str]]) -> dict[str, set[str]]:
    """Each room -> those that ways of arrows lead to."""
    found: dict[str, set[str]] = {room: set() for pair in arrows for room in pair}
    for room, seen in found.items():
        todo = [end for start, end in arrows if start == room]
        while todo:
            here = todo.pop()
            if here not in seen:
                seen.add(here)
                todo += [end for start, end in arrows if start == here]
    return found


def in_circles(arrows: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The arrows from whose end a way leads back to their beginning."""
    reach = reached(arrows)
    return {(room, other) for room, other in arrows if room in reach[other]}


def backwards(house: House) -> set[tuple[str, str]] | None:
    """The arrows of the core against the order of the flow; None where the package has rooms that the order does not know."""
    if {*house.rooms} - {*ROOMS}:
        return None
    return {(room, other) for room, other in house.core_arrows() if ROOMS.index(other) > ROOMS.index(room)}


def too_large(house: House) -> dict[str, list[Sized]]:
    """What passes a limit, the largest first."""
    modules = [Sized(module.name, module.height) for module in house.modules]
    classes = [one for module in house.modules for one in module.classes]
    functions = [one for module in house.modules for one in module.functions]
    kinds = {"lines": modules, "methods": classes, "function": functions}
    return {
        kind: sorted((one for one in found if one.size > LIMITS[kind]), key=lambda one: -one.size)
        for kind, found in kinds.items()
    }


def weights(house: House) -> dict[str, int]:
    """What TOTALS limits -> how many there are."""
    core = [module for module in house.modules if not is_plugin(module.room)]
    return {
        "entries at the top of the package": len({module.name.split("/")[0] for module in house.modules}) + len(house.others),
        "modules of the core": len(core),
        "lines of the core": sum(module.lines for module in core),
        "modules of plug-ins": len(house.modules) - len(core),
        "lines of plug-ins": sum(module.lines for module in house.modules if is_plugin(module.room)),
        **house.around,
    }


def figures(house: House) -> dict[str, str]:
    """What is counted -> how many."""
    large, arrows, back = too_large(house), house.arrows(), backwards(house)
    sizes = [one.size for module in house.modules for one in module.functions]
    from_core = {(room, other) for room, other in arrows if is_plugin(other) and not is_plugin(room)}
    return {
        **{name: f"{number:,}" for name, number in weights(house).items()},
        f"modules above {LIMITS['lines']} lines": f"{len(large['lines']):,}",
        f"classes above {LIMITS['methods']} methods": f"{len(large['methods']):,}",
        f"functions above {LIMITS['function']} lines": f"{len(large['function']):,}",
        "lines of a function, median and longest": f"{sorted(sizes)[len(sizes) // 2]} and {max(sizes)}",
        "rooms of the core": f"{len(house.rooms):,}",
        "arrows between rooms of the core": f"{len(house.core_arrows()):,}",
        "those in circles": f"{len(in_circles(house.core_arrows())):,}",
        "those against the order of the flow": "no order" if back is None else f"{len(back):,}",
        "arrows from the core to plug-ins": f"{len(from_core):,}",
        "plug-ins": f"{len(house.plugins):,}",
        "arrows between plug-ins": f"{sum(is_plugin(room) and is_plugin(other) for room, other in arrows):,}",
    }


def passed_limits(house: House) -> list[str]:
    """A sentence for each limit that is passed."""
    units = {"lines": "lines", "methods": "methods", "function": "lines"}
    found = [
        f"{one.name} has {one.size} {units[kind]}: at most {LIMITS[kind]} are wanted"
        for kind, sized in too_large(house).items()
        for one in sized
    ]
    counted = weights(house)
    found += [
        f"There are {counted[name]:,} {name}: at most {most:,} are wanted"
        for name, most in TOTALS.items()
        if counted[name] > most
    ]
    return found + [f"{room} imports {other}, which stands below it" for room, other in sorted(backwards(house) or ())]


# Text


def numbers(*houses: House) -> str:
    """A Markdown table, a column for each house, and one for the limits."""
    columns = [figures(house) for house in houses]
    heads = {1: ["now"], 2: ["before", "now"]}[len(houses)]
    lines = [["", *heads, "limit"], ["---", *["---:"] * len(houses), "---"]]
    for name in columns[0]:
        limit = f"at most {TOTALS[name]:,}" if name in TOTALS else ""
        lines.append([name, *(column[name] for column in columns), limit])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def tree(house: House) -> str:
    """A Markdown code block: modules and lines of each room of the core, in the order of the flow, and of each plug-in, and what it is for."""
    core = "core, from the bottom up; those with * know numpy, scipy and scikit-learn, and no spaCy"
    lines = ["```text"]
    for title, rooms in (
        (core, house.rooms),
        ("plug-ins, which the core does not import (groups of their entry points)", house.plugins),
    ):
        lines += [f"# {title}"]
        for room in rooms:
            modules = house.of(room)
            name = room.removeprefix(f"{PLUGINS}/") + ("/" if any(f"{room}/" in module.name for module in modules) else ".py")
            numbers = f"{len(modules):>3} {sum(module.lines for module in modules):>6,}"
            groups = house.plugs.get(room.removeprefix(f"{PLUGINS}/"), ()) if is_plugin(room) else ()
            by = f" ({', '.join(map(short_group, groups))})" if groups else ""
            lines.append(f"{name + ' *' * (room in NUMERICAL):<15}{numbers}  {shortened(house.about(room), 100)}{by}")
    return "\n".join([*lines, "```"])


def shortened(sentence: str, longest: int = 104) -> str:
    """The first words, cut at a place where one may stop."""
    first = sentence.split(". ")[0].rstrip(".").replace("`", "")
    if len(first) <= longest:
        return first
    return first[:longest].rsplit(" ", 1)[0].rstrip(",:;") + " ..."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--against", type=Path, metavar="PATH", help="Another checkout, whose numbers stand before those of this one"
    )
    parser.add_argument("--svg", type=Path, metavar="FILE", help="Write the drawing")
    options = parser.parse_args()
    house = read_house(ROOT / "spacy_calib")
    if options.svg:
        sys.path.insert(0, str(ROOT / "scripts"))
        from tools.house_drawing import drawing

        options.svg.write_text(drawing(house), encoding="utf8")
        return 0
    if options.against:
        print(numbers(read_house(options.against / "spacy_calib"), house))
    else:
        print(tree(house), numbers(house), sep="\n\n")
    passed = passed_limits(house)
    print(*passed, sep="\n", file=sys.stderr)
    return 1 if passed else 0


if __name__ == "__main__":
    sys.exit(main())
