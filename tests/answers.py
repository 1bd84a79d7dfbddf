"""What annotation tools export of our queues when somebody answered them: made up, after their documentation."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from spacy_calib.gold.tool_exports import proposed_spans, queue_meta

Records = list[dict[str, Any]]


def records_in(file: Path) -> Records:
    """Of a queue in any of the forms."""
    text = file.read_text(encoding="utf8")
    return json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.split("\n") if line]


def _prodigy(number: int, record: dict[str, Any], right: bool) -> dict[str, Any]:
    return {
        **record, "_input_hash": number, "_task_hash": -number, "_view_id": "ner_manual",
        "answer": "accept" if right else "reject",
    }  # fmt: skip


def _label_studio(number: int, record: dict[str, Any], right: bool) -> dict[str, Any]:
    told = record["predictions"][0]["result"] if right else []
    cancelled = {"id": 1, "result": [], "was_cancelled": True}
    done = {"id": 2, "completed_by": 1, "result": told, "was_cancelled": False, "ground_truth": False}
    return {"id": number, "project": 7, "data": record["data"], "annotations": [cancelled, done], "predictions": []}


def _doccano(number: int, record: dict[str, Any], right: bool) -> dict[str, Any]:
    asked = [list(span) for span in proposed_spans(record["text"], queue_meta(record["meta"]))]
    return {"id": number, **record, "label": (record["label"] or asked) if right else [], "Comments": []}


def _argilla(number: int, record: dict[str, Any], right: bool) -> dict[str, Any]:
    suggested = record["suggestions"].get("label", {"value": []})["value"]
    said = {"value": suggested if right or isinstance(suggested, str) else [], "user_id": "u"}
    return {**record, "responses": {"label": [said]}, "vectors": {}, "_server_id": str(number)}


EXPORTS: dict[str, Callable[[int, dict[str, Any], bool], dict[str, Any]]] = {
    "prodigy": _prodigy, "label-studio": _label_studio, "doccano": _doccano, "argilla": _argilla,
}  # fmt: skip


# Whose files are one JSON array.
ARRAYS = ("label-studio", "argilla")


def parts_of(record: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """(the text of a record of a queue in any of the forms; what came with it)."""
    within = record.get("data") or record
    return (record.get("fields") or within)["text"], within.get("meta") or record["metadata"]


def answer(tool: str, queue: Path, right: Callable[[dict[str, Any]], bool], path: Path) -> Path:
    """Answer each record of a queue and export it. right (Callable): Whether what is asked in a record of the queue is right."""
    made = [EXPORTS[tool](number, record, right(record)) for number, record in enumerate(records_in(queue), 1)]
    return write(path, made, array=tool in ARRAYS)


def relabelled(tool: str, record: dict[str, Any], label: Callable[[int, int], Any]) -> dict[str, Any]:
    """A record of a queue whose spans have another label: what a person puts in place of the one that was shown. label (Callable): Of two places."""
    shown = {
        "prodigy": lambda: record["spans"],
        "label-studio": lambda: [one["value"] for one in record["predictions"][0]["result"]],
        "argilla": lambda: record["suggestions"]["label"]["value"],
    }
    if tool == "doccano":
        return {**record, "label": [[start, end, label(start, end)] for start, end, _ in record["label"]]}
    for one in shown[tool]():
        own = label(one["start"], one["end"])
        one.update({"labels": [own]} if tool == "label-studio" else {"label": own})
    return record


def marked(tool: str, record: dict[str, Any], marks: list[Any]) -> tuple[dict[str, Any], bool]:
    """(a record of a queue of whole texts as somebody leaves it, whether Prodigy's is accepted). marks (list): (start, end, label) of spans, or categories."""
    of_text = bool(marks) and isinstance(marks[0], str)
    spans = [] if of_text else [{"start": start, "end": end, "label": label} for start, end, label in marks]
    if tool == "prodigy":
        return (record, record["label"] in marks) if of_text else ({**record, "spans": spans}, True)
    if tool == "doccano":
        return {**record, "label": marks}, True
    if tool == "argilla":
        return {**record, "suggestions": {"label": {"value": marks[0] if of_text else spans}}}, True
    text, kind = record["data"]["text"], "choices" if of_text else "labels"
    values = (
        [{"choices": marks}]
        if of_text
        else [
            {"start": one["start"], "end": one["end"], "text": text[one["start"] : one["end"]], "labels": [one["label"]]}
            for one in spans
        ]
    )
    result = [{"from_name": "label", "to_name": "text", "type": kind, "value": value} for value in values]
    return {**record, "predictions": [{"result": result}]}, True


def write(path: Path, records: Iterable[Any], array: bool = False) -> Path:
    text = json.dumps(list(records)) if array else "".join(json.dumps(record) + "\n" for record in records)
    path.write_text(text, encoding="utf8")
    return path
