"""Batches on disk: written as .jsonl or .csv, and read again to leave out what is labelled already."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...errors import calib_error
from ..spreadsheet import csv_lines, unguarded

COLUMNS = ("rank", "text", "doc", "sentence", "start", "end", "words", "score", "expected_errors")
REASON_COLUMNS = ("token", "word", "label", "tag", "probability", "raw")


def jsonl_bytes(rows: Sequence[dict[str, Any]]) -> bytes:
    """A record on each line."""
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows).encode("utf8")


def csv_bytes(rows: Sequence[dict[str, Any]], raw: bool = False) -> bytes:
    """A record on each line, its reason in columns of its own; alternatives as "VB 0.4312; NN 0.2001". raw (bool): See `csv_lines`."""
    lines = csv_lines((*COLUMNS, *REASON_COLUMNS, "alternatives", "origin"), map(_csv_row, rows), raw=raw)
    return "".join(lines).encode("utf8")


def _csv_row(row: dict[str, Any]) -> list[object]:
    others = "; ".join(f"{tag} {probability:.4f}" for tag, probability in row["reason"]["alternatives"].items())
    origin = json.dumps(row["origin"], ensure_ascii=False) if row["origin"] else ""
    return [*(row[key] for key in COLUMNS), *(row["reason"][key] for key in REASON_COLUMNS), others, origin]


def csv_texts(path: Path) -> Iterator[str]:
    """The column "text" of a .csv file, without the guards of `csv_bytes`.

    RAISES C092: it has no such column, or cannot be read.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            table = csv.DictReader(lines)
            if "text" not in (table.fieldnames or ()):
                raise calib_error("C092", path=path, why='its first line names no column "text"')
            for row in table:
                yield unguarded(row["text"] or "")
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise calib_error("C092", path=path, why=getattr(error, "strerror", None) or error) from None
