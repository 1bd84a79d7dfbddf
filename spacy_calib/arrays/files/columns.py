"""What all formats share: rows as chunks of columns, so that a million rows are never in memory at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from ...errors import CalibError, calib_error
from ...types import Floats

Item = TypeVar("Item")

# Name of a column -> its values in some rows that follow one another. All chunks of a file have the same columns.
Chunk = dict[str, Sequence[Any]]

ROWS = 50_000
# What stands for a key that a line of JSON does not have; other formats write an empty cell.
ABSENT = type("Absent", (), {"__repr__": lambda self: "nothing"})()
CALIBRATED = "calibrated"
# Columns of numbers; all others hold texts.
NUMBERS = ("score", CALIBRATED)


class Format(Protocol):
    """How a kind of file is read and written."""

    def chunks(self, path: Path) -> Iterator[Chunk]:
        """One at least, which names the columns. RAISES C301 to C304: the file."""

    def written(self, chunks: Iterable[Chunk]) -> Iterator[bytes]:
        """The bytes of a file with these rows."""

    def extended(self, path: Path, calibrated: Floats) -> Iterator[bytes]:
        """The bytes of the file at path with one column more."""


def batched(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Some at a time."""
    source = iter(items)
    while some := list(islice(source, ROWS)):
        yield some


def with_column(chunks: Iterable[Chunk], calibrated: Floats) -> Iterator[Chunk]:
    """The rows with a column CALIBRATED in place of any older one, None for NaN. RAISES C301: not as many rows."""
    at = 0
    for chunk in chunks:
        n = length(chunk)
        own = calibrated[at : at + n]
        if len(own) != n:
            break
        yield {**chunk, CALIBRATED: [None if value != value else value for value in own.tolist()]}
        at += n
    if at != len(calibrated):
        raise calib_error("C301", where=f"Row {at + 1}", path="the scores", why="the file changed while it was read")


def length(chunk: Chunk) -> int:
    """How many rows it holds."""
    return len(next(iter(chunk.values()), ()))


def row_error(path: Path, row: int, why: str) -> CalibError:
    """C301. row (int): From 0; people count from 1, without the header."""
    return calib_error("C301", where=f"Row {row + 1:,}", path=path, why=why)


def is_empty(value: Any) -> bool:
    """Whether a cell holds nothing."""
    return value is None or value is ABSENT or value == "" or (isinstance(value, float) and value != value)


def as_text(value: Any) -> str:
    """A cell of a column of texts; whole numbers that a data frame made floats are whole again."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)


class Texts:
    """A column of texts, each kept once: `codes` tells which one stands in each row, -1 for none."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self._codes: list[Any] = []

    def add(self, values: Sequence[Any]) -> None:
        numbers = self.numbers
        codes = (
            -1 if is_empty(value) else numbers.setdefault(value if type(value) is str else as_text(value), len(numbers))
            for value in values
        )
        self._codes.append(np.fromiter(codes, np.int32, len(values)))

    @property
    def codes(self) -> Any:
        return np.concatenate([np.zeros(0, dtype=np.int32), *self._codes]).astype(np.intp)

    @property
    def names(self) -> list[str]:
        return list(self.numbers)


def as_scores(path: Path, values: Sequence[Any], first: int) -> Floats:
    """A column of probabilities. first (int): Number of its first row, from 0. RAISES C301: a value that is none."""
    try:
        found = np.array([float(value) for value in values])
        if not len(found) or (found.min() >= 0 and found.max() <= 1):  # NaN fails this
            return found
    except (TypeError, ValueError):
        pass
    for place, value in enumerate(values):
        if is_empty(value):
            raise row_error(path, first + place, "there is no score in it")
        try:
            good = 0 <= float(value) <= 1
        except (TypeError, ValueError):
            good = False
        if not good:
            raise row_error(path, first + place, f"the score {str(value)!r} is no number from 0 to 1")
    raise AssertionError(values)
