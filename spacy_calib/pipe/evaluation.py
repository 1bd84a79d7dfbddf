"""What a pipe says of documents with gold, judged: the figures behind every table, page and picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
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
class Judged:
    """Scores of one pipe with gold, and what tables show besides.

    name, component, layer, event (str), threshold (float), labels, span_labels: Of the pipe.
    fitted (bool): Whether the pipe is fitted; without a fit raw scores take the place of calibrated ones.
    tokens (JudgedPairs): Pairs of tokens, or of documents. spans (JudgedPairs | None): Of entities; None for tokens alone.
    groups, span_groups, scorer: How tokens and spans are evaluated. seen (dict | None): Overlap with the fit data.
    weights_changed (bool | None): Whether the model's weights are others than at the fit; None if unknown.
    accepted (dict | None): What cut-offs of precision accept. flagged (list | None): What those of recall flag.
    events (Sequence[Callable]): The `event_table` of each pipe that reads the scores: (n_bins, seed) -> table. misaligned (dict | None): See `count_misaligned`; None for documents.
    without_map (Mapping[str, int]): See `count_without_map`.
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
    seen: dict[str, Any] | None = None
    weights_changed: bool | None = None
    accepted: dict[str, Any] | None = None
    flagged: list[dict[str, Any]] | None = None
    events: Sequence[Callable[[int, int], dict[str, Any]]] = ()
    misaligned: dict[str, int] | None = None
    without_map: Mapping[str, int] = field(default_factory=dict)

    @property
    def annotation(self) -> Annotation:
        """What the labels are of."""
        return get_annotation(self.layer)

    @property
    def anything(self) -> bool:
        """Whether there is a pair with gold."""
        return bool(len(self.tokens) or (self.spans is not None and len(self.spans)))


def judge_pipe(pipe: Calibrator, readers: Sequence[Any], examples: Sequence[Example], corpus: ScoredCorpus) -> Judged:
    """Compare with gold what a fitted pipe wrote on predicted Docs.

    readers (Sequence): Pipes that read its scores, see `score_readers`. corpus (ScoredCorpus): What the pipe wrote, by `corpus_of`.
    RAISES C308: the pipe has cut-offs that bound misses, but its component gives no P(O) any more.
    """
    assert pipe.groups is not None
    span_labels, recall, flagged_tokens = tuple(pipe.lookup.span_labels()), pipe.tokens.recall_cutoffs, None
    annotation, overlap = get_annotation(pipe.fit_info.layer), None
    if recall is not None:  # they find nothing where the pipe said nothing
        rows = rows_of(entity_tokens(pipe, examples, corpus), recall) if len(corpus) else []
        flagged_tokens = [{"wanted": recall.recall, **row} for row in rows]
    if pipe.learned.seen is not None:
        share = pipe.learned.seen.overlap_with(texts_of(annotation, examples))
        overlap = None if share is None else share.to_dict()
    return Judged(
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
        seen=overlap,
        weights_changed=pipe.lookup.weights_changed(),
        accepted=None if pipe.spans.cutoffs is None else _accepted(corpus.spans, pipe.spans.cutoffs.precision),
        flagged=flagged_tokens,
        events=[partial(reader.event_table, examples) for reader in readers if hasattr(reader, "event_table")],
        misaligned=misaligned(annotation, examples),
        without_map=count_without_map(pipe, examples),
    )


def count_without_map(pipe: Calibrator, examples: Iterable[Example]) -> dict[str, int]:
    """Count the predictions with a label that has no counterpart in the gold, and so no map; the most frequent label first."""
    annotation = with_map(pipe.source, None).annotation(pipe.lookup.component())
    dropped = {label for label, other in (map_of(pipe.source) or {}).items() if not other}
    docs = [example.predicted for example in examples] if dropped else []
    if annotation.of_entities:
        found = Counter(span.label_ for doc in docs for span in annotation.spans_on(doc))
    else:
        found = Counter(annotation.label_at(doc, row) for doc in docs for row in range(annotation.n_units(doc)))
    return {label: n for label, n in found.most_common() if label in dropped}


def judge_unfitted(pipe: Calibrator, inputs: FitInputs, examples: Sequence[Example]) -> Judged:
    """Compare the raw scores of a pipe that is not fitted with gold. inputs (FitInputs): Read from the examples."""
    spans = inputs.spans
    return Judged(
        name=pipe.name,
        component=pipe.source.component,
        layer=inputs.source.annotation.name,
        event=inputs.source.annotation.span_event or pipe.event,
        threshold=pipe.threshold,
        labels=inputs.source.labels,
        tokens=inputs.judged(inputs.data.kept_pairs.scores),
        groups=inputs.groups(pipe.grouping),
        scorer=scorer_like(pipe.scorer),
        fitted=False,
        span_labels=inputs.source.span_labels,
        spans=None if spans is None else spans.pairs_with(spans.pairs.scores, inputs.unit),
        span_groups=None if spans is None else inputs.span_groups(),
        misaligned=misaligned(inputs.source.annotation, examples),
    )


def misaligned(annotation: Annotation, examples: Iterable[Example]) -> dict[str, int] | None:
    """How many predicted tokens align with no single gold one; None where it is documents that have labels."""
    return count_misaligned(annotation.gold, examples) if annotation.unit == TOKEN else None


def conventions_met(pipe: Calibrator, corpus: ScoredCorpus) -> list[dict[str, Any]]:
    """Find labels on which a fitted pipe and this gold differ by convention, by its raw scores; see `FitInfo.conventions`."""
    if not may_differ(pipe, get_annotation(pipe.fit_info.layer)):
        return []
    labels, pairs = pipe.lookup.labels(), corpus.pairs().pairs
    # The first names are the labels, by column.
    gold = np.where(corpus.gold < len(labels), np.where(corpus.gold < 0, -2, corpus.gold), -1)
    files = np.zeros(len(pairs), dtype=np.intp)
    return [convention.to_dict(labels) for convention in find_conventions(pairs, gold, files)]


def _accepted(spans: ScoredSpans, precision: float) -> dict[str, Any]:
    """How many spans with gold cut-offs keep, and how many of these are right."""
    with_gold = spans.right >= 0
    hits = spans.right[with_gold][spans.accept[with_gold] == 1]
    n_kept, n_spans = len(hits), int(with_gold.sum())
    return {
        "wanted": precision,
        "kept": n_kept,
        "share": n_kept / n_spans if n_spans else None,
        "precision": int(hits.sum()) / n_kept if n_kept else None,
    }
