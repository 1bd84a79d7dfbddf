"""Write tasks as JSON Lines and CSV, and in the import formats of Prodigy, Label Studio, doccano and Argilla.

Sources: Prodigy, "Annotation interfaces" and "API: input data"; Label Studio, "Import pre-annotated data" and "Label Studio
task format"; doccano, sequence labeling and text classification examples of its importer; Argilla 2, `Record.from_dict` and
`records.from_json`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

from ....about import __version__
from ....errors.visible import csv_lines, visible
from ....gold.tool_exports import QUEUE_MARK
from ....pairs.documents import DOCUMENT
from .tasks import Task

_DIGITS = 6
_COLUMNS = (
    "rank", "score", "raw", "priority", "unit", "focus", "label", "alternatives", "gold", "right", "doc", "sentence", "start",
    "end", "words", "origin", "text",
)  # fmt: skip
# Fields of audited gold labels; only arcs have the last two.
_AUDIT_COLUMNS = ("kind", "suggestion", "suggestion_score", "suggested_text", "head", "suggested_head")
_CONTROL, _OBJECT = "label", "text"  # names of the control and object tags of Label Studio; question and field of Argilla
_AGENT = f"spacy-calib {__version__}"
_PARTIAL_UNITS = ("token", "entity")  # units that are shown within a longer text, of which nothing else is asked


def to_record(task: Task) -> dict[str, Any]:
    """Return a task as a dict: _COLUMNS without "label", and "marks" (spans), "drawn" (how chosen) and fields of an audit."""
    record = {key: getattr(task, key) for key in _COLUMNS if key != "label"}
    record["marks"] = [{"start": span.start, "end": span.end, "label": span.label, "score": span.score} for span in task.spans]
    return {**record, **(task.audit_fields or {}), "drawn": task.sampling}


def to_prodigy(task: Task) -> dict[str, Any]:
    """Convert a task for Prodigy's ner_manual and spans_manual; a document with one label for its binary classification."""
    if _is_category(task):
        label = task.spans[0].label if task.spans else task.audit_fields["suggestion"]  # type: ignore[index]
        return {"text": task.text, "label": label, "score": round(task.score, _DIGITS), "meta": _meta(task)}
    tokens = [
        {"text": task.text[start:end], "start": start, "end": end, "id": i, "ws": space and end < len(task.text)}
        for i, (start, end, space) in enumerate(task.tokens)
    ]
    spans = [
        {
            "start": span.start, "end": span.end, "token_start": span.first, "token_end": span.last, "label": span.label,
            "score": round(span.score, _DIGITS),
        }
        for span in task.spans
    ]  # fmt: skip
    return {"text": task.text, "tokens": tokens, "spans": spans, "meta": _meta(task)}


def to_label_studio(task: Task) -> dict[str, Any]:
    """Return a task of Label Studio with the predicted spans, for a labeling interface with the tags "label" and "text"."""
    kind = "choices" if _is_category(task) else "labels"
    results = []
    for i, span in enumerate(task.spans):
        value: dict[str, Any] = {kind: [visible(span.label)]}
        names = {"from_name": _CONTROL, "to_name": _OBJECT}
        result: dict[str, Any] = {"id": f"{task.rank}-{i}", **names, "type": kind, "value": value}
        if kind == "labels":
            result["value"] = {"start": span.start, "end": span.end, "text": task.text[span.start : span.end], **value}
            result["score"] = round(span.score, _DIGITS)
        results.append(result)
    prediction = {"model_version": _AGENT, "score": round(task.score, _DIGITS), "result": results}
    return {"data": {_OBJECT: task.text, "meta": _meta(task)}, "predictions": [prediction]}


def to_doccano(task: Task) -> dict[str, Any]:
    """Return a record of doccano's sequence labeling: [start, end, label] of each span; for a document, its label instead.

    The entity of a random sample is only named in the metadata: doccano exports records that nobody has answered like answers,
    and an entity that nobody has marked must not count as right.
    """
    is_category, spans = _is_category(task), task.spans if task.sample is None else ()
    labels = [span.label if is_category else [span.start, span.end, span.label] for span in spans]
    return {"text": task.text, "label": labels, "meta": _meta(task)}


def to_argilla(task: Task) -> dict[str, Any]:
    """Return a record of Argilla 2 with the predicted spans, or a document's label, as suggestion."""
    suggestion: dict[str, Any] = {
        "value": [{"start": span.start, "end": span.end, "label": span.label} for span in task.spans],
        "score": [round(span.score, _DIGITS) for span in task.spans],
    }
    if _is_category(task) and task.spans:  # one label and its score, in place of lists
        suggestion = {"value": task.spans[0].label, "score": round(task.spans[0].score, _DIGITS)}
    metadata = {
        key: value if _is_metadata(value) else json.dumps(value, ensure_ascii=False) for key, value in _meta(task).items()
    }
    suggestions = {_CONTROL: {**suggestion, "agent": _AGENT}} if task.spans else {}
    return {"id": str(task.rank), "fields": {_OBJECT: task.text}, "metadata": metadata, "suggestions": suggestions}


def _is_metadata(value: Any) -> bool:
    """Return whether Argilla accepts a value as metadata."""
    return all(isinstance(item, str) for item in value) if isinstance(value, list) else isinstance(value, (str, int, float))


def _is_category(task: Task) -> bool:
    """Return whether the task asks about the one label of a document, not about spans."""
    return task.unit == DOCUMENT and task.has_one_label


def _meta(task: Task) -> dict[str, Any]:
    """Return a task's metadata for annotation tools: our fields, and those of the task's origin.

    The fields in the origin's "meta" join the others, but if one has the name of another field, they all stay under "meta".
    """
    ours: dict[str, Any] = {
        **QUEUE_MARK, "focus": task.focus, "score": round(task.score, _DIGITS), "rank": task.rank, "doc": task.doc,
        "sentence": task.sentence, "unit": task.unit, "drawn": task.sampling,
    }  # fmt: skip
    # The spans that the task asks about, if their answers leave the rest of the text unlabelled.
    spans = [f"{span.start} {span.end} {span.label}" for span in task.spans]
    if spans and task.unit in _PARTIAL_UNITS:
        ours["asked"] = spans[0]
    elif spans and task.asks_each_span:
        ours["asked"] = spans
    if task.unit == DOCUMENT:
        del ours["sentence"]
    if task.sample is not None:
        ours["sample"] = task.sample
    if _is_category(task):  # its focus is the text
        del ours["focus"]
    if task.alternatives:
        ours["alternatives"] = ", ".join(f"{tag} {score:.2f}" for tag, score in task.alternatives.items())
    if task.audit_fields is not None:
        ours |= {key: _cell(value) for key, value in task.audit_fields.items()}
    meta = {**task.origin, **ours}
    origin_meta = meta.get("meta")
    if isinstance(origin_meta, dict) and not meta.keys() & origin_meta.keys():
        return {**origin_meta, **{key: value for key, value in meta.items() if key != "meta"}}
    return meta


def _to_lines(record: Callable[[Task], dict[str, Any]], tasks: Iterable[Task]) -> Iterator[str]:
    """Yield each task as a line of JSON. record (Callable): (task) -> its JSON object."""
    return (json.dumps(record(task), ensure_ascii=False, allow_nan=False) + "\n" for task in tasks)


def _to_array(record: Callable[[Task], dict[str, Any]], tasks: Iterable[Task]) -> Iterator[str]:
    """Yield the parts of one JSON array of all tasks. record (Callable): (task) -> its JSON object."""
    prefix = "["  # of the first task; also if there is none
    for task in tasks:
        yield prefix + "\n" + json.dumps(record(task), indent=1, ensure_ascii=False, allow_nan=False)
        prefix = ","
    yield "[]\n" if prefix == "[" else "\n]\n"


def to_csv(tasks: Iterable[Task]) -> Iterator[str]:
    """Yield the lines of a CSV table with a row for each task."""
    tasks = iter(tasks)
    first = next(tasks, None)
    columns = _COLUMNS if first is None or first.audit_fields is None else (*_COLUMNS, *_AUDIT_COLUMNS)
    rows = (_csv_row(task, columns) for task in chain([] if first is None else [first], tasks))
    yield from csv_lines(columns, rows)


def to_names(tasks: Iterable[Task]) -> Iterator[str]:
    """Yield the lines of a CSV table with a row for each entity (name), after a mark by which spreadsheets recognize UTF-8.

    "document" is the id of its text, else the number of the line; "start" and "end" count characters of the document.
    """
    yield "\ufeff"
    with_document = ((task, task.origin.get("id", task.origin.get("line", task.doc + 1))) for task in tasks)
    lines = ([task.focus, task.spans[0].label, _cell(task.score), *task.place, document] for task, document in with_document)
    yield from csv_lines(("text", "label", "score", "start", "end", "document"), lines)


def _csv_row(task: Task, columns: Sequence[str]) -> list[object]:
    """Return the cells of a task's row by `columns`; "label": predicted label of the text in "focus", in an audit its gold."""
    # A unit with one label is the only span of its task; in an audit this span has the gold label, or is missing without gold.
    unit_label = task.spans[0].label if task.spans else ""
    label = unit_label if task.has_one_label else next(iter(task.alternatives))  # the latter: predicted label of the focus word
    record = {
        **to_record(task),
        "label": label,
        "alternatives": " ".join(f"{tag}:{round(score, _DIGITS)}" for tag, score in task.alternatives.items()),
        "right": None if task.right is None else int(task.right),
        "origin": json.dumps(task.origin, ensure_ascii=False) if task.origin else "",
    }
    return [_cell(record.get(column)) for column in columns]


def _cell(value: Any) -> object:
    """Return a value as a cell of a table: floats rounded, "" for None."""
    return round(value, _DIGITS) if isinstance(value, float) else "" if value is None else value


# Name of a format -> writer. Label Studio and Argilla import a JSON array, the others a line for each task.
WRITERS: dict[str, Callable[[Iterable[Task]], Iterator[str]]] = {
    "jsonl": partial(_to_lines, to_record),
    "csv": to_csv,
    "prodigy": partial(_to_lines, to_prodigy),
    "label-studio": partial(_to_array, to_label_studio),
    "doccano": partial(_to_lines, to_doccano),
    "argilla": partial(_to_array, to_argilla),
}
