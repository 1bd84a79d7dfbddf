"""Examples -> the figures of `spacy evaluate`: a thin call into the metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from spacy.strings import get_string_id
from spacy.training import Example

from ..calibration.grouping.tag_frequency import regroup_by_frequency
from ..doc.annotations import columns_of, get_annotation, label_hashes
from ..doc.attributes import ScoredSpan, doc_view
from ..doc.events import span_hits
from ..doc.reading import document_of
from ..metrics.calibration_error import ece, gmce, mean_of, smce
from ..metrics.proper import brier, log_loss
from ..pairs.bins import check_count
from ..pairs.build import concatenate
from ..pairs.documents import DocumentNumbers
from ..types import Floats, Groups, Ints, Pairs


@dataclass(frozen=True)
class JudgedPairs:
    """pairs (Pairs): Raw scores and hits. calibrated (Floats): The calibrated score of each pair. documents (Ints): The document of each.
    unit (str): What a document is, see `documents`.
    """

    pairs: Pairs
    calibrated: Floats
    documents: Ints
    unit: str


@dataclass(frozen=True)
class JudgedSpans(JudgedPairs):
    """Spans as pairs, each a unit of its own. accept (Ints): 1 or 0 whether it reaches its cut-off, -1 where the pipe has none."""

    accept: Ints


def judge(examples: Iterable[Example], attr: str, labels: Sequence[str]) -> JudgedPairs:
    """Compare what a calib pipe wrote on the predicted Docs with the gold.

    attr (str): Prefix of the pipe's attributes. labels (Sequence[str]): Labels of its source, as columns.
    """
    of_labels = label_hashes(labels)
    parts: list[Pairs] = []
    calibrated: list[Floats] = [np.zeros(0)]
    documents: list[Ints] = [np.zeros(0, dtype=np.intp)]
    numbers = DocumentNumbers()
    for example in examples:
        view = doc_view(example.predicted, attr)
        if view is None:
            continue
        gold = get_annotation(view.layer).aligned_gold(example)
        tags, local = np.unique(view.tags.astype(str), return_inverse=True)
        hashes = label_hashes(tags.tolist())[local]
        keep = gold[view.rows] != 0
        hits = get_annotation(view.layer).is_gold(example, view.rows[keep], hashes[keep])
        columns = np.where(view.columns >= 0, view.columns, columns_of(hashes, of_labels))
        n_units = int(np.count_nonzero((gold != 0) & view.scored))
        parts.append(Pairs(view.rows[keep], columns[keep], view.raw[keep], hits, n_units))
        calibrated.append(view.calibrated[keep])
        documents.append(np.full(int(keep.sum()), numbers.number(document_of(example))))
    return JudgedPairs(concatenate(parts), np.concatenate(calibrated), np.concatenate(documents), numbers.unit)


def judge_spans(examples: Iterable[Example], attr: str, labels: Sequence[str]) -> JudgedSpans:
    """Compare the spans (entities) to which a calib pipe gave a score with the gold.

    labels (Sequence[str]): Of the spans, as columns.
    """
    column = {label: i for i, label in enumerate(labels)}
    found: list[tuple[ScoredSpan, int, int]] = []
    numbers = DocumentNumbers()
    for example in examples:
        view = doc_view(example.predicted, attr)
        if view is None or not view.ents:
            continue
        keys = [(span.start, span.end, get_string_id(span.label)) for span in view.ents]
        hits = span_hits(example, get_annotation(view.layer), keys, view.ents[0].event).tolist()
        number = numbers.number(document_of(example))
        found += [(span, hit, number) for span, hit in zip(view.ents, hits, strict=True) if hit >= 0]
    spans = [span for span, _, _ in found]
    tags = np.array([column.get(span.label, -1) for span in spans], dtype=np.intp)
    hits = np.array([hit == 1 for _, hit, _ in found], dtype=bool)
    return JudgedSpans(
        Pairs(np.arange(len(spans)), tags, np.array([span.raw for span in spans]), hits, len(spans)),
        np.array([span.score for span in spans], dtype=np.float64),
        np.array([number for _, _, number in found], dtype=np.intp),
        numbers.unit,
        np.array([-1 if span.accept is None else int(span.accept) for span in spans], dtype=np.intp),
    )


def calib_scores(judged: JudgedPairs, groups: Groups | None, attr: str = "calib", n_bins: int = 10) -> dict[str, Any]:
    """The figures of DESIGN section 6, each raw and calibrated on the same pairs; None where there is nothing to judge.

    groups (Groups | None): Tag groups for GMCE; None (a pipe that is not fitted) gives no GMCE.
    """
    pairs = judged.pairs
    scores: dict[str, Any] = {}
    per_group: dict[str, dict[str, Any]] = {}
    for suffix, values in (("", judged.calibrated), ("_raw", pairs.scores)):
        scores[f"smce{suffix}"] = smce(pairs, values, n_bins)
        errors = [] if groups is None else gmce(pairs, groups, values, n_bins)
        scores[f"gmce{suffix}"] = mean_of(errors)
        for index, error in enumerate(errors):
            per_group.setdefault(groups.names[index], {})[f"gmce{suffix}"] = error  # type: ignore[union-attr]
        scores[f"ece{suffix}"] = ece(pairs, values, n_bins)
        scores[f"brier{suffix}"] = brier(values, pairs.hits)
        scores[f"nll{suffix}"] = log_loss(values, pairs.hits)
    if groups is not None:
        of_pair = groups.of(pairs.tags)
        for index, row in enumerate(per_group.values()):
            row["pairs"] = int(np.count_nonzero(of_pair == index))
            row["tags"] = groups.sizes[index]
    scores["gmce_per_group"] = per_group if len(pairs) and groups is not None else None
    return {f"{attr}_{key}": value for key, value in scores.items()}


class CalibScorer:
    """Scores one calib pipe.

    n_bins (int): Adaptive bins of all errors. n_groups (int | None): Judge by this many tag frequency groups; None judges by the groups
        that the pipe was fitted with.
    RAISES C001: n_bins or n_groups is not a whole number of at least 1.
    """

    def __init__(self, n_bins: int = 10, n_groups: int | None = None):
        self.n_bins = check_count("n_bins", n_bins)
        self.n_groups = None if n_groups is None else check_count("n_groups", n_groups)

    def __call__(
        self,
        examples: Iterable[Example],
        *,
        attr: str = "calib",
        labels: Sequence[str] = (),
        groups: Groups | None = None,
        span_labels: Sequence[str] = (),
        span_groups: Groups | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        examples = list(examples)
        judging = groups and self.judging(groups, labels)
        scores = calib_scores(judge(examples, attr, labels), judging, attr, self.n_bins)
        if span_labels:
            judging = span_groups and self.judging(span_groups, span_labels)
            scores |= calib_scores(judge_spans(examples, attr, span_labels), judging, f"{attr}_ent", self.n_bins)
        return scores

    def judging(self, groups: Groups, labels: Sequence[str]) -> Groups:
        """The groups to judge by: those of the fit, or as many tag frequency groups as were asked for."""
        return groups if self.n_groups is None else regroup_by_frequency(groups, labels, self.n_groups)


def scorer_like(scorer: Any, n_bins: int | None = None, n_groups: int | None = None) -> CalibScorer:
    """A CalibScorer with a pipe's settings, but for those given. scorer (Any): Of the pipe; what it does not set has the default."""
    own_bins, own_groups = getattr(scorer, "n_bins", 10), getattr(scorer, "n_groups", None)
    return CalibScorer(own_bins if n_bins is None else n_bins, own_groups if n_groups is None else n_groups)


def make_calib_scorer(n_bins: int = 10, n_groups: int | None = None) -> Callable[..., Mapping[str, Any]]:
    """Registered as spacy-calib.Scorer.v1.

    n_bins (int): Adaptive bins of all errors. n_groups (int | None): See CalibScorer.
    """
    return CalibScorer(n_bins, n_groups)
