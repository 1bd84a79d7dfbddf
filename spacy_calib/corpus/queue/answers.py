"""Files that annotation tools export -> one answer for each text."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import WARNINGS, brief, calib_error
from .exports import TOOLS, Answer, Mark, name_shown_field, name_views
from .places import MisplacedError

ANSWER_SUFFIXES = (".jsonl", ".json")
_TOO_BIG = 1 << 63


def read_answers(file: Path) -> list[Answer]:
    """What a tool exported, one answer for each text, in the order of the file.

    RAISES C692: the file, or a record of it, cannot be read. C693: no tool's, or of several tools. C694: of two projects. C695: a span lies outside of its
    text. C696: nobody answered. C785: no span is where the tool says. C786: it is not known which field people saw.
    """
    told, tool, projects, records, misplaced = [], "", set(), list(_records(file)), []
    try:
        name_views(records)
        name_shown_field(records)
    except (AttributeError, KeyError, TypeError) as error:
        raise calib_error("C692", path=file, why=f"its records are not as a tool writes them ({error})") from None
    for where, record in records:
        own = next((name for name, one in TOOLS.items() if one.wrote(record)), "")
        if not own or own != (tool or own):
            raise calib_error("C693", path=file, where=where, given=f"of {own}, not of {tool}" if own else "of none of them")
        tool = own
        projects |= {record["project"]} if own == "Label Studio" and isinstance(record.get("project"), int) else set()
        try:
            made = _read(file, where, tool, record)
        except MisplacedError as error:
            misplaced.append((where, error))
            continue
        if made is not None:
            told.append(made)
    _report_misplaced(file, misplaced, len(told))
    if not told:
        raise calib_error("C696", path=file)
    of_spans_, of_cats_ = (next((one.where for one in told if getattr(one, kind)), None) for kind in ("spans", "cats"))
    if len(projects) > 1 or (of_spans_ and of_cats_):
        given = (
            f"spans ({of_spans_}) and categories ({of_cats_})" if of_spans_ and of_cats_ else f"numbers {sorted(projects)[:2]}"
        )
        raise calib_error("C694", path=file, given=given)
    every = dict.fromkeys((name for one in told for name in one.cats), False)
    texts: dict[str, Answer] = {}
    for one in told:
        own_ = replace(one, cats={**every, **one.cats}) if one.whole and every else one
        texts[one.text] = texts[one.text].joined(own_) if one.text in texts else own_
    return list(texts.values())


def _report_misplaced(file: Path, misplaced: list[tuple[str, MisplacedError]], n_read: int) -> None:
    """Warn (CW61) of texts that are left out. RAISES C785: they are all."""
    if not misplaced:
        return
    where, error = misplaced[0]
    words = {"said": brief(error.said), "start": error.start, "end": error.end, "found": brief(error.found)}
    if not n_read:
        raise calib_error("C785", path=file, where=where, **words)
    n, of = len(misplaced), len(misplaced) + n_read
    warnings.warn(WARNINGS["CW61"].format(n=f"{n:,}", of=f"{of:,}", path=file, where=where, **words), stacklevel=3)


def _read(file: Path, where: str, tool: str, record: dict[str, Any]) -> Answer | None:
    try:
        made = _checked(TOOLS[tool].read(record))
        wrong = None if made is None else next((mark for mark in made.spans if not _inside(mark, made.text)), None)
    except (KeyError, TypeError, ValueError, IndexError, StopIteration, AttributeError) as error:
        raise calib_error(
            "C692", path=file, why=f"{where} is not as {tool} writes it ({type(error).__name__}: {error})"
        ) from None
    if made is None:
        return None
    if wrong is not None:
        raise calib_error("C695", path=file, where=where, start=wrong.start, end=wrong.end, n=len(made.text), label=wrong.label)
    return Answer(made.text, made.spans, made.cats, made.whole, made.meta, where)


def _checked(made: Answer | None) -> Answer | None:
    """RAISES ValueError: a text or a label is none, or no Unicode, or what came with it has no names, or no value that a Doc can keep."""
    texts = () if made is None else (made.text, *made.cats, *(mark.label for mark in made.spans))
    if not all(isinstance(one, str) for one in texts) or (made is not None and not isinstance(made.meta, Mapping)):
        raise ValueError("a label or a text is none, or its meta no object")
    kept = () if made is None else [made.meta.get(key) for key in ("drawn", "doc")]
    if not all(one is None or isinstance(one, (str, float)) or (isinstance(one, int) and abs(one) < _TOO_BIG) for one in kept):
        raise ValueError("how it was drawn is neither a text nor a number of at most 64 bits")
    for one in (*texts, *(one for one in kept if isinstance(one, str))):
        one.encode()
    return made


def _inside(mark: Mark, text: str) -> bool:
    if not mark.label:
        raise ValueError("a label is empty")
    return 0 <= mark.start < mark.end <= len(text) and bool(text[mark.start : mark.end].strip())


def _records(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """RAISES C692: it is no JSON."""
    where = "it"
    try:
        text = file.read_text(encoding="utf-8-sig")
        if text.lstrip()[:1] == "[":
            for number, record in enumerate(json.loads(text), 1):
                yield f"record {number}", _object(record)
            return
        for number, line in enumerate(text.split("\n"), 1):
            where = f"line {number}"
            if line.strip():
                yield where, _object(json.loads(line))
    except (OSError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise calib_error("C692", path=file, why=f"{where} is no JSON, or cut off ({error})") from None


def _object(record: Any) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise ValueError("no object")
    return record
