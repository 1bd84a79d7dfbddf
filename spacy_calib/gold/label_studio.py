"""Exports of Label Studio (JSON and JSON-MIN) -> answers of people, one for each annotation of a task.

Source: "Label Studio task format". Regions with labels and choices about the text are labels; all else (relations, ratings, comments, choices about a
region, regions of a control whose labels the pipeline does not know beside those of one that it knows) is skipped and counted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from itertools import accumulate
from typing import Any

from ..errors import calib_error
from .places import is_placed, place_of
from .tool_exports import Mark, TextAnswers, answer_with_spans, as_list, choose_questions, queue_meta

# Keys under which a task is told which of its fields people saw, and which controls are about labels; of names of choices, those of several controls.
_SHOWN, _CONTROLS, _SHARED = "calib_shown", "calib_controls", "calib_shared"
# What JSON-MIN writes about an annotation.
_ABOUT = {"id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", "meta", "drawn", "agreement"}
_REGIONS = ("labels", "hypertextlabels", "paragraphlabels")
Record = dict[str, Any]


def is_task(record: Record) -> bool:
    """Whether a record is a task with annotations, as JSON or as JSON-MIN."""
    return (isinstance(record.get("data"), dict) and isinstance(record.get("annotations"), list)) or "annotation_id" in record


def read_task(record: Record) -> Iterator[TextAnswers]:
    """Yield what each person said of the text of a task."""
    annotations = [annotation for annotation in record["annotations"] if not annotation.get("was_cancelled")]
    for annotation in sorted(annotations, key=lambda annotation: str(annotation.get("updated_at") or "")):
        by = annotation.get("completed_by")
        person = str(by.get("id", by.get("email", "")) if isinstance(by, dict) else "" if by is None else by)
        answers = _read_annotation(record, annotation["result"])
        yield replace(answers, person=person, agreed=annotation.get("ground_truth") is True)


def _read_annotation(task: Record, results: list[Record]) -> TextAnswers:
    text, meta = task["data"][task.get(_SHOWN, "text")], queue_meta(task["data"].get("meta"))
    marks, skipped, chosen = [], Counter[str](), defaultdict[str, list[str]](list)
    for result in results:
        kind, control = _kind_of(result), str(result.get("from_name"))
        if kind is None or control not in task[_CONTROLS]:
            skipped[f"regions of '{control}'" if kind else str(result.get("type") or "parts without type")] += 1
        elif kind == "choices":
            chosen[control] += as_list(result["value"]["choices"])
        else:
            value = result["value"]
            bounds = place_of(text, value["start"], value["end"], value.get("text"))
            labels = as_list(value.get("labels"))
            skipped["regions without a label"] += not labels
            marks += [Mark(*bounds, label) for label in labels or [""]]
    answers = answer_with_spans(text, marks, meta)
    cats: dict[str, bool | None] = {name: True for names in chosen.values() for name in names}
    if len(chosen) > 1:  # two questions may have a choice of the same name
        shared = [name for name in cats if name in task[_SHARED] and not all(name in names for names in chosen.values())]
        cats |= dict.fromkeys(shared)
    spans = {mark: right if mark.label else None for mark, right in answers.spans.items()}
    return replace(answers, spans=spans, cats=cats, skipped=+skipped)


def _kind_of(result: Record) -> str | None:
    """Return "labels" of a region with labels, "choices" of choices about the whole text, else None."""
    value = result.get("value")
    kind = result.get("type") or next((key for key in ("labels", "choices") if isinstance(value, dict) and key in value), None)
    if kind == "choices":
        return None if isinstance(value, dict) and "start" in value else "choices"
    return "labels" if kind in _REGIONS else None


def prepare_tasks(records: list[tuple[str, Record]], labels: Collection[str]) -> None:
    """Note which field of the tasks was shown, and which controls ask for labels.

    The field is the one that has the marked words where the marks say, else the one that is called as the labeling interface calls its text, "text", or
    the only one. labels (Collection[str]): Of the pipeline. RAISES C786: nothing says which field.
    """
    tasks = [record for _, record in records if is_task(record)]
    _expand([task for task in tasks if "annotations" not in task], labels)
    for task in tasks:
        _make_plain(task)
    results = [
        (
            task,
            [
                part
                for annotation in task["annotations"]
                if not annotation.get("was_cancelled")
                for part in annotation["result"]
            ],
        )
        for task in tasks
    ]
    controls: dict[str, dict[str, Counter[str]]] = {"labels": defaultdict(Counter), "choices": defaultdict(Counter)}
    for _, parts in results:
        for part in parts:
            if kind := _kind_of(part):
                controls[kind][str(part.get("from_name"))].update(map(str, as_list(part["value"].get(kind))))
    known = {
        kind: {name for name, n in of_kind.items() if not n.keys().isdisjoint(labels)} for kind, of_kind in controls.items()
    }
    chosen = {name for kind, of_kind in controls.items() for name in known[kind] or of_kind}
    n_controls = Counter(name for values in controls["choices"].values() for name in values)
    shown = _shown_field(results)
    for task in tasks:
        task |= {_SHOWN: shown, _CONTROLS: chosen, _SHARED: {name for name, n in n_controls.items() if n > 1}}


def _shown_field(results: list[tuple[Record, list[Record]]]) -> str:
    """RAISES C786: nothing says which field people saw."""
    fitting: Counter[str] = Counter()
    named: set[str] = set()
    for task, parts in results:
        named |= {part["to_name"] for part in parts if isinstance(part.get("to_name"), str)}
        values = [part["value"] for part in parts if isinstance(part.get("value"), dict)]
        marks = [(value.get("start"), value.get("end"), value.get("text")) for value in values]
        marks = [mark for mark in marks if list(map(type, mark)) == [int, int, str]]
        texts = {key: text for key, text in task["data"].items() if isinstance(text, str)}
        fitting.update({key: bool(marks) and all(is_placed(text, *mark) for mark in marks) for key, text in texts.items()})
    shown = max(fitting, key=lambda key: (fitting[key], key in named, key == "text"), default="text")
    if len(fitting) > 1 and not fitting[shown] and shown not in (*named, "text"):
        raise calib_error("C786", fields=", ".join(fitting))
    return shown


def _expand(records: list[Record], labels: Collection[str]) -> None:
    """Make tasks of records of JSON-MIN, which has each control beside the fields of the text."""
    texts: dict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        for key, value in record.items():
            if isinstance(value, str) and key not in _ABOUT:
                texts[key][value] += 1
    text = "text" if "text" in texts else max(texts, key=lambda key: sum(map(len, texts[key].elements())), default="text")
    has_regions = any(isinstance(value, list) and key not in _ABOUT for record in records for key, value in record.items())
    candidates = {key: values for key, values in texts.items() if key != text}
    questions = set() if has_regions and not labels else choose_questions(candidates, labels)
    for record in records:
        fields = {key: value for key, value in record.items() if key not in _ABOUT and key not in questions}
        data = {key: value for key, value in fields.items() if isinstance(value, str)} | {"meta": record.get("meta") or {}}
        results = [
            {"from_name": key, "type": "labels", "value": part} if "start" in part else {"type": str(key)}
            for key, value in fields.items()
            for part in (value if isinstance(value, list) else ())
        ]
        choices = {key: record[key] for key in questions if key in record}
        choices |= {key: value["choices"] for key, value in fields.items() if isinstance(value, dict) and "choices" in value}
        results += [{"from_name": key, "type": "choices", "value": {"choices": value}} for key, value in choices.items()]
        annotation = {"completed_by": record.get("annotator"), "updated_at": record.get("updated_at"), "result": results}
        record |= {"data": data, "annotations": [annotation]}


# Pages and dialogues


def _make_plain(task: Record) -> None:
    """Replace a page (HTML) or a dialogue by its text, and the regions by those of that text."""
    parts = [part for annotation in task["annotations"] for part in annotation["result"]]
    kinds = {part.get("type") for part in parts}
    offsets = [0]
    for key, value in task["data"].items():
        if "paragraphlabels" in kinds and isinstance(value, list):
            turns = [turn["text"] for turn in value]
            offsets = [0, *accumulate(len(turn) + 1 for turn in turns)]
            task["data"][key] = "\n".join(turns)
        elif "hypertextlabels" in kinds and isinstance(value, str):
            page = _PageText()
            page.feed(value)
            page.close()
            task["data"][key] = "".join(page.pieces)
    for part in parts:
        value = part.get("value")
        if part.get("type") == "paragraphlabels":
            ends = {side: offsets[int(value[side])] + value[f"{side}Offset"] for side in ("start", "end")}
            part["value"] = {**value, **ends, "labels": value.get("paragraphlabels")}
        elif part.get("type") == "hypertextlabels":
            part["value"] = {**value, **value["globalOffsets"], "labels": value.get("hypertextlabels")}


class _PageText(HTMLParser):
    """Collects the text of a page in `pieces`."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []

    def handle_data(self, data: str) -> None:
        """Keep a piece of text."""
        self.pieces.append(data)
