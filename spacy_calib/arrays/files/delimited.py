"""Tables as text: .csv with commas, .tsv with tabs; UTF-8, the names of the columns in the first line."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ...errors import calib_error
from ...types import Floats
from .columns import ABSENT, Chunk, batched, with_column


class Delimited:
    """delimiter (str): Between cells; cells with one, with a quote or a line break stand in double quotes."""

    def __init__(self, delimiter: str):
        self.delimiter = delimiter

    def chunks(self, path: Path) -> Iterator[Chunk]:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=self.delimiter, strict=True)
            try:
                header = next(reader, [])
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
                yield row

    def written(self, chunks: Iterable[Chunk]) -> Iterator[bytes]:
        first = True
        for chunk in chunks:
            text = io.StringIO()
            writer = csv.writer(
                text, delimiter=self.delimiter
            )  # lines end in \r\n, so that a cell with either of them is quoted
            if first:
                writer.writerow(chunk)
                first = False
            writer.writerows(zip(*([_cell(value) for value in column] for column in chunk.values()), strict=True))
            yield text.getvalue().encode("utf-8", "backslashreplace")

    def extended(self, path: Path, calibrated: Floats) -> Iterator[bytes]:
        return self.written(with_column(self.chunks(path), calibrated))


def _cell(value: Any) -> Any:
    if value is ABSENT:
        return None
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value
