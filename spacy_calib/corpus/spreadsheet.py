"""CSV for spreadsheets: cells that a spreadsheet would take for formulas are guarded by an apostrophe. JSON Lines are the exact form."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence

GUARD = "'"
# What makes a cell a formula, the same in full width, and what a spreadsheet drops before it looks. A cell that begins with apostrophes and
# such a character is guarded too, or it could not be told from a guarded one.
_FORMULA = re.compile("'*[=+\\-@\uff1d\uff0b\uff0d\uff20\t\r\n]")


def csv_lines(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """A line for the header and for each row, as they are made; numbers stay as they are, and a NUL, which readers stop at, becomes U+FFFD."""
    table = csv.writer(_Echo())  # lines end in \r\n, so that a cell with either of them is quoted
    yield table.writerow(header)
    for row in rows:
        yield table.writerow([guarded(cell) if isinstance(cell, str) else cell for cell in row])


class _Echo:
    """A file for a csv writer, which returns what this returns: the line."""

    def write(self, line: str) -> str:
        return line


def guarded(cell: str) -> str:
    """A cell as the file holds it: with a guard in front of what a spreadsheet would run, and without NUL, at which readers stop."""
    return (GUARD + cell if _FORMULA.match(cell) else cell).replace("\0", "\ufffd")


def unguarded(cell: str) -> str:
    """The cell from which `guarded` made this one."""
    return cell[len(GUARD) :] if cell.startswith(GUARD) and _FORMULA.match(cell) else cell
