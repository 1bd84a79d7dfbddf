"""Units in the order of review -> tasks: a text, what is doubtful in it, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from ...types import OUTSIDE, Floats, Ints
from ..made import MadeOnDemand
from ..scored import UNKNOWN, ScoredCorpus
from .units import Units


class TaskSpan(NamedTuple):
    """A labelled stretch of a task's text.

    first, last (int): First token of the task in it, and its last one. start, end (int): Characters. label (str).
    score (float): Calibrated probability that it is right, in [0, 1].
    """

    first: int
    last: int
    start: int
    end: int
    label: str
    score: float


@dataclass(frozen=True)
class Task:
    """One unit for a person to look at.

    text (str): The sentence that it stands in. tokens (list): (start, end, whether a space follows) of each of its tokens, in characters.
    spans (list[TaskSpan]): What is to be checked. unit (str): token, sentence, entity or document. focus (str): The text of the unit itself.
    doc (int): Number of the document among those with text, from 0. sentence (int): Number in it, from 0.
    origin (dict): Where the document came from, see `ScoredCorpus.origins`. rank (int): Place in the order, from 1.
    score (float): Calibrated probability that the unit is right. raw (float): The same before calibration. doubt (float): What the
        order is by.
    alternatives (dict): Tag -> calibrated probability, highest first; of a token or document.
    gold (str | None): The gold label of a token or document, where it is known. right (bool | None): Whether the unit is right, where that is known.
    """

    text: str
    tokens: list[tuple[int, int, bool]]
    spans: list[TaskSpan]
    unit: str
    focus: str
    doc: int
    origin: dict[str, Any]
    sentence: int
    rank: int
    score: float
    raw: float
    doubt: float
    alternatives: dict[str, float]
    gold: str | None
    right: bool | None


def tasks_of(corpus: ScoredCorpus, units: Units, doubt: Floats, order: Ints) -> MadeOnDemand[Task]:
    """A task for each unit, made when it is read.

    doubt (Floats): Of each unit. order (Ints): The units, first to last.
    """
    return MadeOnDemand(
        len(order), lambda place: _task(corpus, units, int(order[place]), place + 1, float(doubt[order[place]]))
    )


def _task(corpus: ScoredCorpus, units: Units, number: int, rank: int, doubt: float) -> Task:
    unit_first, unit_last = int(units.firsts[number]), int(units.lasts[number])
    first, last = _context(corpus, unit_first, unit_last)
    tokens = _offsets(corpus, first, last)
    right, doc = int(units.right[number]), int(corpus.docs[unit_first])
    has_row = units.kind == corpus.row_unit
    return Task(
        text=corpus.text(first, last),
        tokens=tokens,
        spans=_spans(corpus, units, number, first, tokens),
        unit=units.kind,
        focus=corpus.text(unit_first, unit_last),
        doc=int(corpus.numbers_of_docs[doc]),
        origin=corpus.origin(doc),
        sentence=int(corpus.sentences[unit_first] - corpus.sentences[corpus.doc_starts[doc]]),
        rank=rank,
        score=float(units.calibrated[number]),
        raw=float(units.raw[number]),
        doubt=doubt,
        alternatives=alternatives(corpus, unit_first) if has_row else {},
        gold=_gold(corpus, unit_first) if has_row else None,
        right=None if right == UNKNOWN else bool(right),
    )


def _context(corpus: ScoredCorpus, first: int, last: int) -> tuple[int, int]:
    """(first token, the one after the last) of the sentences that hold these tokens, which are not all white space, without such around them."""
    start, end = corpus.sentence_of(first)[0], corpus.sentence_of(last - 1)[1]
    while corpus.words[start].isspace():
        start += 1
    while corpus.words[end - 1].isspace():
        end -= 1
    return start, end


def _offsets(corpus: ScoredCorpus, first: int, last: int) -> list[tuple[int, int, bool]]:
    tokens = []
    at = 0
    for word, space in zip(corpus.words[first:last].tolist(), corpus.spaces[first:last].tolist(), strict=True):
        tokens.append((at, at + len(word), space))
        at += len(word) + space
    return tokens


def _spans(corpus: ScoredCorpus, units: Units, number: int, offset: int, tokens: list[tuple[int, int, bool]]) -> list[TaskSpan]:
    """The unit itself; for a sentence its entities, or its tokens that carry a label where the corpus has no entities."""
    first, last = int(units.firsts[number]), int(units.lasts[number])
    if units.kind != "sentence":
        found = [(first, last, int(units.labels[number]), float(units.calibrated[number]))]
    elif len(corpus.spans):
        found = _spans_inside(corpus, first, last)
    else:
        counted = (i for i in range(first, last) if corpus.counted[i] and corpus.names[corpus.labels[i]] != OUTSIDE)
        found = [(i, i + 1, int(corpus.labels[i]), float(corpus.calibrated[i])) for i in counted]
    return [
        TaskSpan(
            start - offset, end - 1 - offset, tokens[start - offset][0], tokens[end - 1 - offset][1], corpus.names[label], score
        )
        for start, end, label, score in found
    ]


def _spans_inside(corpus: ScoredCorpus, first: int, last: int) -> list[tuple[int, int, int, float]]:
    spans = corpus.spans
    offsets = corpus.doc_starts[spans.docs]
    inside = (spans.starts + offsets >= first) & (spans.ends + offsets <= last)
    return [
        (int(spans.starts[i] + offsets[i]), int(spans.ends[i] + offsets[i]), int(spans.labels[i]), float(spans.calibrated[i]))
        for i in inside.nonzero()[0].tolist()
    ]


def alternatives(corpus: ScoredCorpus, token: int) -> dict[str, float]:
    """The tags of a token above the threshold: tag -> calibrated probability, highest first."""
    where = slice(corpus.indptr[token], corpus.indptr[token + 1])
    scored = zip(corpus.tags[where].tolist(), corpus.tag_calibrated[where].tolist(), strict=True)
    return {corpus.names[tag]: score for tag, score in sorted(scored, key=lambda pair: -pair[1])}


def _gold(corpus: ScoredCorpus, token: int) -> str | None:
    gold = int(corpus.gold[token])
    return corpus.names[gold] if gold >= 0 else None
