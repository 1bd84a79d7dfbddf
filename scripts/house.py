"""The house, read from the code: the tree of rooms, the arrows between them, and the numbers that CONTRIBUTING.md sets limits for.

    python scripts/house.py                      tree and numbers
    python scripts/house.py --against ../before  the numbers of two checkouts, beside each other
    python scripts/house.py --svg docs/house.svg the drawing

A room is a folder or a module at the top of the package. An arrow is drawn where a module of one room imports one of another (imports for type
checkers alone do not count). The lines of a function are counted without its docstring. Commands and options are those of docs/reference/commands.md,
which is written from the command line. The program ends with 1 where a limit is passed; what is WANTED is shown, and a limit once it is REACHED.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
# The order of the flow, which tests/test_imports.py holds: a room imports what stands before it.
NOUNS = ("about", "errors", "schema", "types")
CORE = (
    "pairs",
    "metrics",
    "calibration",
    "context",
    "corpus",
    "expect",
    "arrays",
    "statistics",
)
SHELL = ("registry", "doc", "sources", "pipe", "sequence", "coref", "pages", "factory", "presidio", "spark", "cli")
ROOMS = (*NOUNS, *CORE, *SHELL, "__init__")
LIMITS = {"lines": 350, "methods": 20, "function": 60, "entries": 26}
# What the whole is to weigh at most, and which of these are reached: from then on they are limits.
WANTED = {
    "entries at the top of the package": 24, "modules": 310, "lines": 44_000, "commands": 14, "options": 220, "lines of tests": 42_000,
    "lines of scripts": 10_000,
}  # fmt: skip
REACHED: frozenset[str] = frozenset()
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Sized(NamedTuple):
    """name (str): Module, or module and name. size (int): Lines, or methods."""

    name: str
    size: int


@dataclass(frozen=True)
class Module:
    """One file. name (str): Its path in the package without the ending. about (str): First sentence of its docstring."""

    name: str
    about: str
    lines: int
    imports: frozenset[str]
    classes: tuple[Sized, ...]
    functions: tuple[Sized, ...]

    @property
    def room(self) -> str:
        return self.name.split("/")[0]


@dataclass(frozen=True)
class House:
    """The modules of a package, the files at its top that are no modules, and what is counted around it: name -> number."""

    modules: tuple[Module, ...]
    others: tuple[str, ...]
    around: Mapping[str, int]

    @property
    def rooms(self) -> list[str]:
        """Rooms in the order of the flow; those that the order does not know come last."""
        found = {module.room for module in self.modules}
        return [room for room in ROOMS if room in found] + sorted(found - set(ROOMS))

    def arrows(self) -> set[tuple[str, str]]:
        """(room, room that it imports)."""
        rooms = set(self.rooms)
        found = {(module.room, name.split("/")[0]) for module in self.modules for name in module.imports}
        return {(room, other) for room, other in found if room != other and other in rooms}

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
    return House(modules, tuple(sorted(set(others) - {"__pycache__"})), _around(package.parent))


def _around(root: Path) -> dict[str, int]:
    """Commands, options, and lines of tests and scripts of a checkout."""
    page = root / "docs" / "reference" / "commands.md"
    lines = page.read_text(encoding="utf8").splitlines() if page.exists() else []
    found = {"commands": "## calib ", "options": "| `-"}
    counts = {name: sum(line.startswith(begin) for line in lines) for name, begin in found.items()}
    for folder in ("tests", "scripts"):
        files = (root / folder).rglob("*.py")
        counts[f"lines of {folder}"] = sum(path.read_text(encoding="utf8").count("\n") for path in files)
    return counts


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
    return Module(name, about, text.count("\n"), frozenset(_imported(nodes, path, package)), classes, functions)


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
        if node.module:
            yield place
        else:
            yield from (f"{place}/{alias.name}".lstrip("/") for alias in node.names)


# Numbers


def in_circles(arrows: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The arrows from whose end a way leads back to their beginning."""
    reach: dict[str, set[str]] = {}
    for room, _ in arrows:
        seen: set[str] = set()
        open_ends = [room]
        while open_ends:
            here = open_ends.pop()
            for start, end in arrows:
                if start == here and end not in seen:
                    seen.add(end)
                    open_ends.append(end)
        reach[room] = seen
    return {(room, other) for room, other in arrows if room in reach.get(other, ())}


def backwards(house: House) -> set[tuple[str, str]] | None:
    """The arrows against the order of the flow; None where the package has rooms that the order does not know."""
    if set(house.rooms) - set(ROOMS):
        return None
    return {(room, other) for room, other in house.arrows() if ROOMS.index(other) > ROOMS.index(room)}


def too_large(house: House) -> dict[str, list[Sized]]:
    """What passes a limit, the largest first."""
    modules = [Sized(module.name, module.lines) for module in house.modules]
    classes = [one for module in house.modules for one in module.classes]
    functions = [one for module in house.modules for one in module.functions]
    kinds = {"lines": modules, "methods": classes, "function": functions}
    return {
        kind: sorted((one for one in found if one.size > LIMITS[kind]), key=lambda one: -one.size)
        for kind, found in kinds.items()
    }


def weights(house: House) -> dict[str, int]:
    """What WANTED has a number for -> how many."""
    return {
        "entries at the top of the package": len(house.rooms) + len(house.others),
        "modules": len(house.modules),
        "lines": sum(module.lines for module in house.modules),
        **house.around,
    }


def figures(house: House) -> dict[str, str]:
    """What is counted -> how many."""
    large, arrows, back = too_large(house), house.arrows(), backwards(house)
    sizes = [one.size for module in house.modules for one in module.functions]
    return {
        **{name: f"{number:,}" for name, number in weights(house).items()},
        f"modules above {LIMITS['lines']} lines": f"{len(large['lines']):,}",
        f"classes above {LIMITS['methods']} methods": f"{len(large['methods']):,}",
        f"functions above {LIMITS['function']} lines": f"{len(large['function']):,}",
        "lines of a function, median and longest": f"{sorted(sizes)[len(sizes) // 2]} and {max(sizes)}",
        "rooms": f"{len(house.rooms):,}",
        "arrows between rooms": f"{len(arrows):,}",
        "arrows in circles of rooms": f"{len(in_circles(arrows)):,}",
        "arrows against the order of the flow": "no order" if back is None else f"{len(back):,}",
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
    entries = counted["entries at the top of the package"]
    if entries > LIMITS["entries"]:
        found.append(f"The package has {entries} entries at its top: at most {LIMITS['entries']} are wanted")
    found += [
        f"There are {counted[name]:,} {name}: at most {WANTED[name]:,} are wanted" for name in sorted(REACHED & above(house))
    ]
    return found + [f"{room} imports {other}, which stands below it" for room, other in sorted(backwards(house) or ())]


def above(house: House) -> set[str]:
    """What weighs more than is WANTED."""
    counted = weights(house)
    return {name for name, most in WANTED.items() if counted[name] > most}


# Text


def numbers(*houses: House) -> str:
    """A Markdown table, a column for each house, and one for what is wanted."""
    columns = [figures(house) for house in houses]
    heads = {1: ["now"], 2: ["before", "now"]}[len(houses)]
    lines = [["", *heads, "wanted"], ["---", *["---:"] * len(houses), "---"]]
    not_yet = above(houses[-1])
    for name in columns[0]:
        said = f"at most {WANTED[name]:,}{': not yet' * (name in not_yet)}" if name in WANTED else ""
        lines.append([name, *(column[name] for column in columns), said])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def tree(house: House) -> str:
    """A Markdown code block: rooms in the order of the flow, how many modules and lines each has, and what each is for."""
    lines = ["```text"]
    for title, rooms in (
        ("numerical core: numpy, scipy, scikit-learn", (*NOUNS, *CORE)),
        ("spaCy shell", (*SHELL, "__init__")),
    ):
        lines += [f"# {title}"]
        for room in (room for room in rooms if room in house.rooms):
            modules = [module for module in house.modules if module.room == room]
            name = f"{room}/" if any("/" in module.name for module in modules) else f"{room}.py"
            lines.append(
                f"{name:<15}{len(modules):>3} {sum(module.lines for module in modules):>6,}  {_short(house.about(room), 100)}"
            )
    return "\n".join([*lines, "```"])


# Drawing


class Box(NamedTuple):
    room: str
    x: float
    y: float


WIDTH, BOX, HEIGHT, GAP = 960.0, 236.0, 68.0, 40.0
COLOURS = {"nouns": ("#eceff1", "#546e7a"), "core": ("#e0f2f1", "#00796b"), "shell": ("#fff3e0", "#e65100")}


def reduced(arrows: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Without the arrows that a longer way says already."""

    def ways(start: str) -> set[str]:
        seen: set[str] = set()
        todo = [end for begin, end in arrows if begin == start]
        while todo:
            here = todo.pop()
            if here not in seen:
                seen.add(here)
                todo += [end for begin, end in arrows if begin == here]
        return seen

    reach = {room: ways(room) for pair in arrows for room in pair}
    return {
        (room, other)
        for room, other in arrows
        if not any(other in reach[between] for start, between in arrows if start == room and between != other)
    }


def floors(rooms: list[str], arrows: set[tuple[str, str]]) -> list[list[str]]:
    """Rooms by the longest way of imports down to a room that imports none, each then moved as near to those that use it as it can."""
    depth: dict[str, int] = {}
    for room in rooms:
        depth[room] = max((depth[other] + 1 for start, other in arrows if start == room and other in depth), default=0)
    for room in reversed(rooms):
        depth[room] = min((depth[user] - 1 for user, used in arrows if used == room), default=depth[room])
    return [[room for room in rooms if depth[room] == level] for level in range(max(depth.values()) + 1)]


def drawing(house: House) -> str:
    """An SVG: the rooms, the first of the flow on top, each with arrows to those it hands its results to (ways said by others are left out)."""
    rooms = [room for room in house.rooms if room in (*CORE, *SHELL)]
    drawn = {(room, other) for room, other in house.arrows() if room in rooms and other in rooms}
    arrows = reduced(drawn)
    boxes: dict[str, Box] = {}
    top = HEIGHT + GAP
    levels = floors(rooms, drawn)
    width = max(WIDTH, max(map(len, levels)) * (BOX + GAP / 2))  # boxes of one floor stand beside each other
    for number, floor in enumerate(levels):
        step = width / len(floor)
        for place, room in enumerate(floor):
            boxes[room] = Box(room, step * (place + 0.5), top + number * (HEIGHT + GAP))
    height = max(box.y for box in boxes.values()) + HEIGHT + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" font-family="sans-serif" role="img" '
        'aria-label="The rooms of spacy_calib and which room uses which">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#78909c"/></marker></defs>',
        f'<rect width="{width:g}" height="{height:g}" fill="#ffffff"/>',
        _box(
            "nouns",
            ", ".join(NOUNS),
            "used by every room: messages, nouns of the flow, forms of saved state",
            width / 2,
            8,
            width - 40,
        ),
        *(_arrow(boxes[other], boxes[room], list(boxes.values())) for room, other in sorted(arrows)),
        *(
            _box("core" if box.room in CORE else "shell", box.room, _short(house.about(box.room)), box.x, box.y, BOX)
            for box in boxes.values()
        ),
        f'<text x="20" y="{height - 10:g}" font-size="12" fill="#455a64">Green: numerical core, never imports spaCy. Orange: spaCy shell. '
        "An arrow leads from a room to one that uses it.</text>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _short(sentence: str, longest: int = 104) -> str:
    """The first words, cut at a place where one may stop."""
    first = sentence.split(". ")[0].rstrip(".").replace("`", "")
    if len(first) <= longest:
        return first
    return first[:longest].rsplit(" ", 1)[0].rstrip(",:;") + " ..."


def _box(kind: str, name: str, about: str, x: float, y: float, width: float) -> str:
    fill, ink = COLOURS[kind]
    lines = _folded(about, int(width / 5.9))
    text = "".join(
        f'<text x="{x:g}" y="{y + 36 + 13 * number:g}" font-size="10.5" text-anchor="middle" fill="#37474f">{escape(line)}</text>'
        for number, line in enumerate(lines)
    )
    return (
        f'<rect x="{x - width / 2:g}" y="{y:g}" width="{width:g}" height="{HEIGHT:g}" rx="7" fill="{fill}" stroke="{ink}"/>'
        f'<text x="{x:g}" y="{y + 20:g}" font-size="14" font-weight="bold" text-anchor="middle" fill="{ink}">{escape(name)}</text>{text}'
    )


def _folded(text: str, width: int) -> list[str]:
    """At most three lines of about this many characters."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines[:3]


def _arrow(start: Box, end: Box, boxes: list[Box]) -> str:
    """From the lower edge of one box to the upper edge of another, between the boxes of the floors that it passes."""
    x, y = start.x, start.y + HEIGHT
    path = f"M{x:g} {y:g}"
    for height in sorted({box.y for box in boxes if start.y < box.y < end.y}):
        middles = sorted(box.x for box in boxes if box.y == height)
        gaps = [
            middles[0] - BOX / 2 - 16,
            *((a + b) / 2 for a, b in zip(middles, middles[1:], strict=False)),
            middles[-1] + BOX / 2 + 16,
        ]
        wanted = start.x + (end.x - start.x) * (height - start.y) / (end.y - start.y)
        gap = min(gaps, key=lambda place: abs(place - wanted))
        path += f"{_bend(x, y, gap, height)}V{height + HEIGHT:g}"
        x, y = gap, height + HEIGHT
    path += _bend(x, y, end.x, end.y)
    return f'<path d="{path}" fill="none" stroke="#78909c" stroke-width="1.4" marker-end="url(#tip)"/>'


def _bend(x: float, y: float, to_x: float, to_y: float) -> str:
    middle = (y + to_y) / 2
    return f"C{x:g} {middle:g} {to_x:g} {middle:g} {to_x:g} {to_y:g}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--against", type=Path, metavar="PATH", help="Another checkout, whose numbers stand before those of this one"
    )
    parser.add_argument("--svg", type=Path, metavar="FILE", help="Write the drawing")
    options = parser.parse_args()
    house = read_house(ROOT / "spacy_calib")
    if options.svg:
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
