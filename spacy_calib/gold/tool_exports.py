"""Records that annotation tools export -> answers of people: what they found right, what wrong, and of which texts they told all.

Sources: Prodigy, "Annotation interfaces"; Label Studio, "Label Studio task format"; doccano, exports of sequence labeling and text
classification, old and new; Argilla, exports of version 1 (`to_dict`) and 2 (`records.to_list`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

from ..errors import calib_error
from .places import is_placed, place_of

# Views of Prodigy that show the spans or the label to be accepted or rejected, and no others.
_BINARY = ("ner", "spans", "classification")
# Units of our queues whose text is shown with all that stands in it.
_WHOLE_UNITS = ("sentence", "document")
# How units came into a queue: the doubtful ones first, or sampled with equal probability.
BY_DOUBT, AT_RANDOM = "doubt", "random"


class Mark(NamedTuple):
    """A labelled stretch of a text, in characters."""

    start: int
    end: int
    label: str


@dataclass(frozen=True)
class TextAnswers:
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

    def joined(self, later: TextAnswers) -> TextAnswers:
        """With what was said of the same text later, which counts where they differ; it stays a doubtful text if it was one."""
        if later.whole and (later.spans or not later.cats):
            return later
        spans, cats = {**self.spans, **later.spans}, {**self.cats, **later.cats}
        doubted = {"drawn": BY_DOUBT} if BY_DOUBT in (self.meta.get("drawn"), later.meta.get("drawn")) else {}
        return TextAnswers(self.text, spans, cats, self.whole, {**self.meta, **later.meta, **doubted}, self.where)


def answer_with_spans(text: str, marks: Sequence[Mark], meta: Mapping[str, Any], whole: bool = True) -> TextAnswers:
    """The spans a person left. Missing spans that we asked for are wrong; if we asked for one alone, others are unknown."""
    spans = {**dict.fromkeys(_asked(text, meta), False), **dict.fromkeys(marks, True)}
    return TextAnswers(text, spans, whole=whole and not isinstance(meta.get("asked"), str), meta=dict(meta))


def answer_with_cats(text: str, names: Sequence[Any], meta: Mapping[str, Any]) -> TextAnswers:
    """The categories that a person chose from all."""
    return TextAnswers(text, cats=dict.fromkeys(map(str, names), True), whole=True, meta=dict(meta))


def _asked(text: str, meta: Mapping[str, Any]) -> list[Mark]:
    """The spans that our queue asked for, one alone or each of a text, see `formats`; [] where it did not."""
    asked = meta.get("asked")
    words = meta.get("focus") if isinstance(asked, str) else None  # of a whole text the focus is one of its words
    parts = [span.split(" ", 2) for span in _as_list(asked)]
    return [Mark(*place_of(text, int(start), int(end), words), label) for start, end, label in parts]


def _as_list(value: Any) -> list[Any]:
    """What tools write as a list, or as the single thing that would be in it."""
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


def _marks(text: str, spans: Any, start: str = "start", end: str = "end") -> list[Mark]:
    return [Mark(*place_of(text, span[start], span[end], span.get("text")), span["label"]) for span in spans]


# Prodigy


def _prodigy(record: dict[str, Any]) -> TextAnswers | None:
    text, answer, meta = record["text"], record["answer"], record.get("meta") or {}
    if answer == "ignore":
        return None
    right = answer == "accept"
    if "options" in record:
        chosen = [str(name) for name in _as_list(record.get("accept"))]
        if not right:
            return TextAnswers(text, cats=dict.fromkeys(chosen, False), meta=meta) if chosen else None
        options = dict.fromkeys((str(option["id"]) for option in record["options"]), False)
        return TextAnswers(text, cats={**options, **dict.fromkeys(chosen, True)}, whole=True, meta=meta)
    if not record.get("spans") and isinstance(record.get("label"), str):
        return TextAnswers(text, cats={record["label"]: right}, meta=meta)
    marks = _marks(text, _with_words(record))
    if not right:
        wrong = _asked(text, meta) or marks
        return TextAnswers(text, {wrong[0]: False}, meta=meta) if len(wrong) == 1 else None  # of several, it does not say which
    return answer_with_spans(text, marks, meta, whole=meta.get("unit") in _WHOLE_UNITS or record.get("_view_id") not in _BINARY)


def _with_words(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The spans of a record, each with the words of its tokens where the record has them and it is made of whole tokens."""
    tokens, spans = record.get("tokens") or (), record.get("spans") or ()
    starts, ends = ({token[side]: place for place, token in enumerate(tokens)} for side in ("start", "end"))
    pieces = [
        [token["text"], " " * (following["start"] > token["end"])]
        for token, following in zip(tokens, [*tokens[1:], *tokens[-1:]], strict=True)
    ]
    words = [
        "".join(chain(*pieces[starts[span["start"]] : ends[span["end"]] + 1]))
        if span["start"] in starts and span["end"] in ends
        else None
        for span in spans
    ]
    return [{"text": word, **span} for word, span in zip(words, spans, strict=True)]


def name_views(records: list[tuple[str, dict[str, Any]]]) -> None:
    """Name the view of old exports, which do not: where single spans are rejected, they were asked about one by one."""
    if any(record.get("answer") == "reject" and record.get("spans") and "options" not in record for _, record in records):
        for _, record in records:
            record.setdefault("_view_id", _BINARY[0])


# Label Studio


def _label_studio(record: dict[str, Any]) -> TextAnswers | None:
    annotation = _last_annotation(record)
    if annotation is None:
        return None
    text, meta = record["data"][record.get(_SHOWN, "text")], record["data"].get("meta") or {}
    marks, cats, kinds = [], [], set()
    for result in annotation["result"]:
        value = result["value"]
        if result.get("type") == "choices":
            cats += _as_list(value["choices"])
        else:
            bounds = place_of(text, value["start"], value["end"], value.get("text"))
            marks += [Mark(*bounds, label) for label in _as_list(value["labels"])]
        kinds.add(result.get("type") == "choices")
    if kinds == {True}:
        return answer_with_cats(text, cats, meta)
    return replace(answer_with_spans(text, marks, meta), cats=dict.fromkeys(cats, True))


def _last_annotation(record: dict[str, Any]) -> dict[str, Any] | None:
    return next((annotation for annotation in reversed(record["annotations"]) if not annotation.get("was_cancelled")), None)


# Key under which a task is told which of its fields people saw.
_SHOWN = "calib_shown"


def name_shown_field(records: list[tuple[str, dict[str, Any]]]) -> None:
    """Note which field of the tasks of Label Studio was shown: the one that has the marked words where the marks say, else the one that is called as the
    labeling interface calls its text, "text", or the only one. RAISES C786: nothing says which; so of records of Argilla with several.
    """
    for fields in (record["fields"] for _, record in records if isinstance(record.get("fields"), dict)):
        if "text" not in fields and len(fields) > 1:
            raise calib_error("C786", fields=", ".join(fields))
    tasks = [record for _, record in records if TOOLS["Label Studio"].wrote(record)]
    fitting: Counter[str] = Counter()
    named: set[str] = set()
    for task in tasks:
        results = (_last_annotation(task) or {}).get("result") or ()
        named |= {result["to_name"] for result in results if isinstance(result.get("to_name"), str)}
        values = [result["value"] for result in results if isinstance(result.get("value"), dict)]
        marks = [(value.get("start"), value.get("end"), value.get("text")) for value in values]
        marks = [mark for mark in marks if list(map(type, mark)) == [int, int, str]]
        texts = {key: text for key, text in task["data"].items() if isinstance(text, str)}
        fitting.update({key: bool(marks) and all(is_placed(text, *mark) for mark in marks) for key, text in texts.items()})
    shown = max(fitting, key=lambda key: (fitting[key], key in named, key == "text"), default="text")
    if len(fitting) > 1 and not fitting[shown] and shown not in (*named, "text"):
        raise calib_error("C786", fields=", ".join(fitting))
    for task in tasks:
        task[_SHOWN] = shown


# doccano


def _doccano(record: dict[str, Any]) -> TextAnswers | None:
    meta = record.get("meta") or {key: record[key] for key in ("drawn", "asked", "focus", "doc", "unit") if key in record}
    text, labels = record["text"], _as_list(next(record[key] for key in ("entities", "label", "labels") if key in record))
    if "entities" in record:
        return answer_with_spans(text, _marks(text, labels, "start_offset", "end_offset"), meta)
    if labels and isinstance(labels[0], str):
        return answer_with_cats(text, labels, meta)
    return answer_with_spans(text, [Mark(*label) for label in labels], meta)


# Argilla


def _argilla(record: dict[str, Any]) -> TextAnswers | None:
    meta = record.get("metadata") or {}
    if "responses" in record:
        last = [responses[-1] for responses in record["responses"].values() if responses]
        values = [response["value"] for response in last if response.get("status") in (None, "submitted")]
        fields = record["fields"]
        text = fields["text"] if "text" in fields else next(iter(fields.values()))
    else:
        values, text = [] if record.get("status") == "Discarded" else [record["annotation"]], record["text"]
    answers = [_argilla_value(text, value, meta) for value in values if value is not None]
    if not answers:
        return None
    spans, cats = (
        {name: right for answer in answers for name, right in getattr(answer, kind).items()} for kind in ("spans", "cats")
    )
    return replace(answers[-1], spans=spans, cats=cats)


def _argilla_value(text: str, value: Any, meta: dict[str, Any]) -> TextAnswers:
    values = _as_list(value)
    if values and isinstance(values[0], str):
        return answer_with_cats(text, values, meta)
    if values and not isinstance(values[0], dict):
        return answer_with_spans(text, [Mark(start, end, label) for label, start, end in values], meta)
    return answer_with_spans(text, _marks(text, values), meta)


class Tool(NamedTuple):
    """wrote (Callable): Whether a record is one of its. read (Callable): Of a record; None where nobody answered."""

    wrote: Callable[[dict[str, Any]], bool]
    read: Callable[[dict[str, Any]], TextAnswers | None]


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
            and any(isinstance(record.get(key), (list, str)) for key in ("label", "labels", "entities"))
        ),
        _doccano,
    ),
}
