"""The formats by the suffixes of their files, and the rows of one written as another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...errors import calib_error
from ...types import Floats
from .columns import CALIBRATED, Chunk, Format, with_column
from .npz import Npz, load_arrays, matrix_chunks
from .parquet import Parquet
from .text import Delimited, JsonLines

_FORMATS: dict[str, Format] = {
    ".csv": Delimited(","),
    ".tsv": Delimited("\t"),
    ".jsonl": JsonLines(),
    ".parquet": Parquet(),
    ".npz": Npz(),
}
_RAW: dict[str, Format] = {".csv": Delimited(",", raw=True), ".tsv": Delimited("\t", raw=True)}
SUFFIXES = tuple(_FORMATS)


def is_score_file(path: Path) -> bool:
    """Whether a path ends as files of scores do."""
    return path.suffix.lower() in _FORMATS


def has_cells(path: Path) -> bool:
    """Whether a path ends as tables of text do."""
    return path.suffix.lower() in _RAW


def format_of(path: Path, raw_cells: bool = False) -> Format:
    """raw_cells (bool): See `Delimited`. RAISES C303: files that end so are no files of scores."""
    if not is_score_file(path):
        raise calib_error("C303", path=path, why=f"it ends in {path.suffix or 'nothing'}")
    return {**_FORMATS, **(_RAW if raw_cells else {})}[path.suffix.lower()]


def chunks_of(path: Path) -> Iterator[Chunk]:
    """The rows of a file. RAISES C301 to C304: see `Format`; C051: there is no such file, C303: it cannot be read."""
    try:
        yield from format_of(path).chunks(path)
    except FileNotFoundError:
        raise calib_error("C051", path=path) from None
    except OSError as error:
        raise calib_error("C303", path=path, why=error.strerror or error) from None


def with_calibrated(path: Path, output: Path, calibrated: Floats, raw_cells: bool = False) -> Iterator[bytes]:
    """The bytes of output: the rows of path, with a column of calibrated scores.

    calibrated (Floats): Of each row, NaN for none; or the matrix, where the file has one. raw_cells: See `Delimited`.
    RAISES C301, C303: a file cannot be read, or not be written in this format. C304: pyarrow is not installed.
    """
    source, target = format_of(path), format_of(output, raw_cells)
    if source is target:
        return source.extended(path, calibrated)
    if calibrated.ndim == 1:
        return target.written(with_column(chunks_of(path), calibrated))
    return target.written(matrix_chunks({**load_arrays(path), CALIBRATED: calibrated}))
