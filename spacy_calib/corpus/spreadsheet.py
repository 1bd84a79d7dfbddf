"""CSV for spreadsheets: an apostrophe guards cells that look like formulas. JSON Lines are the exact form."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

GUARD = "'"
# What makes a cell a formula (but not a negative number), the same in full width, and what a spreadsheet drops before.
# A cell with apostrophes and then such a character is guarded too, or it would look like a guarded one.
_NEGATIVE = r"-(?:[0-9]+\.?[0-9]*|\.[0-9]+|inf)(?:[eE][-+]?[0-9]+)?\Z"
_BEGINS = "=+-@\uff1d\uff0b\uff0d\uff20\t\r\n"
_FORMULA = re.compile(rf"(?!{_NEGATIVE})'*[{re.escape(_BEGINS)}]")
_SUSPECT = frozenset(GUARD + _BEGINS)


def csv_lines(
    header: Sequence[str], rows: Iterable[Sequence[object]], *, raw: bool = False, delimiter: str = ","
) -> Iterator[str]:
    """The lines of the header and the rows, as they are made; numbers stay, and NUL, where readers stop, is U+FFFD.

    raw (bool): Whether all cells stay as they are.
    """
    table = csv.writer(_Echo(), delimiter=delimiter)  # lines end in \r\n, so that a cell with either of them is quoted
    for row in chain([header], rows):
        yield table.writerow(row if raw else [guarded(cell) if isinstance(cell, str) else cell for cell in row])


class _Echo:
    """A file for a csv writer, which returns what this returns: the line."""

    def write(self, line: str) -> str:
        return line


def guarded(cell: str) -> str:
    """A cell as the file holds it: guarded if a spreadsheet would run it, and without NUL, where readers stop."""
    return (GUARD + cell if cell[:1] in _SUSPECT and _FORMULA.match(cell) else cell).replace("\0", "\ufffd")


def unguarded(cell: str) -> str:
    """The cell that `guarded` was given."""
    return cell[len(GUARD) :] if cell.startswith(GUARD) and _FORMULA.match(cell) else cell
