"""What a fitted pipe remembers of its fit documents, to say later what to expect of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..calibration.span_fit import SpanData
from ..pairs.build import JudgedPairs, interleave, top_pairs
from ..schema import Saved, kept, keyed, later, maybe, number
from ..types import OUTSIDE, Floats, Ints
from .drift import DriftProfile, Labelled
from .effects import (
    Effects,
    between_sources,
    effects_of_labels,
    of_new_source,
    source_sums,
    with_missed,
    with_widths,
)
from .estimates import EntityModel, EntitySums, Residuals, Sums, sum_by, token_sums


class FoundSpans(Protocol):
    """The spans of labelled documents: a `SpanFit`, or an adapter of one."""

    @property
    def data(self) -> SpanData: ...

    @property
    def held_out(self) -> Floats:
        """The score of each span of `data.known` by maps that did not see its document."""


@dataclass(frozen=True)
class FitRecord(Saved):
    """What is kept of the fit documents.

    tokens (Residuals): Of right tokens. accuracy (float): Of the fit tokens. entities (EntityModel | None): None for a
    source without spans. profile (DriftProfile): What new documents are compared with. effects (dict): Label -> how its
    numbers vary; empty in older fits. between (float): Variance of the shift of log-odds of right tokens in a source
    that nobody knows; 0 for a fit on one source.
    """

    tokens: Residuals = kept(Residuals.of_kinds(1))
    accuracy: float = kept(number(0.0, 1.0))
    entities: EntityModel | None = kept(maybe(EntityModel.read))
    profile: DriftProfile = kept(DriftProfile.read)
    effects: dict[str, Effects] = later(keyed(Effects.read), dict)
    between: float = later(number(0.0), 0.0)


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
    found: FoundSpans | None = None,
    unjudged: JudgedPairs | None = None,
    gold: Ints | None = None,
    of_sources: Ints | None = None,
) -> FitRecord | None:
    """Learn from the tokens of the fit data, scored by maps that did not see their documents.

    judged (JudgedPairs): Tokens with gold. n_docs (int): Documents, with tokens or without. labels (Sequence[str]): Of
        the tags. found (SpanFit | None): None for a source without spans. unjudged (JudgedPairs | None): Tokens without
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
    if found is not None:
        known = found.data.documents[found.data.known]
        spans = Labelled(known, n_docs, None, found.data.pairs.scores, found.held_out)
        n_right = sum_by(known, found.data.pairs.hits, n_docs)
        entities = EntityModel.fit(entity_sums(tokens, spans), n_right, found.data.gold.astype(np.float64))
    every = tokens if unjudged is None else _labelled(_all_tokens(judged, unjudged), n_docs, labels)[0]
    profile = DriftProfile.of(every, None if found is None else _all_spans(found.data, n_docs))
    effects = effects_of_labels(judged.calibrated, pairs.hits.astype(np.float64), judged.documents, pairs.tags, labels)
    if gold is not None:
        effects = _with_missed(effects, judged, gold, n_docs, labels)
        one = np.zeros(n_docs, dtype=np.intp) if of_sources is None else of_sources
        found_numbers = source_sums(
            judged.calibrated, judged.documents, pairs.tags, top, _gold_of(judged, gold, labels), one, len(labels)
        )
        effects = with_widths(effects, found_numbers, labels)
    residuals = Residuals.of(right, sums)
    between = 0.0 if of_sources is None else _between(residuals, right[:, 0], sums, of_sources)
    return FitRecord(residuals, float(pairs.hits[top].mean()), entities, profile, effects, between)


def _between(residuals: Residuals, right: Floats, sums: Sums, of_sources: Ints) -> float:
    """`FitRecord.between`. right (Floats): Right tokens of each document. of_sources (Ints): Its source."""
    names, places = np.unique(of_sources, return_inverse=True)
    n, opens = len(names), sums.independent[:, 0]
    together = max(0.0, float(residuals.moment[0, 0] - residuals.independent[0])) / residuals.squares
    errors, of_each, squares = (sum_by(places, one, n) for one in (right - sums.expected[:, 0], opens, np.square(sums.units)))
    return between_sources(errors, of_each, of_each + together * squares) * of_new_source(n) ** 2


def _with_missed(
    effects: dict[str, Effects], judged: JudgedPairs, gold: Ints, n_docs: int, labels: Sequence[str]
) -> dict[str, Effects]:
    """The effects, with the tokens whose gold label has no pair."""
    rows, documents, columns = _tokens_of(judged, gold)
    own = (columns >= 0) & (columns < len(labels)) & ~np.isin(rows, judged.pairs.rows[judged.pairs.hits])
    return with_missed(effects, columns[own], documents[own], sum_by(documents, None, n_docs), labels)


def _gold_of(judged: JudgedPairs, gold: Ints, labels: Sequence[str]) -> tuple[Ints, Ints]:
    """(document, gold label) of the tokens whose gold label is known."""
    _, documents, columns = _tokens_of(judged, gold)
    own = (columns >= 0) & (columns < len(labels))
    return documents[own], columns[own]


def _tokens_of(judged: JudgedPairs, gold: Ints) -> tuple[Ints, Ints, Ints]:
    """(row, document, column of the gold label) of each token. The document of a token is that of its pairs."""
    rows, first = np.unique(judged.pairs.rows, return_index=True)
    return rows, judged.documents[first], gold[rows]


def _all_tokens(one: JudgedPairs, other: JudgedPairs) -> JudgedPairs:
    """The pairs of both, in the order of the text."""
    pairs, order = interleave(one.pairs, other.pairs)
    calibrated, documents = np.concatenate([one.calibrated, other.calibrated]), np.concatenate([one.documents, other.documents])
    return JudgedPairs(pairs, calibrated[order], documents[order])


def _all_spans(found: SpanData, n_docs: int) -> Labelled:
    """All spans on the Docs, with gold or without, to be compared by their raw scores."""
    own = np.flatnonzero(found.spans.chosen)
    return Labelled(found.documents[own], n_docs, None, found.raw[own], found.raw[own])


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
