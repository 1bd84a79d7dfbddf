"""Scores of a pipe on documents with gold: the data of every table, page and diagram."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from spacy.training import Example

from ..annotations import Annotation, count_misaligned, get_annotation
from ..calibration.conventions import find_conventions
from ..calibration.missed import rows_of
from ..gold.reading import texts_of
from ..pairs.build import JudgedPairs
from ..pairs.documents import TOKEN
from ..pairs.scored_corpus import ScoredCorpus, ScoredSpans
from ..sources.mapped import map_of, with_map
from ..types import Groups
from .fit_inputs import may_differ
from .gold_entities import entity_tokens
from .scorer import CalibScorer, scorer_like

if TYPE_CHECKING:
    from .component import Calibrator
    from .fit_inputs import FitInputs


@dataclass(frozen=True, eq=False, kw_only=True)
class PipeScores:
    """Scores of one pipe with gold, and what tables show with them.

    name, component, layer, event (str), threshold (float), labels, span_labels: Of the pipe.
    fitted (bool): Whether the pipe is fitted; if not, calibrated scores are the raw ones.
    tokens (JudgedPairs): Pairs of tokens, or of documents. spans (JudgedPairs | None): Of entities; None without entities.
    groups, span_groups (Groups), scorer (CalibScorer): How tokens and spans are evaluated.
    overlap (dict | None): Overlap with the fit data. weights_changed (bool | None): Whether the component has other weights
        than at the fit; None if unknown.
    accepted (dict | None): Spans that precision cut-offs accept. flagged (list | None): Tokens that recall cut-offs flag.
    misaligned_tokens (dict | None): Numbers of tokens that align with no single gold token; None for documents.
    without_map (Mapping[str, int]): Label without a recalibrator -> number of its predictions.
    """

    name: str
    component: str
    layer: str
    event: str
    threshold: float
    labels: Sequence[str]
    tokens: JudgedPairs
    groups: Groups
    scorer: CalibScorer
    fitted: bool = True
    span_labels: Sequence[str] = ()
    spans: JudgedPairs | None = None
    span_groups: Groups | None = None
    overlap: dict[str, Any] | None = None
    weights_changed: bool | None = None
    accepted: dict[str, Any] | None = None
    flagged: list[dict[str, Any]] | None = None
    misaligned_tokens: dict[str, int] | None = None
    without_map: Mapping[str, int] = field(default_factory=dict)

    @property
    def annotation(self) -> Annotation:
        return get_annotation(self.layer)

    @property
    def has_gold(self) -> bool:
        """Whether there is a pair with gold."""
        return bool(len(self.tokens) or (self.spans is not None and len(self.spans)))


def evaluate_scores(pipe: Calibrator, examples: Sequence[Example], corpus: ScoredCorpus) -> PipeScores:
    """Compare with gold what a fitted pipe wrote on predicted Docs.

    corpus (ScoredCorpus): From `corpus_of`.
    RAISES C308: the pipe has recall cut-offs, but its component gives no P(O) any more.
    """
    assert pipe.groups is not None
    span_labels, recall, flagged_tokens = tuple(pipe.lookup.span_labels()), pipe.tokens.recall_cutoffs, None
    annotation, overlap = get_annotation(pipe.fit_info.layer), None
    if recall is not None:  # needs scores
        rows = rows_of(entity_tokens(pipe, examples, corpus), recall) if len(corpus) else []
        flagged_tokens = [{"wanted": recall.recall, **row} for row in rows]
    if pipe.learned.seen_texts is not None:
        share = pipe.learned.seen_texts.overlap_with(texts_of(annotation, examples))
        overlap = None if share is None else share.to_dict()
    return PipeScores(
        name=pipe.name,
        component=pipe.source.component,
        layer=pipe.fit_info.layer,
        event=pipe.fit_info.span_event,
        threshold=pipe.threshold,
        labels=tuple(pipe.lookup.labels()),
        tokens=corpus.pairs(),
        groups=pipe.groups,
        scorer=scorer_like(pipe.scorer),
        span_labels=span_labels,
        spans=None if pipe.spans.groups is None else corpus.span_pairs(span_labels),
        span_groups=pipe.spans.groups,
        overlap=overlap,
        weights_changed=pipe.lookup.weights_changed(),
        accepted=None if pipe.spans.cutoffs is None else _accepted_spans(corpus.spans, pipe.spans.cutoffs.precision),
        flagged=flagged_tokens,
        misaligned_tokens=misaligned_tokens(annotation, examples),
        without_map=count_without_map(pipe, examples),
    )


def count_without_map(pipe: Calibrator, examples: Iterable[Example]) -> dict[str, int]:
    """Count predictions whose label has no counterpart in the gold and so no recalibrator, the most frequent label first."""
    annotation = with_map(pipe.source, None).annotation(pipe.lookup.component())
    unmapped = {label for label, counterpart in (map_of(pipe.source) or {}).items() if not counterpart}
    docs = [example.predicted for example in examples] if unmapped else []
    if annotation.of_entities:
        counts = Counter(span.label_ for doc in docs for span in annotation.spans_on(doc))
    else:
        counts = Counter(annotation.label_at(doc, row) for doc in docs for row in range(annotation.n_units(doc)))
    return {label: n for label, n in counts.most_common() if label in unmapped}


def evaluate_raw_scores(pipe: Calibrator, inputs: FitInputs, examples: Sequence[Example]) -> PipeScores:
    """Compare with gold the raw scores of a pipe that is not fitted. inputs (FitInputs): Read from the examples."""
    spans = inputs.spans
    return PipeScores(
        name=pipe.name,
        component=pipe.source.component,
        layer=inputs.source.annotation.name,
        event=inputs.source.annotation.span_event or pipe.event,
        threshold=pipe.threshold,
        labels=inputs.source.labels,
        tokens=inputs.judged_pairs(inputs.data.kept_pairs.scores),
        groups=inputs.groups(pipe.grouping),
        scorer=scorer_like(pipe.scorer),
        fitted=False,
        span_labels=inputs.source.span_labels,
        spans=None if spans is None else spans.pairs_with(spans.pairs.scores, inputs.unit),
        span_groups=None if spans is None else inputs.span_groups(),
        misaligned_tokens=misaligned_tokens(inputs.source.annotation, examples),
    )


def misaligned_tokens(annotation: Annotation, examples: Iterable[Example]) -> dict[str, int] | None:
    """Count predicted tokens that align with no single gold token; None if the labels are of documents."""
    return count_misaligned(annotation.gold, examples) if annotation.unit == TOKEN else None


def find_gold_conventions(pipe: Calibrator, corpus: ScoredCorpus) -> list[dict[str, Any]]:
    """Find labels on which a fitted pipe and this gold follow different conventions, as `FitInfo.conventions`."""
    if not may_differ(pipe, get_annotation(pipe.fit_info.layer)):
        return []
    labels, pairs = pipe.lookup.labels(), corpus.pairs().pairs
    # The first names of a corpus are the labels, by column.
    gold = np.where(corpus.gold < len(labels), np.where(corpus.gold < 0, -2, corpus.gold), -1)
    files = np.zeros(len(pairs), dtype=np.intp)
    return [convention.to_dict(labels) for convention in find_conventions(pairs, gold, files)]


def _accepted_spans(spans: ScoredSpans, precision: float) -> dict[str, Any]:
    """Count the spans with gold that cut-offs accept, and the right ones among them."""
    with_gold = spans.right >= 0
    hits = spans.right[with_gold][spans.accept[with_gold] == 1]
    n_kept, n_spans = len(hits), int(with_gold.sum())
    return {
        "wanted": precision,
        "kept": n_kept,
        "share": n_kept / n_spans if n_spans else None,
        "precision": int(hits.sum()) / n_kept if n_kept else None,
    }
