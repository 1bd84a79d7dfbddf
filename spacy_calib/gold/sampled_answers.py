"""Answers to a random sample of entities (`rank --order random`) -> which entities are right, with the scores that the sample had.

One rule for each case, counted in `SampledAnswers.counts`; none can make a promise that does not hold:
- disputed: people who disagree about an entity make it a wrong one, unless an agreed annotation decides.
- skipped: an entity that was shown and skipped is a wrong one.
- doubled: of several answers of one person to a question the last counts.
- unanswered: questions without an answer are left out; the queue has a random order, so those before them are a sample, too.
Files that are cut off are refused (C692).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import calib_error
from ..pairs.build import JudgedPairs
from ..schema import InvalidState, maybe, number, record, text, whole
from ..types import Floats, Ints, Pairs
from .answer_files import read_each, read_values
from .tool_exports import TextAnswers, TextSpan, as_list, proposed_spans, queue_meta

# What `rank` writes with each question. calib (str): Identity of the calibration. label, score: Of the entity. document (int):
# Its number. drawn_from (int): Documents with entities. accepted (float): Share of all entities that the sample is drawn from:
# those that reach their `cutoff`, or 1 without one.
_QUESTION = record(
    {
        "calib": text, "label": text, "score": number(0.0, 1.0), "document": whole(), "drawn_from": whole(),
        "accepted": number(0.0, 1.0), "cutoff": maybe(number(0.0, 1.0)),
    }
)  # fmt: skip
_ARTICLE = re.compile(r"(?:an?|the)\s+", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class SampledAnswers:
    """n entities of a random sample that people answered.

    calib (str): Identity of the calibration that scored them. labels (Sequence[str]): Span labels of the pipe. scores (Floats),
    hits (NDArray[bool]), documents (Ints), cutoffs (Floats): Of each, shape (n,); a cut-off of 0 if it was drawn from all
    entities. drawn_from (int): Documents. accepted (float): Share of all entities that the sample is drawn from. counts
    (Mapping): Case of the module's rules -> number.
    """

    calib: str
    labels: Sequence[str]
    scores: Floats
    hits: NDArray[np.bool_]
    documents: Ints
    cutoffs: Floats
    drawn_from: int
    accepted: float
    counts: Mapping[str, int]

    def pairs(self, labels: Sequence[str]) -> JudgedPairs:
        """Return one pair for each entity. labels (Sequence[str]): The source's span labels, as columns."""
        columns = np.array([labels.index(label) for label in self.labels], dtype=np.intp)
        rows = np.arange(len(columns))
        return JudgedPairs(Pairs(rows, columns, self.scores, self.hits, len(rows)), self.scores, self.documents)


def read_sample(
    files: Sequence[Path], path: Path, labels: Collection[str], event_of: Callable[[str], str]
) -> SampledAnswers | None:
    """Read the answers to a sample of entities; None if the files have none.

    path (Path): Of all files, for messages. labels (Collection[str]): The labels of the pipeline. event_of (Callable): Identity
    of a calibration -> when an entity is right. RAISES C692 to C696, C790: as `read_answers`. C792: other answers, too.
    """
    questions: dict[Any, dict[str, Any]] = {}
    votes: dict[Any, dict[Any, tuple[bool, bool | None]]] = {}
    counts: Counter[str] = Counter(disputed=0, skipped=0, doubled=0, unanswered=0)
    skipped, n_others = set(), 0
    for file in files:
        values = read_values(file)
        metas = {where: _meta_of(value) for where, value in values}
        n_others += sum("sample" not in meta for meta in metas.values())
        if not any("sample" in meta for meta in metas.values()):
            continue
        answers = read_each(file, labels, values)
        for answer in answers:
            if "sample" in answer.meta:
                key = _key_of(answer.meta)
                question = questions.setdefault(key, _read_question(answer.meta, file))
                right = is_right(answer, event_of(question["calib"]))
                person = answer.person or ("", right)  # without names, equal answers are one
                of_question = votes.setdefault(key, {})
                counts["doubled"] += person in of_question
                of_question[person] = (answer.agreed, right)
        answered = {answer.where for answer in answers}
        for where, value in values:
            if where not in answered and "sample" in metas[where]:
                key = _key_of(metas[where])
                if _was_skipped(value):
                    questions.setdefault(key, _read_question(metas[where], file))
                    skipped.add(key)
                else:
                    counts["unanswered"] += key not in questions
    if not questions:
        return None
    if n_others or len({question["calib"] for question in questions.values()}) > 1:
        raise calib_error("C792", path=path, n=f"{len(questions):,}", others=f"{n_others:,}")
    hits = []
    for key in questions:
        of_question = list(votes.get(key, {}).values())
        verdicts = {right for agreed, right in of_question if agreed} or {right for _, right in of_question}
        counts["disputed"] += len(verdicts) > 1
        counts["skipped"] += not of_question and key in skipped
        hits.append(verdicts == {True})
    columns = {name: [question[name] for question in questions.values()] for name in next(iter(questions.values()))}
    return SampledAnswers(
        columns["calib"][0], columns["label"], np.array(columns["score"], dtype=np.float64), np.array(hits, dtype=bool),
        np.array(columns["document"], dtype=np.intp), np.array([cutoff or 0.0 for cutoff in columns["cutoff"]]),
        max(columns["drawn_from"]), min(columns["accepted"]), counts,
    )  # fmt: skip


def is_right(answer: TextAnswers, event: str) -> bool | None:
    """Return whether the entity that a question is about is right; None if the answer leaves that open.

    Where people corrected the entity, the event decides, as for other gold. event (str): A key of `span_events.EVENTS`.
    """
    (asked,) = proposed_spans(answer.text, answer.meta)
    verdict = answer.spans.get(asked)
    if verdict is not False:
        return verdict
    marks = [mark for mark, right in answer.spans.items() if right and mark.label == asked.label]
    return any(_matches(answer.text, asked, mark, event) for mark in marks)


def _matches(text: str, asked: TextSpan, mark: TextSpan, event: str) -> bool:
    if event == "article":
        starts = [
            span.start + (found.end() if (found := _ARTICLE.match(text[slice(*span[:2])])) else 0) for span in (asked, mark)
        ]
        return (starts[0], asked.end) == (starts[1], mark.end)
    if event == "type":
        return mark.start <= asked.start and asked.end <= mark.end
    return event == "overlap" and mark.start < asked.end and asked.start < mark.end


def _meta_of(value: Any) -> dict[str, Any]:
    """Return what a queue of ours wrote beside a text, wherever the tool puts it; {} if there is nothing."""
    if not isinstance(value, dict):
        return {}
    data = value.get("data")
    places = (value.get("meta"), value.get("metadata"), data.get("meta") if isinstance(data, dict) else None, value)
    return next(filter(None, map(queue_meta, places)), {})


def _key_of(meta: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(meta.get(name)) for name in ("doc", "sentence", "asked", "focus"))


def _read_question(meta: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """Return the fields of _QUESTION; Argilla stores them as text. RAISES C692: they are not in this form."""
    try:
        return _QUESTION(json.loads(meta["sample"]) if isinstance(meta["sample"], str) else meta["sample"], "sample")
    except (InvalidState, ValueError) as error:
        raise calib_error("C692", path=file, why=f"the sample of a question is not as `rank` writes it ({error})") from None


def _was_skipped(value: Mapping[str, Any]) -> bool:
    """Return whether a person skipped a question: in Prodigy, in Label Studio, or in Argilla."""
    parts = [*as_list(value.get("annotations")), *(part for of in (value.get("responses") or {}).values() for part in of or ())]
    return value.get("answer") == "ignore" or any(
        isinstance(part, dict) and (part.get("was_cancelled") or part.get("status") == "discarded") for part in parts
    )
