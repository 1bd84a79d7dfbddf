"""Results: as files, and on the standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from ...corpus.visible import visible


def write_json(path: Path, data: Any) -> None:
    """Write a file with every digit of every number: srsly rounds at the tenth, which can lift a cut-off above the score that it was taken
    from.

    RAISES C055: the file cannot be written. An older file stays until the new one is whole.
    """
    write_pieces(path, json_pieces(data))


def json_pieces(data: Any) -> Iterator[str]:
    """The lines of a JSON file, piece by piece; items that are made on demand are written one by one."""
    import json

    from ...corpus.stored import for_json

    yield from json.JSONEncoder(indent=2, ensure_ascii=False, allow_nan=False, default=for_json).iterencode(data)
    yield "\n"


def write_text(path: Path, text: str) -> None:
    r"""Write a text as UTF-8. Bytes of file names that are not UTF-8, which Python holds as lone surrogates, become \udcNN.

    RAISES C055: the file cannot be written. An older file stays until the new one is whole.
    """
    write_pieces(path, (text,))


def write_pieces(path: Path, pieces: Iterable[str]) -> None:
    """Write a text whose pieces are made while it is written. RAISES C055: see `write_text`."""
    from .atomic import write_chunks

    write_chunks(path, (piece.encode("utf-8", "backslashreplace") for piece in pieces))


def deliver(result: Any, show: Callable[[], None], *, output: Path | None, format: str, silent: bool) -> None:
    """Write a result as JSON to `output`, and print it, as JSON or by `show`, unless silent.

    RAISES C055: the file cannot be written.
    """
    if output is not None:
        write_json(output, result)
    if silent:
        return
    if format == "json":
        print_json(result)
    else:
        show()


def print_json(result: Any) -> None:
    """Print a result as JSON on the standard output; the commands then print nothing else there."""
    print_exact(json_pieces(result), json=True)


def print_exact(pieces: Iterable[str], json: bool) -> None:
    """Print the text of a file as it is, which typer does not; but on a terminal with control characters made visible.

    pieces (Iterable[str]): Of the text, printed as they are made. json (bool): Whether escapes are to be those of JSON.
    """
    unusual = sys.stdout.isatty() or (json and not (sys.stdout.encoding or "").lower().startswith("utf"))
    for piece in pieces:
        sys.stdout.write(visible(piece.replace("\r\n", "\n"), keep="\n", json=json) if unusual else piece)
