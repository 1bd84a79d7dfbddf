"""What annotation tools export -> answers of people: what they found right, what wrong, and of which texts they told all.

Sources: Prodigy, "Annotation interfaces"; Label Studio, "Label Studio task format"; doccano, exports of sequence labeling and text
classification, old and new; Argilla, exports of version 1 (`to_dict`) and 2 (`records.to_list`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import calib_error

ANSWER_SUFFIXES = (".jsonl", ".json")
# Views of Prodigy that show the spans or the label to be accepted or rejected, and no others.
_BINARY = ("ner", "spans", "classification")
# Units of our queues whose text is shown with all that stands in it.
_TOO_BIG = 1 << 63
_WHOLE_UNITS = ("sentence", "document")


class Mark(NamedTuple):
    """A labelled stretch of a text, in characters."""

    start: int
    end: int
    label: str


@dataclass(frozen=True)
class Answer:
    """What people say of a text.

    spans (dict): Stretch -> whether it is right. cats (dict): Category -> whether the text has it. whole (bool): Whether nothing else is right, so that
    what is not there is wrong; else it is unknown. meta (dict): What came with the text, see `tasks.Task` for how it was drawn. where (str): In the file.
    """

    text: str
    spans: dict[Mark, bool] = field(default_factory=dict)
    cats: dict[str, bool] = field(default_factory=dict)
    whole: bool = False
    meta: dict[str, Any] = field(default_factory=dict)
    where: str = ""

    def joined(self, later: Answer) -> Answer:
        """With what was said of the same text later, which counts where they differ."""
        if later.whole and (later.spans or not later.cats):
            return later
        spans, cats = {**self.spans, **later.spans}, {**self.cats, **later.cats}
        return Answer(self.text, spans, cats, self.whole, {**self.meta, **later.meta}, self.where)


def of_spans(text: str, found: Sequence[Mark], meta: Mapping[str, Any], whole: bool = True) -> Answer:
    """The spans that a person left on a text; those that our queue asked for, and that are gone, are wrong. Where it asked for one of them alone, others
    that are not there are unknown.
    """
    spans = {**dict.fromkeys(_asked(meta), False), **dict.fromkeys(found, True)}
    return Answer(text, spans, whole=whole and not isinstance(meta.get("asked"), str), meta=dict(meta))


def of_cats(text: str, found: Sequence[Any], meta: Mapping[str, Any]) -> Answer:
    """The categories that a person chose from all."""
    return Answer(text, cats=dict.fromkeys(map(str, found), True), whole=True, meta=dict(meta))


def _asked(meta: Mapping[str, Any]) -> list[Mark]:
    """The spans that our queue asked for, one alone or each of a text, see `formats`; [] where it did not."""
    given = meta.get("asked")
    told = [one.split(" ", 2) for one in ([given] if isinstance(given, str) else given if isinstance(given, list) else ())]
    return [Mark(int(start), int(end), label) for start, end, label in told]


def _marks(found: Any, start: str = "start", end: str = "end") -> list[Mark]:
    return [Mark(one[start], one[end], one["label"]) for one in found]


# Prodigy


def _prodigy(record: dict[str, Any]) -> Answer | None:
    text, answer, meta = record["text"], record["answer"], record.get("meta") or {}
    if answer == "ignore":
        return None
    right = answer == "accept"
    if "options" in record:
        chosen = [str(one) for one in record.get("accept") or ()]
        if not right:
            return Answer(text, cats=dict.fromkeys(chosen, False), meta=meta) if chosen else None
        options = dict.fromkeys((str(one["id"]) for one in record["options"]), False)
        return Answer(text, cats={**options, **dict.fromkeys(chosen, True)}, whole=True, meta=meta)
    if not record.get("spans") and isinstance(record.get("label"), str):
        return Answer(text, cats={record["label"]: right}, meta=meta)
    marks = _marks(record.get("spans") or ())
    if not right:
        wrong = _asked(meta) or marks
        return Answer(text, {wrong[0]: False}, meta=meta) if len(wrong) == 1 else None  # of several, it does not say which
    return of_spans(text, marks, meta, whole=meta.get("unit") in _WHOLE_UNITS or record.get("_view_id") not in _BINARY)


def _viewed(records: list[tuple[str, dict[str, Any]]]) -> None:
    """Name the view of old exports, which do not: where single spans are rejected, they were asked about one by one."""
    if any(record.get("answer") == "reject" and record.get("spans") and "options" not in record for _, record in records):
        for _, record in records:
            record.setdefault("_view_id", _BINARY[0])


# Label Studio


def _label_studio(record: dict[str, Any]) -> Answer | None:
    told = [one for one in record["annotations"] if not one.get("was_cancelled")]
    if not told:
        return None
    data = record["data"]
    texts = [value for value in data.values() if isinstance(value, str)]
    text, meta = data["text"] if "text" in data else texts[0], data.get("meta") or {}
    spans, cats, kinds = [], [], {"choices" if one.get("type") == "choices" else "labels" for one in told[-1]["result"]}
    for one in told[-1]["result"]:
        value = one["value"]
        if one.get("type") == "choices":
            cats += value["choices"]
        else:
            bounds = _code_points(text, value)
            spans += [Mark(*bounds, label) for label in value["labels"]]
    if kinds == {"choices"}:
        return of_cats(text, cats, meta)
    made = of_spans(text, spans, meta)
    return Answer(text, made.spans, dict.fromkeys(cats, True), made.whole, made.meta)


def _code_points(text: str, value: dict[str, Any]) -> tuple[int, int]:
    """The bounds of a region, which browsers count in UTF-16: a character beyond the basic plane is two."""
    start, end = value["start"], value["end"]
    if "text" in value and text[start:end] != value["text"]:
        units = text.encode("utf-16-le")
        moved = [len(units[: 2 * place].decode("utf-16-le", "ignore")) for place in (start, end)]
        if text[moved[0] : moved[1]] == value["text"]:
            return moved[0], moved[1]
    return start, end


# doccano


def _doccano(record: dict[str, Any]) -> Answer | None:
    meta = record.get("meta") or {key: record[key] for key in ("drawn", "asked", "doc", "unit") if key in record}
    found = next(record[key] for key in ("entities", "label", "labels") if key in record)
    if "entities" in record:
        return of_spans(record["text"], _marks(found, "start_offset", "end_offset"), meta)
    if found and isinstance(found[0], str):
        return of_cats(record["text"], found, meta)
    return of_spans(record["text"], [Mark(*one) for one in found], meta)


# Argilla


def _argilla(record: dict[str, Any]) -> Answer | None:
    if "responses" in record:
        given = [
            one["value"]
            for told in record["responses"].values()
            for one in told[-1:]
            if one.get("status") in (None, "submitted") and one.get("value") is not None
        ]
        fields = record["fields"]
        text, meta = fields["text"] if "text" in fields else next(iter(fields.values())), record.get("metadata") or {}
    else:
        unanswered = record.get("status") == "Discarded" or record["annotation"] is None
        given, text, meta = [] if unanswered else [record["annotation"]], record["text"], record.get("metadata") or {}
    made: Answer | None = None
    for value in given:
        own = _argilla_value(text, value, meta)
        made = (
            own if made is None else Answer(text, {**made.spans, **own.spans}, {**made.cats, **own.cats}, own.whole, own.meta)
        )
    return made


def _argilla_value(text: str, value: Any, meta: dict[str, Any]) -> Answer:
    if isinstance(value, str) or (value and isinstance(value[0], str)):
        return of_cats(text, [value] if isinstance(value, str) else value, meta)
    if value and not isinstance(value[0], dict):
        return of_spans(text, [Mark(one[1], one[2], one[0]) for one in value], meta)
    return of_spans(text, _marks(value), meta)


class Tool(NamedTuple):
    """wrote (Callable): Whether a record is one of its. read (Callable): Of a record; None where nobody answered."""

    wrote: Callable[[dict[str, Any]], bool]
    read: Callable[[dict[str, Any]], Answer | None]


# By what only its records have.
TOOLS = {
    "Prodigy": Tool(lambda record: "text" in record and record.get("answer") in ("accept", "reject", "ignore"), _prodigy),
    "Label Studio": Tool(
        lambda record: isinstance(record.get("data"), dict) and isinstance(record.get("annotations"), list), _label_studio
    ),
    "Argilla": Tool(
        lambda record: (
            (isinstance(record.get("fields"), dict) and isinstance(record.get("responses"), dict))
            or {"text", "annotation"} <= record.keys()
        ),
        _argilla,
    ),
    # `id` tells answers from a queue that was not imported yet
    "doccano": Tool(
        lambda record: (
            {"text", "id"} <= record.keys()
            and any(isinstance(record.get(key), list) for key in ("label", "labels", "entities"))
        ),
        _doccano,
    ),
}


def read_answers(file: Path) -> list[Answer]:
    """What a tool exported, one answer for each text, in the order of the file.

    RAISES C692: the file, or a record of it, cannot be read. C693: no tool's, or of several tools. C694: of two projects. C695: a span lies outside of its
    text. C696: nobody answered.
    """
    told, tool, projects, records = [], "", set(), list(_records(file))
    _viewed(records)
    for where, record in records:
        own = next((name for name, one in TOOLS.items() if one.wrote(record)), "")
        if not own or own != (tool or own):
            raise calib_error("C693", path=file, where=where, given=f"of {own}, not of {tool}" if own else "of none of them")
        tool = own
        projects |= {record["project"]} if own == "Label Studio" and isinstance(record.get("project"), int) else set()
        made = _read(file, where, tool, record)
        if made is not None:
            told.append(made)
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
        own_ = Answer(one.text, one.spans, {**every, **one.cats}, True, one.meta, one.where) if one.whole and one.cats else one
        texts[one.text] = texts[one.text].joined(own_) if one.text in texts else own_
    return list(texts.values())


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
