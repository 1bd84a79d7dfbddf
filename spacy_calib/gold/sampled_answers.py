"""Reads answers to a random sample of entities (`rank --order random`), with the scores that the entities had.

In doubt an entity counts as wrong, so that promised precisions hold: if people disagree about it ("disputed") and no agreed
annotation decides, or if it was only skipped ("skipped"), or given other words or another label ("changed"). Of several answers
of one person the last counts ("doubled"), even if it is a skip. Questions without an answer are left out ("unanswered"), as the
queue is in random order. Files that are cut off are refused.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import calib_error
from ..pairs.pairing import JudgedPairs
from ..schema import InvalidState, maybe, number, record, text, whole
from ..types import Floats, Pairs
from .answer_files import read_each, read_values
from .label_studio import annotator_of, changed_at
from .tool_exports import TextAnswers, as_list, prodigy_person, proposed_spans, queue_meta

# Form of what `rank` writes with each question: identity of the calibration; number of documents and share of all entities that
# the sample was drawn from; label, score and document of the entity, and the cut-off above which it was drawn, or None.
_SHARE = number(0.0, 1.0)
_DRAWN = {"calib": text, "drawn_from": whole(), "accepted": _SHARE}
_QUESTION = record({**_DRAWN, "label": text, "score": _SHARE, "document": whole(), "cutoff": maybe(_SHARE)})
_KEY = ("doc", "sentence", "asked", "focus")  # fields that identify a question
_Key = tuple[str, ...]  # values of the fields _KEY
_Vote = tuple[bool, bool | None]  # whether the annotation is agreed; whether the entity is right, None if it was skipped
_Votes = dict[Any, _Vote]  # person (None: an unknown one who skipped it) -> vote


class SampledAnswers(NamedTuple):
    """The answers to a random sample of n entities.

    calib (str): Identity of the calibration that gave the scores. pairs (JudgedPairs): Score of each entity and whether it is
    right. cutoffs (Floats): Cut-off above which each was sampled, 0 without one, (n,). drawn_from (int): Number of documents
    from which the sample was drawn. accepted (float): Share of all entities that could be drawn, such as those that reach
    their cut-offs. counts (Mapping): "disputed", "skipped", "changed", "doubled" or "unanswered" -> number.
    """

    calib: str
    pairs: JudgedPairs
    cutoffs: Floats
    drawn_from: int
    accepted: float
    counts: Mapping[str, int]


def read_sample(files: Sequence[Path], path: Path, labels: Mapping[str, Sequence[str]]) -> SampledAnswers | None:
    """Read the answers to a random sample of entities; None if the files have none.

    path (Path): File or folder that messages name. labels (Mapping): Identity of a calibration -> its span labels.
    RAISES C533: the scores are of another calibration. C792: the files have other answers, too. C692 to C696, C790: unreadable.
    """
    known_labels = [label for names in labels.values() for label in names]
    questions: dict[_Key, dict[str, Any]] = {}
    votes: defaultdict[_Key, _Votes] = defaultdict(dict)
    n_others, counts = 0, Counter(dict.fromkeys(("disputed", "skipped", "changed", "doubled", "unanswered"), 0))
    for file in files:
        values = read_values(file)
        values_by_place = dict(values)
        keys: dict[str, _Key] = {}  # place in the file ("line 3") -> key of the question about a random sample there
        for where, value in values:
            meta = _meta_of(value)
            if "sample" in meta:
                keys[where] = tuple(str(meta.get(name)) for name in _KEY)
                questions[keys[where]] = _read_question(meta["sample"], file)
        n_others += len(values) - len(keys)
        answers = defaultdict(list)  # place -> answers of each person, in their order
        for answer in read_each(file, known_labels, values) if keys else ():
            answers[answer.where].append(answer)
        for where, key in keys.items():
            record_votes, is_changed = _votes_in(values_by_place[where], answers[where])
            counts["changed"] += is_changed
            for person, vote in record_votes:
                counts["doubled"] += person is not None and person in votes[key]
                votes[key][person] = vote
    if not questions:
        return None
    if n_others:
        raise calib_error("C792", path=path, n=f"{len(questions):,}", others=f"{n_others:,}")
    calib = next(iter(questions.values()))["calib"]
    if calib not in labels or any(question["calib"] != calib for question in questions.values()):
        raise calib_error("C533", path=path)
    return _evaluate_votes(questions, votes, labels[calib], counts)


def _votes_in(value: Any, answers: Sequence[TextAnswers]) -> tuple[list[tuple[Any, _Vote]], bool]:
    """Return the votes in a record about one entity as (person, vote), and whether somebody changed its words or its label.

    value (Any): The record. answers (Sequence): The answers in it. Skips come last: each is the last act of its person.
    """
    votes: list[tuple[Any, _Vote]] = []
    is_changed = False
    for answer in answers:
        asked = proposed_spans(answer.text, answer.meta)[0]  # a question proposes one entity
        right = answer.spans.get(asked)
        marked = [span for span, is_marked in answer.spans.items() if is_marked and span != asked]
        is_changed |= not right and any(span.start < asked.end and asked.start < span.end for span in marked)
        votes.append((answer.person or ("", right), (answer.agreed, right)))  # without names, equal answers are one
    return [*votes, *((person or None, (False, None)) for person in _skippers(value))], is_changed


def _evaluate_votes(
    questions: Mapping[_Key, dict[str, Any]], votes: defaultdict[_Key, _Votes], labels: Sequence[str], counts: Counter[str]
) -> SampledAnswers:
    """Return the answered questions as arrays, and add the "disputed", "skipped" and "unanswered" ones to `counts`.

    questions, votes (Mapping): Key -> what `rank` wrote, and the votes of people. labels: Span labels of the calibration.
    """
    rows = []
    for key, question in questions.items():
        # The distinct votes (None: skipped). If there are agreed annotations, only their votes count.
        question_votes = votes[key].values()
        verdicts = {right for agreed, right in question_votes if agreed} or {right for _, right in question_votes}
        without_skips = verdicts - {None}
        counts["disputed"] += len(without_skips) > 1
        counts["skipped"] += verdicts == {None}
        counts["unanswered"] += not verdicts
        if verdicts:  # a disputed entity, and one that was only skipped, count as wrong
            computed = {"right": without_skips == {True}, "column": labels.index(question["label"])}
            rows.append({**question, **computed, "cutoff": question["cutoff"] or 0.0})
    hits, scores, columns, documents, cutoffs = (
        np.array([row[name] for row in rows], dtype=kind)
        for name, kind in (("right", bool), ("score", float), ("column", np.intp), ("document", np.intp), ("cutoff", float))
    )
    # The questions have calibrated scores only, which stand for the raw ones, too.
    pairs = JudgedPairs(Pairs(np.arange(len(rows)), columns, scores, hits, len(rows)), scores, documents)
    drawn_from, accepted = max(row["drawn_from"] for row in rows), min(row["accepted"] for row in rows)  # queues may differ
    return SampledAnswers(rows[0]["calib"], pairs, cutoffs, drawn_from, accepted, counts)


def _meta_of(value: Any) -> dict[str, Any]:
    """Return the metadata that a queue of this package wrote with a text, wherever the tool puts them; {} without any."""
    values = value if isinstance(value, dict) else {}
    data = values["data"] if isinstance(values.get("data"), dict) else {}
    places = (values.get("meta"), values.get("metadata"), data.get("meta"), values)
    return next(filter(None, map(queue_meta, places)), {})  # the first that a queue wrote


def _read_question(sample: Any, file: Path) -> dict[str, Any]:
    """Read what `rank` wrote with a question: a dict, or its JSON. RAISES C692: the fields are not as _QUESTION demands."""
    try:
        return _QUESTION(json.loads(sample) if isinstance(sample, str) else sample, "sample")
    except (InvalidState, ValueError) as error:
        raise calib_error("C692", path=file, why=f"the sample of a question is not as `rank` writes it ({error})") from None


def _skippers(value: Mapping[str, Any]) -> list[str]:
    """Return the people whose last answer in a record of Prodigy, Label Studio or Argilla is a skip; "" for an unknown one."""
    if value.get("answer") == "ignore":
        return [prodigy_person(value)]
    annotations = [part for part in as_list(value.get("annotations")) if isinstance(part, dict)]
    last_by_person = {annotator_of(annotation): annotation for annotation in sorted(annotations, key=changed_at)}
    skippers = [person for person, annotation in last_by_person.items() if annotation.get("was_cancelled")]
    responses = (value.get("responses") or {}).values()  # of Argilla: a list for each question
    parts = [part for answers in responses for part in answers or () if isinstance(part, dict)]
    discarders = [str(part.get("user_id") or "") for part in parts if part.get("status") == "discarded"]
    return [*skippers, *dict.fromkeys(discarders)]  # who discards a record discards each question
