"""What a fitted pipe keeps of its fit documents: what to expect of others, and salted digests of their texts, no text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...calibration.span_fit import SpanData, SpanFit
from ...pairs.build import JudgedPairs, interleave, top_pairs
from ...schema import Saved, kept, keyed, maybe, number
from ...types import OUTSIDE, Floats, Ints
from .drift import DriftProfile, Labelled
from .effects import Effects, between_sources, effects_of_labels, of_new_source, source_sums, with_missed, with_widths
from .estimates import EntityModel, EntitySums, Residuals, Sums, sum_by, token_sums


@dataclass(frozen=True)
class FitRecord(Saved):
    """What is kept of the fit documents.

    tokens (Residuals): Of right tokens. accuracy (float): Of the fit tokens. entities (EntityModel | None): None for a source
    without spans. profile (DriftProfile): What new documents are compared with. effects (dict): Label -> how its numbers vary.
    between (float): Variance of the shift of log-odds of right tokens in a source that nobody knows; 0 for a fit on one source.
    """

    tokens: Residuals = kept(Residuals.of_kinds(1))
    accuracy: float = kept(number(0.0, 1.0))
    entities: EntityModel | None = kept(maybe(EntityModel.read))
    profile: DriftProfile = kept(DriftProfile.read)
    effects: dict[str, Effects] = kept(keyed(Effects.read), dict)
    between: float = kept(number(0.0), 0.0)


def _labelled(judged: JudgedPairs, n_docs: int, labels: Sequence[str]) -> tuple[Labelled, Ints]:
    """(the likeliest pair of each token, in the order of the text; the index of these pairs)."""
    top = np.sort(top_pairs(judged.pairs))
    names = np.array([*labels, ""], dtype=object)[:-1][judged.pairs.tags[top]]
    raw, calibrated = judged.pairs.scores[top], judged.calibrated[top]
    return Labelled(judged.documents[top], n_docs, names.tolist(), raw, calibrated), top


def record_fit(
    judged: JudgedPairs,
    n_docs: int,
    labels: Sequence[str],
    found_spans: SpanFit | None = None,
    unjudged: JudgedPairs | None = None,
    gold: Ints | None = None,
    of_sources: Ints | None = None,
) -> FitRecord | None:
    """Learn from the tokens of the fit data, scored by maps that did not see their documents.

    judged (JudgedPairs): Tokens with gold. n_docs (int): Documents, with tokens or without. labels (Sequence[str]): Of
        the tags. found_spans (SpanFit | None): None for a source without spans. unjudged (JudgedPairs | None): Tokens without
        gold, for the comparison with new documents, where all tokens count. gold (Ints | None): Column of each token's
        gold label, negative for none; None leaves out tokens without a score of it. of_sources (Ints | None): Source of
        each document's gold, -1 without a name; None for one source.
    RETURNS (FitRecord | None): None where fewer than two documents have tokens, so that their differences are unknown.
    """
    pairs = judged.pairs
    tokens, top = _labelled(judged, n_docs, labels)
    if len(np.unique(tokens.documents)) < 2:
        return None
    sums = token_sums(tokens.calibrated, tokens.documents, n_docs)
    right = sum_by(tokens.documents, pairs.hits[top], n_docs)[:, None]
    entities = spans = None
    if found_spans is not None:
        document_of_span = found_spans.data.known_documents
        spans = Labelled(document_of_span, n_docs, None, found_spans.data.pairs.scores, found_spans.held_out)
        n_right = sum_by(document_of_span, found_spans.data.pairs.hits, n_docs)
        entities = EntityModel.fit(entity_sums(tokens, spans), n_right, found_spans.data.gold.astype(np.float64))
    all_tokens = tokens
    if unjudged is not None:  # the pairs of both, in the order of the text
        all_pairs, order = interleave(pairs, unjudged.pairs)
        scores = np.concatenate([judged.calibrated, unjudged.calibrated])[order]
        documents = np.concatenate([judged.documents, unjudged.documents])[order]
        all_tokens = _labelled(JudgedPairs(all_pairs, scores, documents), n_docs, labels)[0]
    profile = DriftProfile.of(all_tokens, None if found_spans is None else _all_spans(found_spans.data, n_docs))
    effects = effects_of_labels(judged.calibrated, pairs.hits.astype(np.float64), judged.documents, pairs.tags, labels)
    if gold is not None:
        rows, first = np.unique(pairs.rows, return_index=True)
        documents, columns = judged.documents[first], gold[rows]
        has_label = (columns >= 0) & (columns < len(labels))
        is_missed = has_label & ~np.isin(rows, pairs.rows[pairs.hits])
        effects = with_missed(effects, columns[is_missed], documents[is_missed], sum_by(documents, None, n_docs), labels)
        source_of_document = np.zeros(n_docs, dtype=np.intp) if of_sources is None else of_sources
        sums_by_source = source_sums(
            judged.calibrated,
            judged.documents,
            pairs.tags,
            top,
            (documents[has_label], columns[has_label]),
            source_of_document,
            len(labels),
        )
        effects = with_widths(effects, sums_by_source, labels)
    residuals = Residuals.of(right, sums)
    source_variance = 0.0 if of_sources is None else _between(residuals, right[:, 0], sums, of_sources)
    return FitRecord(residuals, float(pairs.hits[top].mean()), entities, profile, effects, source_variance)


def _between(residuals: Residuals, right: Floats, sums: Sums, of_sources: Ints) -> float:
    """`FitRecord.between`. right (Floats): Right tokens of each document. of_sources (Ints): Its source."""
    names, places = np.unique(of_sources, return_inverse=True)
    n, opens = len(names), sums.independent[:, 0]
    errors, opens_by_source, squares = (
        sum_by(places, values, n) for values in (right - sums.expected[:, 0], opens, np.square(sums.units))
    )
    return (
        between_sources(errors, opens_by_source, opens_by_source + residuals.shift_variance(np.ones(1)) * squares)
        * of_new_source(n) ** 2
    )


def _all_spans(data: SpanData, n_docs: int) -> Labelled:
    """All spans on the Docs, with gold or without, to be compared by their raw scores."""
    index = np.flatnonzero(data.spans.chosen)
    return Labelled(data.documents[index], n_docs, None, data.raw[index], data.raw[index])


def entity_sums(tokens: Labelled, spans: Labelled) -> EntitySums:
    """For each document the sums that give the expected numbers of entities."""
    n_docs = tokens.n_docs
    is_outside: NDArray[np.bool_] = np.array(tokens.labels or (), dtype=object) == OUTSIDE
    p = spans.calibrated
    return EntitySums(
        sum_by(spans.documents, None, n_docs),
        sum_by(spans.documents, p, n_docs),
        sum_by(spans.documents, p * (1 - p), n_docs),
        sum_by(tokens.documents[is_outside], 1 - tokens.calibrated[is_outside], n_docs),
        sum_by(tokens.documents, None, n_docs),
    )
