"""Reads exports of Label Studio: an answer of a person for each annotation of a task.

Source: "Label Studio task format". Read are regions with labels, and choices about the text. Relations, ratings, comments,
choices about a region, and regions of controls with unknown labels (if another control has known ones) are skipped and counted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from ..errors import calib_error
from .places import find_words, locate_words
from .tool_exports import TextAnswers, TextSpan, answer_with_spans, as_list, queue_meta, without_words

# Keys added to tasks: the field with the text, the controls (questions) with labels, and the names that several of these offer.
_TEXT_FIELD, _CONTROLS, _SHARED = "calib_shown", "calib_controls", "calib_shared"
Record = dict[str, Any]


def is_task(record: Record) -> bool:
    """Return whether a record is a task of Label Studio with annotations."""
    return isinstance(record.get("data"), dict) and isinstance(record.get("annotations"), list)


def read_task(record: Record) -> Iterator[TextAnswers]:
    """Yield the answers of each person about the text of a task, in the order of their last changes."""
    for annotation in sorted(_finished(record), key=changed_at):
        answers = _read_annotation(record, annotation["result"])
        yield replace(answers, person=annotator_of(annotation), agreed=annotation.get("ground_truth") is True)


def changed_at(annotation: Record) -> str:
    """Return when an annotation was last changed, in a form that sorts by time; "" if that is unknown."""
    return str(annotation.get("updated_at") or "")


def annotator_of(annotation: Record) -> str:
    """Return who made an annotation, "" if that is unknown."""
    annotator = annotation.get("completed_by")
    if isinstance(annotator, dict):
        annotator = annotator.get("id", annotator.get("email", ""))
    return "" if annotator is None else str(annotator)


def _finished(task: Record) -> list[Record]:
    """Return the annotations of a task that were not cancelled."""
    return [annotation for annotation in task["annotations"] if not annotation.get("was_cancelled")]


def _read_annotation(task: Record, results: list[Record]) -> TextAnswers:
    """Return the answers in one annotation of a task, which `prepare_tasks` has prepared.

    results (list): Its parts. Regions become spans, choices become categories; other parts count as `skipped`.
    """
    text, meta = task["data"][task.get(_TEXT_FIELD, "text")], queue_meta(task["data"].get("meta"))
    marks, exported_spans = [], []  # a span for each label of a region; the exported region of each of these spans
    skip_counts, choices = Counter[str](), defaultdict[str, list[str]](list)  # choices: control (question) -> names chosen
    for result in results:
        kind, control = _kind_of(result), str(result.get("from_name"))
        if kind is None or control not in task[_CONTROLS]:
            skip_counts[f"regions of '{control}'" if kind else str(result.get("type") or "parts without type")] += 1
        elif kind == "choices":
            choices[control] += as_list(result["value"]["choices"])
        else:
            value = result["value"]
            bounds = locate_words(text, value["start"], value["end"], value.get("text"))
            labels = as_list(value.get("labels"))
            skip_counts["regions without a label"] += not labels
            marks += [TextSpan(*bounds, label) for label in labels or [""]]
            exported_spans += [value] * max(len(labels), 1)
    answers = answer_with_spans(text, marks, meta)
    cats: dict[str, bool | None] = {}
    for name in (name for names in choices.values() for name in names):
        # A name that several questions offer is right and wrong if only some answers have it: it is unknown (None).
        is_contradictory = name in task[_SHARED] and not all(name in names for names in choices.values())
        cats[name] = None if is_contradictory else True
    spans = {mark: right if mark.label else None for mark, right in answers.spans.items()}  # without a label: unknown
    uncertain = without_words(marks, exported_spans)  # spans whose offsets no exported words confirm
    return replace(answers, spans=spans, cats=cats, skipped=+skip_counts, uncertain=uncertain)  # +: no 0


def _kind_of(result: Record) -> str | None:
    """Return "labels" if a result is a region with labels, "choices" if it is choices about the whole text, else None."""
    value = result.get("value")
    keys = value.keys() if isinstance(value, dict) else ()
    kind = result.get("type") or next((key for key in ("labels", "choices") if key in keys), None)
    if kind == "choices":  # with offsets they are about a region of the text
        return None if "start" in keys else "choices"
    return "labels" if kind == "labels" else None


def prepare_tasks(tasks: list[Record], labels: Collection[str]) -> None:
    """Add to each task its text field, the controls (questions) that have labels, and the choices that several controls offer.

    labels (Collection[str]): The labels of the pipeline. RAISES C786: several fields could be the text.
    """
    results = [[part for annotation in _finished(task) for part in annotation["result"]] for task in tasks]
    # "labels" or "choices" -> name of a control -> the labels in its answers.
    controls: dict[str, dict[str, set[str]]] = {"labels": defaultdict(set), "choices": defaultdict(set)}
    for part in (part for parts in results for part in parts):
        if kind := _kind_of(part):
            controls[kind][str(part.get("from_name"))].update(map(str, as_list(part["value"].get(kind))))
    label_controls: set[str] = set()
    for labels_by_control in controls.values():
        with_labels = {control for control, names in labels_by_control.items() if not names.isdisjoint(labels)}
        label_controls |= with_labels or labels_by_control.keys()  # all controls if none has a label of the pipeline
    n_controls = Counter(choice for choices in controls["choices"].values() for choice in choices)  # that offer a choice
    shared = {choice for choice, n in n_controls.items() if n > 1}
    field = _text_field(tasks, results)
    for task in tasks:
        task |= {_TEXT_FIELD: field, _CONTROLS: label_controls, _SHARED: shared}


def _text_field(tasks: list[Record], results: list[list[Record]]) -> str:
    """Return the field of the tasks that is the text.

    In order of precedence: the field with the exported words at their offsets, the one that the interface names (`to_name`),
    "text", the only one. results (list): The regions and choices of each task. RAISES C786: several fields could be the text.
    """
    fitting: Counter[str] = Counter()  # field -> number of tasks in which it has the exported words
    interface_fields = {part["to_name"] for parts in results for part in parts if isinstance(part.get("to_name"), str)}
    for task, parts in zip(tasks, results, strict=True):
        values = [part["value"] for part in parts if isinstance(part.get("value"), dict)]
        places = [(value.get("start"), value.get("end"), value.get("text")) for value in values]
        places = [place for place in places if tuple(map(type, place)) == (int, int, str)]  # others locate no words
        for key, text in task["data"].items():
            if isinstance(text, str):  # a field without these words counts, too, with 0
                fitting[key] += bool(places) and all(find_words(text, *place) for place in places)
    field = max(fitting, key=lambda key: (fitting[key], key in interface_fields, key == "text"), default="text")
    is_known = fitting[field] > 0 or field in (*interface_fields, "text")
    if len(fitting) > 1 and not is_known:
        raise calib_error("C786", fields=", ".join(fitting))
    return field
