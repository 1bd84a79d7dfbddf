"""Scores of a pipe on documents with gold: the data of every table, page and diagram, and cut-offs found on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from spacy.training import Example

from ..annotations import Annotation, count_misaligned, get_annotation
from ..calibration.conventions import find_conventions
from ..calibration.cutoffs import Cutoffs, RecallCutoffs, keys_of
from ..calibration.missed import EntityTokens, GoldEntities, review_of, rows_of
from ..calibration.thresholds import Threshold, find_thresholds, highest_reached
from ..errors import calib_error
from ..gold.reading import texts_of
from ..pairs.build import JudgedPairs
from ..pairs.documents import TOKEN
from ..pairs.scored_corpus import ScoredCorpus, ScoredSpans
from ..sources.mapped import map_of, with_map
from ..types import OUTSIDE, Groups
from .fitting import may_differ
from .scorer import CalibScorer, scorer_like

if TYPE_CHECKING:
    from .component import Calibrator
    from .fitting import FitInputs


def entity_tokens(pipe: Calibrator, examples: Sequence[Example], corpus: ScoredCorpus) -> EntityTokens:
    """Return the tokens of gold examples with their entities, for recall cut-offs. RAISES C308: the pipe gives no P(O)."""
    labels = pipe.lookup.labels()
    if OUTSIDE not in labels or not pipe.source.distributions:
        raise calib_error("C308", name=pipe.name, component=pipe.source.component or "the source")
    annotation = get_annotation(pipe.fit_info.layer)
    return EntityTokens.from_corpus(
        corpus, labels, annotation.has_prefixes, pipe.threshold, gold_entities(examples, annotation)
    )


def gold_entities(examples: Iterable[Example], annotation: Annotation) -> GoldEntities:
    """Return the gold entities (or spans) by predicted token, numbered across Docs; those without a token are left out."""
    starts, ends, labels, first = [], [], [], 0
    for example in examples:
        alignment = example.alignment.y2x
        for span in annotation.gold.spans_on(example.reference):
            tokens = alignment[span.start : span.end]
            if len(tokens):
                starts.append(first + int(tokens.min()))
                ends.append(first + int(tokens.max()) + 1)
                labels.append(span.label_)
        first += len(example.predicted)
    return GoldEntities(np.array(starts, dtype=np.intp), np.array(ends, dtype=np.intp), labels)


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


def precision_cutoffs(
    pipe: Calibrator, corpus: ScoredCorpus, precision: float, confidence: float, per: str
) -> tuple[Cutoffs, dict[str, Any]]:
    """Find the cut-offs for a precision: of documents or links if the pipe has a row for each, else of entities.

    RETURNS (tuple): The cut-offs; a dict with "event" (None for documents), the fields of `Cutoffs.state`, and "rows": for each
        key the accepted predictions and, if the precision is not reached, the "highest" one that is.
    """
    entities = pipe.spans.groups is not None
    event = pipe.fit_info.span_event or get_annotation(pipe.fit_info.layer).span_event or None
    groups = pipe.spans.groups or pipe.groups
    assert groups is not None
    labels = pipe.lookup.span_labels() if entities else pipe.lookup.labels()
    judged_pairs = corpus.span_pairs(labels) if entities else corpus.predicted_pairs()
    keys = keys_of(per, judged_pairs.pairs.tags, labels, groups)
    scores, hits, documents = judged_pairs.calibrated, judged_pairs.pairs.hits, judged_pairs.documents
    thresholds = find_thresholds(scores, hits, documents, keys, precision, confidence)
    row_keys: Sequence[str] = {"all": ["all"], "label": labels, "group": groups.names}[per]
    rows: dict[str, dict[str, Any]] = {}
    key_of_pair = np.array(keys, dtype=object)
    for key in dict.fromkeys([*row_keys, *thresholds]):
        threshold, highest = thresholds.get(key, Threshold(None, 0)), None
        if threshold.cutoff is None:
            index = np.flatnonzero(key_of_pair == key)
            best = highest_reached(scores[index], hits[index], documents[index], precision, confidence)
            highest = best and {"precision": best[0], "kept": best[1].kept, "share": best[1].share}
        figures = {name: getattr(threshold, name) for name in ("kept", "share", "precision", "low", "high")}
        unit = "entities" if event else "documents"
        rows[key] = {"key": key, "cutoff": threshold.cutoff, unit: threshold.spans, **figures, "highest": highest}
    cutoffs = Cutoffs(precision, confidence, per, {key: row["cutoff"] for key, row in rows.items()})
    return cutoffs, {"event": event, **cutoffs.state(), "rows": list(rows.values())}


def parts_for_review(
    pipe: Calibrator, corpus: ScoredCorpus, tokens: EntityTokens, accepting: Cutoffs, flagging: RecallCutoffs
) -> dict[str, Any]:
    """Split the tokens of a corpus into accepted, reviewed and dropped ones, as `calibration.missed.review_of` returns them.

    "accept" also has the number of accepted "entities" with gold, and of "right" ones.
    """
    labels, spans = pipe.lookup.span_labels(), corpus.spans
    assert pipe.spans.groups is not None
    column = {label: i for i, label in enumerate(labels)}
    columns = np.array([column.get(name, -1) for name in corpus.names], dtype=np.intp)[spans.labels]
    index = np.flatnonzero(accepting.accepts(spans.calibrated, columns, labels, pipe.spans.groups))
    is_accepted, first = np.zeros(len(corpus), dtype=bool), corpus.doc_starts[spans.docs[index]]
    for start, end in zip((first + spans.starts[index]).tolist(), (first + spans.ends[index]).tolist(), strict=True):
        is_accepted[start:end] = True
    is_flagged = np.any(list(tokens.flag(flagging).values()), axis=0)
    right = spans.right[index][spans.right[index] >= 0]
    parts: dict[str, Any] = review_of(tokens, is_flagged, is_accepted)
    parts["accept"] |= {"entities": len(right), "right": int(right.sum())}
    return parts
