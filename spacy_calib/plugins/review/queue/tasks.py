"""A queue -> tasks: a text, what is doubtful in it, and why."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ....gold.tool_exports import BY_DOUBT
from ....pairs.documents import DOCUMENT
from ....pairs.scored_corpus import UNKNOWN, ScoredCorpus
from ....types import OUTSIDE, Floats
from ..stored import MadeOnDemand
from .choosing import Queue
from .units import Units

N_ALTERNATIVES = 3


class TaskSpan(NamedTuple):
    """A labelled stretch of a task's text: first and last token, start and end character, label, calibrated probability."""

    first: int
    last: int
    start: int
    end: int
    label: str
    score: float


@dataclass(frozen=True)
class Task:
    """One unit for a person to look at.

    text (str): The sentence that it stands in; of a document all of it. tokens (list): (start, end, whether a space follows) of each of its tokens, in
    characters. spans (list[TaskSpan]): What is to be checked. unit (str): See units.KINDS. labelled (bool): Whether it has one label as a whole.
    focus (str): The text of the unit itself; of one with several labels the word that is the reason.
    doc (int): Number of the document among those with text, from 0. sentence (int | None): Number in it, from 0; None for whole documents.
    start, end (int | None): Tokens in the Doc; None where documents have the labels. words (int): How many the unit has.
    origin (dict): Where the document came from, see `ScoredCorpus.origins`. rank (int): Place in the queue, from 1.
    score, raw (float): Probability that the unit is right, after and before calibration. priority (float): What the order is by.
    expected_errors (float): Wrong labels in it. reason (dict | None): See `reason_of`; of sentences and documents.
    alternatives (dict): Tag -> calibrated probability, highest first; of a token or document, or of the reason.
    gold (str | None): The gold label of a token or document, where it is known. right (bool | None): Whether the unit is right, where that is known.
    doubted (dict | None): Of gold that is audited: what is wrong with it ("kind"), "suggestion" ("" for nothing), its calibrated "suggestion_score", and
    "suggested_text" where it stands elsewhere. drawn (str): How it came into the queue, see `choosing.Plan`: answers are an
    estimate of accuracy only where that was no doubt. each_asked (bool): Whether each span of a whole text is a question of its own, so that one which is
    gone is wrong, and no more.
    """

    text: str
    tokens: list[tuple[int, int, bool]]
    spans: list[TaskSpan]
    unit: str
    labelled: bool
    focus: str
    doc: int
    sentence: int | None
    start: int | None
    end: int | None
    words: int
    origin: dict[str, Any]
    rank: int
    score: float
    raw: float
    priority: float
    expected_errors: float
    reason: dict[str, Any] | None
    alternatives: dict[str, float]
    gold: str | None
    right: bool | None
    doubted: dict[str, Any] | None = None
    drawn: str = BY_DOUBT
    each_asked: bool = False


def tasks_of(
    queue: Queue, tags: Collection[str] = (), each_asked: bool = False, gold_names: Mapping[str, str] | None = None
) -> MadeOnDemand[Task]:
    """A task for each unit of the queue, made when it is read.

    tags (Collection[str]): Those that were hunted. each_asked (bool): See Task. gold_names (Mapping | None): Label of an entity -> what the gold calls it,
        which is what people know and answer; other labels of the corpus are the gold's already.
    """
    errors = queue.units.sums(np.where(queue.corpus.is_counted, 1 - queue.corpus.calibrated, np.nan))
    return MadeOnDemand(len(queue.order), lambda place: _task(queue, place, errors, tags, each_asked, gold_names or {}))


def _task(
    queue: Queue, place: int, errors: Floats, tags: Collection[str], each_asked: bool, gold_names: Mapping[str, str]
) -> Task:
    corpus, units, number = queue.corpus, queue.units, int(queue.order[place])
    unit_first, unit_last = int(units.firsts[number]), int(units.lasts[number])
    doc, right, whole = int(corpus.docs[unit_first]), int(units.right[number]), units.kind == DOCUMENT
    first, last = _context(corpus, unit_first, unit_last)
    offset, has_row, tokens = int(corpus.doc_starts[doc]), units.kind == corpus.row_unit, _offsets(corpus, first, last)
    reason = reason_of(corpus, unit_first, unit_last, queue.values, tags) if whole or units.kind == "sentence" else None
    focus, others = corpus.text(unit_first, unit_last), alternatives(corpus, unit_first) if has_row else {}
    if reason is not None and not has_row:
        focus, others = reason["word"], {reason["tag"]: reason["probability"], **reason["alternatives"]}
    gold = int(corpus.gold[unit_first])
    return Task(
        text=corpus.text(first, last),
        tokens=tokens,
        spans=_spans(corpus, units, number, first, tokens, gold_names),
        unit=units.kind,
        labelled=bool(units.labels[number] >= 0),
        focus=focus,
        doc=int(corpus.numbers_of_docs[doc]),
        sentence=None if whole else int(corpus.sentences[unit_first] - corpus.sentences[offset]),
        start=None if corpus.row_unit == DOCUMENT else unit_first - offset,
        end=None if corpus.row_unit == DOCUMENT else unit_last - offset,
        words=int(corpus.lengths[unit_first:unit_last].sum()),
        origin=corpus.origin(doc),
        rank=place + 1,
        score=float(units.calibrated[number]),
        raw=float(units.raw[number]),
        priority=float(queue.scores[number]),
        expected_errors=float(errors[number]),
        reason=reason,
        alternatives=others,
        gold=corpus.names[gold] if has_row and gold >= 0 else None,
        right=None if right == UNKNOWN else bool(right),
        drawn=queue.drawn,
        each_asked=each_asked,
    )


def _context(corpus: ScoredCorpus, first: int, last: int) -> tuple[int, int]:
    """(first token, the one after the last) of the sentences that hold these tokens, without white space around them; one at least."""
    start, end = corpus.sentence_of(first)[0], corpus.sentence_of(last - 1)[1]
    while start < end - 1 and corpus.words[start].isspace():
        start += 1
    while end - 1 > start and corpus.words[end - 1].isspace():
        end -= 1
    return start, end


def _offsets(corpus: ScoredCorpus, first: int, last: int) -> list[tuple[int, int, bool]]:
    tokens = []
    at = 0
    for word, space in zip(corpus.words[first:last].tolist(), corpus.spaces[first:last].tolist(), strict=True):
        tokens.append((at, at + len(word), space))
        at += len(word) + space
    return tokens


def _spans(
    corpus: ScoredCorpus,
    units: Units,
    number: int,
    offset: int,
    tokens: list[tuple[int, int, bool]],
    gold_names: Mapping[str, str],
) -> list[TaskSpan]:
    """The unit itself, or the entities (else labelled tokens) of one with several labels; no white space at the ends."""
    first, last = int(units.firsts[number]), int(units.lasts[number])
    if units.labels[number] >= 0:
        found = [(first, last, int(units.labels[number]), float(units.calibrated[number]))]
    elif len(corpus.spans):
        found = _spans_inside(corpus, first, last)
    else:
        counted = (i for i in range(first, last) if corpus.is_counted[i] and corpus.names[corpus.labels[i]] != OUTSIDE)
        found = [(i, i + 1, int(corpus.labels[i]), float(corpus.calibrated[i])) for i in counted]
    of_entities = units.kind == "entity" or (units.labels[number] < 0 and len(corpus.spans) > 0)
    renamed = gold_names if of_entities else {}
    inside = ((max(0, start - offset), min(len(tokens), end - offset) - 1, label, score) for start, end, label, score in found)
    return [
        TaskSpan(one, last, tokens[one][0], tokens[last][1], renamed.get(corpus.names[label], corpus.names[label]), score)
        for one, last, label, score in inside
        if one <= last
    ]


def _spans_inside(corpus: ScoredCorpus, first: int, last: int) -> list[tuple[int, int, int, float]]:
    spans = corpus.spans
    of_doc = np.arange(*np.searchsorted(spans.docs, [corpus.docs[first], corpus.docs[first] + 1]))
    offset = int(corpus.doc_starts[corpus.docs[first]])
    own = of_doc[(spans.starts[of_doc] + offset >= first) & (spans.ends[of_doc] + offset <= last)]
    return [
        (int(spans.starts[i]) + offset, int(spans.ends[i]) + offset, int(spans.labels[i]), float(spans.calibrated[i]))
        for i in own.tolist()
    ]


def alternatives(corpus: ScoredCorpus, token: int) -> dict[str, float]:
    """The tags of a token above the threshold: tag -> calibrated probability, highest first."""
    where = slice(corpus.indptr[token], corpus.indptr[token + 1])
    scored = zip(corpus.tags[where].tolist(), corpus.tag_calibrated[where].tolist(), strict=True)
    return {corpus.names[tag]: score for tag, score in sorted(scored, key=lambda pair: -pair[1])}


def reason_of(corpus: ScoredCorpus, first: int, last: int, values: Floats, tags: Collection[str] = ()) -> dict[str, Any]:
    """Why the tokens from `first` to before `last` are looked at: the one with the greatest value, the first of equal ones.

    RETURNS (dict): "token" (from 0, in the unit) and "word", None where documents have the labels, "label" that it carries, "tag": the label, or the likeliest of the tags that
        were hunted, its "probability" (calibrated) and "raw" one, "alternatives": other tag -> calibrated probability, highest first.
    """
    token = first + int(np.nanargmax(values[first:last]))
    label = corpus.names[corpus.labels[token]]
    own = slice(corpus.indptr[token], corpus.indptr[token + 1])
    raw = {corpus.names[tag]: float(score) for tag, score in zip(corpus.tags[own], corpus.tag_raw[own], strict=True)}
    # The label may lie below the threshold of the scores.
    calibrated = {**alternatives(corpus, token), **({} if label in raw else {label: float(corpus.calibrated[token])})}
    ordered = sorted(calibrated, key=lambda name: -calibrated[name])
    tag = next((name for name in ordered if name in tags), label)
    others = [name for name in ordered if name != tag][:N_ALTERNATIVES]
    return {
        "token": None if corpus.row_unit == DOCUMENT else token - first,
        "word": None if corpus.row_unit == DOCUMENT else str(corpus.words[token]),
        "label": label,
        "tag": tag,
        "probability": calibrated[tag],
        "raw": raw.get(tag, float(corpus.raw[token])),
        "alternatives": {name: calibrated[name] for name in others},
    }
