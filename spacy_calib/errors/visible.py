"""Safe output of texts: escapes control characters for terminals, pages and XML, and guards CSV cells against formulas."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

# Control characters, marks that change the direction of writing, separators of lines and paragraphs, halves of a
# surrogate pair, and the two code points in UTF-8 that are no characters.
_CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def visible(text: object, keep: str = "", json: bool = False) -> str:
    r"""Return a text with control characters escaped as in Python (\x1b), or as in JSON if `json`; those in `keep` stay."""

    def escape(character: str) -> str:
        return f"\\u{ord(character):04x}" if json else character.encode("unicode_escape").decode("ascii")

    return _CONTROL_CHARACTERS.sub(lambda match: match[0] if match[0] in keep else escape(match[0]), str(text))


def shown_path(path: Path) -> str:
    r"""Return a path as text that can be encoded in UTF-8: bytes of its name that are not UTF-8 become \xNN."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


GUARD = "'"  # put before a cell so that a spreadsheet takes the cell for text
# First characters of a formula (but not of a negative number), also in full width, and white space that a spreadsheet drops
# before them. A cell of apostrophes before such a character gets a guard too: else `unguard_cell` would take one off.
_NEGATIVE = r"-(?:[0-9]+\.?[0-9]*|\.[0-9]+|inf)(?:[eE][-+]?[0-9]+)?\Z"
_FORMULA_STARTS = "=+-@\uff1d\uff0b\uff0d\uff20\t\r\n"
_FORMULA = re.compile(rf"(?!{_NEGATIVE})'*[{re.escape(_FORMULA_STARTS)}]")
_SUSPECT = frozenset(GUARD + _FORMULA_STARTS)


def csv_lines(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield the lines of a CSV file with this header, with guards against formulas in its cells."""
    table = csv.writer(_Echo())  # lines end in \r\n, so that a cell with either of them is quoted
    for row in chain([header], rows):
        yield table.writerow([guard_cell(cell) if isinstance(cell, str) else cell for cell in row])


class _Echo:
    """A file for csv.writer whose `write` returns the line in place of storing it."""

    def write(self, line: str) -> str:
        return line


def guard_cell(cell: str) -> str:
    """Put an apostrophe before a cell that a spreadsheet would run as a formula. Replace NUL, at which readers stop."""
    is_formula = cell[:1] in _SUSPECT and _FORMULA.match(cell)  # the first test is only faster
    return (GUARD + cell if is_formula else cell).replace("\0", "\ufffd")


def unguard_cell(cell: str) -> str:
    """Remove the apostrophe that `guard_cell` put before a cell that looks like a formula."""
    return cell[len(GUARD) :] if cell.startswith(GUARD) and _FORMULA.match(cell) else cell
