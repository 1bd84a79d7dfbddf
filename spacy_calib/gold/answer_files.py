"""Files that annotation tools export -> one answer for each text."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import WARNINGS, brief, calib_error
from .places import MisplacedError
from .tool_exports import TOOLS, Mark, TextAnswers, name_shown_field, name_views

_TOO_BIG = 1 << 63


def read_answers(file: Path) -> list[TextAnswers]:
    """What a tool exported, one answer for each text, in the order of the file.

    RAISES C692: the file, or a record of it, cannot be read. C693: no tool's, or of several tools. C694: of two projects. C695: a span lies outside of its
    text. C696: nobody answered. C785: no span is where the tool says. C786: it is not known which field people saw.
    """
    answers: list[TextAnswers] = []
    records, misplaced, tool, projects = list(_records(file)), [], "", set()
    try:
        name_views(records)
        name_shown_field(records)
    except (AttributeError, KeyError, TypeError) as error:
        raise calib_error("C692", path=file, why=f"its records are not as a tool writes them ({error})") from None
    for where, record in records:
        name = next((name for name, candidate in TOOLS.items() if candidate.wrote(record)), "")
        if not name:
            raise calib_error("C082", path=file, where=where.capitalize(), given=", ".join(map(str, record)) or "none")
        if name != (tool or name):
            raise calib_error("C693", path=file, where=where, given=f"of {name}, not of {tool}")
        tool = name
        projects |= {record["project"]} if name == "Label Studio" and isinstance(record.get("project"), int) else set()
        try:
            answer = _read(file, where, tool, record)
        except MisplacedError as error:
            misplaced.append((where, error))
            continue
        if answer is not None:
            answers.append(answer)
    _report_misplaced(file, misplaced, len(answers))
    if not answers:
        raise calib_error("C696", path=file)
    first_spans, first_cats = (
        next((answer.where for answer in answers if getattr(answer, kind)), None) for kind in ("spans", "cats")
    )
    if len(projects) > 1 or (first_spans and first_cats):
        both = f"spans ({first_spans}) and categories ({first_cats})"
        raise calib_error("C694", path=file, given=both if first_spans and first_cats else f"numbers {sorted(projects)[:2]}")
    return _by_text(answers)


def _by_text(answers: Sequence[TextAnswers]) -> list[TextAnswers]:
    """One answer for each text. Where categories were asked about, a whole text has none but those that are named, perhaps none at all."""
    absent = dict.fromkeys((name for answer in answers for name in answer.cats), False)
    texts: dict[str, TextAnswers] = {}
    for answer in answers:
        known = replace(answer, cats={**absent, **answer.cats}) if answer.whole and absent else answer
        texts[known.text] = texts[known.text].joined(known) if known.text in texts else known
    return list(texts.values())


def _report_misplaced(file: Path, misplaced: list[tuple[str, MisplacedError]], n_read: int) -> None:
    """Warn (CW61) of texts that are left out. RAISES C785: they are all."""
    if not misplaced:
        return
    where, error = misplaced[0]
    mark = {"words": brief(error.words), "start": error.start, "end": error.end, "actual": brief(error.actual)}
    if not n_read:
        raise calib_error("C785", path=file, where=where, **mark)
    n, of = len(misplaced), len(misplaced) + n_read
    warnings.warn(WARNINGS["CW61"].format(n=f"{n:,}", of=f"{of:,}", path=file, where=where, **mark), stacklevel=3)


def _read(file: Path, where: str, tool: str, record: dict[str, Any]) -> TextAnswers | None:
    try:
        answer = _checked(TOOLS[tool].read(record))
        outside = None if answer is None else next((mark for mark in answer.spans if not _inside(mark, answer.text)), None)
    except (KeyError, TypeError, ValueError, IndexError, StopIteration, AttributeError) as error:
        raise calib_error(
            "C692", path=file, why=f"{where} is not as {tool} writes it ({type(error).__name__}: {error})"
        ) from None
    if answer is None:
        return None
    if outside is not None:
        raise calib_error(
            "C695", path=file, where=where, start=outside.start, end=outside.end, n=len(answer.text), label=outside.label
        )
    return TextAnswers(answer.text, answer.spans, answer.cats, answer.whole, answer.meta, where)


def _checked(answer: TextAnswers | None) -> TextAnswers | None:
    """RAISES ValueError: a text or a label is none, or no Unicode, or what came with it has no names, or no value that a Doc can keep."""
    texts = () if answer is None else (answer.text, *answer.cats, *(mark.label for mark in answer.spans))
    if not all(isinstance(text, str) for text in texts) or (answer is not None and not isinstance(answer.meta, Mapping)):
        raise ValueError("a label or a text is none, or its meta no object")
    values = () if answer is None else [answer.meta.get(key) for key in ("drawn", "doc")]
    if not all(
        value is None or isinstance(value, (str, float)) or (isinstance(value, int) and abs(value) < _TOO_BIG)
        for value in values
    ):
        raise ValueError("how it was drawn is neither a text nor a number of at most 64 bits")
    for text in (*texts, *(value for value in values if isinstance(value, str))):
        text.encode()
    return answer


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
