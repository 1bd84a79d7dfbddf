"""Text that nothing misreads: escapes for a terminal, a page or an XML file, and guarded cells for spreadsheets."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

# Control characters, marks that turn the direction of writing, separators of lines and paragraphs, halves of a
# surrogate pair, and the two code points in UTF-8 that are no characters.
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def visible(text: object, keep: str = "", json: bool = False) -> str:
    r"""A text with control characters escaped as in Python (\x1b), or as in JSON if `json`; those in `keep` stay."""

    def escape(sign: str) -> str:
        return f"\\u{ord(sign):04x}" if json else sign.encode("unicode_escape").decode("ascii")

    return _STEERING.sub(lambda match: match[0] if match[0] in keep else escape(match[0]), str(text))


def shown_path(path: Path) -> str:
    r"""A path as text in UTF-8; bytes of its name that are no UTF-8 are \xNN."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


GUARD = "'"
# What makes a cell a formula (but not a negative number), the same in full width, and what a spreadsheet drops before.
# A cell with apostrophes and then such a character is guarded too, or it would look like a guarded one.
_NEGATIVE = r"-(?:[0-9]+\.?[0-9]*|\.[0-9]+|inf)(?:[eE][-+]?[0-9]+)?\Z"
_BEGINS = "=+-@\uff1d\uff0b\uff0d\uff20\t\r\n"
_FORMULA = re.compile(rf"(?!{_NEGATIVE})'*[{re.escape(_BEGINS)}]")
_SUSPECT = frozenset(GUARD + _BEGINS)


def csv_lines(header: Sequence[str], rows: Iterable[Sequence[object]], *, raw: bool = False) -> Iterator[str]:
    """Yield the lines of a CSV file. raw (bool): Whether cells stay as they are, unguarded."""
    table = csv.writer(_Echo())  # lines end in \r\n, so that a cell with either of them is quoted
    for row in chain([header], rows):
        yield table.writerow(row if raw else [guarded(cell) if isinstance(cell, str) else cell for cell in row])


class _Echo:
    """A file for a csv writer that returns each line."""

    def write(self, line: str) -> str:
        return line


def guarded(cell: str) -> str:
    """Guard a cell that a spreadsheet would run, and replace NUL, where readers stop."""
    return (GUARD + cell if cell[:1] in _SUSPECT and _FORMULA.match(cell) else cell).replace("\0", "\ufffd")


def unguarded(cell: str) -> str:
    """Return the cell that `guarded` was given."""
    return cell[len(GUARD) :] if cell.startswith(GUARD) and _FORMULA.match(cell) else cell
