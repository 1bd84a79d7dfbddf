"""Files of texts, with gold or without -> Examples, one by one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...corpus.visible import shown_path
from ...errors import calib_error
from ...pipe.loading import reason
from .examples import read_gold
from .outputs import READABLE

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example


def text_files(path: Path) -> list[Path]:
    """The files with texts at a path.

    RAISES C051: the path does not exist. C073: a folder without such files, or a file of another kind.
    """
    from ...doc.reading import GOLD_SUFFIXES, gold_files

    if not path.exists():
        raise calib_error("C051", path=path)
    if not path.is_dir():
        files = [path] if path.suffix in READABLE else []
    else:
        found = (file for suffix in READABLE if suffix not in GOLD_SUFFIXES for file in path.rglob(f"*{suffix}"))
        plain = (file for file in found if not any(part.startswith(".") for part in file.relative_to(path).parts))
        files = sorted([*gold_files(path), *plain])
    if not files:
        raise calib_error("C073", path=path, suffixes=", ".join(READABLE))
    return files


def stream_examples(
    nlp: Language,
    path: Path,
    *,
    gold_preproc: bool = False,
    doc_key: str | None = None,
    required: bool = True,
    date: str | None = None,
) -> Iterator[Example]:
    """The examples of all files at a path, one by one: those of a gold file as `read_examples` reads them, the others without gold.

    required (bool): False lets there be no documents. date (str | None): A key of JSON Lines whose value the origin of a text keeps under "date".
    RAISES C051, C073: see `text_files`. C053, C074, C160, C161: a file cannot be read.
        C052: there are no documents.
    """
    n_examples = 0
    files = text_files(path)
    for file in files:
        check_lines(file)
    for file in files:
        named = {"file": shown_path(file.relative_to(path))} if len(files) > 1 else {}
        for example in _examples_of(nlp, file, gold_preproc, doc_key, named, date):
            n_examples += 1
            yield example
    if required and not n_examples:
        raise calib_error("C052", path=path)


def _examples_of(
    nlp: Language, file: Path, gold_preproc: bool, doc_key: str | None, named: dict[str, Any], date: str | None
) -> Iterator[Example]:
    """The examples of one file. named (dict): The file's name, where there are several, for the origin of each text. date: See `stream_examples`."""
    from spacy.training import Example

    from ...doc.collect import ORIGIN
    from ...doc.reading import DOC_KEY, GOLD_SUFFIXES
    from ...pairs.documents import TEXT, SourceDocument

    if file.suffix in GOLD_SUFFIXES:
        yield from read_gold(nlp, file, gold_preproc, doc_key)
    else:
        for text, origin in read_texts(file, date):
            try:
                example = Example(nlp.make_doc(text), nlp.make_doc(text))
            except ValueError as error:  # longer than nlp.max_length
                raise calib_error("C074", path=file, why=reason(error)) from None
            example.reference.user_data[ORIGIN] = {**named, **origin}
            example.reference.user_data[DOC_KEY] = SourceDocument(TEXT, (shown_path(file), origin["line"]))
            yield example


def check_lines(file: Path) -> None:
    """Read a file of plain texts to its end, so that a fault is found before the first text is scored. A FIFO, which can be read once only, is left alone.

    RAISES C074: see `read_texts`.
    """
    from ...doc.reading import GOLD_SUFFIXES

    if file.suffix not in GOLD_SUFFIXES and file.is_file():
        for _ in read_texts(file):
            pass


def read_texts(file: Path, date: str | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """The texts of a .txt or .jsonl file, each with its "line" (from 1), and the "id" and "meta" of its record; empty ones are left out.

    date (str | None): A key of the records, or of their "meta", whose value is given as "date"; None where a record has none.
    RAISES C074: a line of a .jsonl file holds no text, or what JSON cannot hold, or the file is not UTF-8.
    """
    try:
        with file.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, 1):
                record = {"text": line.rstrip("\r\n")} if file.suffix == ".txt" else _record_of(file, number, line)
                if record["text"].strip():
                    origin = {key: record[key] for key in ("id", "meta") if key in record}
                    yield (
                        record["text"],
                        {"line": number, **origin, **({} if date is None else {"date": _date_of(record, date)})},
                    )
    except (OSError, UnicodeDecodeError) as error:
        raise calib_error("C074", path=file, why=reason(error)) from None


def _date_of(record: dict[str, Any], key: str) -> Any:
    meta = record.get("meta")
    return record.get(key, meta.get(key) if isinstance(meta, dict) else None)


def _record_of(file: Path, number: int, line: str) -> dict[str, Any]:
    import srsly

    if not line.strip():
        return {"text": ""}
    try:
        record = srsly.json_loads(line)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict) or not isinstance(record.get("text"), str):
        raise calib_error("C074", path=file, why=f'line {number} is no object with a "text"')
    for key in ("text", "id", "meta"):
        fault = fault_of(record.get(key))
        if fault is not None:
            raise calib_error("C074", path=file, why=f'the "{key}" of line {number} {fault}')
    return record


DEEPEST = 100


def fault_of(data: Any) -> str | None:
    """Why the data cannot be written as JSON in UTF-8, as the end of a sentence; None where it can. (A loop rather than a recursion, as the data may
    be nested deeper than Python's stack.)
    """
    to_see = [(data, 0)]
    while to_see:
        held, depth = to_see.pop()
        if depth > DEEPEST:
            return f"is nested more than {DEEPEST} deep"
        if isinstance(held, dict):
            to_see += [(part, depth + 1) for pair in held.items() for part in pair]
        elif isinstance(held, list):
            to_see += [(part, depth + 1) for part in held]
        elif isinstance(held, float) and not math.isfinite(held):
            return "holds a number that is not finite"
        elif isinstance(held, str) and any("\ud800" <= character <= "\udfff" for character in held):
            return "holds half of a surrogate pair"
    return None
