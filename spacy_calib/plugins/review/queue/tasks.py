"""Make a task from each unit of a queue: its text, the labels to check in it, and why it is doubtful."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ....gold.tool_exports import BY_DOUBT
from ....pairs.documents import DOCUMENT
from ....pairs.scored_corpus import UNKNOWN, ScoredCorpus
from ....types import OUTSIDE, Floats
from .choosing import Queue
from .units import ReviewUnits

N_ALTERNATIVES = 3


class TaskSpan(NamedTuple):
    """A labelled span of a task's text: first and last token, start and end character, label, calibrated probability."""

    first: int
    last: int
    start: int
    end: int
    label: str
    score: float


@dataclass(frozen=True)
class Task:
    """One unit to annotate or check.

    text (str): The sentences (or document) of the unit. tokens (list): (start, end, whether a space follows) of each token of
    the text, in characters. spans (list[TaskSpan]): Predicted spans to check. unit (str): One of units.KINDS. has_one_label
    (bool): Whether the unit has one label, not one per token. focus (str): Text of the unit; of a unit with several labels, the
    word with the most doubtful one. doc (int), sentence (int | None): Number of the Doc, and of the sentence in it, from 0;
    None for documents. start, end (int | None): First token in the Doc, and the one after the last; None if the unit is a
    document with a label. words (int): Number of words. origin (dict): Line, file, id and metadata of the Doc. rank (int):
    Position in the queue, from 1. score, raw (float): Probability that the unit is right, after and before calibration; raw is
    None in an audit of spans, arcs or several labels. priority (float): Sort key, highest first. alternatives (dict): Label ->
    calibrated probability, highest first, of a token or document with one label, or of the word in `focus`. gold (str | None):
    Gold label of a token or document. right (bool | None): Whether the unit is right; None if unknown. audit_fields (dict |
    None): Only of an audit: "kind" (of error), "suggestion" (likelier label), "suggestion_score", "suggested_text" (if it is
    another span). sampling (str): How the unit was chosen: AT_RANDOM (answers then estimate the accuracy) or BY_DOUBT.
    asks_each_span (bool): Whether each span is a separate question, so that a deleted one is wrong. place (tuple): First
    character in the Doc, and the one after the last. sample (dict | None): Data of the random sample to save with the answer.
    """

    text: str
    tokens: list[tuple[int, int, bool]]
    spans: list[TaskSpan]
    unit: str
    has_one_label: bool
    focus: str
    doc: int
    sentence: int | None
    start: int | None
    end: int | None
    words: int
    origin: dict[str, Any]
    rank: int
    score: float
    raw: float | None
    priority: float
    alternatives: dict[str, float]
    gold: str | None
    right: bool | None
    audit_fields: dict[str, Any] | None = None
    sampling: str = BY_DOUBT
    asks_each_span: bool = False
    place: tuple[int, int] = (0, 0)
    sample: dict[str, Any] | None = None


def tasks_of(queue: Queue, asks_each_span: bool = False, gold_names: Mapping[str, str] | None = None) -> list[Task]:
    """Return a task for each unit of the queue.

    asks_each_span (bool): Whether each span is a separate question.
    gold_names (Mapping | None): Entity label of the pipeline -> label of the gold, which annotators know.
    """
    return [_task(queue, index, asks_each_span, gold_names or {}) for index in range(len(queue.order))]


def _task(queue: Queue, index: int, asks_each_span: bool, gold_names: Mapping[str, str]) -> Task:
    """Return the task of the unit at an index of `queue.order`. The other arguments are those of `tasks_of`."""
    corpus, units, number = queue.corpus, queue.units, int(queue.order[index])
    # First token in the corpus, and the one after the last: of the unit, and of the text that shows it.
    first, last = int(units.firsts[number]), int(units.lasts[number])
    text_first, text_last = _find_context(corpus, first, last)
    tokens, doc = _offsets(corpus, text_first, text_last), int(corpus.docs[first])
    doc_start, right, gold = int(corpus.doc_starts[doc]), int(units.right[number]), int(corpus.gold[first])
    is_row = units.kind == corpus.row_unit  # the unit is one token (or document with categories) and has scores of its tags
    focus, alternatives = corpus.text(first, last), sort_tags(corpus, first) if is_row else {}
    if units.kind in ("sentence", DOCUMENT) and not is_row:  # each of its tokens has a label
        focus, alternatives = find_doubtful_word(corpus, first, last, queue.doubts)
    return Task(
        text=corpus.text(text_first, text_last),
        tokens=tokens,
        spans=_spans(corpus, units, number, text_first, tokens, gold_names),
        unit=units.kind,
        has_one_label=bool(units.labels[number] >= 0),
        focus=focus,
        doc=doc,
        sentence=None if units.kind == DOCUMENT else int(corpus.sentences[first] - corpus.sentences[doc_start]),
        start=None if corpus.of_documents else first - doc_start,
        end=None if corpus.of_documents else last - doc_start,
        words=int(corpus.lengths[first:last].sum()),
        origin=corpus.origin(doc),
        rank=index + 1,
        score=float(units.calibrated[number]),
        raw=float(units.raw[number]),
        priority=float(queue.priorities[number]),
        alternatives=alternatives,
        gold=corpus.names[gold] if is_row and gold >= 0 else None,
        right=None if right == UNKNOWN else bool(right),
        sampling=queue.sampling,
        asks_each_span=asks_each_span,
        place=(int(corpus.offsets[first]), int(corpus.offsets[last - 1]) + len(corpus.words[last - 1])),
    )


def _find_context(corpus: ScoredCorpus, first: int, last: int) -> tuple[int, int]:
    """Return (first token, the one after the last) of the sentences around some tokens, without white space at either end."""
    start, end = corpus.sentence_of(first)[0], corpus.sentence_of(last - 1)[1]
    while start < end - 1 and corpus.words[start].isspace():
        start += 1
    while end - 1 > start and corpus.words[end - 1].isspace():
        end -= 1
    return start, end


def _offsets(corpus: ScoredCorpus, first: int, last: int) -> list[tuple[int, int, bool]]:
    """Return (start, end, whether a space follows) of each of tokens first:last, in characters of the text that they form."""
    tokens, start = [], 0
    for word, space in zip(corpus.words[first:last].tolist(), corpus.spaces[first:last].tolist(), strict=True):
        tokens.append((start, start + len(word), space))
        start += len(word) + space
    return tokens


def _spans(
    corpus: ScoredCorpus,
    units: ReviewUnits,
    number: int,
    text_first: int,
    tokens: list[tuple[int, int, bool]],
    gold_names: Mapping[str, str],
) -> list[TaskSpan]:
    """Return the spans to mark in a unit's text: the unit if it has one label, else its entities, else its labelled tokens.

    number (int): Index of the unit. text_first (int): First token of the text. tokens (list): (start, end, whether a space
    follows) of each token of the text. gold_names (Mapping): Entity label of the pipeline -> its name in the gold.
    """
    first, last = int(units.firsts[number]), int(units.lasts[number])
    has_one_label = units.labels[number] >= 0
    are_entities = units.kind == "entity" or (not has_one_label and len(corpus.spans) > 0)
    if has_one_label:
        candidates = [(first, last, int(units.labels[number]), float(units.calibrated[number]))]
    elif are_entities:
        candidates = _find_spans(corpus, first, last)
    else:
        labelled_tokens = (i for i in range(first, last) if corpus.is_counted[i] and corpus.names[corpus.labels[i]] != OUTSIDE)
        candidates = [(i, i + 1, int(corpus.labels[i]), float(corpus.calibrated[i])) for i in labelled_tokens]
    spans = []
    for start, end, label, score in candidates:
        # Indices in `tokens`. The text lacks white space at its ends, and so perhaps a part of the span, or all of it.
        span_first, span_last = max(0, start - text_first), min(len(tokens), end - text_first) - 1
        if span_first <= span_last:
            name = gold_names.get(corpus.names[label], corpus.names[label]) if are_entities else corpus.names[label]
            spans.append(TaskSpan(span_first, span_last, tokens[span_first][0], tokens[span_last][1], name, score))
    return spans


def _find_spans(corpus: ScoredCorpus, first: int, last: int) -> list[tuple[int, int, int, float]]:
    """Return (start, end, index of the label, calibrated score) of the scored spans in tokens first:last of a corpus."""
    spans, doc = corpus.spans, int(corpus.docs[first])
    doc_spans = np.arange(*np.searchsorted(spans.docs, [doc, doc + 1]))  # indices of its spans, which are sorted by Doc
    offset = int(corpus.doc_starts[doc])  # bounds of spans count from the start of their Doc
    indices = doc_spans[(spans.starts[doc_spans] + offset >= first) & (spans.ends[doc_spans] + offset <= last)]
    starts, ends = (spans.starts[indices] + offset).tolist(), (spans.ends[indices] + offset).tolist()
    return list(zip(starts, ends, spans.labels[indices].tolist(), spans.calibrated[indices].tolist(), strict=True))


def sort_tags(corpus: ScoredCorpus, token: int) -> dict[str, float]:
    """Return tag -> calibrated probability for the tags of a token, highest first; those below the threshold are not in it."""
    entries = slice(corpus.indptr[token], corpus.indptr[token + 1])
    scores = zip(corpus.tags[entries].tolist(), corpus.tag_calibrated[entries].tolist(), strict=True)
    return {corpus.names[tag]: score for tag, score in sorted(scores, key=lambda pair: -pair[1])}


def find_doubtful_word(corpus: ScoredCorpus, first: int, last: int, doubts: Floats) -> tuple[str, dict[str, float]]:
    """Return the word in tokens first:last that has the most doubtful label, and its labels with their probabilities.

    doubts (Floats): Doubt of each token of the corpus, shape (n_tokens,). RETURNS (tuple): The word; label -> calibrated
    probability: first its predicted label, then up to three others, highest first.
    """
    token = first + int(np.nanargmax(doubts[first:last]))
    scores, label = sort_tags(corpus, token), corpus.names[corpus.labels[token]]
    score = scores.pop(label, float(corpus.calibrated[token]))  # a label below the threshold is not among the scores
    return str(corpus.words[token]), {label: score, **dict(list(scores.items())[:N_ALTERNATIVES])}
