"""Records that annotation tools export -> answers of people: what they found right, what wrong, and of which texts they told all.

Sources: Prodigy, "Annotation interfaces"; Label Studio, see `label_studio`; doccano, exports of sequence labeling and text
classification, old and new; Argilla, exports of version 1 (`to_dict`) and 2 (`records.to_list`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

from ..errors import calib_error
from .places import place_of

# Views of Prodigy that show the spans or the label to be accepted or rejected, and no others.
_BINARY = ("ner", "spans", "classification")
# Units of our queues whose text is shown with all that stands in it.
_WHOLE_UNITS = ("sentence", "document")
# What tells that a queue of ours wrote what stands beside a text. Anybody's own keys may be called as ours.
QUEUE_MARK = {"queue": "spacy-calib"}
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

    spans (dict): Stretch -> whether it is right, None where that is unknown. cats (dict): Category -> whether the text has it, or None. whole (bool): Whether
    nothing else is right, so that what is not there is wrong; else it is unknown. meta (dict): What a queue of ours wrote beside the text, see `tasks.Task`. where (str): In the file. person (str): Who answered, "" where the tool does not say. agreed (bool): Whether it is agreed or ground-truth
    annotation. skipped (Counter): What came with the answer and is no label.
    """

    text: str
    spans: dict[Mark, bool | None] = field(default_factory=dict)
    cats: dict[str, bool | None] = field(default_factory=dict)
    whole: bool = False
    meta: dict[str, Any] = field(default_factory=dict)
    where: str = ""
    person: str = ""
    agreed: bool = False
    skipped: Counter[str] = field(default_factory=Counter)

    @property
    def has_all_spans(self) -> bool:
        """Whether spans that are not there are wrong, as they were asked about."""
        return self.whole and bool(self.spans or not self.cats)

    def contradicts(self, later: TextAnswers) -> bool:
        """Whether both cannot be right."""
        if any(
            getattr(self, kind)[name] != right
            for kind in ("spans", "cats")
            for name, right in getattr(later, kind).items()
            if name in getattr(self, kind)
        ):
            return True
        pairs = ((a, b) for a, b in ((self, later), (later, self)) if a.has_all_spans)
        return any(right and mark not in a.spans for a, b in pairs for mark, right in b.spans.items())

    def add(self, later: TextAnswers) -> TextAnswers:
        """Return both together: what was said of the same text later counts where they differ, and a doubtful text stays one. The spans and categories
        of this object change, as a text may have thousands of answers.
        """
        if later.has_all_spans:
            return later
        self.spans.update(later.spans)
        self.cats.update(later.cats)
        doubted = {"drawn": BY_DOUBT} if BY_DOUBT in (self.meta.get("drawn"), later.meta.get("drawn")) else {}
        return replace(self, meta={**self.meta, **later.meta, **doubted}, agreed=self.agreed or later.agreed)


def queue_meta(meta: Any) -> dict[str, Any]:
    """Return what a queue of ours wrote beside a text; {} for what anybody else did."""
    return dict(meta) if isinstance(meta, Mapping) and QUEUE_MARK.items() <= meta.items() else {}


def answer_with_spans(text: str, marks: Sequence[Mark], meta: Mapping[str, Any], whole: bool = True) -> TextAnswers:
    """The spans a person left. Missing spans that we asked for are wrong; if we asked for one alone, others are unknown. meta: See `queue_meta`."""
    spans: dict[Mark, bool | None] = {**dict.fromkeys(_asked(text, meta), False), **dict.fromkeys(marks, True)}
    return TextAnswers(text, spans, whole=whole and not isinstance(meta.get("asked"), str), meta=dict(meta))


def answer_with_cats(text: str, names: Sequence[Any], meta: Mapping[str, Any]) -> TextAnswers:
    """The categories that a person chose from all."""
    return TextAnswers(text, cats=dict.fromkeys(names, True), whole=True, meta=dict(meta))


def _asked(text: str, meta: Mapping[str, Any]) -> list[Mark]:
    """The spans that our queue asked for, one alone or each of a text, see `formats`; [] where it did not."""
    asked = meta.get("asked")
    words = meta.get("focus") if isinstance(asked, str) else None  # of a whole text the focus is one of its words
    parts = [span.split(" ", 2) for span in as_list(asked)]
    return [Mark(*place_of(text, int(start), int(end), words), label) for start, end, label in parts]


def as_list(value: Any) -> list[Any]:
    """What tools write as a list, or as the single thing that would be in it."""
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


def _marks(text: str, spans: Any, start: str = "start", end: str = "end") -> list[Mark]:
    return [Mark(*place_of(text, span[start], span[end], span.get("text")), span["label"]) for span in spans]


# Prodigy


def read_prodigy(record: dict[str, Any]) -> TextAnswers | None:
    """Of a record of Prodigy; None where nobody answered."""
    answer = _prodigy_answer(record)
    person = next(
        (str(record[key]) for key in ("_annotator_id", "_session_id", "_input_hash") if record.get(key) is not None), ""
    )
    person = (
        person if "_input_hash" not in record or person != str(record["_input_hash"]) else "Prodigy"
    )  # it has one user then
    return answer and replace(answer, person=person, agreed="versions" in record)


def _prodigy_answer(record: dict[str, Any]) -> TextAnswers | None:
    text, answer, meta = record["text"], record["answer"], queue_meta(record.get("meta"))
    if answer == "ignore":
        return None
    right = answer == "accept"
    if "options" in record:
        chosen = [str(name) for name in as_list(record.get("accept"))]
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
    whole = meta.get("unit") in _WHOLE_UNITS or record.get("_view_id") not in _BINARY
    answers = answer_with_spans(text, marks, meta, whole=whole)
    # a span may have an answer of its own
    verdicts = {"reject": False, "ignore": None}
    single = {
        mark: verdicts[span["answer"]]
        for mark, span in zip(marks, record.get("spans") or (), strict=True)
        if span.get("answer") in verdicts
    }
    return replace(answers, spans={**answers.spans, **single})


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


# doccano


def read_doccano(record: dict[str, Any]) -> TextAnswers:
    """Of a record of doccano. RAISES ValueError: its labels are numbers."""
    meta = queue_meta(record) or queue_meta(record.get("meta"))  # some versions write its keys beside the text
    text, labels = (
        record["text"],
        as_list(next(record[key] for key in ("entities", "label", "labels", "annotations") if key in record)),
    )
    for label in (part.get("label") if isinstance(part, dict) else part[-1] for part in labels if not isinstance(part, str)):
        if isinstance(label, int):
            raise ValueError(f"the label {label} is a number and has no name: export JSONL, which has names")
    skipped = Counter({"relations": n} if (n := len(record.get("relations") or ())) else {})
    if labels and isinstance(labels[0], str):
        return replace(answer_with_cats(text, labels, meta), skipped=skipped)
    marks = [Mark(*label) for label in labels if not isinstance(label, dict)]
    marks += _marks(text, [label for label in labels if isinstance(label, dict)], "start_offset", "end_offset")
    cats: dict[str, bool | None] = dict.fromkeys(as_list(record.get("cats")), True)
    return replace(answer_with_spans(text, marks, meta), cats=cats, skipped=skipped)


# Argilla


def read_argilla(record: dict[str, Any]) -> Iterator[TextAnswers]:
    """Yield what each person said of a record of Argilla."""
    meta = queue_meta(record.get("metadata"))
    if "responses" not in record:
        values = [] if record.get("status") == "Discarded" else [record["annotation"]]
        answers = [_argilla_value(record["text"], value, meta) for value in values if value is not None]
        yield from (replace(answer, person=str(record.get("annotation_agent") or "")) for answer in answers)
        return
    fields, said = record["fields"], defaultdict(list)
    for question, responses in record["responses"].items():
        for response in responses or ():
            if response.get("status") in (None, "submitted") and response["value"] is not None:
                said[str(response.get("user_id") or "")].append((question, response["value"]))
    text: Any = fields["text"] if "text" in fields else next(iter(fields.values()), None)
    for person, values_by_question in said.items():
        answers = [_argilla_value(text, value, meta) for question, value in values_by_question if question in record[QUESTIONS]]
        spans, cats = (
            {name: right for answer in answers for name, right in getattr(answer, kind).items()} for kind in ("spans", "cats")
        )
        skipped = Counter(f"answers to '{question}'" for question, _ in values_by_question if question not in record[QUESTIONS])
        base = answers[-1] if answers else TextAnswers(text, meta=dict(meta))
        yield replace(base, spans=spans, cats=cats, person=person, skipped=skipped)


def _argilla_value(text: str, value: Any, meta: dict[str, Any]) -> TextAnswers:
    values = as_list(value)
    if values and isinstance(values[0], str):
        return answer_with_cats(text, values, meta)
    if values and not isinstance(values[0], dict):
        return answer_with_spans(text, [Mark(start, end, label) for label, start, end in values], meta)
    return answer_with_spans(text, _marks(text, values), meta)


# Key under which a record is told which of its questions ask for labels.
QUESTIONS = "calib_questions"


def name_questions(records: list[tuple[str, dict[str, Any]]], labels: Collection[str]) -> None:
    """Note which questions of the records of Argilla ask for labels: those about spans, with several values, and of those with a text `choose_questions`."""
    asked = [record["responses"] for _, record in records if isinstance(record.get("responses"), dict)]
    for fields in (record["fields"] for _, record in records if isinstance(record.get("fields"), dict)):
        if "text" not in fields and len(fields) > 1:
            raise calib_error("C786", fields=", ".join(fields))
    texts: dict[str, Counter[str]] = defaultdict(Counter)
    others: set[str] = set()
    for question, given in (item for responses in asked for item in responses.items()):
        for value in (response["value"] for response in given or ()):
            if isinstance(value, str):
                texts[question][value] += 1
            elif isinstance(value, (list, tuple)) and all(
                isinstance(one, str) or (isinstance(one, dict) and "label" in one) for one in value
            ):
                others.add(question)
    questions = others | (choose_questions(texts, labels) if not others or labels else set())
    for _, record in records:
        if isinstance(record.get("responses"), dict):
            record[QUESTIONS] = questions


def choose_questions(candidates: Mapping[str, Counter[str]], labels: Collection[str]) -> set[str]:
    """Return which of these questions ask for labels: those with a label of the pipeline, else the one called so, else those whose answers repeat.

    candidates (Mapping): Question -> its answers. labels (Collection[str]): Of the pipeline.
    """
    known = {name for name, values in candidates.items() if not values.keys().isdisjoint(labels)}
    named = {name for name in ("label", "labels", "category") if name in candidates}
    repeated = {name for name, values in candidates.items() if values.total() > len(values)}
    return known or (set(candidates) if len(candidates) < 2 else named or repeated)
