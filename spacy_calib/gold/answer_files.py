"""Reads files that annotation tools export: the answers of people about texts, one TextAnswers for each text and person."""

from __future__ import annotations

import gzip
import json
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import WARNINGS, CalibError, brief, calib_error
from .label_studio import is_task, prepare_tasks, read_task
from .places import READINGS, MisplacedError, is_on_word_bounds, reread
from .tool_exports import TextAnswers, TextSpan, as_list, name_questions, name_views, read_argilla, read_doccano, read_prodigy
from .training_forms import TAGS, read_tokens, read_training

_TOO_BIG = 1 << 63
_MANY_CATEGORIES = 1000  # with more categories in a file, texts do not get a value for each: as many texts would take hours
_MIN_ON_BOUNDS = 0.95  # minimum share of spans on word bounds for a way of counting offsets to be right
_MAX_BAD = 0.05  # maximum share of the records that may be skipped because they cannot be used


class _BadRecord(Exception):
    """A record that cannot be used. where, why (str): Its place, the reason. error: Raised if it is the only bad record."""

    def __init__(self, where: str, why: str, error: CalibError):
        super().__init__(why)
        self.where, self.why, self.error = where, why, error


class Tool(NamedTuple):
    """How to recognize and read the records of an annotation tool. wrote (Callable): Record -> whether the tool wrote it.

    read (Callable): Record -> the answers of one person or of several; None if nobody answered.
    """

    wrote: Callable[[dict[str, Any]], bool]
    read: Callable[[dict[str, Any]], Iterable[TextAnswers] | TextAnswers | None]


# Name -> tool, recognized by the fields of its records.
TOOLS = {
    "Prodigy": Tool(lambda record: "text" in record and record.get("answer") in ("accept", "reject", "ignore"), read_prodigy),
    "Label Studio": Tool(is_task, read_task),
    "Argilla": Tool(
        lambda record: (
            (isinstance(record.get("fields"), dict) and isinstance(record.get("responses"), dict))
            or {"text", "annotation"} <= record.keys()
        ),
        read_argilla,
    ),
    # A queue that was not imported yet has `meta` and no `id`.
    "doccano": Tool(
        lambda record: (
            "text" in record
            and ("id" in record or ("meta" not in record and bool({"label", "labels"} & record.keys())))
            and any(isinstance(record.get(key), (list, str)) for key in ("label", "labels", "entities", "annotations"))
        ),
        read_doccano,
    ),
    "spaCy's training data": Tool(
        lambda record: "text" in record and bool({"entities", "cats"} & record.keys()), read_training
    ),
    "lines with tokens and tags": Tool(
        lambda record: isinstance(record.get("tokens"), list) and bool(TAGS & record.keys()), read_tokens
    ),
}


def tool_of(record: dict[str, Any]) -> str:
    """Return the name of the tool that wrote a record, "" if it is unknown."""
    return next((name for name, tool in TOOLS.items() if tool.wrote(record)), "")


# Forms that are not read: test, what it is, what to do.
_OTHER_FORMS: tuple[tuple[Callable[[dict[str, Any]], bool], str, str], ...] = (
    (
        lambda record: "paragraphs" in record,
        "it is training data of spaCy 2",
        "make a .spacy file of it by `python -m spacy convert`",
    ),
    (
        lambda record: "tokenized_text" in record,
        "it is training data of GLiNER, which lacks the text between the tokens",
        "write its tokens and tags as tokens and ner_tags, or its texts as .spacy",
    ),
    (
        lambda record: any(str(key).endswith(".responses") for key in record),
        "it has the columns of an Argilla dataset on the Hub",
        "export the answers by dataset.records.to_json",
    ),
)


def read_answers(
    file: Path, labels: Collection[str] = (), values: Sequence[tuple[str, Any]] | None = None
) -> list[TextAnswers]:
    """Read the export of an annotation tool as `read_each` does, and merge the answers of each person about each text.

    labels (Collection[str]): The labels of the pipeline. values: From `read_values`, if the file was read already.
    """
    return _by_text(read_each(file, labels, values), labels)


def read_each(file: Path, labels: Collection[str] = (), values: Sequence[tuple[str, Any]] | None = None) -> list[TextAnswers]:
    """Read the export of an annotation tool: the answers of each person in each record, in the order of the file.

    labels (Collection[str]): The labels of the pipeline, to select the questions about them. values (Sequence | None): From
    `read_values`, if the file was read already.
    Records that cannot be used are skipped, with a warning (CW61), if they are at most one in twenty.
    RAISES C692: the file, or its only record, cannot be read. C082, C693: records from no known tool, or from several. C694:
    records of two projects. C696: nobody answered. C786: several fields could be the text. C787: a form that this package does
    not read. C789: spans are on words in no way of counting, or in several. C790: too many records cannot be used; for one
    record C695, C785, C788: a span is outside of its text, the text has other words there, or it is no object.
    """
    answers: list[TextAnswers] = []
    values = read_values(file) if values is None else values
    bad, tool, projects = list[_BadRecord](), "", set()
    records = [(where, value) for where, value in values if isinstance(value, dict)]
    for where, value in values:
        if isinstance(value, Exception):
            error = calib_error("C692", path=file, why=f"{where} is no JSON ({value})")
            bad.append(_BadRecord(where, "it is no JSON", error))
        elif not isinstance(value, dict):
            error = calib_error("C788", path=file, where=where.capitalize(), given=brief(json.dumps(value)))
            bad.append(_BadRecord(where, "it is no object", error))
    try:
        name_views(records)
        prepare_tasks(records, labels)
        name_questions(records, labels)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
        if isinstance(error, CalibError):
            raise
        raise calib_error("C692", path=file, why=f"its records are not as a tool writes them ({error})") from None
    for where, record in records:
        name = tool_of(record)
        if not name:
            raise _unknown_form(file, where, record)
        if name != (tool or name):
            raise calib_error("C693", path=file, where=where, given=f"of {name}, not of {tool}")
        tool = name
        # Records of Label Studio contain the number of their project.
        projects |= {record["project"]} if name == "Label Studio" and isinstance(record.get("project"), int) else set()
        try:
            answers += _read(file, where, tool, record)
        except _BadRecord as error:
            bad.append(error)
    answers = _settle_offsets(file, answers)
    bad += [fault for answer in answers if (fault := _fault_inside(file, answer))]
    _report_bad(file, bad, len(values))
    bad_places = {error.where for error in bad}
    answers = [answer for answer in answers if answer.where not in bad_places]
    skipped = sum((answer.skipped for answer in answers), Counter[str]())
    names = ", ".join(f"{name} {n:,}" for name, n in skipped.most_common())
    if not answers or (skipped and not any(answer.spans or answer.cats for answer in answers)):
        raise calib_error("C696", path=file, skipped=f", or hold no labels ({names})" if names else "")
    if names:
        warnings.warn(WARNINGS["CW56"].format(path=file, names=names), stacklevel=2)
    _check_one_project(file, answers, projects)
    return answers


def _settle_offsets(file: Path, answers: list[TextAnswers]) -> list[TextAnswers]:
    """Find out how a tool counted the offsets of spans that it exported without their words, and convert them to characters.

    Ways of counting (READINGS) are compared on the spans for which they differ: one of them must put 95 of 100 of these on word
    bounds, and no other may. Warns (CW63) if it does not count characters. RAISES C789: none does so, or several.
    """
    not_plain = [answer for answer in answers if not _is_plain(answer.text)]
    marks = [(answer, mark) for answer in not_plain for mark in answer.spans if mark in answer.uncertain]
    # Name of a reading -> (start, end) of each mark by it; then the indices of marks on which the readings differ.
    spans = {name: [reread(answer.text, *mark[:2], name) for answer, mark in marks] for name in READINGS}
    open_marks = [i for i, of_mark in enumerate(zip(*spans.values(), strict=True)) if len({*of_mark}) > 1]
    if not open_marks:
        return answers
    fitting: dict[tuple[tuple[int, int], ...], str] = {}
    for name, of_reading in spans.items():
        n = sum(is_on_word_bounds(marks[i][0].text, *of_reading[i]) for i in open_marks)
        if n >= _MIN_ON_BOUNDS * len(open_marks):
            fitting.setdefault(tuple(of_reading), name)
    if len(fitting) != 1:
        examples = [marks[i][0].where + ": " + _readings_of(*marks[i]) for i in open_marks[:2]]
        raise calib_error("C789", path=file, many="several" if fitting else "no", examples="; ".join(examples))
    (name,) = fitting.values()
    if name == next(iter(READINGS)):  # characters
        return answers
    warnings.warn(WARNINGS["CW63"].format(path=file, reading=name, n=f"{len(open_marks):,}"), stacklevel=3)

    def convert(answer: TextAnswers, mark: TextSpan) -> TextSpan:
        return TextSpan(*reread(answer.text, *mark[:2], name), mark.label) if mark in answer.uncertain else mark

    return [replace(answer, spans={convert(answer, mark): right for mark, right in answer.spans.items()}) for answer in answers]


def _is_plain(text: str) -> bool:
    """Return whether all tools count the characters of a text alike: no line ends of two characters, none above U+FFFF."""
    return "\r\n" not in text and (text.isascii() or max(text) <= "\uffff")


def _readings_of(answer: TextAnswers, mark: TextSpan) -> str:
    """Return in words which different stretches of the text a span may mean, by the ways of counting its offsets."""
    stretches = dict.fromkeys(reread(answer.text, *mark[:2], name) for name in READINGS)
    return " or ".join(repr(answer.text[start:end][:40]) for start, end in stretches if end > 0)


def _check_one_project(file: Path, answers: Sequence[TextAnswers], projects: Collection[int]) -> None:
    """Check that the answers are of one project. RAISES C694: of two, or spans and categories are never in the same answer."""
    first_spans = next((answer.where for answer in answers if answer.spans), None)
    first_cats = next((answer.where for answer in answers if answer.cats), None)
    is_mixed = first_spans and first_cats and not any(answer.spans and answer.cats for answer in answers)
    if len(projects) > 1 or is_mixed:
        both = f"spans ({first_spans}) and categories ({first_cats})"
        raise calib_error("C694", path=file, given=both if is_mixed else f"numbers {sorted(projects)[:2]}")


def _by_text(answers: Sequence[TextAnswers], labels: Collection[str]) -> list[TextAnswers]:
    """Merge the answers of each person about each text; a later answer to a question replaces an earlier one.

    Contradicting answers of unknown persons stay separate. A completely annotated text has none of the file's categories that
    its answer does not name; if the file has very many, this is recorded only for those among `labels` (of the pipeline).
    """
    names = dict.fromkeys(name for answer in answers for name in answer.cats)
    absent = {name: False for name in names if len(names) <= _MANY_CATEGORIES or name in labels}
    texts: dict[tuple[str, str, Any], list[TextAnswers]] = {}
    for answer in answers:
        known = replace(answer, cats={**absent, **answer.cats}) if answer.whole and absent else answer
        spans = frozenset(mark for mark, right in known.spans.items() if right) if known.has_all_spans else None
        earlier = texts.setdefault((known.text, known.person, None if known.person else spans), [])  # other spans contradict
        to_merge = next((i for i, other in enumerate(earlier) if known.person or not other.contradicts(known)), None)
        if to_merge is None:
            earlier.append(known)
        else:
            earlier[to_merge] = earlier[to_merge].add(known)
    return [answer for of_text in texts.values() for answer in of_text]


def _unknown_form(file: Path, where: str, record: dict[str, Any]) -> CalibError:
    """Build the error for a record of no known tool: C787 with advice for a form that can be converted, else C082."""
    for is_form, why, mend in _OTHER_FORMS:
        if is_form(record):
            return calib_error("C787", path=file, why=why, mend=mend)
    return calib_error("C082", path=file, where=where.capitalize(), given=", ".join(map(str, record)) or "none")


def _report_bad(file: Path, bad: list[_BadRecord], n_records: int) -> None:
    """Warn (CW61) of bad records, which are skipped. RAISES C790, or the error of the only one: they are over one in twenty."""
    if not bad:
        return
    why_by_place = {error.where: f"{error.where}: {error.why}" for error in reversed(bad)}  # the first reason of each place
    n = len(why_by_place)
    reasons = "; ".join([*reversed(why_by_place.values())][:3])
    fields: dict[str, Any] = {"path": file, "n": f"{n:,}", "of": f"{n_records:,}", "reasons": reasons}
    if n > _MAX_BAD * n_records:
        raise bad[0].error if n == 1 else calib_error("C790", **fields)
    warnings.warn(WARNINGS["CW61"].format(**fields), stacklevel=3)


def _read(file: Path, where: str, tool: str, record: dict[str, Any]) -> list[TextAnswers]:
    """Return the answers in one record of a tool. RAISES _BadRecord: the record is malformed, or a span has other words."""
    try:
        answers = TOOLS[tool].read(record)
        answer_list = [_check_answer(answer) for answer in ([answers] if isinstance(answers, TextAnswers) else answers or ())]
    except MisplacedError as error:
        mark = {"words": brief(error.words), "start": error.start, "end": error.end, "actual": brief(error.actual)}
        why = "the text has other words than {words!r} from {start} to {end}".format(**mark)
        raise _BadRecord(where, why, calib_error("C785", path=file, where=where, **mark)) from None
    except (KeyError, TypeError, ValueError, IndexError, StopIteration, AttributeError) as error:
        fault = f"not as {tool} writes it ({type(error).__name__}: {error})"
        raise _BadRecord(where, f"it is {fault}", calib_error("C692", path=file, why=f"{where} is {fault}")) from None
    return [replace(answer, where=where) for answer in answer_list]


def _check_answer(answer: TextAnswers) -> TextAnswers:
    """Return an answer unchanged. RAISES ValueError: its text, label, offset, "drawn" or "doc" cannot be stored in a Doc."""
    texts = (answer.text, *answer.cats, *(mark.label for mark in answer.spans))
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a label or a text is none")
    if "" in answer.cats or any(not mark.label and right is not None for mark, right in answer.spans.items()):
        raise ValueError("a label is empty")
    if any(type(offset) is not int for mark in answer.spans for offset in mark[:2]):
        raise ValueError("a span does not begin and end at whole numbers")
    values = [answer.meta.get(key) for key in ("drawn", "doc")]
    if not all(
        value is None or isinstance(value, (str, float)) or (isinstance(value, int) and abs(value) < _TOO_BIG)
        for value in values
    ):
        raise ValueError("how it was drawn is neither a text nor a number of at most 64 bits")
    for text in (*texts, *(value for value in values if isinstance(value, str))):
        text.encode()
    return answer


def _fault_inside(file: Path, answer: TextAnswers) -> _BadRecord | None:
    """Return the fault of the first span that is outside of the text or contains only white space; None without such a span."""
    for start, end, label in answer.spans:
        if not (0 <= start < end <= len(answer.text) and answer.text[start:end].strip()):
            mark = {"where": answer.where, "start": start, "end": end, "n": len(answer.text), "label": label}
            why = f"there is no word from {start} to {end}"
            return _BadRecord(answer.where, why, calib_error("C695", path=file, **mark))
    return None


def read_values(file: Path) -> list[tuple[str, Any]]:
    """Return (position, value) for each record of a file of JSON Lines ("line 3"), or of a JSON array or object ("record 3").

    For a line that is no JSON the value is the exception. RAISES C692: the file is no JSON, or its last line is cut off.
    """
    where = "it"
    try:
        content = file.read_bytes()
        text = (gzip.decompress(content) if file.suffix == ".gz" else content).decode("utf-8-sig")
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = [(f"line {number}", line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        document: Any = None  # the whole file as one JSON value, if it is not JSON Lines
        values: list[tuple[str, Any]] = []
        start = text.lstrip()[:1]
        if (start == "[" and len(lines) == 1) or (start in ("[", "{") and not _is_json(lines[0][1]) and len(lines) > 1):
            document = json.loads(text)
        if isinstance(document, list) and not _is_training_pair(document):
            values = [(f"record {number}", record) for number, record in enumerate(document, 1)]
        elif document is not None:
            values = [("record 1", document)]
        else:
            for where, line in lines:
                try:
                    values.append((where, json.loads(line)))
                except (RecursionError, ValueError) as error:
                    if where == lines[-1][0]:
                        raise
                    values.append((where, error))
        if len(values) == 1 and isinstance(values[0][1], dict) and values[0][1].keys() == {"classes", "annotations"}:
            records = as_list(values[0][1]["annotations"])  # a file of NER Annotator
            values = [(f"record {number}", record) for number, record in enumerate(records, 1) if record]
    except (OSError, EOFError, RecursionError, ValueError, zlib.error) as error:
        fault = "UTF-8; save it in this encoding" if isinstance(error, UnicodeDecodeError) else "JSON, or cut off"
        raise calib_error("C692", path=file, why=f"{where} is no {fault} ({error})") from None
    return [(where, {"text": value[0], **value[1]} if _is_training_pair(value) else value) for where, value in values]


def _is_training_pair(value: Any) -> bool:
    """Return whether a value is [text, annotations], as in spaCy's training data."""
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], dict)


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (RecursionError, ValueError):
        return False
    return True
