"""Readers of files of texts (plain lines, JSON Lines, CSV, Parquet), as records {"text": ..., "id": ..., "meta": ...}."""

from __future__ import annotations

import contextlib
import csv
import gzip
import json
import math
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import srsly

from ...errors import CalibError, calib_error
from ...errors.visible import unguard_cell
from ...pipe.pipeline import reason
from ...schema import MAX_DEPTH, nested_values
from .command import check_option
from .screen import shorten

PARQUET = ".parquet"
# Suffixes of files whose records have named fields, so that --columns can name those of text and id.
KEYED = (".jsonl", ".jsonl.gz", ".csv", PARQUET)
# Suffixes of files of texts without gold: one text per line; one {"text": ...} per line, also compressed; one text per row.
TEXT_SUFFIXES = (".txt", *KEYED)
_ROWS = 1_000  # of a Parquet file, which are read at a time
# The comma between the parts text=NAME and id=NAME of --columns; a name itself may contain commas.
_PARTS = re.compile(r",(?=(?:text|id)=)")
Record = dict[str, Any]


@dataclass(frozen=True)
class Fields:
    """Names of the fields with the text and the id of a record: columns of Parquet or CSV, or keys of JSON Lines."""

    text: str = "text"
    id: str = "id"

    @classmethod
    def read(cls, columns: str | None) -> Fields:
        """Parse --columns, such as "text=body,id=key"; None gives the defaults. RAISES C056: it names other fields."""
        names: dict[str, str] = {}
        for part in filter(None, _PARTS.split(columns or "")):
            field, _, name = part.partition("=")
            names[field] = name
        is_valid = names.keys() <= {"text", "id"} and all(names.values())
        check_option("--columns", is_valid, "text=NAME, id=NAME, or text=NAME,id=NAME", repr(columns))
        return cls(**names)


FIELDS = Fields()


def suffix_of(path: Path) -> str:
    """Return the suffix of a file, ".txt"; for a compressed file both suffixes, ".jsonl.gz"."""
    return "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix


def is_gold(file: Path) -> bool:
    """Whether a file is read as gold, not as plain texts, by its suffix. TEXT_SUFFIXES are texts even if a plug-in reads them.

    JSON Lines are gold, too, if the first line is an annotator's answer without a "text" of its own.
    """
    from ...gold.answer_files import tool_of
    from ...gold.file_readers import gold_suffixes

    if suffix_of(file) in (".jsonl", ".jsonl.gz") and file.is_file():
        with contextlib.suppress(OSError, EOFError, ValueError, RecursionError, zlib.error), _open_lines(file) as lines:
            record = json.loads(lines.readline())
            return isinstance(record, dict) and "text" not in record and bool(tool_of(record))
    return file.name.endswith((*gold_suffixes(), ".json")) and suffix_of(file) not in TEXT_SUFFIXES


def readable_suffixes() -> tuple[str, ...]:
    """Return the suffixes of all files that can be read as texts: first those of gold, then TEXT_SUFFIXES."""
    from ...gold.file_readers import gold_suffixes

    suffixes_of_gold = [suffix for suffix in (*gold_suffixes(), ".json") if suffix not in TEXT_SUFFIXES]
    return (*suffixes_of_gold, *TEXT_SUFFIXES)


def unreadable(file: Path, why: str) -> CalibError:
    """Build the error C074 for a file, with advice for its suffix. why (str): What is wrong with it, "line 3 is no object"."""
    if file.suffix == PARQUET:
        advice = "write the file again"
    elif file.suffix == ".gz":
        advice = "write the file again, as UTF-8 with one object with a text per line"
    else:
        advice = "save it as UTF-8, with one text (.txt) or one object with a text (.jsonl) per line"
    return calib_error("C074", path=file, why=why, wanted=advice)


def read_records(file: Path, fields: Fields = FIELDS, extra: str | None = None) -> Iterator[tuple[int, Record]]:
    """Yield (number from 1, record) for each line or row of a file of texts without gold.

    A record is a dict with "text" ("" for an empty line or null), and perhaps "id", "meta" and other fields.
    fields (Fields): Names of text and id in the file. extra (str | None): Another column of Parquet to read.
    RAISES C074: the file or a record cannot be read. C304: pyarrow is not installed. C441: no such column.
    """
    try:
        if suffix_of(file) == PARQUET:
            yield from _parquet_records(file, fields, extra)
        elif suffix_of(file) == ".csv":
            yield from _csv_records(file, fields)
        else:
            with _open_lines(file) as lines:
                for number, line in enumerate(lines, 1):
                    is_text = suffix_of(file) == ".txt"
                    yield number, {"text": line.rstrip("\r\n")} if is_text else _json_record(file, number, line, fields)
    except (OSError, UnicodeDecodeError, EOFError, csv.Error, zlib.error) as error:
        raise unreadable(file, reason(error)) from None


def _csv_records(file: Path, fields: Fields) -> Iterator[tuple[int, Record]]:
    """Yield (row from 1, record) of a CSV file with commas, semicolons or tabs. RAISES C441: it has no column `fields.text`."""
    with file.open(encoding="utf-8-sig", newline="") as lines:
        header = lines.readline()
        lines.seek(0)
        rows = csv.DictReader(lines, delimiter=max(",;\t", key=header.count))  # the most frequent one
        if fields.text not in (rows.fieldnames or ()):
            raise calib_error("C441", path=file, name=fields.text, known=", ".join(rows.fieldnames or ()) or "none")
        for number, row in enumerate(rows, 1):
            values = {name: unguard_cell(value) for name, value in row.items() if isinstance(value, str)}
            yield number, _standard_record(file, f"row {number}", {fields.text: "", **values}, fields)  # "": in a short row


def _open_lines(file: Path) -> TextIO:
    """Open a file of lines as text; a .gz file is decompressed."""
    return gzip.open(file, "rt", encoding="utf-8-sig") if file.suffix == ".gz" else file.open(encoding="utf-8-sig")


def _json_record(file: Path, number: int, line: str, fields: Fields) -> Record:
    """Return the record of JSON line `number`, with "text" and "id" from `fields`. RAISES C074: it is no object with a text."""
    if not line.strip():
        return {"text": ""}
    try:
        record = srsly.json_loads(line)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict) or fields.text not in record:
        has_keys = isinstance(record, dict) and bool(record)
        keys = f" (it has: {shorten(', '.join(record), 80)}; --columns text=NAME names another)" if has_keys else ""
        raise unreadable(file, f'line {number} is no object with a "{fields.text}"{keys}')
    return _standard_record(file, f"line {number}", record, fields)


def _standard_record(file: Path, where: str, values: Record, fields: Fields) -> Record:
    """Return the values of a line or row with its text and id, which `fields` names, under the keys "text" and "id".

    where (str): The place in the file, "line 3". RAISES C074: the text is no text, or text, id or meta cannot be JSON.
    """
    if not isinstance(values[fields.text], (str, type(None))):
        raise unreadable(file, f'the "{fields.text}" of {where} is no text')
    record = {**values, "text": values[fields.text] or ""}
    if fields.id != FIELDS.id:  # another field has the id, so a field called "id" is none
        record.pop(FIELDS.id, None)
    if fields.id in values:
        record["id"] = values[fields.id]
    for key in ("text", "id", "meta"):
        fault = fault_of(record.get(key))
        if fault is not None:
            raise unreadable(file, f'the "{key}" of {where} {fault}')
    return record


def fault_of(data: Any) -> str | None:
    """Return why data cannot be written as JSON in UTF-8, a text such as "is nested more than 100 deep"; None if it can."""
    for value, depth in nested_values(data):
        if depth > MAX_DEPTH:
            return f"is nested more than {MAX_DEPTH} deep"
        if isinstance(value, float) and not math.isfinite(value):
            return "contains a number that is not finite"
        if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
            return "contains half of a surrogate pair"
    return None


def _parquet_records(file: Path, fields: Fields, extra: str | None) -> Iterator[tuple[int, Record]]:
    """Yield as `read_records` from a Parquet file. RAISES C074: it is unreadable. C304: no pyarrow. C441: no such column."""
    from ...optional import load_pyarrow

    pa = load_pyarrow()
    try:
        with pa.parquet.ParquetFile(file) as table:
            columns = _columns_to_read(file, table.schema_arrow.names, fields, extra)
            rows = (row for batch in table.iter_batches(_ROWS, columns=columns) for row in batch.to_pylist())
            for number, row in enumerate(rows, 1):
                text = row.pop(fields.text)
                values = {name: plain_value(value) for name, value in row.items() if value is not None}
                yield number, _standard_record(file, f"row {number}", {fields.text: text, **values}, fields)
    except pa.ArrowException as error:
        raise unreadable(file, reason(error).rstrip(".")) from None


def _columns_to_read(file: Path, columns: list[str], fields: Fields, extra: str | None) -> list[str]:
    """Return the `columns` to read: text, id, meta, `extra`. RAISES C441: a required one is missing. C074: one occurs twice."""
    required = [fields.text] if fields.id == FIELDS.id else [fields.text, fields.id]  # an id is required if --columns names it
    for name in required:
        if name not in columns:
            raise calib_error("C441", path=file, name=name, known=", ".join(columns) or "none")
    names = [name for name in dict.fromkeys((fields.text, fields.id, "meta", extra)) if name is not None and name in columns]
    for name in names:
        if columns.count(name) > 1:
            raise unreadable(file, f"several of its columns are called '{name}'")
    return names


def plain_value(value: Any) -> Any:
    """Convert the value of a Parquet cell to types of JSON; dates, bytes and decimals become text."""
    if isinstance(value, dict):
        return {str(key): plain_value(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_value(part) for part in value]
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
