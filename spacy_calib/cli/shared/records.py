"""Files of texts -> their records, one by one: lines of text, JSON Lines (compressed too), rows of Parquet."""

from __future__ import annotations

import contextlib
import gzip
import io
import math
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from ...errors import CalibError, calib_error
from ...errors.nesting import DEEPEST, parts
from ...pipe.loading import reason
from .command import check_option
from .screen import shorten

PARQUET = ".parquet"
# Files whose texts have keys beside them.
KEYED = (".jsonl", ".jsonl.gz", ".jsonl.zst", PARQUET)
# What files of texts without gold end in: a text on each line; {"text": ...} on each line, compressed too; a text in each row.
TEXT_SUFFIXES = (".txt", *KEYED)
_ROWS = 1_000
# Between the parts of --columns; a name may hold commas.
_PARTS = re.compile(r",(?=(?:text|id)=)")
Record = dict[str, Any]


@dataclass(frozen=True)
class Fields:
    """Names of the columns of Parquet, and of the keys of JSON Lines, that hold the text of a record and its own id."""

    text: str = "text"
    id: str = "id"

    @classmethod
    def read(cls, given: str | None) -> Fields:
        """Of --columns. RAISES C056: it names something else than text and id."""
        parts = dict(part.partition("=")[::2] for part in _PARTS.split(given) if part) if given else {}
        known = not set(parts) - {"text", "id"} and all(parts.values())
        check_option("--columns", known, "text=NAME, id=NAME, or text=NAME,id=NAME", repr(given))
        return cls(**parts)


FIELDS = Fields()


def suffix_of(path: Path) -> str:
    """What the name of a file ends in; of a compressed one both endings."""
    return "".join(path.suffixes[-2:]) if path.suffix in (".gz", ".zst") else path.suffix


def is_gold(file: Path) -> bool:
    """Whether a file among texts is read as Docs with gold. What this package reads as texts stays texts, whatever reads gold of that suffix."""
    from ...gold.file_readers import gold_suffixes

    return file.name.endswith(gold_suffixes()) and suffix_of(file) not in TEXT_SUFFIXES


def readable_suffixes() -> tuple[str, ...]:
    """List what files of texts end in, with gold or without."""
    from ...gold.file_readers import gold_suffixes

    return (*(suffix for suffix in gold_suffixes() if suffix not in TEXT_SUFFIXES), *TEXT_SUFFIXES)


def unreadable(file: Path, why: str) -> CalibError:
    """C074, with what a file of its suffix should be."""
    if file.suffix == PARQUET:
        wanted = "write the file anew"
    elif file.suffix in (".gz", ".zst"):
        wanted = "write the file anew, as UTF-8 with one object with a text on each line"
    else:
        wanted = "save it as UTF-8, with one text (.txt) or one object with a text (.jsonl) on each line"
    return calib_error("C074", path=file, why=why, wanted=wanted)


def read_records(file: Path, fields: Fields = FIELDS, also: str | None = None) -> Iterator[tuple[int, Record]]:
    """The records of a file, each with its number from 1: "text", which is "" for an empty line and for null, and what else stands there.

    The own id stands under "id". also (str | None): A column of Parquet that is wanted too, beside "meta".
    RAISES C074: the file cannot be read, or a record of it.
    """
    try:
        if suffix_of(file) == PARQUET:
            yield from _rows(file, fields, also)
        else:
            with _opened(file) as lines:
                for number, line in enumerate(lines, 1):
                    is_text = suffix_of(file) == ".txt"
                    yield number, {"text": line.rstrip("\r\n")} if is_text else _object_of(file, number, line, fields)
    except (OSError, UnicodeDecodeError, EOFError, zlib.error) as error:
        raise unreadable(file, reason(error)) from None


# JSON Lines


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[TextIO]:
    """RAISES C440: what unpacks the file is not installed."""
    if file.suffix == ".gz":
        with gzip.open(file, "rt", encoding="utf-8-sig") as lines:
            yield lines
    elif file.suffix == ".zst":
        try:
            import pyarrow
        except ImportError:
            raise calib_error("C440", path=file) from None
        with pyarrow.input_stream(str(file), compression="zstd") as stream:
            yield io.TextIOWrapper(stream, encoding="utf-8-sig")
    else:
        with file.open(encoding="utf-8-sig") as lines:
            yield lines


def _object_of(file: Path, number: int, line: str, fields: Fields) -> Record:
    import srsly

    if not line.strip():
        return {"text": ""}
    try:
        record = srsly.json_loads(line)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict) or fields.text not in record:
        has = (
            f" (it has: {shorten(', '.join(record), 80)}; --columns text=NAME names another)"
            if isinstance(record, dict) and record
            else ""
        )
        raise unreadable(file, f'line {number} is no object with a "{fields.text}"{has}')
    if not isinstance(record[fields.text], (str, type(None))):
        raise unreadable(file, f'the "{fields.text}" of line {number} is no text')
    return checked(file, f"line {number}", _named(record, fields))


def _named(record: Record, fields: Fields) -> Record:
    """The record with its text and its id under these names."""
    named = {**record, "text": record[fields.text] or ""}
    if fields.id != FIELDS.id:
        named.pop(FIELDS.id, None)
    return {**named, "id": record[fields.id]} if fields.id in record else named


def checked(file: Path, where: str, record: Record) -> Record:
    """RAISES C074: part of a record cannot be written as JSON."""
    for key in ("text", "id", "meta"):
        fault = fault_of(record.get(key))
        if fault is not None:
            raise unreadable(file, f'the "{key}" of {where} {fault}')
    return record


def fault_of(data: Any) -> str | None:
    """Why the data cannot be written as JSON in UTF-8, as the end of a sentence; None where it can."""
    for held, depth in parts(data):
        if depth > DEEPEST:
            return f"is nested more than {DEEPEST} deep"
        if isinstance(held, float) and not math.isfinite(held):
            return "holds a number that is not finite"
        if isinstance(held, str) and any("\ud800" <= character <= "\udfff" for character in held):
            return "holds half of a surrogate pair"
    return None


# Parquet


def _rows(file: Path, fields: Fields, also: str | None) -> Iterator[tuple[int, Record]]:
    """RAISES C074: no Parquet. C304: pyarrow is not installed. C441: it has no such column. C442: what stands in it is no text."""
    from ...optional import load_pyarrow

    pa = load_pyarrow()
    try:
        with pa.parquet.ParquetFile(file) as opened:
            schema = opened.schema_arrow
            for name, wanted in ((fields.text, True), (fields.id, fields.id != FIELDS.id)):
                if wanted and name not in schema.names:
                    raise calib_error("C441", path=file, name=name, known=", ".join(schema.names) or "none")
            names = [name for name in dict.fromkeys((fields.text, fields.id, "meta", also)) if name in schema.names]
            for twice in (name for name in names if schema.names.count(name) > 1):
                raise unreadable(file, f"several of its columns are called '{twice}'")
            _check_is_text(pa, file, fields.text, schema.field(fields.text).type)
            rows = (row for batch in opened.iter_batches(_ROWS, columns=names) for row in batch.to_pylist())
            for number, row in enumerate(rows, 1):
                held = {name: plain(value) for name, value in row.items() if value is not None or name == fields.text}
                yield number, checked(file, f"row {number}", _named(held, fields))
    except pa.ArrowException as error:
        raise unreadable(file, reason(error).rstrip(".")) from None


def _check_is_text(pa: Any, file: Path, name: str, kind: Any) -> None:
    """RAISES C442: the column holds something else."""
    held = kind.value_type if pa.types.is_dictionary(kind) else kind
    views = getattr(pa.types, "is_string_view", lambda kind: False)
    if not (pa.types.is_string(held) or pa.types.is_large_string(held) or pa.types.is_null(held) or views(held)):
        raise calib_error("C442", path=file, name=name, given=kind)


def plain(value: Any) -> Any:
    """A cell of Parquet as JSON would hold it: what JSON does not know (dates, bytes, decimals) as text."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
