"""Rows in chunks of columns -> the bytes of a CSV, JSON Lines or Parquet file."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from ...corpus.visible import csv_lines
from ...doc.score_rows import load_pyarrow

# Name of a column -> its values in some rows that follow one another. All chunks of a file have the same columns.
Chunk = dict[str, Sequence[Any]]


def csv_bytes(chunks: Iterable[Chunk], raw_cells: bool) -> Iterator[bytes]:
    """The bytes of a CSV file. raw_cells (bool): Whether cells that spreadsheets take for formulas have no guard."""
    for number, chunk in enumerate(chunks):
        rows = zip(*(map(_cell, column) for column in chunk.values()), strict=True)
        lines = csv_lines(list(chunk), rows, raw=raw_cells)
        yield "".join(islice(lines, min(number, 1), None)).encode("utf-8", "backslashreplace")  # one header alone


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value


def json_bytes(chunks: Iterable[Chunk]) -> Iterator[bytes]:
    """The bytes of a file with an object on each line."""
    for chunk in chunks:
        rows = zip(*chunk.values(), strict=True)
        lines = (json.dumps(dict(zip(chunk, row, strict=True)), ensure_ascii=False) for row in rows)
        yield "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")


class _Drained(io.BytesIO):
    """Bytes that are handed on while the file goes on growing."""

    def __init__(self) -> None:
        super().__init__()
        self._gone = 0

    def tell(self) -> int:
        return self._gone + super().tell()

    def drain(self) -> bytes:
        held = self.getvalue()
        self._gone += len(held)
        self.seek(0)
        self.truncate()
        return held


def bytes_of_tables(tables: Iterable[Any]) -> Iterator[bytes]:
    """The bytes of a Parquet file with the rows of these tables, which have one schema."""
    pa = load_pyarrow()
    sink, writer = _Drained(), None
    for table in tables:
        if writer is None:
            writer = pa.parquet.ParquetWriter(sink, table.schema)
        if table.num_rows:
            writer.write_table(table)
        yield sink.drain()
    if writer is not None:
        writer.close()
    yield sink.drain()
