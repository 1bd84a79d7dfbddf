"""What a pipe reads of Docs before it writes on them, and which tokens its cut-offs flag."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.training import Example

from ..calibration.cutoffs import Cutoffs, EntityScores, EntityTypes, RecallCutoffs
from ..calibration.spans import SpanCalibration
from ..calibration.tokens import Calibrated, silent_tokens
from ..corpus.missed import EntityTokens
from ..corpus.scored import ScoredCorpus
from ..doc.annotations import Annotation, Hashes, get_annotation, label_hashes
from ..doc.gold import gold_entities
from ..doc.likeliest import Likeliest
from ..doc.write import CalibratedBatch, CalibratedSpans, Flags
from ..errors import calib_error
from ..pairs.build import Scores
from ..sources.base import Source
from ..types import OUTSIDE, Floats, Groups, Ints, Spans
from .calibrating import CalibratingPipe
from .lookup import SourceLookup


@dataclass(frozen=True)
class Reading:
    """What predict found: the Docs that could be read, by their place in the batch, and their scores; batch is None where none could.

    likeliest (Likeliest | None): What those of them get that carry no label (sources with `sets_labels`).
    """

    places: list[int] = field(default_factory=list)
    batch: CalibratedBatch | None = None
    likeliest: Likeliest | None = None


@dataclass(frozen=True)
class Readable:
    """The Docs with input and annotation, by their place in the batch, and the hash of the label that each of their units (tokens) carries.

    reasons (list[str]): Why others could not be read. Docs without tokens are not named.
    """

    places: list[int]
    hashes: list[Hashes]
    reasons: list[str]


def readable(lookup: SourceLookup, component: Any, annotation: Annotation, docs: Sequence[Doc]) -> Readable:
    """Which Docs the source can read. component: What it reads in its pipeline."""
    readable, source = Readable([], [], []), lookup.pipe.source
    blocker = source.obstacle(lookup.nlp, lookup.name, component)
    reasons = [blocker] * len(docs) if blocker else source.missing(component, docs)
    for i, (doc, why) in enumerate(zip(docs, reasons, strict=True)):
        if annotation.n_units(doc) <= annotation.first:
            continue
        carried = annotation.hashes(doc)
        if not why and not carried.any() and not source.sets_labels:
            why = f"no {annotation.unit} carries a {annotation.gold.name} annotation; put the pipe after the component that sets it, and enable that"
        if why:
            readable.reasons.append(why)
            continue
        readable.places.append(i)
        readable.hashes.append(carried)
    return readable


def calibrated_spans(
    calibration: SpanCalibration, source: Source, spans: Spans, labels: tuple[str, ...], event: str, layer: str, view: Any
) -> CalibratedSpans:
    """The spans that a source found, with the probability that each is right. event (str): When it is. layer (str): See CalibratedSpans. view (Any):
    See Calibrated.
    """
    raw = np.where(spans.chosen, source.raw_span_scores(spans), spans.own)
    return CalibratedSpans(spans, labels, raw, *calibration.calibrate(spans, raw, labels, view), event, layer)


def flags_of(
    cutoffs: RecallCutoffs | None,
    scores: Scores,
    calibrated: Calibrated,
    labels: Sequence[str],
    annotation: Annotation,
    threshold: float,
) -> Flags | None:
    """The flags of all tokens that a source read; None without cut-offs.

    scores (Scores): Of the source. calibrated (Calibrated): Its entries above the threshold. labels (Sequence[str]): Of the columns.
    """
    if cutoffs is None:
        return None
    types, marginals = EntityTypes.of(labels, annotation.prefixed), calibrated.marginals
    n = marginals.n_tokens
    entries = EntityScores(marginals.rows, types.of_label[marginals.tags], calibrated.scores, n, threshold)
    by_key = cutoffs.flags(entries, types)
    flagged = np.any([np.zeros(n, dtype=bool), *by_key.values()], axis=0)
    flagged[silent_tokens(scores, marginals.rows)] = False
    rows = np.flatnonzero(flagged)
    likelihood = _likelihoods(scores, entries, types, rows)
    if cutoffs.per == "label":  # as one of those whose own cut-off says so
        likelihood[~np.array([by_key.get(name, np.zeros(n, dtype=bool))[rows] for name in types.names])] = -1.0
    kinds = likelihood.argmax(axis=0)
    certainty = entries.inside[rows] if cutoffs.per == "all" else likelihood[kinds, np.arange(len(rows))]
    column = flagged.astype(np.int8)
    column[silent_tokens(scores, marginals.rows)] = -1
    return Flags(column, rows, types.names, kinds, certainty)


def _likelihoods(scores: Scores, entries: EntityScores, types: EntityTypes, rows: Ints) -> Floats:
    """P(type) of each type at some tokens, shape (n_types, len(rows)): calibrated where the type has an entry, else the raw one, which is below the
    threshold.
    """
    found = np.zeros((len(types.names), len(rows)))
    for column, kind in enumerate(types.of_label.tolist()):
        if kind >= 0:
            found[kind] += scores.at(rows, np.full(len(rows), column))
    for kind in range(len(types.names)):
        found[kind] = np.where(entries.has(kind)[rows], entries.of_type(kind)[rows], found[kind])
    return found


def entity_tokens(pipe: CalibratingPipe, examples: Sequence[Example], corpus: ScoredCorpus) -> EntityTokens:
    """The tokens of gold examples as to entities. corpus (ScoredCorpus): What the pipe said of them. RAISES C308: the pipe gives no P(O)."""
    labels = pipe.lookup.labels()
    if OUTSIDE not in labels or not pipe.source.distributions:
        raise calib_error("C308", name=pipe.name, component=pipe.source.component or "the source")
    annotation = get_annotation(pipe.fit_info.layer)
    return EntityTokens.of(corpus, labels, annotation.prefixed, pipe.threshold, gold_entities(examples, annotation))


def accepted_labels(cutoffs: Cutoffs, batch: CalibratedBatch, groups: Groups) -> NDArray[np.int8]:
    """Whether the label that each unit carries reaches its cut-off: 1 or 0, -1 where it has no score. groups (Groups): Of the labels."""
    calibrated, below = batch.calibrated, batch.calibrated.below
    marginals = calibrated.marginals
    scores, columns = np.full(marginals.n_tokens, np.nan), np.zeros(marginals.n_tokens, dtype=np.intp)
    own = label_hashes(batch.labels)[marginals.tags] == batch.carried[marginals.rows]
    scores[marginals.rows[own]], columns[marginals.rows[own]] = calibrated.scores[own], marginals.tags[own]
    if below is not None:
        scores[below.marginals.rows], columns[below.marginals.rows] = below.scores, below.marginals.tags
    accepted = cutoffs.accepts(scores, columns, batch.labels, groups)  # False where there is no score
    return np.where(np.isnan(scores), -1, accepted).astype(np.int8)
