"""The texts of a long run: looked at once before it begins, then streamed from any row on, through the pipes that score them."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...corpus.visible import shown_path
from ...errors import calib_error
from ..shared.examples import check_length, origin_of, text_files
from ..shared.outputs import model_folder
from ..shared.records import Fields, read_records, unreadable
from ..shared.session import watched

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

    from ...pipe.component import Calibrator

_PIECE = 1 << 20


class Row(NamedTuple):
    """number (int): Among all rows of all files, from 0; those left out count. text (str | Doc | None): None where there is none, a Doc without annotation where the words
    are given. id (Any): Its own. origin (dict): Where it stood.
    """

    number: int
    text: str | Doc | None
    id: Any
    origin: dict[str, Any]


ScoredDoc = tuple["Doc", Row]


@dataclass(frozen=True)
class ManyTexts:
    """files (Sequence[Path]), rows (Sequence[int]), digests (Sequence[str]): The files, how many rows each has, and what is in it. fields (Fields): What
    text and id are called there. left_out (int): Rows whose text is empty, white space alone, or null. first_left_out (str): Where the first of them stands.
    """

    path: Path
    files: Sequence[Path]
    rows: Sequence[int]
    digests: Sequence[str]
    fields: Fields
    left_out: int
    first_left_out: str

    @property
    def n_rows(self) -> int:
        return sum(self.rows)

    def stream(self, nlp: Language) -> Iterator[Row]:
        """All rows. RAISES C449: a file changed since it was looked at."""
        first = 0
        for file, n_rows in zip(self.files, self.rows, strict=True):
            named = {"file": shown_path(file.relative_to(self.path))} if len(self.files) > 1 else {}
            number = 0
            for number, (text, own_id, origin) in enumerate(_rows_of(nlp, file, self.fields), 1):
                if number > n_rows:
                    break
                yield Row(first + number - 1, text, own_id, {**named, **origin})
            if number != n_rows:
                raise calib_error("C449", path=file)
            first += n_rows


def look_at(nlp: Language, path: Path, fields: Fields) -> ManyTexts:
    """Read all texts once: so that faults are found before the first text is scored, it is known how many there are, and a later run knows whether they
    are the same.

    RAISES C051, C073: see `text_files`. C053, C074, C160, C161, C304, C440 to C442: a file cannot be read. C052: there are no texts. C448: a text is too long.
    """
    files = text_files(path)
    rows, digests, left_out, first = [], [], 0, ""
    for file in files:
        if not file.is_file():
            raise unreadable(file, "it can be read once only, and they are read twice")
        n_rows = 0
        for text, _, origin in _rows_of(nlp, file, fields):
            n_rows += 1
            if text is None:
                left_out += 1
                first = first or f"row {origin['line']} of {shown_path(file)}"
            elif isinstance(text, str):
                check_length(nlp, file, origin["line"], text)
        rows.append(n_rows)
        digests.append(digest_of([file]))
    if left_out == sum(rows):
        raise calib_error("C052", path=path)
    return ManyTexts(path, files, rows, digests, fields, left_out, first)


def _rows_of(nlp: Language, file: Path, fields: Fields) -> Iterator[tuple[str | Doc | None, Any, dict[str, Any]]]:
    """(text, id, origin) of each row of a file."""
    from ...doc.reading import GOLD_SUFFIXES

    if file.suffix in GOLD_SUFFIXES:
        for number, (text, own_id) in enumerate(_docs_of(nlp, file), 1):
            given = {} if own_id is None else {"id": own_id}
            yield text, own_id, {"line": number, **given}
    else:
        for number, record in read_records(file, fields):
            text = record["text"]
            yield text if text.strip() else None, record.get("id"), origin_of(number, record)


def _docs_of(nlp: Language, file: Path) -> Iterator[tuple[str | Doc | None, str | None]]:
    """(text, id) of each Doc of a gold file. They are read with a vocab of their own, so that their words are let go with the file; Docs of the pipeline's are
    those whose words are given: where spaces are not known, or arrays stand for the words.
    """
    from spacy.language import Language
    from spacy.tokens import Doc

    from ...doc.reading import document_of
    from ..shared.examples import arrays_read, read_gold

    aside = Language(max_length=sys.maxsize)
    for example in read_gold(aside, file, False, None, arrays_read(nlp)):
        key, held = document_of(example).key, example.predicted
        text: str | Doc | None = held.text if held.text.strip() else None
        if text is not None and (held.user_data or example.reference.has_unknown_spaces):
            words, spaces = [token.text for token in held], [bool(token.whitespace_) for token in held]
            text = Doc(nlp.vocab, words=words, spaces=spaces, user_data=held.user_data)
        yield text, key if isinstance(key, str) else None


def digest_of(files: Sequence[Path], root: Path | None = None) -> str:
    """Of what is in the files, and of their names below the root. RAISES C074: one cannot be read."""
    held = hashlib.sha256()
    for file in files:
        try:
            if root is not None:
                held.update(f"{file.relative_to(root).as_posix()}\0{file.stat().st_size}\0".encode("utf-8", "backslashreplace"))
            with file.open("rb") as stream:
                while piece := stream.read(_PIECE):
                    held.update(piece)
        except OSError as error:
            raise unreadable(file, error.strerror or str(error)) from None
    return held.hexdigest()[:32]


def digest_of_model(model: str) -> str:
    """Of all files of a pipeline, but what Python compiled."""
    folder = model_folder(model) or Path(model)
    files = (file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    return digest_of(sorted(files), folder)


def choose_unit(nlp: Language, pipes: Sequence[Calibrator], unit: str | None) -> str:
    """What there is a row of: as asked, else entities where all pipes find some, documents where all score categories, and tokens.

    RAISES C446, C447: see `check_unit`.
    """
    from ...pipe.component import check_unit, units_of

    if unit is None:
        known = [units_of(pipe) for pipe in pipes]
        firsts = {units[0] for units in known}
        return firsts.pop() if len(firsts) == 1 else "token" if any("token" in units for units in known) else "document"
    check_unit(nlp, pipes, unit)
    return unit


def pipes_needed(nlp: Language, pipes: Sequence[Calibrator], unit: str, whole: bool) -> list[str]:
    """The names of the pipes that have to run: up to the last that writes what a row holds. whole (bool): Docs are kept, so that all of them run."""
    from ...pipe.component import sentence_finders
    from ...pipe.event import EventPipe

    order = nlp.pipe_names
    if whole:
        return order
    attrs = {pipe.attr for pipe in pipes}
    events = [name for name, pipe in nlp.pipeline if isinstance(pipe, EventPipe) and pipe.attr in attrs]
    setters = sentence_finders(nlp)[:1] if unit == "sentence" else []
    return order[: max(order.index(name) for name in [*(pipe.name for pipe in pipes), *events, *setters]) + 1]


def scored(nlp: Language, rows: Iterable[Row], batch_size: int | None, n_process: int) -> Iterator[ScoredDoc]:
    """The texts through the pipeline, rows without text left out: what is wanted of a Doc has to be taken from it before the next one is asked for."""
    from ...doc.zones import pipe_in_zones

    # What goes with a text is sent to the worker and back: not the text once more.
    items = ((row.text, row._replace(text=None)) for row in rows if row.text is not None)
    with watched(n_process):
        yield from pipe_in_zones(nlp, items, batch_size=batch_size, n_process=n_process)
