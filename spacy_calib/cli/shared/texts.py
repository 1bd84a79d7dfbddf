"""Files of texts, with gold or without -> Examples, one by one."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...corpus.visible import shown_path
from ...errors import calib_error
from ...pipe.loading import reason
from .checks import check_option
from .examples import read_gold
from .outputs import READABLE
from .records import FIELDS, KEYED, Fields, read_records, suffix_of, unreadable

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example


def text_files(path: Path, fields: Fields = FIELDS) -> list[Path]:
    """The files with texts at a path.

    fields (Fields): What text and id are called in them. RAISES C051: the path does not exist. C056: a column is named, and no file has columns, or keys.
        C073: a folder without such files, or a file of another kind.
    """
    from ...doc.reading import GOLD_SUFFIXES, gold_files

    if not path.exists():
        raise calib_error("C051", path=path)
    if not path.is_dir():
        files = [path] if suffix_of(path) in READABLE else []
    else:
        found = (file for suffix in READABLE if suffix not in GOLD_SUFFIXES for file in path.rglob(f"*{suffix}"))
        plain = (file for file in found if not any(part.startswith(".") for part in file.relative_to(path).parts))
        files = sorted([*gold_files(path), *plain])
    if not files:
        raise calib_error("C073", path=path, suffixes=", ".join(READABLE))
    if not any(suffix_of(file) in KEYED for file in files):
        kinds = ", ".join(sorted({suffix_of(file) for file in files}))
        check_option("--columns", fields == FIELDS, f"left out for files without columns ({kinds})", "it")
    return files


def holds_gold(path: Path) -> bool:
    """Whether there are gold files at a path, whose Docs are read as a whole. RAISES C051, C073: see `text_files`."""
    from ...doc.reading import GOLD_SUFFIXES

    return any(file.suffix in GOLD_SUFFIXES for file in text_files(path))


def stream_examples(
    nlp: Language,
    path: Path,
    *,
    gold_preproc: bool = False,
    doc_key: str | None = None,
    required: bool = True,
    date: str | None = None,
    fields: Fields = FIELDS,
    wanted: Container[int] | None = None,
) -> Iterator[Example]:
    """The examples of all files at a path, one by one: those of a gold file as `read_examples` reads them, the others without gold.

    required (bool): False lets there be no documents. date (str | None): A key of JSON Lines whose value the origin of a text keeps under "date".
    fields (Fields): What text and id are called in JSON Lines and Parquet. wanted (Container[int] | None): Numbers of the texts to be given, from 0: of
        the others no Docs are made. None gives all.
    RAISES C051, C073: see `text_files`. C053, C074, C160, C161, C304, C440 to C442: a file cannot be read.
        C052: there are no documents.
    """
    n_examples = 0
    files = text_files(path)
    for file in files:
        check_lines(file, fields)
    for file in files:
        named = {"file": shown_path(file.relative_to(path))} if len(files) > 1 else {}
        for make in _examples_of(nlp, file, gold_preproc, doc_key, named, date, fields):
            if wanted is None or n_examples in wanted:
                yield make()
            n_examples += 1
    if required and not n_examples:
        raise calib_error("C052", path=path)


def _examples_of(
    nlp: Language,
    file: Path,
    gold_preproc: bool,
    doc_key: str | None,
    named: dict[str, Any],
    date: str | None,
    fields: Fields,
) -> Iterator[Callable[[], Example]]:
    """What makes each example of one file. named (dict): The file's name, where there are several, for the origin of each text. date, fields: See
    `stream_examples`.
    """
    from ...doc.reading import GOLD_SUFFIXES

    if file.suffix in GOLD_SUFFIXES:
        for example in read_gold(nlp, file, gold_preproc, doc_key):
            yield partial(_as_it_is, example)
    else:
        for text, origin in read_texts(file, date, fields):
            yield partial(_example_of, nlp, file, text, {**named, **origin})


def _as_it_is(example: Example) -> Example:
    return example


def _example_of(nlp: Language, file: Path, text: str, origin: dict[str, Any]) -> Example:
    """RAISES C448: the text is longer than nlp.max_length. C074: no Doc can be made of it."""
    from spacy.training import Example

    from ...doc.collect import ORIGIN
    from ...doc.reading import DOC_KEY
    from ...pairs.documents import TEXT, SourceDocument

    check_length(nlp, file, origin["line"], text)
    try:
        example = Example(nlp.make_doc(text), nlp.make_doc(text))
    except ValueError as error:
        raise unreadable(file, reason(error)) from None
    example.reference.user_data[ORIGIN] = origin
    example.reference.user_data[DOC_KEY] = SourceDocument(TEXT, (shown_path(file), origin["line"]))
    return example


def check_length(nlp: Language, file: Path, line: int, text: str) -> None:
    """RAISES C448: the text is longer than nlp.max_length."""
    if len(text) > nlp.max_length:
        raise calib_error("C448", line=line, path=file, n=f"{len(text):,}", most=f"{nlp.max_length:,}")


def check_lines(file: Path, fields: Fields = FIELDS) -> None:
    """Read a file of plain texts to its end, so that a fault is found before the first text is scored. A FIFO, which can be read once only, is left alone.

    RAISES C074, C304, C440 to C442: see `read_records`.
    """
    from ...doc.reading import GOLD_SUFFIXES

    if file.suffix not in GOLD_SUFFIXES and file.is_file():
        for _ in read_texts(file, fields=fields):
            pass


def read_texts(file: Path, date: str | None = None, fields: Fields = FIELDS) -> Iterator[tuple[str, dict[str, Any]]]:
    """The texts of a file, each with its "line" (from 1; of Parquet its row), and the "id" and "meta" of its record; empty ones, and null, are left out.

    date (str | None): A key of the records, or of their "meta", whose value is given as "date"; None where a record has none.
    fields (Fields): What text and id are called there. RAISES C074, C304, C440 to C442: see `read_records`.
    """
    for number, record in read_records(file, fields, date):
        if record["text"].strip():
            yield record["text"], origin_of(number, record, date)


def origins_in(path: Path, key: str, fields: Fields = FIELDS) -> Iterator[tuple[Path, dict[str, Any]]]:
    """(file, origin) of all plain texts at a path, so that what stands under a key of theirs is looked at before the work begins. Gold, and a FIFO,
    which can be read once only, are looked at as they come. RAISES C074: see `read_texts`.
    """
    from ...doc.reading import GOLD_SUFFIXES

    for file in text_files(path):
        if file.suffix not in GOLD_SUFFIXES and file.is_file():
            for _, origin in read_texts(file, key, fields):
                yield file, origin


def origin_of(number: int, record: dict[str, Any], date: str | None = None) -> dict[str, Any]:
    """Where a text stood, as `read_texts` gives it."""
    origin: dict[str, Any] = {"line": number, **{key: record[key] for key in ("id", "meta") if key in record}}
    return origin if date is None else {**origin, "date": _date_of(record, date)}


def _date_of(record: dict[str, Any], key: str) -> Any:
    meta = record.get("meta")
    return record.get(key, meta.get(key) if isinstance(meta, dict) else None)
