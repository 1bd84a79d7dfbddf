"""Gold that is probably wrong, by scores of maps that did not see it.

The gold label with the lowest calibrated probability comes first; ties are broken by its rival's probability and its raw score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log10
from typing import Any, NamedTuple

import numpy as np

from ...pairs.scored_corpus import RIGHT, UNKNOWN, WRONG, ScoredCorpus
from ...types import OUTSIDE, Floats, Ints
from .queue.choosing import Queue
from .queue.tasks import Task, tasks_of
from .queue.units import Units
from .stored import MadeOnDemand

# Below these a calibrated probability, and a raw score, are as small as these.
_LEAST, _LEAST_RAW = 1e-4, 1e-12
LABEL, BORDER, MISSING, SUPERFLUOUS, ARC = "wrong label", "wrong border", "missing", "superfluous", "wrong arc"
# Of a corpus sorted by the score of the likeliest label, the part in which hardly any prediction is wrong.
_SUREST = 0.5


class GoldSpan(NamedTuple):
    """A gold span of a Doc, by its number and tokens."""

    doc: int
    start: int
    end: int
    label: str


class Doubt(NamedTuple):
    """One gold label that is doubted.

    kind (str): What is probably wrong. first, last (int): Rows of the gold, or of what is missing. gold, rival (str): Label,
    and what it should be; "" for nothing. p_gold, p_rival (float): Their calibrated probabilities. rival_first, rival_last
    (int): Rows of the rival. raw (float | None): Raw score of the gold label.
    """

    kind: str
    first: int
    last: int
    gold: str
    rival: str
    p_gold: float
    p_rival: float
    rival_first: int
    rival_last: int
    raw: float | None = None

    @property
    def priority(self) -> float:
        """Place in the order, highest first; the weights were chosen on errors planted in EWT dev."""
        raw = self.p_gold if self.raw is None else self.raw
        return self.p_rival / 100 - max(self.p_gold, _LEAST) - log10(max(raw, _LEAST_RAW)) / 1000


@dataclass(frozen=True, eq=False)
class Audit:
    """The audit of gold. doubts (list[Doubt]): Highest priority first, ties in text order. expected: See `expected_wrong`."""

    doubts: list[Doubt]
    labels: int
    expected: float | None

    @classmethod
    def of(cls, doubts: Sequence[Doubt], labels: int, expected_errors: float | None) -> Audit:
        likely = [doubt for doubt in doubts if doubt.p_rival > doubt.p_gold]
        return cls(sorted(likely, key=lambda doubt: (-doubt.priority, doubt.first, doubt.last)), labels, expected_errors)


def audit_rows(corpus: ScoredCorpus, raw: Floats) -> Audit:
    """Audit labels of which a row has one. raw (Floats): Raw score of each row's gold label; NaN rows are not doubted."""
    rows = np.flatnonzero((corpus.gold >= 0) & (np.diff(corpus.indptr) > 0) & ~np.isnan(raw) & _not_blank(corpus))
    doubts, agree, best = [], [], []
    for row in rows.tolist():
        gold, part = int(corpus.gold[row]), slice(int(corpus.indptr[row]), int(corpus.indptr[row + 1]))
        scores = dict(zip(corpus.tags[part].tolist(), corpus.tag_calibrated[part].tolist(), strict=True))
        p_gold = scores.pop(gold, min(float(raw[row]), _LEAST))
        rival = max(scores, key=lambda tag: scores[tag], default=gold)
        p_rival = scores.get(rival, 0.0)
        doubts.append(_row_doubt(corpus, LABEL, row, gold, rival, p_gold, p_rival)._replace(raw=float(raw[row])))
        agree.append(p_gold >= p_rival)
        best.append(max(p_gold, p_rival))
    return Audit.of(doubts, len(rows), expected_wrong(np.array(best), np.array(agree)))


def audit_carried(corpus: ScoredCorpus, kind: str = ARC) -> Audit:
    """Audit labels whose scores tell only whether the predicted one is right, as of arcs."""
    rows = np.flatnonzero((corpus.right != UNKNOWN) & ~np.isnan(corpus.calibrated) & _not_blank(corpus))
    right, scores = corpus.right[rows] == RIGHT, corpus.calibrated[rows]
    doubts = [
        _row_doubt(corpus, kind, row, int(corpus.gold[row]), int(corpus.labels[row]), 1 - score, score)
        for row, score in zip(rows[~right].tolist(), scores[~right].tolist(), strict=True)
    ]
    return Audit.of(doubts, len(rows), expected_wrong(scores, right))


def audit_pairs(corpus: ScoredCorpus) -> Audit:
    """Audit labels of which a row may have several."""
    with_gold = np.flatnonzero(corpus.hits != UNKNOWN)
    doubts = []
    for i in with_gold.tolist():
        row, tag, score = int(corpus.rows[i]), int(corpus.tags[i]), float(corpus.tag_calibrated[i])
        missing = corpus.hits[i] == WRONG
        sides = (-1, tag, 1 - score, score) if missing else (tag, -1, score, 1 - score)
        doubts.append(_row_doubt(corpus, MISSING if missing else SUPERFLUOUS, row, *sides))
    rows, scores = np.unique(corpus.rows[with_gold]), corpus.tag_calibrated[with_gold]
    scored_pairs, scored_tags = set(zip(corpus.rows.tolist(), corpus.tags.tolist(), strict=True)), set(corpus.tags.tolist())
    for row in rows.tolist():  # what the scores do not name at all
        gold = int(corpus.gold[row])
        if gold in scored_tags and (row, gold) not in scored_pairs:
            doubts.append(_row_doubt(corpus, SUPERFLUOUS, row, gold, -1, 0.0, 1.0))
    return Audit.of(
        doubts,
        len(with_gold),
        expected_wrong(np.maximum(scores, 1 - scores), (scores >= 0.5) == (corpus.hits[with_gold] == RIGHT)),
    )


def audit_spans(corpus: ScoredCorpus, gold: Sequence[GoldSpan], table: Mapping[str, str] | None = None) -> Audit:
    """Audit spans: gold against the top overlapping prediction, and predictions without gold. table: Label -> gold label."""
    spans = corpus.spans
    offsets, dark = corpus.doc_starts[spans.docs], _not_blank(corpus)
    gold = [
        span for span in gold if dark[corpus.doc_starts[span.doc] + span.start : corpus.doc_starts[span.doc] + span.end].any()
    ]
    names = [corpus.names[label] for label in spans.labels.tolist()]
    names = names if table is None else [table.get(name, name) for name in names]
    places = zip(spans.starts + offsets, spans.ends + offsets, strict=True)
    span_bounds = [(int(start), int(end)) for start, end in places]
    has_name = np.array([bool(name) for name in names], dtype=bool)
    scores = 1 - np.nan_to_num(corpus.calibrated)
    if OUTSIDE in corpus.names:
        is_outside = corpus.tags == corpus.names.index(OUTSIDE)
        scores = np.zeros(len(corpus))
        scores[corpus.rows[is_outside]] = corpus.tag_calibrated[is_outside]
    has_gold, outside_scores = (spans.right != UNKNOWN) & has_name, scores
    bounds = [(int(corpus.doc_starts[span.doc]) + span.start, int(corpus.doc_starts[span.doc]) + span.end) for span in gold]
    rivals, matches = _overlapping(bounds, span_bounds, np.flatnonzero(has_name).tolist())
    doubts = []
    for span, bound, rival_spans in zip(gold, bounds, rivals, strict=True):
        if any((span_bounds[i], names[i]) == (bound, span.label) for i in rival_spans):
            continue
        if rival_spans:
            best = max(rival_spans, key=lambda i: spans.calibrated[i])
            score = float(spans.calibrated[best])
            doubts.append(
                Doubt(
                    LABEL if span_bounds[best] == bound else BORDER,
                    *bound,
                    span.label,
                    names[best],
                    1 - score,
                    score,
                    *span_bounds[best],
                )
            )
        else:
            score = float(outside_scores[slice(*bound)].min())
            doubts.append(Doubt(SUPERFLUOUS, *bound, span.label, "", 1 - score, score, *bound))
    for i in np.flatnonzero(has_gold).tolist():
        if i not in matches:
            score = float(spans.calibrated[i])
            doubts.append(Doubt(MISSING, *span_bounds[i], "", names[i], 1 - score, score, *span_bounds[i]))
    n_wrong = expected_wrong(spans.calibrated[has_gold], spans.right[has_gold] == RIGHT)
    return Audit.of(doubts, len(gold), None if n_wrong is None else n_wrong * len(gold) / int(has_gold.sum()))


def expected_wrong(best: Floats, agree: Any) -> float | None:
    """Estimate how many gold labels are wrong from the most confident half, as if the model made no errors there (anchor
    points, Liu & Tao 2016, section 4).

    It exceeds the truth by the model's own errors in that half. best (Floats): Top scores. agree: Is gold the top label?
    """
    if not len(best):
        return None
    surest = np.argsort(-best, kind="stable")[: max(1, round(_SUREST * len(best)))]
    return float(1 - np.asarray(agree)[surest].mean()) * len(best)


def _not_blank(corpus: ScoredCorpus) -> Any:
    return np.array([not word.isspace() for word in corpus.words.tolist()], dtype=bool)


def _row_doubt(corpus: ScoredCorpus, kind: str, row: int, gold: int, rival: int, p_gold: float, p_rival: float) -> Doubt:
    gold_name, rival_name = (corpus.names[label] if label >= 0 else "" for label in (gold, rival))
    return Doubt(kind, row, row + 1, gold_name, rival_name, p_gold, p_rival, row, row + 1)


def _overlapping(
    bounds: Sequence[tuple[int, int]], span_bounds: Sequence[tuple[int, int]], numbers: Sequence[int]
) -> tuple[list[list[int]], set[int]]:
    """Return (numbers of the predictions that overlap each gold span; all that overlap one). numbers: Those to consider."""
    spans_at: dict[int, set[int]] = {}
    for i in numbers:
        for token in range(*span_bounds[i]):
            spans_at.setdefault(token, set()).add(i)
    empty: set[int] = set()
    overlaps = [sorted(empty.union(*(spans_at.get(token, empty) for token in range(*bound)))) for bound in bounds]
    return overlaps, empty.union(*overlaps)


def audit_tasks(
    corpus: ScoredCorpus, doubts: Sequence[Doubt], unit: str, extra: Callable[[Doubt], dict[str, Any]] = lambda doubt: {}
) -> MadeOnDemand[Task]:
    """Return a task for each doubt, with the rival as alternative. unit (str): See units.KINDS. extra (Callable): More fields."""
    names = tuple(dict.fromkeys([*corpus.names, *(name for item in doubts for name in (item.gold, item.rival))]))
    place = {name: number for number, name in enumerate(names)}
    columns: Any = zip(*((item.first, item.last, place[item.gold or item.rival]) for item in doubts), strict=True)
    firsts, lasts, labels = (np.array(column, dtype=np.intp) for column in columns) if doubts else (_NONE, _NONE, _NONE)
    scores = np.array([item.p_gold for item in doubts])
    units = Units(unit, firsts, lasts, labels, scores, scores, np.full(len(doubts), UNKNOWN, dtype=np.int8))
    priorities = np.array([item.priority for item in doubts])
    queue = Queue(replace(corpus, names=names), units, np.zeros(len(corpus)), priorities, np.arange(len(doubts)), {}, True, 1)
    tasks = tasks_of(queue)
    return MadeOnDemand(len(doubts), lambda number: _audit_task(corpus, tasks[number], doubts[number], extra))


_NONE: Ints = np.zeros(0, dtype=np.intp)


def _audit_task(corpus: ScoredCorpus, task: Task, doubt: Doubt, extra: Callable[[Doubt], dict[str, Any]]) -> Task:
    fields: dict[str, Any] = {"kind": doubt.kind, "suggestion": doubt.rival, "suggestion_score": doubt.p_rival}
    if (doubt.rival_first, doubt.rival_last) != (doubt.first, doubt.last):
        fields["suggested_text"] = corpus.text(doubt.rival_first, doubt.rival_last)
    return replace(
        task,
        spans=task.spans if doubt.gold else [],
        gold=doubt.gold or None,
        right=None,
        reason=None,
        expected_errors=doubt.p_rival,
        alternatives={doubt.rival: doubt.p_rival} if doubt.rival else {},
        doubted={**fields, **extra(doubt)},
    )
