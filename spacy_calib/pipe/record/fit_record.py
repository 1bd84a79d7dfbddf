"""The record of its fit data that a pipe saves, to estimate accuracies on new texts and to detect drift; it has no texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...calibration.span_fit import SpanData, SpanFit
from ...pairs.pairing import JudgedPairs, interleave, top_pairs
from ...schema import Serializable, maybe, number, saved_field
from ...types import OUTSIDE, Floats, Ints
from ..saved import dump, read
from .drift import DriftProfile, UnitScores
from .estimates import EntityModel, EntitySums, EventSums, Residuals, sum_by, token_sums, variance_between_sources

if TYPE_CHECKING:
    from ..component import Calibrator

_RECORD = "spacy-calib record"  # name of the form of a saved record


@dataclass(frozen=True)
class FitRecord(Serializable):
    """Statistics of the fit documents that a pipe saves.

    tokens (Residuals): Residuals of the number of right tokens. accuracy (float): Accuracy on the fit data. entities
    (EntityModel | None): Model of right and missed entities; None for a source without spans. profile (DriftProfile | None):
    For drift; None for too few documents. source_variance (float): From `variance_between_sources`; 0 for gold of one source.
    """

    tokens: Residuals = saved_field(Residuals.of_kinds(1))
    accuracy: float = saved_field(number(0.0, 1.0))
    entities: EntityModel | None = saved_field(maybe(EntityModel.read))
    profile: DriftProfile | None = saved_field(maybe(DriftProfile.read))
    source_variance: float = saved_field(number(0.0), 0.0)

    def to_bytes(self) -> bytes:
        """Return the record as bytes, which a pipe saves and `read_record` reads."""
        return dump(self.state(), _RECORD)


def read_record(pipe: Calibrator) -> FitRecord | None:
    """Read the FitRecord that a pipe has saved; None for a pipe without one. RAISES C010, C011: it cannot be read."""
    return None if pipe.learned.record is None else _read_bytes(pipe.learned.record, pipe.name)


@lru_cache(maxsize=8)
def _read_bytes(data: bytes, name: str) -> FitRecord:
    return read(data, partial(FitRecord.read, where="record"), name=name, path="the record of its fit", form=_RECORD)


def _top_label_scores(judged_pairs: JudgedPairs, n_docs: int, labels: Sequence[str]) -> tuple[UnitScores, Ints]:
    """Return (the highest-scored label of each token, in text order; the indices of these pairs). labels: Tags by column."""
    top = np.sort(top_pairs(judged_pairs.pairs))
    names = np.array([*labels], dtype=object)[judged_pairs.pairs.tags[top]]
    raw, calibrated = judged_pairs.pairs.scores[top], judged_pairs.calibrated[top]
    return UnitScores(judged_pairs.documents[top], n_docs, names.tolist(), raw, calibrated), top


def record_fit(
    judged_pairs: JudgedPairs,
    n_docs: int,
    labels: Sequence[str],
    span_fit: SpanFit | None = None,
    unlabelled_pairs: JudgedPairs | None = None,
    sources: Ints | None = None,
) -> FitRecord | None:
    """Summarize the out-of-fold scores of the fit data.

    judged_pairs (JudgedPairs): Pairs of tokens with gold. n_docs (int): Number of documents, including those without tokens.
    labels (Sequence[str]): Tags by column. span_fit (SpanFit | None): The fitted spans; None for a source without spans.
    unlabelled_pairs (JudgedPairs | None): Pairs of tokens without gold, since drift compares all tokens.
    sources (Ints | None): Number of each document's source (gold file); None for one source.
    RETURNS (FitRecord | None): None if fewer than two documents have tokens: their variation is unknown.
    """
    tokens, top = _top_label_scores(judged_pairs, n_docs, labels)
    if len(np.unique(tokens.documents)) < 2:
        return None
    sums = token_sums(tokens.calibrated, tokens.documents, n_docs)
    right = sum_by(tokens.documents, judged_pairs.pairs.hits[top], n_docs)[:, None]
    residuals = Residuals.from_events(right, sums)
    all_pairs = judged_pairs if unlabelled_pairs is None else _merge_pairs(judged_pairs, unlabelled_pairs)
    all_tokens = _top_label_scores(all_pairs, n_docs, labels)[0]
    return FitRecord(
        tokens=residuals,
        accuracy=float(judged_pairs.pairs.hits[top].mean()),
        entities=None if span_fit is None else _fit_entities(tokens, span_fit, n_docs),
        profile=DriftProfile.from_units(all_tokens, None if span_fit is None else _spans_on_docs(span_fit.data, n_docs)),
        source_variance=0.0 if sources is None else _source_variance(residuals, right[:, 0], sums, sources),
    )


def _fit_entities(tokens: UnitScores, span_fit: SpanFit, n_docs: int) -> EntityModel:
    """Fit the model of right and missed entities to spans with gold. tokens (UnitScores): Top label and score of each token."""
    documents, pairs = span_fit.data.known_documents, span_fit.data.pairs
    spans = UnitScores(documents, n_docs, None, pairs.scores, span_fit.held_out)
    n_right = sum_by(documents, pairs.hits, n_docs)
    return EntityModel.fit(entity_sums(tokens, spans), n_right, span_fit.data.gold.astype(np.float64))


def _merge_pairs(judged_pairs: JudgedPairs, unlabelled_pairs: JudgedPairs) -> JudgedPairs:
    """Merge the pairs of tokens with gold (judged_pairs) and of those without, in text order."""
    pairs, order = interleave(judged_pairs.pairs, unlabelled_pairs.pairs)
    scores = np.concatenate([judged_pairs.calibrated, unlabelled_pairs.calibrated])[order]
    return JudgedPairs(pairs, scores, np.concatenate([judged_pairs.documents, unlabelled_pairs.documents])[order])


def _source_variance(residuals: Residuals, right: Floats, sums: EventSums, sources: Ints) -> float:
    """Estimate the variance between sources. right, sums: Right and expected tokens by document. sources: Source of each."""
    numbers, source_indices = np.unique(sources, return_inverse=True)
    by_document = (right - sums.expected[:, 0], sums.independent[:, 0], np.square(sums.units))
    errors, variances, squares = (sum_by(source_indices, values, len(numbers)) for values in by_document)  # by source
    noise = variances + residuals.shift_variance(np.ones(1)) * squares
    return variance_between_sources(errors, variances, noise)


def _spans_on_docs(data: SpanData, n_docs: int) -> UnitScores:
    """Return the predicted spans of n_docs documents, with or without gold. Both scores are raw: drift compares no others."""
    index = np.flatnonzero(data.spans.on_doc)
    return UnitScores(data.documents[index], n_docs, None, data.raw[index], data.raw[index])


def entity_sums(tokens: UnitScores, spans: UnitScores) -> EntitySums:
    """Sum by document the scores of entities (spans) and of tokens predicted as O. tokens: Top label of each token."""
    n_docs, p = tokens.n_docs, spans.calibrated
    is_outside: NDArray[np.bool_] = np.array(tokens.labels or (), dtype=object) == OUTSIDE
    return EntitySums(
        predicted=sum_by(spans.documents, None, n_docs),
        right=sum_by(spans.documents, p, n_docs),
        spread=sum_by(spans.documents, p * (1 - p), n_docs),
        missed_tokens=sum_by(tokens.documents[is_outside], 1 - tokens.calibrated[is_outside], n_docs),
        units=sum_by(tokens.documents, None, n_docs),
    )
