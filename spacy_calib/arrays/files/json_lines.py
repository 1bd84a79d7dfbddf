"""JSON Lines: an object on each line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from ...corpus.nesting import DEEPEST, is_too_deep
from ...errors import calib_error
from ...types import Floats
from .columns import ABSENT, NUMBERS, Chunk, batched, is_empty, with_column


class JsonLines:
    """Keys that not every line has are ABSENT where they are not; a key that no line of the first chunk has is left out."""

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
    """RAISES C301: a line that is no object, or nested too deep."""
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
    """What JSON can hold of a cell in the column of this name."""
    if is_empty(value):
        return "" if value == "" and name not in NUMBERS else None
    if name in NUMBERS:
        return float(value)
    return value if value is None or isinstance(value, (str, bool, int, float, list, dict)) else str(value)
