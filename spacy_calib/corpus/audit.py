"""Gold that is probably wrong: what scores that did not see it would rather have, the likeliest first.

The gold label of least probability comes first, calibrated by maps that did not see its document. What that leaves level (where a component is sure, all gold
that it does not say is all but impossible), its rival's probability and its own raw score decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log10
from typing import Any, NamedTuple

import numpy as np

from ..types import OUTSIDE, Floats, Ints
from .queue.choosing import Queue
from .queue.tasks import Task, tasks_of
from .queue.units import Units
from .scored import RIGHT, UNKNOWN, WRONG, ScoredCorpus
from .stored import MadeOnDemand

# Below these a calibrated probability, and a raw score, are as small as these.
_LEAST, _LEAST_RAW = 1e-4, 1e-12
LABEL, BORDER, MISSING, SUPERFLUOUS, ARC = "wrong label", "wrong border", "missing", "superfluous", "wrong arc"
# Of a corpus sorted by the score of the likeliest label, the part in which hardly any prediction is wrong.
_SUREST = 0.5


class GoldSpan(NamedTuple):
    """doc (int): Number of the Doc. start, end (int): First token in it, and the one after the last. label (str)."""

    doc: int
    start: int
    end: int
    label: str


class Doubt(NamedTuple):
    """One gold label that is doubted.

    kind (str): What is probably wrong. first, last (int): Row of the corpus, and the one after the last: of the gold, or of what is missing. gold, rival (str): Label, and what
    it would rather be; "" for nothing. p_gold, p_rival (float): Calibrated probability of each. rival_first, rival_last (int): As `first` and `last`.
    raw (float | None): The gold label's score before calibration; None takes `p_gold`.
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
        """The place in the order, the highest first; the weights were chosen on errors planted in EWT dev."""
        raw = self.p_gold if self.raw is None else self.raw
        return self.p_rival / 100 - max(self.p_gold, _LEAST) - log10(max(raw, _LEAST_RAW)) / 1000


@dataclass(frozen=True, eq=False)
class Audit:
    """What was found in gold. doubts (list[Doubt]): Those whose rival is likelier than the gold, highest priority first; equal ones in the order of the text.
    labels (int): Gold labels looked at. expected (float | None): See `expected_wrong`.
    """

    doubts: list[Doubt]
    labels: int
    expected: float | None

    @classmethod
    def of(cls, found: Sequence[Doubt], labels: int, expected: float | None) -> Audit:
        doubted = [one for one in found if one.p_rival > one.p_gold]
        return cls(sorted(doubted, key=lambda one: (-one.priority, one.first, one.last)), labels, expected)


def audit_rows(corpus: ScoredCorpus, raw: Floats) -> Audit:
    """Labels of which a row (token or document) has one, with the scores of all that it may be. raw (Floats): Score of each row's gold label before calibration, (n,); NaN of one that
    nothing is known of, which is not doubted."""
    rows = np.flatnonzero((corpus.gold >= 0) & (np.diff(corpus.indptr) > 0) & ~np.isnan(raw) & _not_blank(corpus))
    found, agree, best = [], [], []
    for row in rows.tolist():
        gold, own = int(corpus.gold[row]), slice(int(corpus.indptr[row]), int(corpus.indptr[row + 1]))
        scores = dict(zip(corpus.tags[own].tolist(), corpus.tag_calibrated[own].tolist(), strict=True))
        p_gold = scores.pop(gold, min(float(raw[row]), _LEAST))
        rival = max(scores, key=lambda tag: scores[tag], default=gold)
        p_rival = scores.get(rival, 0.0)
        found.append(_of_row(corpus, LABEL, row, gold, rival, p_gold, p_rival)._replace(raw=float(raw[row])))
        agree.append(p_gold >= p_rival)
        best.append(max(p_gold, p_rival))
    return Audit.of(found, len(rows), expected_wrong(np.array(best), np.array(agree)))


def audit_carried(corpus: ScoredCorpus, kind: str = ARC) -> Audit:
    """Labels of which the scores tell only whether what the row carries is right, as of arcs."""
    rows = np.flatnonzero((corpus.right != UNKNOWN) & ~np.isnan(corpus.calibrated) & _not_blank(corpus))
    right, scores = corpus.right[rows] == RIGHT, corpus.calibrated[rows]
    found = [
        _of_row(corpus, kind, row, int(corpus.gold[row]), int(corpus.labels[row]), 1 - score, score)
        for row, score in zip(rows[~right].tolist(), scores[~right].tolist(), strict=True)
    ]
    return Audit.of(found, len(rows), expected_wrong(scores, right))


def audit_pairs(corpus: ScoredCorpus) -> Audit:
    """Labels of which a row may have several: each is there or not."""
    known = np.flatnonzero(corpus.hits != UNKNOWN)
    found = []
    for i in known.tolist():
        row, tag, score = int(corpus.rows[i]), int(corpus.tags[i]), float(corpus.tag_calibrated[i])
        missing = corpus.hits[i] == WRONG
        sides = (-1, tag, 1 - score, score) if missing else (tag, -1, score, 1 - score)
        found.append(_of_row(corpus, MISSING if missing else SUPERFLUOUS, row, *sides))
    rows, scores = np.unique(corpus.rows[known]), corpus.tag_calibrated[known]
    listed, named = set(zip(corpus.rows.tolist(), corpus.tags.tolist(), strict=True)), set(corpus.tags.tolist())
    for row in rows.tolist():  # what the scores do not name at all
        gold = int(corpus.gold[row])
        if gold in named and (row, gold) not in listed:
            found.append(_of_row(corpus, SUPERFLUOUS, row, gold, -1, 0.0, 1.0))
    return Audit.of(
        found, len(known), expected_wrong(np.maximum(scores, 1 - scores), (scores >= 0.5) == (corpus.hits[known] == RIGHT))
    )


def audit_spans(corpus: ScoredCorpus, gold: Sequence[GoldSpan], table: Mapping[str, str] | None = None) -> Audit:
    """Entities, or other spans that are not all white space: of each gold one the prediction that overlaps it most likely, else none; and predictions that overlap no gold.

    table (Mapping | None): Labels of the predictions in the words of the gold, "" for those that it does not have.
    """
    spans = corpus.spans
    offsets, dark = corpus.doc_starts[spans.docs], _not_blank(corpus)
    gold = [one for one in gold if dark[corpus.doc_starts[one.doc] + one.start : corpus.doc_starts[one.doc] + one.end].any()]
    names = [corpus.names[label] for label in spans.labels.tolist()]
    names = names if table is None else [table.get(name, name) for name in names]
    places = zip(spans.starts + offsets, spans.ends + offsets, strict=True)
    said = [(int(start), int(end)) for start, end in places]
    named = np.array([bool(name) for name in names], dtype=bool)
    known, outside = (spans.right != UNKNOWN) & named, _outside(corpus)
    bounds = [(int(corpus.doc_starts[one.doc]) + one.start, int(corpus.doc_starts[one.doc]) + one.end) for one in gold]
    rivals, covered = _overlapping(bounds, said, np.flatnonzero(named).tolist())
    found = []
    for one, own, near in zip(gold, bounds, rivals, strict=True):
        if any((said[i], names[i]) == (own, one.label) for i in near):
            continue
        if near:
            best = max(near, key=lambda i: spans.calibrated[i])
            score = float(spans.calibrated[best])
            found.append(
                Doubt(LABEL if said[best] == own else BORDER, *own, one.label, names[best], 1 - score, score, *said[best])
            )
        else:
            score = float(outside[slice(*own)].min())
            found.append(Doubt(SUPERFLUOUS, *own, one.label, "", 1 - score, score, *own))
    for i in np.flatnonzero(known).tolist():
        if i not in covered:
            score = float(spans.calibrated[i])
            found.append(Doubt(MISSING, *said[i], "", names[i], 1 - score, score, *said[i]))
    expected = expected_wrong(spans.calibrated[known], spans.right[known] == RIGHT)
    return Audit.of(found, len(gold), None if expected is None else expected * len(gold) / int(known.sum()))


def expected_wrong(best: Floats, agree: Any) -> float | None:
    """How many gold labels are wrong, if they are wrong elsewhere as often as where the model is surest, and it is never wrong there itself.

    So it is above the truth by the model's own errors in that half. best (Floats): Score of the likeliest label, (n,). agree: Whether it is the gold one, (n,).
    RETURNS (float | None): None without labels. Source: anchor points, Liu & Tao (2016, section 4).
    """
    if not len(best):
        return None
    surest = np.argsort(-best, kind="stable")[: max(1, round(_SUREST * len(best)))]
    return float(1 - np.asarray(agree)[surest].mean()) * len(best)


def _not_blank(corpus: ScoredCorpus) -> Any:
    return np.array([not word.isspace() for word in corpus.words.tolist()], dtype=bool)


def _of_row(corpus: ScoredCorpus, kind: str, row: int, gold: int, rival: int, p_gold: float, p_rival: float) -> Doubt:
    said, rather = (corpus.names[label] if label >= 0 else "" for label in (gold, rival))
    return Doubt(kind, row, row + 1, said, rather, p_gold, p_rival, row, row + 1)


def _outside(corpus: ScoredCorpus) -> Floats:
    """P(outside of all entities) of each token; without such a score what its likeliest label leaves."""
    found = 1 - np.nan_to_num(corpus.calibrated)
    if OUTSIDE in corpus.names:
        own = corpus.tags == corpus.names.index(OUTSIDE)
        found = np.zeros(len(corpus))
        found[corpus.rows[own]] = corpus.tag_calibrated[own]
    return found


def _overlapping(
    bounds: Sequence[tuple[int, int]], said: Sequence[tuple[int, int]], kept: Sequence[int]
) -> tuple[list[list[int]], set[int]]:
    """(numbers of the predictions that overlap each gold span; those that overlap one). kept: Numbers of those that are looked at."""
    at: dict[int, set[int]] = {}
    for i in kept:
        for token in range(*said[i]):
            at.setdefault(token, set()).add(i)
    none: set[int] = set()
    found = [sorted(none.union(*(at.get(token, none) for token in range(*one)))) for one in bounds]
    return found, none.union(*found)


def audit_tasks(
    corpus: ScoredCorpus, doubts: Sequence[Doubt], unit: str, more: Callable[[Doubt], dict[str, Any]] = lambda doubt: {}
) -> MadeOnDemand[Task]:
    """A task for each doubt, with the gold as its label, and the rival beside it. unit (str): See units.KINDS. more (Callable): What else to tell of one."""
    names = tuple(dict.fromkeys([*corpus.names, *(name for one in doubts for name in (one.gold, one.rival))]))
    place = {name: number for number, name in enumerate(names)}
    columns: Any = zip(*((one.first, one.last, place[one.gold or one.rival]) for one in doubts), strict=True)
    firsts, lasts, labels = (np.array(column, dtype=np.intp) for column in columns) if doubts else (_NONE, _NONE, _NONE)
    scores = np.array([one.p_gold for one in doubts])
    units = Units(unit, firsts, lasts, labels, scores, scores, np.full(len(doubts), UNKNOWN, dtype=np.int8))
    priorities = np.array([one.priority for one in doubts])
    queue = Queue(replace(corpus, names=names), units, np.zeros(len(corpus)), priorities, np.arange(len(doubts)), {}, True, 1)
    tasks = tasks_of(queue)
    return MadeOnDemand(len(doubts), lambda number: _audited(corpus, tasks[number], doubts[number], more))


_NONE: Ints = np.zeros(0, dtype=np.intp)


def _audited(corpus: ScoredCorpus, task: Task, doubt: Doubt, more: Callable[[Doubt], dict[str, Any]]) -> Task:
    doubted: dict[str, Any] = {"kind": doubt.kind, "suggestion": doubt.rival, "suggestion_score": doubt.p_rival}
    if (doubt.rival_first, doubt.rival_last) != (doubt.first, doubt.last):
        doubted["suggested_text"] = corpus.text(doubt.rival_first, doubt.rival_last)
    return replace(
        task,
        spans=task.spans if doubt.gold else [],
        gold=doubt.gold or None,
        right=None,
        reason=None,
        expected_errors=doubt.p_rival,
        alternatives={doubt.rival: doubt.p_rival} if doubt.rival else {},
        doubted={**doubted, **more(doubt)},
    )
