"""List gold labels that are probably wrong, by out-of-fold scores.

The gold label with the lowest calibrated probability comes first; ties are broken by the rival's probability and the raw score.
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
from .queue.units import ReviewUnits

_MIN_PROBABILITY, _MIN_RAW = 1e-4, 1e-12  # lower calibrated probabilities, and lower raw scores, count as these
LABEL, BORDER, MISSING, SUPERFLUOUS, ARC = "wrong label", "wrong border", "missing", "superfluous", "wrong arc"
_CONFIDENT_SHARE = 0.5  # the share of the most confident predictions, of which hardly any is wrong
_Bounds = tuple[int, int]  # first token of a span in the corpus, and the one after the last


class GoldSpan(NamedTuple):
    """A gold span: index of its Doc, first token, the token after the last, label."""

    doc: int
    start: int
    end: int
    label: str


class Doubt(NamedTuple):
    """A gold label that is probably wrong.

    kind (str): The error: LABEL, BORDER, MISSING, SUPERFLUOUS or ARC. first, last (int): First row (token or document) of the
    gold or missing label, and the row after the last. gold, rival (str): The gold label and the likelier one; "" for no label.
    p_gold, p_rival (float): Their calibrated probabilities. rival_first, rival_last (int): Rows of the rival. raw (float |
    None): Raw score of the gold label.
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
        """Sort key, highest first: a low p_gold, and a little a high p_rival and a low raw score. Tuned on planted errors."""
        raw = self.p_gold if self.raw is None else self.raw
        return self.p_rival / 100 - max(self.p_gold, _MIN_PROBABILITY) - log10(max(raw, _MIN_RAW)) / 1000


@dataclass(frozen=True, eq=False)
class Audit:
    """The result of an audit of gold labels.

    doubts (list[Doubt]): Labels with a likelier rival, highest priority first. n_labels (int): Number of audited gold labels.
    n_wrong (float | None): Estimated number of wrong ones among all of these, by `estimate_wrong`; None without a score.
    """

    doubts: list[Doubt]
    n_labels: int
    n_wrong: float | None

    @classmethod
    def from_doubts(cls, doubts: Sequence[Doubt], n_labels: int, n_wrong: float | None) -> Audit:
        """Keep the doubts whose rival is likelier than the gold label, by priority. n_labels, n_wrong: As in `Audit`."""
        likely = [doubt for doubt in doubts if doubt.p_rival > doubt.p_gold]
        return cls(sorted(likely, key=lambda doubt: (-doubt.priority, doubt.first, doubt.last)), n_labels, n_wrong)


def audit_rows(corpus: ScoredCorpus, raw: Floats) -> Audit:
    """Audit gold with one label per row (token or document). raw: Raw score of each gold label, (n,); NaN leaves a row out."""
    has_gold, has_scores = corpus.gold >= 0, np.diff(corpus.indptr) > 0
    rows = np.flatnonzero(has_gold & has_scores & ~np.isnan(raw) & _not_blank(corpus))
    doubts, is_top, top_scores = [], [], []
    for row in rows.tolist():
        gold, entries = int(corpus.gold[row]), slice(int(corpus.indptr[row]), int(corpus.indptr[row + 1]))
        scores = dict(zip(corpus.tags[entries].tolist(), corpus.tag_calibrated[entries].tolist(), strict=True))
        # A gold label below the threshold has no calibrated score: it counts as very improbable.
        p_gold = scores.pop(gold, min(float(raw[row]), _MIN_PROBABILITY))
        rival = max(scores, key=lambda tag: scores[tag], default=gold)
        p_rival = scores.get(rival, 0.0)
        doubts.append(_row_doubt(corpus, LABEL, row, gold, rival, p_gold, p_rival)._replace(raw=float(raw[row])))
        is_top.append(p_gold >= p_rival)
        top_scores.append(max(p_gold, p_rival))
    return Audit.from_doubts(doubts, len(rows), estimate_wrong(np.array(top_scores), np.array(is_top)))


def audit_arcs(corpus: ScoredCorpus) -> Audit:
    """Audit gold arcs. Only the predicted arc has a score; a different gold arc gets 1 minus it, the most that it can have."""
    rows = np.flatnonzero((corpus.right != UNKNOWN) & ~np.isnan(corpus.calibrated) & _not_blank(corpus))
    right, scores = corpus.right[rows] == RIGHT, corpus.calibrated[rows]
    doubts = [
        _row_doubt(corpus, ARC, row, int(corpus.gold[row]), int(corpus.labels[row]), 1 - score, score)
        for row, score in zip(rows[~right].tolist(), scores[~right].tolist(), strict=True)
    ]
    return Audit.from_doubts(doubts, len(rows), estimate_wrong(scores, right))


def audit_pairs(corpus: ScoredCorpus) -> Audit:
    """Audit gold of documents (or tokens) that may have several labels: is each label right that the gold has, or lacks?"""
    with_gold = np.flatnonzero(corpus.hits != UNKNOWN)  # indices of the (unit, label) pairs whose unit has gold
    doubts = []
    for i in with_gold.tolist():
        row, tag, score = int(corpus.rows[i]), int(corpus.tags[i]), float(corpus.tag_calibrated[i])
        if corpus.hits[i] == WRONG:  # the gold lacks the label; -1 stands for no label
            doubts.append(_row_doubt(corpus, MISSING, row, gold=-1, rival=tag, p_gold=1 - score, p_rival=score))
        else:
            doubts.append(_row_doubt(corpus, SUPERFLUOUS, row, gold=tag, rival=-1, p_gold=score, p_rival=1 - score))
    scored_pairs, scored_tags = set(zip(corpus.rows.tolist(), corpus.tags.tolist(), strict=True)), set(corpus.tags.tolist())
    for row in np.unique(corpus.rows[with_gold]).tolist():  # gold labels below the threshold, which have no score
        gold = int(corpus.gold[row])
        if gold in scored_tags and (row, gold) not in scored_pairs:  # not labels that the component never scores
            doubts.append(_row_doubt(corpus, SUPERFLUOUS, row, gold, -1, 0.0, 1.0))  # its probability is practically 0
    # Each pair is a yes-or-no question, whose likelier answer is the top label.
    scores = corpus.tag_calibrated[with_gold]
    top_scores, is_top = np.maximum(scores, 1 - scores), (scores >= 0.5) == (corpus.hits[with_gold] == RIGHT)
    return Audit.from_doubts(doubts, len(with_gold), estimate_wrong(top_scores, is_top))


def audit_spans(corpus: ScoredCorpus, gold: Sequence[GoldSpan], table: Mapping[str, str] | None = None) -> Audit:
    """Audit gold spans, each against the top prediction that overlaps it, and predictions that overlap none (missing gold).

    table (Mapping | None): Label of the pipeline -> name in the gold, "" for none; other labels have the same name in both.
    """
    spans, is_not_blank, p_outside = corpus.spans, _not_blank(corpus), _outside_scores(corpus)
    firsts = [int(corpus.doc_starts[span.doc]) for span in gold]  # first token of each span's Doc in the corpus
    # (bounds, label); bounds are the first token in the corpus and the one after the last.
    gold_spans = [((first + span.start, first + span.end), span.label) for first, span in zip(firsts, gold, strict=True)]
    gold_spans = [(bounds, label) for bounds, label in gold_spans if is_not_blank[slice(*bounds)].any()]
    predictions = _predicted_spans(corpus, table or {})  # index in `spans` -> (bounds, label)
    overlaps = _find_overlaps([bounds for bounds, _ in gold_spans], predictions)
    doubts = []
    for (bounds, label), rivals in zip(gold_spans, overlaps, strict=True):  # rivals: indices in `spans`
        if not rivals:  # nothing is predicted there; the token least likely to be outside decides
            score = float(p_outside[slice(*bounds)].min())
            doubts.append(Doubt(SUPERFLUOUS, *bounds, label, "", 1 - score, score, *bounds))
        elif (bounds, label) not in [predictions[i] for i in rivals]:
            best = max(rivals, key=lambda i: spans.calibrated[i])
            score, (rival_bounds, rival_label) = float(spans.calibrated[best]), predictions[best]
            kind = LABEL if rival_bounds == bounds else BORDER
            doubts.append(Doubt(kind, *bounds, label, rival_label, 1 - score, score, *rival_bounds))
    with_gold = [i for i in predictions if spans.right[i] != UNKNOWN]
    for i in sorted(set(with_gold).difference(*overlaps)):  # the gold has no span there
        score, (bounds, rival_label) = float(spans.calibrated[i]), predictions[i]
        doubts.append(Doubt(MISSING, *bounds, "", rival_label, 1 - score, score, *bounds))
    # Errors are estimated per prediction; there may be more or fewer gold spans.
    n_wrong = estimate_wrong(spans.calibrated[with_gold], spans.right[with_gold] == RIGHT)
    return Audit.from_doubts(doubts, len(gold_spans), None if n_wrong is None else n_wrong * len(gold_spans) / len(with_gold))


def _predicted_spans(corpus: ScoredCorpus, table: Mapping[str, str]) -> dict[int, tuple[_Bounds, str]]:
    """Return index in corpus.spans -> (bounds, name of the label in the gold), without spans whose label `table` maps to ""."""
    spans, offsets = corpus.spans, corpus.doc_starts[corpus.spans.docs]
    bounds = zip((spans.starts + offsets).tolist(), (spans.ends + offsets).tolist(), strict=True)
    labels = [corpus.names[label] for label in spans.labels.tolist()]
    named_spans = zip(bounds, [table.get(label, label) for label in labels], strict=True)
    return {i: (span_bounds, name) for i, (span_bounds, name) in enumerate(named_spans) if name}


def _outside_scores(corpus: ScoredCorpus) -> Floats:
    """Return the probability that each token is outside of all entities, (n_tokens,)."""
    if OUTSIDE not in corpus.names:  # only labels of entities have scores; NaN means that a token has none
        return 1 - np.nan_to_num(corpus.calibrated)
    scores, is_outside = np.zeros(len(corpus)), corpus.tags == corpus.names.index(OUTSIDE)
    scores[corpus.rows[is_outside]] = corpus.tag_calibrated[is_outside]
    return scores


def estimate_wrong(top_scores: Floats, is_top: Any) -> float | None:
    """Estimate the number of wrong gold labels from the most confident half of the rows; None without rows.

    In that half every disagreement counts as an error of the gold (anchor points, Liu & Tao 2016, section 4), so the model's
    errors there make the estimate too high. top_scores (Floats): Score of each row's top label, (n,). is_top (NDArray[bool]):
    Whether that is the gold label, (n,).
    """
    if not len(top_scores):
        return None
    confident = np.argsort(-top_scores, kind="stable")[: max(1, round(_CONFIDENT_SHARE * len(top_scores)))]
    return float(1 - np.asarray(is_top)[confident].mean()) * len(top_scores)


def _not_blank(corpus: ScoredCorpus) -> Any:
    """Return whether each token (or document) is not just white space, (n,)."""
    return np.array([not word.isspace() for word in corpus.words.tolist()], dtype=bool)


def _row_doubt(corpus: ScoredCorpus, kind: str, row: int, gold: int, rival: int, p_gold: float, p_rival: float) -> Doubt:
    """Return the doubt that the gold label of a row is wrong and another label, the rival, is right. kind (str): As in `Doubt`.

    gold, rival (int): Index of each in corpus.names, -1 for none. p_gold, p_rival (float): Their calibrated probabilities.
    """
    gold_name, rival_name = (corpus.names[label] if label >= 0 else "" for label in (gold, rival))
    return Doubt(kind, row, row + 1, gold_name, rival_name, p_gold, p_rival, row, row + 1)


def _find_overlaps(gold_bounds: Sequence[_Bounds], predictions: Mapping[int, tuple[_Bounds, str]]) -> list[list[int]]:
    """Return for each gold span, by its bounds, the indices of those `predictions` (by `_predicted_spans`) that overlap it."""
    spans_by_token: dict[int, list[int]] = {}
    for i, (bounds, _) in predictions.items():
        for token in range(*bounds):
            spans_by_token.setdefault(token, []).append(i)
    return [sorted({i for token in range(*bounds) for i in spans_by_token.get(token, ())}) for bounds in gold_bounds]


def audit_tasks(
    corpus: ScoredCorpus, doubts: Sequence[Doubt], unit: str, extra: Callable[[Doubt], dict[str, Any]] | None = None
) -> list[Task]:
    """Return a task for each doubt about the gold of a corpus: is the gold label right, or its rival, the likelier label?

    unit (str): Unit of the doubted labels, one of units.KINDS. extra (Callable | None): (doubt) -> further fields of its task.
    """
    names = tuple(dict.fromkeys([*corpus.names, *(name for doubt in doubts for name in (doubt.gold, doubt.rival))]))
    index = {name: i for i, name in enumerate(names)}
    firsts = np.array([doubt.first for doubt in doubts], dtype=np.intp)
    lasts = np.array([doubt.last for doubt in doubts], dtype=np.intp)
    labels = np.array([index[doubt.gold or doubt.rival] for doubt in doubts], dtype=np.intp)
    p_gold, right = np.array([doubt.p_gold for doubt in doubts]), np.full(len(doubts), UNKNOWN, dtype=np.int8)
    units = ReviewUnits(unit, firsts, lasts, labels, raw=p_gold, calibrated=p_gold, right=right)  # `_audit_task` replaces raw
    priorities = np.array([doubt.priority for doubt in doubts])
    order: Ints = np.arange(len(doubts))  # the queue has all doubts, in the same order
    token_doubts = np.zeros(len(corpus))  # not used: only sentences and documents of tokens need them
    queue = Queue(replace(corpus, names=names), units, token_doubts, priorities, order, candidates=order, left_out={})
    tasks = zip(tasks_of(queue), doubts, strict=True)
    return [_audit_task(corpus, task, doubt, {} if extra is None else extra(doubt)) for task, doubt in tasks]


def _audit_task(corpus: ScoredCorpus, task: Task, doubt: Doubt, extra: dict[str, Any]) -> Task:
    """Return the task with the fields of a doubt: gold label, rival, and the rival's probability. extra: Further fields."""
    fields: dict[str, Any] = {"kind": doubt.kind, "suggestion": doubt.rival, "suggestion_score": doubt.p_rival}
    if (doubt.rival_first, doubt.rival_last) != (doubt.first, doubt.last):
        fields["suggested_text"] = corpus.text(doubt.rival_first, doubt.rival_last)
    return replace(
        task,
        spans=task.spans if doubt.gold else [],
        gold=doubt.gold or None,
        right=None,
        raw=doubt.raw,
        alternatives={doubt.rival: doubt.p_rival} if doubt.rival else {},
        audit_fields={**fields, **extra},
    )
