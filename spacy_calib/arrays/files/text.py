"""Tables as text: .csv with commas, .tsv with tabs, the columns' names in the first line; JSON Lines. All are UTF-8."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ...corpus.nesting import DEEPEST, is_too_deep
from ...corpus.visible import csv_lines, unguarded
from ...errors import calib_error
from ...types import Floats
from .columns import ABSENT, NUMBERS, Chunk, batched, is_empty, with_column


class Delimited:
    """delimiter (str): Between cells; a cell with one, a quote or a line break is in double quotes. raw (bool): Whether
    to write cells that spreadsheets take for formulas without a guard, see `spreadsheet`. Reading takes guards away.
    """

    def __init__(self, delimiter: str, raw: bool = False):
        self.delimiter = delimiter
        self.raw = raw

    def chunks(self, path: Path) -> Iterator[Chunk]:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=self.delimiter, strict=True)
            try:
                header = [unguarded(name) for name in next(reader, [])]
                if len(set(header)) != len(header):
                    raise calib_error("C303", path=path, why="two of its columns have one name")
                yield {name: [] for name in header}
                for rows in batched(self._rows(path, reader, len(header))):
                    yield dict(zip(header, zip(*rows, strict=True), strict=True))
            except csv.Error as error:
                raise calib_error("C301", where=f"Line {reader.line_num:,}", path=path, why=error) from None
            except UnicodeDecodeError:
                raise calib_error("C303", path=path, why="it is not UTF-8") from None

    def _rows(self, path: Path, reader: Any, n: int) -> Iterator[list[str]]:
        for row in reader:
            if len(row) != n and row:
                why = f"it has {len(row)} cells, and there are {n} columns"
                raise calib_error("C301", where=f"Line {reader.line_num:,}", path=path, why=why)
            if row:
                yield [unguarded(cell) for cell in row]

    def written(self, chunks: Iterable[Chunk]) -> Iterator[bytes]:
        for number, chunk in enumerate(chunks):
            rows = zip(*(map(_cell, column) for column in chunk.values()), strict=True)
            lines = csv_lines(list(chunk), rows, raw=self.raw, delimiter=self.delimiter)
            yield "".join(islice(lines, min(number, 1), None)).encode("utf-8", "backslashreplace")  # one header alone

    def extended(self, path: Path, calibrated: Floats) -> Iterator[bytes]:
        return self.written(with_column(self.chunks(path), calibrated))


def _cell(value: Any) -> Any:
    if value is ABSENT:
        return None
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value


class JsonLines:
    """Keys that a line lacks are ABSENT there; a key that no line of the first chunk has is left out."""

    def chunks(self, path: Path) -> Iterator[Chunk]:
        with path.open(encoding="utf-8-sig") as file:
            try:
                batches = batched(_objects(path, file))
                first = next(batches, [])
                names = list(dict.fromkeys(chain.from_iterable(first)))
                for rows in chain([first], batches):
                    yield {name: [row.get(name, ABSENT) for row in rows] for name in names}
            except UnicodeDecodeError:
                raise calib_error("C303", path=path, why="it is not UTF-8") from None

    def written(self, chunks: Iterable[Chunk]) -> Iterator[bytes]:
        for chunk in chunks:
            rows = zip(*chunk.values(), strict=True)
            lines = (
                json.dumps(
                    {name: _plain(name, value) for name, value in zip(chunk, row, strict=True) if value is not ABSENT},
                    ensure_ascii=False,
                )
                for row in rows
            )
            yield "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")

    def extended(self, path: Path, calibrated: Floats) -> Iterator[bytes]:
        return self.written(with_column(self.chunks(path), calibrated))


def _objects(path: Path, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The objects on lines of JSON. RAISES C301: a line that is no object, or nested too deep."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            too_deep = line.count("[") + line.count("{") > DEEPEST and is_too_deep(row)
        except ValueError as error:
            raise calib_error("C301", where=f"Line {number:,}", path=path, why=f"it is no JSON: {error}") from None
        except RecursionError:
            too_deep = True
        if too_deep:
            raise calib_error("C301", where=f"Line {number:,}", path=path, why=f"it is nested more than {DEEPEST} deep")
        if not isinstance(row, dict):
            raise calib_error("C301", where=f"Line {number:,}", path=path, why="it is no object with a tag and a score")
        yield row


def _plain(name: str, value: Any) -> Any:
    """A cell of the column of this name as JSON can hold it."""
    if is_empty(value):
        return "" if value == "" and name not in NUMBERS else None
    if name in NUMBERS:
        return float(value)
    return value if value is None or isinstance(value, (str, bool, int, float, list, dict)) else str(value)
