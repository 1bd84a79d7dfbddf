"""Reads records that annotation tools export as answers of people: labels that are right, labels that are wrong, whole texts.

Sources: Prodigy, "Annotation interfaces"; doccano, exports of sequence labeling and text classification, old and new; Argilla
2, `records.to_list`; spaCy's training data. Label Studio is in the module `label_studio`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ..errors import calib_error
from .places import locate_words

_BINARY = ("ner", "spans", "classification")  # views of Prodigy that ask yes or no: labels that are not shown stay unknown
_WHOLE_UNITS = ("sentence", "document")  # units of our queues whose text is shown with all its labels
QUEUE_MARK = {"queue": "spacy-calib"}  # marks metadata from queues of this package; users may have keys of the same names
BY_DOUBT, AT_RANDOM = "doubt", "random"  # how units were sampled for a queue: doubtful ones first, or with equal probability


class TextSpan(NamedTuple):
    """A labelled span of a text. start, end (int): Character offsets."""

    start: int
    end: int
    label: str


@dataclass(frozen=True)
class TextAnswers:
    """The answers of a person about a text.

    spans (dict): Span -> whether it is right, None if unknown. cats (dict): Category -> whether the text has it, None if
    unknown. whole (bool): Whether all other labels are wrong; else they are unknown. meta (dict): Metadata that a queue of this
    package wrote, such as how the text was sampled. where (str): Line or record in the file. person (str): The annotator, ""
    if unknown. agreed (bool): Whether this is agreed or ground-truth annotation. skipped (Counter): Kind -> number of parts of
    the record that are not labels. uncertain (frozenset): Spans that were exported without their words, so that their offsets
    may have been counted in another way than by characters.
    """

    text: str
    spans: dict[TextSpan, bool | None] = field(default_factory=dict)
    cats: dict[str, bool | None] = field(default_factory=dict)
    whole: bool = False
    meta: dict[str, Any] = field(default_factory=dict)
    where: str = ""
    person: str = ""
    agreed: bool = False
    skipped: Counter[str] = field(default_factory=Counter)
    uncertain: frozenset[TextSpan] = frozenset()

    @property
    def has_all_spans(self) -> bool:
        """Whether all spans that are not in this answer are wrong, as the person was asked for all spans of the text."""
        return self.whole and bool(self.spans or not self.cats)  # with categories alone, nobody was asked for spans

    def contradicts(self, later: TextAnswers) -> bool:
        """Return whether this answer and a later one about the same text cannot both be right."""
        spans, cats = self.spans.keys() & later.spans.keys(), self.cats.keys() & later.cats.keys()
        if any(self.spans[span] != later.spans[span] for span in spans) or any(self.cats[c] != later.cats[c] for c in cats):
            return True
        # An answer with all spans contradicts one in which a further span is right.
        for complete, other in ((self, later), (later, self)):
            right = {span for span, is_right in other.spans.items() if is_right}
            if complete.has_all_spans and not right <= complete.spans.keys():
                return True
        return False

    def add(self, later: TextAnswers) -> TextAnswers:
        """Return this answer (which may change) merged with a later one about the same text, which takes precedence.

        A later answer with all spans of the text replaces this one. Otherwise, a mark that the text was sampled by doubt stays.
        """
        if later.has_all_spans:
            return later
        is_whole = self.whole and (later.whole or self.has_all_spans)  # categories say nothing about spans beside a later one
        self.spans.update(later.spans)
        self.cats.update(later.cats)
        sampling = {"drawn": BY_DOUBT} if BY_DOUBT in (self.meta.get("drawn"), later.meta.get("drawn")) else {}
        meta = {**self.meta, **later.meta, **sampling}
        return replace(self, whole=is_whole, meta=meta, agreed=self.agreed or later.agreed)


def queue_meta(meta: Any) -> dict[str, Any]:
    """Return the metadata of a text as a dict if a queue (texts to annotate) of this package wrote it, else {}."""
    return dict(meta) if isinstance(meta, Mapping) and QUEUE_MARK.items() <= meta.items() else {}


def answer_with_spans(text: str, marks: Sequence[TextSpan], meta: Mapping[str, Any], whole: bool = True) -> TextAnswers:
    """Return an answer in which the spans `marks` are right; others that a queue of this package proposed (meta) are wrong.

    meta (Mapping): From `queue_meta`. whole (bool): Whether further spans are wrong; if the queue asked about a single span,
        they are unknown anyway.
    """
    spans: dict[TextSpan, bool | None] = {**dict.fromkeys(proposed_spans(text, meta), False), **dict.fromkeys(marks, True)}
    asks_one_span = isinstance(meta.get("asked"), str)  # several are a list
    return TextAnswers(text, spans, whole=whole and not asks_one_span, meta=dict(meta))


def answer_with_cats(text: str, names: Sequence[Any], meta: Mapping[str, Any]) -> TextAnswers:
    """Return an answer with the categories `names` of a text; all others are wrong. meta (Mapping): From `queue_meta`."""
    return TextAnswers(text, cats=dict.fromkeys(names, True), whole=True, meta=dict(meta))


def proposed_spans(text: str, meta: Mapping[str, Any]) -> list[TextSpan]:
    """Return the spans that a queue of this package proposed for a text, each "start end label" under "asked" in `meta`."""
    proposals = meta.get("asked")
    words = meta.get("focus") if isinstance(proposals, str) else None  # a single span's words; for several it is any word
    spans = [TextSpan(int(start), int(end), label) for start, end, label in (one.split(" ", 2) for one in as_list(proposals))]
    if isinstance(words, str) and [text[span.start : span.end].strip() for span in spans] == [words.strip()]:
        return spans  # an entity may end with a line break, which is not in its words
    return [TextSpan(*locate_words(text, *span[:2], words), span.label) for span in spans]


def as_list(value: Any) -> list[Any]:
    """Return the values of a field as a list: those of a list or tuple, a single value, or none for None."""
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _locate_spans(text: str, spans: Any, start: str = "start", end: str = "end") -> list[TextSpan]:
    """Convert a tool's spans (dicts with offsets, "label" and perhaps "text") to TextSpans. start, end: Keys of the offsets."""
    return [TextSpan(*locate_words(text, span[start], span[end], span.get("text")), span["label"]) for span in spans]


def without_words(marks: Sequence[TextSpan], spans: Sequence[Any]) -> frozenset[TextSpan]:
    """Return those of the spans `marks` that were exported without their words. spans: The exported record of each mark."""
    pairs = zip(marks, spans, strict=True)
    return frozenset(mark for mark, span in pairs if not isinstance(span, dict) or not isinstance(span.get("text"), str))


def is_prodigy(record: dict[str, Any]) -> bool:
    """Return whether a record is an answered task of Prodigy."""
    return "text" in record and record.get("answer") in ("accept", "reject", "ignore")


def read_prodigy(record: dict[str, Any]) -> TextAnswers | None:
    """Read a record of Prodigy with its annotator; None if it was ignored, or rejected without showing what is wrong."""
    answer = _prodigy_answer(record)
    # "versions" are the answers of several people, which a reviewer merged into this one.
    return answer and replace(answer, person=prodigy_person(record), agreed="versions" in record)


def prodigy_person(record: Mapping[str, Any]) -> str:
    """Return who answered a record of Prodigy, "" if that is unknown."""
    ids = (record.get(key) for key in ("_annotator_id", "_session_id"))
    # Without an id of the session, Prodigy has a single user.
    single_user = "Prodigy" if record.get("_input_hash") is not None else ""
    return next((str(value) for value in ids if value is not None), single_user)


def _prodigy_answer(record: dict[str, Any]) -> TextAnswers | None:
    """Return the answers in a Prodigy record; None if it was ignored, or rejected without showing what is wrong."""
    text, meta, is_accepted = record["text"], queue_meta(record.get("meta")), record["answer"] == "accept"
    if record["answer"] == "ignore":
        return None
    if "options" in record:
        chosen = [str(name) for name in as_list(record.get("accept"))]
        if is_accepted:
            options = dict.fromkeys((str(option["id"]) for option in record["options"]), False)
            return TextAnswers(text, cats={**options, **dict.fromkeys(chosen, True)}, whole=True, meta=meta)
        return TextAnswers(text, cats=dict.fromkeys(chosen, False), meta=meta) if chosen else None
    spans = _with_words(record)
    if not spans and isinstance(record.get("label"), str):
        return TextAnswers(text, cats={record["label"]: is_accepted}, meta=meta)
    marks = _locate_spans(text, spans)
    if not is_accepted:  # of several spans any may be the wrong one
        rejected = proposed_spans(text, meta) or marks
        return TextAnswers(text, {rejected[0]: False}, meta=meta) if len(rejected) == 1 else None
    # The whole text is annotated, unless only the spans that were shown were accepted.
    whole = meta.get("unit") in _WHOLE_UNITS or record.get("_view_id") not in _BINARY
    answers = answer_with_spans(text, marks, meta, whole=whole)
    verdicts = {"reject": False, "ignore": None}  # for spans with an answer that differs from that of the text
    span_answers = (span.get("answer") for span in spans)
    exceptions = {mark: verdicts[answer] for mark, answer in zip(marks, span_answers, strict=True) if answer in verdicts}
    return replace(answers, spans={**answers.spans, **exceptions})


def _with_words(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the spans of a Prodigy record; spans without "text" get that of their tokens, None if no tokens fit."""
    tokens, spans = record.get("tokens") or (), record.get("spans") or ()
    token_by_start = {token["start"]: i for i, token in enumerate(tokens)}
    token_by_end = {token["end"]: i for i, token in enumerate(tokens)}

    def text_of(span: dict[str, Any]) -> str | None:
        first, last = token_by_start.get(span["start"]), token_by_end.get(span["end"])
        if first is None or last is None:
            return None
        inside = tokens[first : last + 1]  # no tokens if the span is empty
        gaps = [" " if after["start"] > token["end"] else "" for token, after in zip(inside, inside[1:], strict=False)]
        return "".join(token["text"] + gap for token, gap in zip(inside, [*gaps, ""], strict=False))

    return [{"text": text_of(span), **span} for span in spans]


def name_views(records: list[dict[str, Any]], _: Collection[str]) -> None:  # _: labels, which other tools need
    """Add the "_view_id" that old exports of Prodigy lack, if the records are from a view that asks yes or no."""
    # In such a view people reject a text with its spans; in the others they correct the spans instead.
    if any(record["answer"] == "reject" and record.get("spans") and "options" not in record for record in records):
        for record in records:
            record.setdefault("_view_id", "ner")  # any of _BINARY


_DOCCANO_KEYS = ("entities", "label", "labels", "annotations")  # keys of its labels, which are spans or categories


def is_doccano(record: dict[str, Any]) -> bool:
    """Return whether a record is from doccano: a text, an id and labels; old exports lack the id."""
    has_labels = any(isinstance(record.get(key), (list, str)) for key in _DOCCANO_KEYS)
    # Records with `meta` and no `id` are from a queue of this package that was not imported yet.
    is_old_export = "meta" not in record and ("label" in record or "labels" in record)
    return "text" in record and has_labels and ("id" in record or is_old_export)


def read_doccano(record: dict[str, Any]) -> TextAnswers:
    """Read a record of doccano; spans without their words become `uncertain`. RAISES ValueError: its labels are numbers."""
    meta = queue_meta(record) or queue_meta(record.get("meta"))  # some versions write its keys beside the text
    text = record["text"]
    labels = as_list(next(record[key] for key in _DOCCANO_KEYS if key in record))  # categories, or spans with a label
    skipped = +Counter(relations=len(record.get("relations") or ()))  # +: no 0
    if labels and isinstance(labels[0], str):
        return replace(answer_with_cats(text, labels, meta), skipped=skipped)
    spans = [label if isinstance(label, dict) else TextSpan(*label)._asdict() for label in labels]
    for span in spans:
        if isinstance(span.get("label"), int):
            raise ValueError(f"the label {span['label']} is a number and has no name: export JSONL, which has names")
    start_key = "start_offset" if spans and "start_offset" in spans[0] else "start"
    marks = _locate_spans(text, spans, start_key, start_key.replace("start", "end"))
    cats: dict[str, bool | None] = dict.fromkeys(as_list(record.get("cats")), True)
    answers = answer_with_spans(text, marks, meta)
    return replace(answers, cats=cats, skipped=skipped, uncertain=without_words(marks, spans))


def is_training(record: dict[str, Any]) -> bool:
    """Return whether a record is training data of spaCy 3: a text with "entities" or "cats"."""
    return "text" in record and ("entities" in record or "cats" in record)


def read_training(record: dict[str, Any]) -> TextAnswers:
    """Read a record of spaCy's training data: "text", "entities", whose offsets count characters, and "cats"."""
    spans = as_list(record.get("entities"))
    triples = [(span["start"], span["end"], span["label"]) if isinstance(span, dict) else span[:3] for span in spans]
    cats = record.get("cats") or {}
    if isinstance(cats, dict):
        values: dict[str, bool | None] = {str(name): bool(value > 0.5) for name, value in cats.items()}
    else:
        values = dict.fromkeys(as_list(cats), True)
    return replace(answer_with_spans(record["text"], [TextSpan(*triple) for triple in triples], {}), cats=values)


def is_argilla(record: dict[str, Any]) -> bool:
    """Return whether a record is from Argilla 2."""
    return isinstance(record.get("fields"), dict) and isinstance(record.get("responses"), dict)


def read_argilla(record: dict[str, Any]) -> Iterator[TextAnswers]:
    """Yield the answers of each person in a record of Argilla, which `name_questions` prepared."""
    meta, fields = queue_meta(record.get("metadata")), record["fields"]
    text: Any = fields["text"] if "text" in fields else next(iter(fields.values()), None)
    responses_by_person = defaultdict(list)  # annotator -> (question, value of the response)
    for question, responses in record["responses"].items():
        for response in responses or ():
            if response.get("status") in (None, "submitted") and response["value"] is not None:
                responses_by_person[str(response.get("user_id") or "")].append((question, response["value"]))
    for person, responses in responses_by_person.items():
        asks_spans = record[QUESTIONS]  # question -> whether it asks for spans, not categories
        answers = [_argilla_value(text, value, meta, asks_spans[name]) for name, value in responses if name in asks_spans]
        spans = {span: right for answer in answers for span, right in answer.spans.items()}
        cats = {name: has for answer in answers for name, has in answer.cats.items()}
        uncertain = frozenset(mark for answer in answers for mark in answer.uncertain)
        skipped = Counter(f"answers to '{name}'" for name, _ in responses if name not in asks_spans)
        # Spans are complete only if the person was asked for all of them, and answered.
        unanswered = {name for name, is_asked in asks_spans.items() if is_asked}.difference(name for name, _ in responses)
        is_whole = bool(answers) and not unanswered and all(answer.whole for answer in answers)
        yield TextAnswers(text, spans, cats, is_whole, dict(meta), person=person, skipped=skipped, uncertain=uncertain)


def _argilla_value(text: str, value: Any, meta: dict[str, Any], of_spans: bool) -> TextAnswers:
    """Return the answer in a response of Argilla: spans (of_spans) or categories. meta: Metadata from `queue_meta`."""
    values = as_list(value)
    if not of_spans:
        return answer_with_cats(text, values, meta)
    marks = _locate_spans(text, values)
    return replace(answer_with_spans(text, marks, meta), uncertain=without_words(marks, values))


QUESTIONS = "calib_questions"  # key added to records: question that asks for labels -> whether of spans


_USUAL_NAMES = {"label", "labels", "category"}  # of questions that ask for labels


def name_questions(records: list[dict[str, Any]], labels: Collection[str]) -> None:
    """Add to records of Argilla, under QUESTIONS, which questions ask for labels.

    These are the questions with lists of labels or spans as answers, and those with a usual name ("label") or a label of the
    pipeline as an answer. If there are no lists, `choose_questions` chooses. RAISES C786: several fields could be the text.
    """
    for fields in (record["fields"] for record in records):
        if "text" not in fields and len(fields) > 1:
            raise calib_error("C786", fields=", ".join(fields))
    texts: dict[str, Counter[str]] = defaultdict(Counter)  # question -> its answers that are one text
    lists: dict[str, list[Any]] = defaultdict(list)  # question -> items of its answers that are lists of labels or spans
    for question, responses in (item for record in records for item in record["responses"].items()):
        for value in (response["value"] for response in responses or ()):
            if isinstance(value, str):
                texts[question][value] += 1
            elif isinstance(value, (list, tuple)) and all(
                isinstance(item, str) or (isinstance(item, dict) and "label" in item) for item in value
            ):
                lists[question] += value
    if lists:  # other questions may ask for comments
        chosen = {name for name, answers in texts.items() if name in _USUAL_NAMES or not answers.keys().isdisjoint(labels)}
    else:
        chosen = choose_questions(texts, labels)
    # A question with empty lists alone asks for spans.
    asks_spans = dict.fromkeys(chosen, False) | {name: not any(isinstance(item, str) for item in lists[name]) for name in lists}
    for record in records:
        record[QUESTIONS] = asks_spans


def choose_questions(candidates: Mapping[str, Counter[str]], labels: Collection[str]) -> set[str]:
    """Return the questions that ask for labels, not for free text: those that were answered by a label of the pipeline, if any.

    Otherwise these are the only question, or questions with a usual name ("label"), or with repeated answers.
    candidates (Mapping): Question -> its answers, counted. labels (Collection[str]): The labels of the pipeline.
    """
    with_labels = {name for name, answers in candidates.items() if not answers.keys().isdisjoint(labels)}
    if with_labels or len(candidates) < 2:
        return with_labels or set(candidates)
    typical = candidates.keys() & _USUAL_NAMES
    # Labels are given again and again, comments are not.
    return typical or {name for name, answers in candidates.items() if answers.total() > len(answers)}
