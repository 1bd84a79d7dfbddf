"""Rows that the tests of plug-ins add to the tables of family tests: no test of the core names a plug-in."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from spacy.language import Language

ROOT = Path(__file__).parents[1]


class SourceRow(NamedTuple):
    """case (tuple): Registered name, settings, factory, as in tests/sources/test_family.py. pipeline (Callable): Trained, with this component.
    texts (tuple): Of which it says something. mapped (bool): Whether its labels are of a scheme, which another can replace.
    """

    case: tuple[str, dict[str, Any], str]
    pipeline: Callable[[], Language]
    texts: tuple[str, ...] = ()
    mapped: bool = True


def rows_of_plugins(table: str) -> list[Any]:
    """List what each rows.py or NAME_rows.py below tests/plugins has in ROWS under this name."""
    places = sorted(path for path in (ROOT / "tests" / "plugins").rglob("*.py") if path.stem == "rows" or _is_table(path))
    modules = [import_module(".".join(path.relative_to(ROOT).with_suffix("").parts)) for path in places]
    return [row for module in modules for row in module.ROWS.get(table, [])]


def _is_table(path: Path) -> bool:
    return path.stem.endswith("_rows") and not path.stem.startswith("test_")
