"""Tasks -> files: JSON Lines and CSV of our own, which are read again too, and what Prodigy, Label Studio, doccano and Argilla import.

Sources: Prodigy, "Annotation interfaces" and "API: input data"; Label Studio, "Import pre-annotated data" and "Label Studio task format";
doccano, sequence labeling and text classification examples of its importer; Argilla 2, `Record.from_dict` and `records.from_json`.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from ....about import __version__
from ....errors.visible import csv_lines, unguard_cell, visible
from ....gold.tool_exports import QUEUE_MARK
from ....pairs.documents import DOCUMENT
from ..messages import calib_error
from .tasks import Task

_DIGITS = 6
_COLUMNS = (
    "rank", "score", "raw", "priority", "unit", "focus", "label", "alternatives", "gold", "right", "doc", "sentence", "start", "end", "words",
    "expected_errors", "origin", "text",
)  # fmt: skip
# Of gold that is audited, see `Task.doubted`; the last two are of arcs.
_DOUBTED = ("kind", "suggestion", "suggestion_score", "suggested_text", "head", "suggested_head")

# How the tags of Label Studio's labeling interface are called, in `label_studio_config` and in the predictions; and the question and the field of Argilla.
_CONTROL, _OBJECT = "label", "text"
_AGENT = f"spacy-calib {__version__}"
# Units whose text holds others that are not asked about.
_ASKED_ALONE = ("token", "entity")


def record_of(task: Task) -> dict[str, Any]:
    """Everything about a task, as plain data. Characters of "marks" count from the beginning of "text"; a "reason" is there where the unit has one."""
    record = {key: getattr(task, key) for key in _COLUMNS if key != "label"}
    record["marks"] = [{"start": one.start, "end": one.end, "label": one.label, "score": one.score} for one in task.spans]
    return {**record, **({} if task.reason is None else {"reason": task.reason}), **(task.doubted or {}), "drawn": task.drawn}


def prodigy_of(task: Task) -> dict[str, Any]:
    """For Prodigy's ner_manual and spans_manual; a document with its label for its classification, to accept or reject."""
    if _is_category(task):
        label = task.spans[0].label if task.spans else task.doubted["suggestion"]  # type: ignore[index]
        return {"text": task.text, "label": label, "score": round(task.score, _DIGITS), "meta": _meta(task)}
    return {
        "text": task.text,
        "tokens": [
            {"text": task.text[start:end], "start": start, "end": end, "id": i, "ws": space and end < len(task.text)}
            for i, (start, end, space) in enumerate(task.tokens)
        ],
        "spans": [
            {
                **{"start": span.start, "end": span.end, "token_start": span.first, "token_end": span.last},
                **{"label": span.label, "score": round(span.score, _DIGITS)},
            }
            for span in task.spans
        ],
        "meta": _meta(task),
    }


def label_studio_of(task: Task) -> dict[str, Any]:
    """For a project with the interface of `label_studio_config`: the text, and what the model said as a prediction."""
    kind = "choices" if _is_category(task) else "labels"
    made = []
    for i, span in enumerate(task.spans):
        value: dict[str, Any] = {kind: [visible(span.label)]}
        one: dict[str, Any] = {
            "id": f"{task.rank}-{i}",
            "from_name": _CONTROL,
            "to_name": _OBJECT,
            "type": kind,
            "value": value,
        }
        if kind == "labels":
            one["value"] = {"start": span.start, "end": span.end, "text": task.text[span.start : span.end], **value}
            one["score"] = round(span.score, _DIGITS)
        made.append(one)
    prediction = {"model_version": _AGENT, "score": round(task.score, _DIGITS), "result": made}
    return {"data": {_OBJECT: task.text, "meta": _meta(task)}, "predictions": [prediction]}


def doccano_of(task: Task) -> dict[str, Any]:
    """For doccano's sequence labeling [start, end, label] of each span; for its text classification the document's label."""
    whole = _is_category(task)
    labels = [span.label if whole else [span.start, span.end, span.label] for span in task.spans]
    return {"text": task.text, "label": labels, "meta": _meta(task)}


def argilla_of(task: Task) -> dict[str, Any]:
    """For a dataset of Argilla 2 with a span question, or of a document a label question: the text, and what the model said as a suggestion."""
    made: dict[str, Any] = {
        "value": [{"start": span.start, "end": span.end, "label": span.label} for span in task.spans],
        "score": [round(span.score, _DIGITS) for span in task.spans],
    }
    if _is_category(task):
        made = {key: values[0] if key == "score" else values[0]["label"] for key, values in made.items() if values}
    metadata = {
        key: value if _is_metadata(value) else json.dumps(value, ensure_ascii=False) for key, value in _meta(task).items()
    }
    suggestions = {_CONTROL: {**made, "agent": _AGENT}} if task.spans else {}
    return {"id": str(task.rank), "fields": {_OBJECT: task.text}, "metadata": metadata, "suggestions": suggestions}


def _is_metadata(value: Any) -> bool:
    """Whether Argilla takes it as a value."""
    return all(isinstance(one, str) for one in value) if isinstance(value, list) else isinstance(value, (str, int, float))


def label_studio_config(labels: Iterable[str], categories: bool = False) -> str:
    """The labeling interface of a Label Studio project as XML. categories: Whether a document has a label as a whole."""
    each, every = ("Choice", "Choices") if categories else ("Label", "Labels")
    choices = "\n".join(f"    <{each} value={quoteattr(visible(label))}/>" for label in labels)
    return (
        f'<View>\n  <{every} name="{_CONTROL}" toName="{_OBJECT}">\n{choices}\n  </{every}>\n'
        f'  <Text name="{_OBJECT}" value="${_OBJECT}"/>\n</View>\n'
    )


def _is_category(task: Task) -> bool:
    """Whether it is a document with a label as a whole."""
    return task.unit == DOCUMENT and task.labelled


def _meta(task: Task) -> dict[str, Any]:
    """What an annotator is shown beside the text, and what came with it; "meta" as a whole where it has one of our keys."""
    ours: dict[str, Any] = {
        **QUEUE_MARK, "focus": task.focus, "score": round(task.score, _DIGITS), "rank": task.rank, "doc": task.doc, "sentence": task.sentence,
        "unit": task.unit, "drawn": task.drawn,
    }  # fmt: skip
    asked = [f"{span.start} {span.end} {span.label}" for span in task.spans]
    if asked and (task.each_asked or task.unit in _ASKED_ALONE):
        ours["asked"] = asked[0] if task.unit in _ASKED_ALONE else asked
    if task.unit == DOCUMENT:
        del ours["sentence"]
    if _is_category(task):  # it is the text
        del ours["focus"]
    if task.alternatives:
        ours["alternatives"] = ", ".join(f"{tag} {score:.2f}" for tag, score in task.alternatives.items())
    if task.doubted is not None:
        ours |= {key: _cell(value) for key, value in task.doubted.items()}
    meta = {**task.origin, **ours}
    given = meta.get("meta")
    if isinstance(given, dict) and not meta.keys() & given.keys():
        return {**given, **{key: value for key, value in meta.items() if key != "meta"}}
    return meta


Writer = Callable[[Iterable[Task]], Iterator[str]]


def _lines(record: Callable[[Task], dict[str, Any]]) -> Writer:
    def write(tasks: Iterable[Task]) -> Iterator[str]:
        return (json.dumps(record(task), ensure_ascii=False, allow_nan=False) + "\n" for task in tasks)

    return write


def _array(record: Callable[[Task], dict[str, Any]]) -> Writer:
    def write(tasks: Iterable[Task]) -> Iterator[str]:
        before = "["
        for task in tasks:
            yield before + "\n" + json.dumps(record(task), indent=1, ensure_ascii=False, allow_nan=False)
            before = ","
        yield "[]\n" if before == "[" else "\n]\n"

    return write


def to_csv(tasks: Iterable[Task], raw: bool = False) -> Iterator[str]:
    """A header and a row for each task. raw (bool): See `csv_lines`."""
    tasks = iter(tasks)
    first = next(tasks, None)
    columns = _COLUMNS if first is None or first.doubted is None else (*_COLUMNS, *_DOUBTED)
    rows = (_row_of(task, columns) for task in chain([] if first is None else [first], tasks))
    yield from csv_lines(columns, rows, raw=raw)


def _row_of(task: Task, columns: Sequence[str]) -> list[object]:
    label = task.reason["tag"] if task.reason else " ".join(span.label for span in task.spans)
    shown = {
        **record_of(task),
        "label": label,
        "alternatives": " ".join(f"{tag}:{round(score, _DIGITS)}" for tag, score in task.alternatives.items()),
        "right": None if task.right is None else int(task.right),
        "origin": json.dumps(task.origin, ensure_ascii=False) if task.origin else "",
    }
    return [_cell(shown.get(column)) for column in columns]


def _cell(value: Any) -> object:
    return round(value, _DIGITS) if isinstance(value, float) else "" if value is None else value


def csv_texts(path: Path) -> Iterator[str]:
    """The column "text" of a .csv file, without the guards of `to_csv`. RAISES C092: no such column, or unreadable."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            table = csv.DictReader(lines)
            if "text" not in (table.fieldnames or ()):
                raise calib_error("C092", path=path, why='its first line names no column "text"')
            for row in table:
                yield unguard_cell(row["text"] or "")
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise calib_error("C092", path=path, why=getattr(error, "strerror", None) or error) from None


# Name -> tasks to the text of a file, piece by piece. Label Studio and Argilla import a JSON array, the others a line for each task.
WRITERS: dict[str, Writer] = {
    "jsonl": _lines(record_of),
    "csv": to_csv,
    "prodigy": _lines(prodigy_of),
    "label-studio": _array(label_studio_of),
    "doccano": _lines(doccano_of),
    "argilla": _array(argilla_of),
}
