"""What scripts/tools/house.py reads from the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tools import house, house_drawing

from tests import test_imports
from tests.docs.pages import DOCS, ROOT

FILES = {
    "__init__.py": '"""A package."""\n',
    "types.py": '"""Nouns. And more."""\n',
    "pairs/__init__.py": '"""Pairs."""\n',
    "pairs/build.py": "from ..types import x\nfrom . import bins\n",
    "pairs/bins.py": "def f():\n    from ..metrics import y\n",
    "metrics.py": '"""Numbers."""\nfrom typing import TYPE_CHECKING\nfrom .pairs.build import z\nif TYPE_CHECKING:\n    from .cli import w\n',
    "cli.py": '"""Commands."""\nfrom . import metrics, pairs\n',
    "py.typed": "",
    "plugins/__init__.py": "",
    "plugins/more/__init__.py": '"""More."""\nfrom ...metrics import y\nfrom ..one import f\n',
    "plugins/one.py": '"""One."""\nfrom ..pairs import bins\n',
}
SETUP = "[options.entry_points]\nspacy_factories =\n    a = {0}.plugins.more.b:c\n    d = {0}.plugins.more:e\nspacy_calib_sources =\n    f = {0}.sources:g\n"


@pytest.fixture
def made_up(tmp_path) -> Path:
    package = tmp_path / "package"
    for name, text in FILES.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "setup.cfg").write_text(SETUP.format("package"))
    return package


def test_rooms_and_arrows_are_read_from_imports(made_up):
    read = house.read_house(made_up)
    assert read.rooms == ["types", "pairs", "metrics", "cli", "__init__"]
    assert read.plugins == ["plugins/more", "plugins/one"]
    assert read.arrows() - read.core_arrows() == {
        ("plugins/more", "metrics"),
        ("plugins/more", "plugins/one"),
        ("plugins/one", "pairs"),
    }
    assert read.core_arrows() == {
        ("pairs", "types"),
        ("pairs", "metrics"),
        ("metrics", "pairs"),
        ("cli", "metrics"),
        ("cli", "pairs"),
    }
    assert house.in_circles(read.core_arrows()) == {("pairs", "metrics"), ("metrics", "pairs")}
    assert house.backwards(read) == {("pairs", "metrics")}
    figures = house.figures(read)
    assert (figures["entries at the top of the package"], figures["modules of the core"], figures["modules of plug-ins"]) == (
        "7",
        "7",
        "3",
    )
    assert (figures["arrows from the core to plug-ins"], figures["arrows between plug-ins"]) == ("0", "1")
    core, _, plugins = house.tree(read).partition("# plug-ins")
    assert "types.py *       1      1  Nouns\n" in core
    assert "cli.py           1      2  Commands\n" in core
    assert "more/            1      3  More (factories)\none.py           1      2  One\n" in plugins


def test_a_core_that_imports_a_plugin_is_seen(made_up):
    (made_up / "cli.py").write_text("from .plugins import one\nfrom .plugins.more import a\n")
    assert house.figures(house.read_house(made_up))["arrows from the core to plug-ins"] == "2"


def test_a_long_line_counts_as_two():
    assert house.count_lines("") == 0
    assert house.count_lines("x" * 128 + "\n" + "y" * 129 + "\n\n") == 4


def test_what_passes_a_limit_is_named(made_up):
    docstring = "        '''Not\n        counted.\n        '''\n"
    method = "    def m{}(self):\n" + docstring + "        pass\n"
    (made_up / "cli.py").write_text(
        '"""Commands."""\nclass Large:\n' + "".join(method.format(n) for n in range(21)) + "# .\n" * 244
    )
    (made_up / "types.py").write_text('"""Nouns."""\ndef long():\n' + "    x = 1\n" * 60)
    assert house.passed_limits(house.read_house(made_up)) == [
        "cli has 351 lines: at most 350 are wanted",
        "cli.Large has 21 methods: at most 20 are wanted",
        "types.long has 61 lines: at most 60 are wanted",
        "pairs imports metrics, which stands below it",
    ]


def test_the_rooms_are_those_of_the_import_test():
    assert [*house.ROOMS] == test_imports.ROOMS
    assert {*house.NUMERICAL} == test_imports.NUMERICAL


def table_of(page: str, head: str) -> list[list[set[str]]]:
    """The names in each cell of the rows below a head."""
    rows = page.partition(f"| {head} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [[set(re.findall(r"`([\w.]+)`", cell)) for cell in row.strip("|").split("|")] for row in rows]


def test_the_tables_of_contributing_are_those_of_the_code():
    """The rooms in order, what each plug-in plugs in by, and which other plug-ins it may import."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf8")
    read = house.read_house(ROOT / "spacy_calib")
    rows = table_of(page, "room of the core")
    rooms = [room for row in rows for room in house.ROOMS if room in row[0]]
    assert rooms == [room for room in house.ROOMS if room != "__init__"]
    numerical = re.search(r"^`([\w ]+)` are \*numerical\*", page, re.M)
    assert numerical
    assert {*numerical[1].split()} == {*house.NUMERICAL}
    plugins = {name: row for row in table_of(page, "plug-in") for name in row[0]}
    assert [f"plugins/{name}" for name in plugins] == read.plugins
    assert {name: row[2] for name, row in plugins.items()} == {name: {*read.plugs.get(name, ())} for name in plugins}
    assert {name: row[3] for name, row in plugins.items() if row[3]} == test_imports.BETWEEN


def test_two_checkouts_stand_beside_each_other(made_up):
    read = house.read_house(made_up)
    assert f"| modules of the core | 7 | 7 | at most {house.TOTALS['modules of the core']} |" in house.numbers(read, read)


def test_the_limits_of_the_whole_are_shown_and_held(tmp_path, monkeypatch):
    for name, text in {
        "package/types.py": "def f():\n    return 1\n",
        "docs/reference/commands.md": "## calib fit\n| `--all` | | A |\n| `-a` | | B |\n| word | | C |\n## calib info\n",
        "tests/test_a.py": "1\n2\n",
        "scripts/more/b.py": "1\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    read = house.read_house(tmp_path / "package")
    assert read.around == {"commands": 2, "options": 2, "lines of tests": 2, "lines of scripts": 1}
    assert house.passed_limits(read) == []
    monkeypatch.setitem(house.TOTALS, "options", 1)
    assert "| options | 2 | at most 1 |" in house.numbers(read)
    assert house.passed_limits(read) == ["There are 2 options: at most 1 are wanted"]


def test_the_drawing_is_of_the_rooms_of_today():
    """Else run `make reference`. What a box says of its room may lag behind."""

    def shapes(drawing: str) -> list[str]:
        return re.findall(r'<path d="[^"]+"|font-weight="bold"[^>]*>[^<]+', drawing)

    drawn = (DOCS / "house.svg").read_text(encoding="utf8")
    assert shapes(drawn) == shapes(house_drawing.drawing(house.read_house(ROOT / "spacy_calib")))
    assert len(shapes(drawn)) > 24


def test_no_limit_is_passed():
    """`make house`: modules, classes and functions stay small, and no room imports what stands below it."""
    assert house.passed_limits(house.read_house(ROOT / "spacy_calib")) == []
