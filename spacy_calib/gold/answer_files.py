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
from . import tool_exports
from .label_studio import is_task, prepare_tasks, read_task
from .places import READINGS, MisplacedError, is_on_word_bounds, reread
from .tool_exports import TextAnswers, TextSpan
from .training_forms import has_token_tags, read_tokens, unknown_form

_MANY_CATEGORIES = 1000  # with more categories in a file, texts do not get a value for each: as many texts would take hours
_MIN_ON_BOUNDS = 0.95  # minimum share of spans on word bounds for a way of counting offsets to be right
_MAX_BAD = 0.05  # maximum share of the records that may be skipped because they cannot be used
Record = dict[str, Any]
PlacedRecord = tuple[str, Record]  # (place in the file, such as "line 3"; the record)


class _BadRecord(Exception):
    """A record at `where` ("line 3") cannot be used because of `why`; `error` is raised if it is the only bad record."""

    def __init__(self, where: str, why: str, error: CalibError):
        super().__init__(why)
        self.where, self.why, self.error = where, why, error


class Tool(NamedTuple):
    """How to recognize and read the records of an annotation tool.

    wrote (Callable): Record -> whether the tool wrote it. read (Callable): Record -> the answers of one person or of several;
    None if nobody answered. prepare (Callable | None): Called before the first record is read, with all records and the labels
    of the pipeline; adds to each record what only all of them together show, such as which field is the text.
    """

    wrote: Callable[[Record], bool]
    read: Callable[[Record], Iterable[TextAnswers] | TextAnswers | None]
    prepare: Callable[[list[Record], Collection[str]], None] | None = None


# Name -> tool. A record is from the first tool whose fields it has.
TOOLS = {
    "Prodigy": Tool(tool_exports.is_prodigy, tool_exports.read_prodigy, tool_exports.name_views),
    "Label Studio": Tool(is_task, read_task, prepare_tasks),
    "Argilla": Tool(tool_exports.is_argilla, tool_exports.read_argilla, tool_exports.name_questions),
    "doccano": Tool(tool_exports.is_doccano, tool_exports.read_doccano),
    "spaCy's training data": Tool(tool_exports.is_training, tool_exports.read_training),
    "lines with tokens and tags": Tool(has_token_tags, read_tokens),
}


def tool_of(record: Record) -> str:
    """Return the name of the tool that wrote a record, "" if it is unknown."""
    return next((name for name, tool in TOOLS.items() if tool.wrote(record)), "")


def read_answers(
    file: Path, labels: Collection[str] = (), values: Sequence[tuple[str, Any]] | None = None
) -> list[TextAnswers]:
    """Read the export of an annotation tool: one TextAnswers for each text and person, merged from this person's answers to it.

    labels (Collection[str]): The labels of the pipeline. values (Sequence | None): Records, from `read_values`; None reads
    them from the file. RAISES CalibError, and warns of bad records, as `read_each` does.
    """
    return _merge_by_text(_with_absent_categories(read_each(file, labels, values), labels))


def read_each(file: Path, labels: Collection[str] = (), values: Sequence[tuple[str, Any]] | None = None) -> list[TextAnswers]:
    """Read the export of an annotation tool: the answers of each person in each record, in the order of the file.

    labels (Collection[str]): The labels of the pipeline; a question with one of them as answer is one that asks for labels.
    values (Sequence | None): From `read_values`; None reads the file. Bad records are skipped with a warning (CW61) if they are
    at most one in twenty. RAISES C790: more are bad. If a single record is all that is bad, it raises its own error: C788: it
    is no JSON object. C692: it is not as the tool writes it. C695: a span is outside of its text. C785: the text has other
    words than the exported span. The file raises C692: it cannot be read. C082, C787: no known tool wrote it. C693: two tools
    did. C694: it is of two projects. C696: nobody answered. C786: several fields could be the text. C789: no way of counting
    offsets, or more than one, puts spans on words.
    """
    values = read_values(file) if values is None else values
    records = [(where, value) for where, value in values if isinstance(value, dict)]
    bad = [_no_object(file, where, value) for where, value in values if not isinstance(value, dict)]
    tool_name = _tool_of_all(file, records)
    _prepare(file, tool_name, records, labels)
    answers: list[TextAnswers] = []
    for where, record in records:
        try:
            answers += _read_record(file, where, tool_name, record)
        except _BadRecord as error:
            bad.append(error)
    answers = _settle_offsets(file, answers)
    bad += [fault for answer in answers if (fault := _fault_inside(file, answer))]
    _report_bad(file, bad, len(values))
    bad_places = {error.where for error in bad}
    answers = [answer for answer in answers if answer.where not in bad_places]
    _check_answered(file, answers)
    _check_one_project(file, answers, [record for _, record in records if is_task(record)])
    return answers


def _no_object(file: Path, where: str, value: Any) -> _BadRecord:
    """Return the fault of a record, at `where` in a file, that is no JSON (then `value` is the exception) or no JSON object."""
    if isinstance(value, Exception):
        return _BadRecord(where, "it is no JSON", calib_error("C692", path=file, why=f"{where} is no JSON ({value})"))
    error = calib_error("C788", path=file, where=where.capitalize(), given=brief(json.dumps(value)))
    return _BadRecord(where, "it is no object", error)


def _tool_of_all(file: Path, records: list[PlacedRecord]) -> str:
    """Return the name of the tool that wrote the records, "" without any. RAISES C082, C787: unknown tool. C693: two tools."""
    first_name = ""
    for where, record in records:
        name = tool_of(record)
        if not name:
            raise unknown_form(file, where, record)
        first_name = first_name or name
        if name != first_name:
            raise calib_error("C693", path=file, where=where, given=f"of {name}, not of {first_name}")
    return first_name


def _prepare(file: Path, tool_name: str, records: list[PlacedRecord], labels: Collection[str]) -> None:
    """Call a tool's `prepare`, if it has one: it adds to each record what only all records show, such as the field of the text.

    tool_name (str): Key of TOOLS; "" calls nothing. RAISES C786: several fields could be the text. C692: records are malformed.
    """
    prepare = TOOLS[tool_name].prepare if tool_name else None
    if prepare is None:
        return
    try:
        prepare([record for _, record in records], labels)
    except CalibError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
        raise calib_error("C692", path=file, why=f"its records are not as a tool writes them ({error})") from None


def _read_record(file: Path, where: str, tool_name: str, record: Record) -> list[TextAnswers]:
    """Return the answers in one record. where (str): Its place, such as "line 3". tool_name (str): Its tool, a key of TOOLS.

    RAISES _BadRecord: the record is malformed, or the text has other words than those exported with a span.
    """
    try:
        answers = TOOLS[tool_name].read(record)
        answer_list = [answers] if isinstance(answers, TextAnswers) else list(answers or ())
        for answer in answer_list:
            _check_types(answer)
    except MisplacedError as error:
        mark = {"words": brief(error.words), "start": error.start, "end": error.end, "actual": brief(error.actual)}
        why = "the text has other words than {words!r} from {start} to {end}".format(**mark)
        raise _BadRecord(where, why, calib_error("C785", path=file, where=where, **mark)) from None
    except (KeyError, TypeError, ValueError, IndexError, StopIteration, AttributeError) as error:
        fault = f"not as {tool_name} writes it ({type(error).__name__}: {error})"
        raise _BadRecord(where, f"it is {fault}", calib_error("C692", path=file, why=f"{where} is {fault}")) from None
    return [replace(answer, where=where) for answer in answer_list]


def _check_types(answer: TextAnswers) -> None:
    """Check that a Doc can store an answer. RAISES ValueError: a text or label is no valid string, or an offset no integer."""
    texts = (answer.text, *answer.cats, *(mark.label for mark in answer.spans))
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a label or a text is none")
    # A region whose gold is unknown (None) may lack a label.
    if "" in answer.cats or any(not mark.label and right is not None for mark, right in answer.spans.items()):
        raise ValueError("a label is empty")
    if any(type(offset) is not int for mark in answer.spans for offset in mark[:2]):
        raise ValueError("a span does not begin and end at whole numbers")
    for text in texts:
        text.encode()  # fails for half of a surrogate pair


def _settle_offsets(file: Path, answers: list[TextAnswers]) -> list[TextAnswers]:
    """Find out how a tool counted the offsets of spans that it exported without their words, and convert them to characters.

    answers (list): All of the file; their `uncertain` spans are those without words. The ways of counting (READINGS) are
    compared on the spans for which they differ: one way must put 95 of 100 of these on word bounds, and no other way may.
    Warns (CW63) if this way does not count characters. RAISES C789: no way puts that many on word bounds, or several do.
    """
    ambiguous_answers = [answer for answer in answers if not _is_plain(answer.text)]
    marks = [(answer, mark) for answer in ambiguous_answers for mark in answer.spans if mark in answer.uncertain]
    # Name of a way of counting -> (start, end) of each mark by it, in characters.
    places = {name: [reread(answer.text, mark.start, mark.end, name) for answer, mark in marks] for name in READINGS}
    disputed = [i for i in range(len(marks)) if len({places[name][i] for name in READINGS}) > 1]  # indices into `marks`
    if not disputed:
        return answers

    def puts_on_words(name: str) -> bool:
        n_on_bounds = sum(is_on_word_bounds(marks[i][0].text, *places[name][i]) for i in disputed)
        return n_on_bounds >= _MIN_ON_BOUNDS * len(disputed)

    fitting_ways = [name for name in READINGS if puts_on_words(name)]
    if len({tuple(places[name]) for name in fitting_ways}) != 1:  # ways with the same places count as one
        examples = [f"{answer.where}: {_readings_of(answer, mark)}" for answer, mark in (marks[i] for i in disputed[:2])]
        raise calib_error("C789", path=file, many="several" if fitting_ways else "no", examples="; ".join(examples))
    way = fitting_ways[0]
    if way == "characters":  # the offsets need no conversion
        return answers
    warnings.warn(WARNINGS["CW63"].format(path=file, reading=way, n=f"{len(disputed):,}"), stacklevel=3)

    def convert(answer: TextAnswers, mark: TextSpan) -> TextSpan:
        return TextSpan(*reread(answer.text, mark.start, mark.end, way), mark.label) if mark in answer.uncertain else mark

    return [replace(answer, spans={convert(answer, mark): right for mark, right in answer.spans.items()}) for answer in answers]


def _is_plain(text: str) -> bool:
    """Return whether all tools count the characters of a text alike: no line ends of two characters, none above U+FFFF."""
    return "\r\n" not in text and (text.isascii() or max(text) <= "\uffff")


def _readings_of(answer: TextAnswers, mark: TextSpan) -> str:
    """List for a message the words that the span `mark` of a text may mean, by each way of counting: "'New' or 'ew '"."""
    stretches = dict.fromkeys(reread(answer.text, *mark[:2], name) for name in READINGS)
    return " or ".join(repr(answer.text[start:end][:40]) for start, end in stretches if end > 0)


def _fault_inside(file: Path, answer: TextAnswers) -> _BadRecord | None:
    """Return the fault of an answer's first span that is outside of the text or only white space; None without such a span."""
    for start, end, label in answer.spans:
        is_inside = 0 <= start < end <= len(answer.text)
        if not is_inside or answer.text[start:end].isspace():
            mark = {"where": answer.where, "start": start, "end": end, "n": len(answer.text), "label": label}
            why = f"there is no word from {start} to {end}"
            return _BadRecord(answer.where, why, calib_error("C695", path=file, **mark))
    return None


def _report_bad(file: Path, bad: list[_BadRecord], n_records: int) -> None:
    """Warn (CW61) that bad records are skipped. RAISES C790 (for a single one its own error): over 5 % of n_records are bad."""
    if not bad:
        return
    why_by_place: dict[str, str] = {}  # the first reason of each place
    for error in bad:
        why_by_place.setdefault(error.where, f"{error.where}: {error.why}")
    n, reasons = len(why_by_place), "; ".join([*why_by_place.values()][:3])
    fields: dict[str, Any] = {"path": file, "n": f"{n:,}", "of": f"{n_records:,}", "reasons": reasons}
    if n > _MAX_BAD * n_records:
        raise bad[0].error if n == 1 else calib_error("C790", **fields)
    warnings.warn(WARNINGS["CW61"].format(**fields), stacklevel=3)


def _check_answered(file: Path, answers: Sequence[TextAnswers]) -> None:
    """Warn (CW56) of parts of records that are no labels (`skipped`). RAISES C696: there are no answers, or only such parts."""
    skipped = sum((answer.skipped for answer in answers), Counter[str]())
    names = ", ".join(f"{name} {n:,}" for name, n in skipped.most_common())
    if not answers or (skipped and not any(answer.spans or answer.cats for answer in answers)):
        raise calib_error("C696", path=file, skipped=f", or hold no labels ({names})" if names else "")
    if names:
        warnings.warn(WARNINGS["CW56"].format(path=file, names=names), stacklevel=3)


def _check_one_project(file: Path, answers: Sequence[TextAnswers], tasks: Sequence[Record]) -> None:
    """Check that the answers are of one project. tasks (Sequence): Records of Label Studio, with the number of their project.

    RAISES C694: they are of two projects, or some answers have spans and others categories, but none has both.
    """
    projects = {task["project"] for task in tasks if isinstance(task.get("project"), int)}
    first_spans = next((answer.where for answer in answers if answer.spans), None)
    first_cats = next((answer.where for answer in answers if answer.cats), None)
    is_mixed = first_spans and first_cats and not any(answer.spans and answer.cats for answer in answers)
    if len(projects) > 1 or is_mixed:
        both = f"spans ({first_spans}) and categories ({first_cats})"
        raise calib_error("C694", path=file, given=both if is_mixed else f"numbers {sorted(projects)[:2]}")


def _with_absent_categories(answers: list[TextAnswers], labels: Collection[str]) -> list[TextAnswers]:
    """Return the answers; one about a whole text gets False (absent) for each category of the file that it does not name.

    labels (Collection[str]): Labels of the pipeline. If the file has over _MANY_CATEGORIES, only these categories get False.
    """
    names = dict.fromkeys(name for answer in answers for name in answer.cats)
    absent = {name: False for name in names if len(names) <= _MANY_CATEGORIES or name in labels}
    return [replace(answer, cats={**absent, **answer.cats}) if answer.whole else answer for answer in answers]


def _merge_by_text(answers: Sequence[TextAnswers]) -> list[TextAnswers]:
    """Merge the answers of each person about each text; a later answer to a question replaces an earlier one.

    Answers without a name are merged only if they do not contradict each other, as they may be of several people.
    """
    groups: dict[tuple[str, str, Any], list[TextAnswers]] = {}  # the answers that may be merged with each other
    for answer in answers:
        # Complete answers without a name contradict each other unless they have the same right spans: a group for each set.
        right_spans = None
        if answer.has_all_spans and not answer.person:
            right_spans = frozenset(mark for mark, is_right in answer.spans.items() if is_right)
        group = groups.setdefault((answer.text, answer.person, right_spans), [])
        for i, earlier in enumerate(group):
            if answer.person or not earlier.contradicts(answer):
                group[i] = earlier.add(answer)
                break
        else:  # no earlier answer of the group can take it
            group.append(answer)
    return [answer for group in groups.values() for answer in group]


def read_values(file: Path) -> list[tuple[str, Any]]:
    """Return (position, value) for each record of a file of JSON Lines ("line 3"), or of a JSON array or object ("record 3").

    For a line that is no JSON the value is the exception. RAISES C692: the file is no JSON, or its last line is cut off.
    """
    try:
        content = file.read_bytes()
        text = (gzip.decompress(content) if file.suffix == ".gz" else content).decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        expected = "UTF-8; save it in this encoding" if isinstance(error, UnicodeDecodeError) else "JSON, or cut off"
        raise calib_error("C692", path=file, why=f"it is no {expected} ({error})") from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = [(f"line {number}", line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    bracket = text.lstrip()[:1]
    # The file is one JSON value if its only line is an array, or if the first of several lines is no JSON by itself.
    if len(lines) == 1:
        is_one_value = bracket == "["
    else:
        is_one_value = bracket in ("[", "{") and isinstance(_parse(lines[0][1]), Exception)
    if is_one_value:
        document = _parse(text)
        is_array = isinstance(document, list) and not _is_training_pair(document)
        values = [(f"record {number}", record) for number, record in enumerate(document if is_array else [document], 1)]
    else:
        values = [(where, _parse(line)) for where, line in lines]
    last_place, last_value = values[-1] if values else ("", None)
    if isinstance(last_value, Exception):
        place = "it" if is_one_value else last_place
        raise calib_error("C692", path=file, why=f"{place} is no JSON, or cut off ({last_value})") from None
    return [(where, {"text": value[0], **value[1]} if _is_training_pair(value) else value) for where, value in values]


def _parse(text: str) -> Any:
    """Return the value of a JSON text; the exception if it is no JSON."""
    try:
        return json.loads(text)
    except (RecursionError, ValueError) as error:
        return error


def _is_training_pair(value: Any) -> bool:
    """Return whether a value is [text, annotations], as in spaCy's training data."""
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], dict)
