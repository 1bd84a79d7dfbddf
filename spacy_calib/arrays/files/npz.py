"""Binary files: NumPy's .npz, an array for each column or one matrix of all scores; and Parquet, by pyarrow."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import calib_error
from ...types import Floats
from .columns import ABSENT, CALIBRATED, NUMBERS, ROWS, Chunk, as_text, is_empty

# A matrix of all scores, shape (units, tags), and the label of each column, in place of the columns tag and score.
MATRIX, LABELS = "P", "labels"
# Names in a file with a matrix -> those of columns.
OF_UNITS = {"y": "gold", "documents": "document", "words": "word", "units": "unit", "sentences": "sentence"}
# A column of texts takes as much room for each as for the longest.
_MOST_BYTES = 1 << 30


def load_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of a file. RAISES C303: it is no .npz, or holds Python objects."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as held:
            if not isinstance(held, np.lib.npyio.NpzFile):
                raise ValueError("it is one array without a name")
            return {name: held[name] for name in held.files}
    except OSError:
        raise
    except Exception as error:
        why = (
            "an array of Python objects; save texts as astype(str)"
            if "pickle" in str(error)
            else str(error) or type(error).__name__
        )
        raise calib_error("C303", path=path, why=why.rstrip(".")) from None


class Npz:
    def chunks(self, path: Path) -> Iterator[Chunk]:
        arrays = load_arrays(path)
        if MATRIX in arrays:
            yield from matrix_chunks(arrays)
            return
        yield {name: [] for name in arrays}
        n = len_of(path, arrays)
        for at in range(0, n, ROWS):
            yield {name: array[at : at + ROWS].tolist() for name, array in arrays.items()}

    def written(self, chunks: Iterable[Chunk]) -> Iterator[bytes]:
        parts: dict[str, list[NDArray[Any]]] = {}
        for chunk in chunks:
            for name, values in chunk.items():
                parts.setdefault(name, []).append(_array(name, values))
        return _file_of({name: _joined(name, held) for name, held in parts.items()})

    def extended(self, path: Path, calibrated: Floats) -> Iterator[bytes]:
        return _file_of({**load_arrays(path), CALIBRATED: calibrated})


def len_of(path: Path, arrays: Mapping[str, NDArray[Any]]) -> int:
    """How many rows the columns have. RAISES C303: not one and the same number."""
    shapes = {name: array.shape for name, array in arrays.items()}
    n = next(iter(shapes.values()), (0,))
    if len(n) != 1 or set(shapes.values()) != {n}:
        shown = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise calib_error("C303", path=path, why=f"its arrays are no columns of one length: {shown}")
    return int(n[0])


def matrix_chunks(arrays: Mapping[str, NDArray[Any]]) -> Iterator[Chunk]:
    """A row for each score above 0 of a matrix."""
    matrix, labels = arrays[MATRIX], arrays[LABELS].astype(str)
    beside = {column: arrays[name] for name, column in OF_UNITS.items() if name in arrays}
    calibrated = arrays.get(CALIBRATED)
    step = max(1, ROWS // max(1, matrix.shape[1]))
    for at in range(0, max(1, len(matrix)), step):
        rows, columns = np.nonzero(matrix[at : at + step])
        chunk: Chunk = {name: array[at + rows].tolist() for name, array in beside.items()}
        chunk.setdefault("unit", (at + rows).tolist())
        chunk |= {"tag": labels[columns].tolist(), "score": matrix[at + rows, columns].tolist()}
        if calibrated is not None:
            chunk[CALIBRATED] = calibrated[at + rows, columns].tolist()
        yield chunk


def _array(name: str, values: Iterable[Any]) -> NDArray[Any]:
    if name in NUMBERS:
        return np.array([np.nan if is_empty(value) else float(value) for value in values], dtype=np.float64)
    return np.array(["" if is_empty(value) else as_text(value) for value in values], dtype=str)


def _joined(name: str, parts: list[NDArray[Any]]) -> NDArray[Any]:
    """RAISES C301: a column of texts that would take too much room."""
    n, widest = sum(map(len, parts)), max(part.dtype.itemsize for part in parts)
    if n * widest > _MOST_BYTES and name not in NUMBERS:
        why = f"a text of {widest // 4:,} characters makes it {n * widest / 2**30:.1f} GiB in .npz; write another format"
        raise calib_error("C301", where=f"The column {name!r}", path="the scores", why=why)
    return np.concatenate(parts)


def _file_of(arrays: Mapping[str, NDArray[Any]]) -> Iterator[bytes]:
    buffer = io.BytesIO()
    save: Any = np.savez
    save(buffer, **arrays)
    yield buffer.getvalue()


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
