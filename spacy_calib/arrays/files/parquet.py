"""Parquet, by pyarrow."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import calib_error
from ...types import Floats
from .columns import ABSENT, CALIBRATED, NUMBERS, ROWS, Chunk, as_text, is_empty


def load_pyarrow() -> Any:
    """RAISES C304: it is not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise calib_error("C304") from None
    return pyarrow


class Parquet:
    """Parquet. In files made from other formats, columns of scores are numbers and all others are texts."""

    def chunks(self, path: Path) -> Iterator[Chunk]:
        file = _open(path)
        yield {name: [] for name in file.schema_arrow.names}
        for batch in file.iter_batches(ROWS):
            yield batch.to_pydict()

    def written(self, chunks: Iterable[Chunk]) -> Iterator[bytes]:
        pa = load_pyarrow()

        def tables() -> Iterator[Any]:
            for chunk in chunks:
                columns = {
                    name: pa.array(_numbers(values), pa.float64()) if name in NUMBERS else pa.array(_texts(values), pa.string())
                    for name, values in chunk.items()
                }
                yield pa.table(columns)

        return bytes_of_tables(tables())

    def extended(self, path: Path, calibrated: Floats) -> Iterator[bytes]:
        pa = load_pyarrow()

        def tables() -> Iterator[Any]:
            at = 0
            for batch in _open(path).iter_batches(ROWS):
                own = calibrated[at : at + batch.num_rows]
                at += batch.num_rows
                table = pa.Table.from_batches([batch])
                if CALIBRATED in table.column_names:
                    table = table.drop([CALIBRATED])
                yield table.append_column(CALIBRATED, pa.array(own, pa.float64(), mask=np.isnan(own)))

        return bytes_of_tables(tables())


def _open(path: Path) -> Any:
    """RAISES C303: the file is no Parquet. C304: pyarrow is not installed."""
    pa = load_pyarrow()
    try:
        return pa.parquet.ParquetFile(path)
    except (pa.ArrowInvalid, pa.ArrowException) as error:
        raise calib_error("C303", path=path, why=str(error).splitlines()[0].rstrip(".")) from None


def _numbers(values: Iterable[Any]) -> list[float | None]:
    return [None if is_empty(value) else float(value) for value in values]


def _texts(values: Iterable[Any]) -> list[str | None]:
    return [None if value is None or value is ABSENT else as_text(value) for value in values]


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
