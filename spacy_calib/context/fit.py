"""Fitting a context to the scores of a source, and comparing held-out scores with and without it."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..calibration.recalibrators.logistic import log_odds
from ..calibration.span_fit import SpanData, drop_useless_scores, held_out_scores
from ..calibration.spans import SpanRecalibrator
from ..calibration.token_fit import ContextFit
from ..metrics.proper import log_losses, mean_with_error
from ..pairs.build import find_top, interleave
from ..pairs.documents import DOCUMENTS_TO_CHOOSE
from ..pairs.progress import UNREPORTED, Progress
from ..types import Floats, Groups, Ints, Pairs, Spans
from .blocks import View, pair_inputs
from .features import TokenScores
from .log_linear import PairData, fit_pairs
from .ridge import ROUNDING, fit_ridge
from .tokens import (
    CLIP,
    FURTHER,
    FurtherScores,
    SpanContext,
    TagsOfSpans,
    TokenContext,
    named_columns,
    replace_top,
    span_columns,
)
from .words import KnownWords, Words


@dataclass(frozen=True)
class Comparison:
    """Scores without and with context, on held-out documents.

    without, with_context (float): Mean log loss. error (float): Standard error of their difference, by document.
    """

    without: float
    with_context: float
    error: float

    @property
    def no_worse(self) -> bool:
        return self.with_context <= self.without

    @classmethod
    def from_scores(cls, without: Floats, with_context: Floats, hits: NDArray[np.bool_], documents: Ints) -> Comparison:
        """Compare two probabilities of n pairs. hits, documents (Ints): Of each."""
        losses, losses_with = log_losses(without, hits), log_losses(with_context, hits)
        mean, error = mean_with_error(losses_with - losses, documents)
        return cls(float(losses.mean()), float(losses.mean()) + mean, error)


def without_model(context: TokenContext) -> TokenContext:
    """The context without its model: scores of tokens stay, and those of spans may look at its view."""
    copied = copy(context)
    copied.model_ = copied.line_ = None
    return copied


def fit_token_context(
    prototype: TokenContext,
    pairs: Pairs,
    others: Pairs,
    documents: Ints,
    words: Words,
    progress: Progress = UNREPORTED,
    *,
    n_tags: int,
    overlapping: bool = False,
    salt: str = "",
) -> ContextFit:
    """Learn from tokens with gold.

    pairs (Pairs): Their entries. others (Pairs): Entries of tokens without gold, which are looked at, too.
    documents (Ints): Of the pairs, ascending. n_tags (int): Columns.
    overlapping (bool): Whether a token may have several right tags; then its scores stay as they are.
    salt (str): Of the forms that are kept; "" keeps digests as they are.
    """
    entries, order = interleave(pairs, others)
    index = np.argsort(order)  # of the pairs, then of the others
    tokens = TokenScores(entries.rows, entries.tags, entries.scores, words)
    context = prototype.clone()
    context.known_, context.n_tags_ = KnownWords.from_words(words), n_tags
    columns, places = _learn_columns(context, tokens), context.known_.places(words)
    salted, salted_places = context.known_.salted(salt)
    view = View(tokens, columns, places[0], tokens.scores)
    why = "a token may have several labels" if overlapping else ""
    why = why or ("one document, and two are wanted" if len(np.unique(documents)) < 2 else "")
    if why:
        context.known_ = salted
        return ContextFit(context, view, pairs.scores, others.scores, why, describe_context(context))
    n, log_odds = len(pairs), tokens.log_odds[index]
    every_pair = (entries.rows, entries.tags, tokens.log_odds, tokens.is_top)
    inputs = pair_inputs(context.blocks, tokens, places, columns, every_pair, n_tags).take(index)
    data_of_pairs = PairData(log_odds[:n], inputs.take(slice(n)), pairs.hits, documents)
    context.model_, held_out = fit_pairs(data_of_pairs, progress)
    adjusted_others = context.model_.predict(log_odds[n:], inputs.take(slice(n, None)))
    context.known_, context.model_ = salted, context.model_.with_places(inputs.blocks, salted_places, n_tags + 1)
    comparison = Comparison.from_scores(pairs.scores, held_out, pairs.hits, documents)
    info = describe_context(context, comparison, _reordered(pairs, held_out))
    view = replace(view, adjusted=np.concatenate([held_out, adjusted_others])[order])
    return ContextFit(context, view, held_out, adjusted_others, "", info)


def fit_further_scores(
    names: Sequence[str],
    groups: Groups,
    raw: tuple[Pairs, Pairs],
    pairs: Pairs,
    others: Pairs,
    documents: Ints,
    words: Words,
    progress: Progress = UNREPORTED,
) -> ContextFit:
    """Learn what further scores of documents say, where held-out ones lose less with them than without, as for spans.

    names (Sequence[str]): Of the scores. groups (Groups): Of the labels. pairs (Pairs): Of documents with gold; others (Pairs): Without.
    raw (tuple[Pairs, Pairs]): Both as the source gave them, which says whose label is the likeliest. documents (Ints): What each pair is from, ascending.
    """
    context = FurtherScores()
    context.names_ = tuple(names)
    progress.update(0.0)
    top, top_others = (np.flatnonzero(find_top(part.rows, part.scores)) for part in raw)
    spans = context.spans(words, pairs.rows[top], pairs.tags[top], pairs.scores[top])
    top_data = SpanData(spans, spans.own, pairs.hits[top].astype(np.intp), documents[top], np.zeros(0, dtype=np.intp))
    useful = drop_useless_scores(top_data, groups).spans.beside.shape[1] > 0
    held_out = held_out_scores(top_data, groups) if useful else spans.own
    adjusted, adjusted_others = replace_top(pairs.rows, pairs.scores, top, held_out), others.scores
    if useful:
        context.model_ = SpanRecalibrator(groups).fit(spans, top_data.hits)
        adjusted_others = context.adjust(others.rows, others.tags, others.scores, top_others, words)
    why = "" if useful else "held-out documents lose no less with further scores"
    comparison = Comparison.from_scores(pairs.scores, adjusted, pairs.hits, documents)
    info = {
        "when": FURTHER,
        "forms": 0,
        "endings": 0,
        "ridge": None,
        "size": 0 if context.model_ is None else len(context.model_.weights_) + 1,
        "columns": list(names),
        "comparison": asdict(comparison),
        "reordered": _reordered(pairs, adjusted),
    }
    return ContextFit(context, None, adjusted, adjusted_others, why, info)


def _reordered(pairs: Pairs, adjusted: Floats) -> float:
    """The share of tokens that get another top tag."""
    was_top, is_top = (find_top(pairs.rows, scores) for scores in (pairs.scores, adjusted))
    return float((was_top & ~is_top).sum() / max(1, was_top.sum()))


def _learn_columns(context: TokenContext, tokens: TokenScores) -> Floats:
    """The standardized features of the fit data; the context remembers the meaning of each column, and its unit."""
    values = [feature(tokens) for feature in context.features]
    context.columns_ = tuple(
        (feature.name, meaning)
        for feature, columns in zip(context.features, values, strict=True)
        for meaning in feature.column_names(tokens, len(columns))
    )
    columns = [column for columns in values for column in columns]
    deviations = np.array([column.std() for column in columns])
    context.centers_ = np.array([column.mean() for column in columns])
    context.scales_ = np.where(deviations > ROUNDING, deviations, 1.0)
    return context.standardized(values, len(tokens.words))


def describe_context(context: TokenContext, comparison: Comparison | None = None, reordered: float = 0.0) -> dict[str, Any]:
    """What `info` shows of a context, as plain data; whether it is kept is added later.

    comparison (Comparison | None): Without and with it. reordered (float): Share of tokens with a new top tag.
    """
    model = context.model_
    return {
        "when": context.when,
        "forms": len(context.known_.forms),
        "endings": len(context.known_.endings),
        "ridge": None if model is None else model.ridge,
        "size": 0 if model is None else model.size,
        "columns": [meaning for _, meaning in context.columns_],
        "comparison": None if comparison is None else asdict(comparison),
        "reordered": reordered,
    }


# With fewer entities with gold there is no context of entities.
_MIN_SPANS = 100


def fit_span_context(
    tokens: ContextFit,
    tags: TagsOfSpans,
    spans: Spans,
    scores: Floats,
    hits: NDArray[np.bool_],
    documents: Ints,
    groups: Groups,
) -> tuple[SpanContext | None, Floats, dict[str, Any]]:
    """Learn from n entities with gold.

    tokens (ContextFit): Of the same Docs. tags (TagsOfSpans): Of the labels. spans (Spans): In their tokens.
    scores (Floats): By held-out maps. hits: Whether each is right. documents (Ints): Of each, ascending.
    groups (Groups): Of the labels.
    RETURNS (tuple): The context, None where scores stay; the held-out score of each; what `info` shows.
    """
    when = tokens.context.when
    info: dict[str, Any] = {
        "when": when,
        "kept": False,
        "why": _too_few_spans(hits, documents),
        "comparison": None,
        "slope": None,
        "ridge": None,
        "weights": [],
    }
    if info["why"]:
        return None, scores, info
    columns = span_columns(tokens.view, spans, groups, tags)
    names = named_columns([meaning for _, meaning in tokens.context.columns_], groups)
    fit = fit_ridge(log_odds(scores, CLIP), columns, hits, documents)
    comparison = Comparison.from_scores(scores, fit.held_out, hits, documents)
    is_kept = when == "always" or comparison.no_worse
    weights = [{"what": name, "weight": weight} for name, weight in zip(names, fit.weights.tolist(), strict=True)]
    info |= {
        "kept": is_kept,
        "comparison": asdict(comparison),
        "slope": fit.model.slope,
        "ridge": fit.ridge,
        "weights": weights,
    }
    if not is_kept:
        return None, scores, info
    return SpanContext(groups, tags, tuple(names), fit.model), fit.held_out, info


def _too_few_spans(hits: NDArray[np.bool_], documents: Ints) -> str:
    """Why nothing can be learned of entities; "" where it can."""
    n_documents = len(np.unique(documents))
    if n_documents < DOCUMENTS_TO_CHOOSE:
        return f"{n_documents:,} documents, and {DOCUMENTS_TO_CHOOSE} are wanted"
    return f"{len(hits):,} entities, and {_MIN_SPANS} are wanted" if len(hits) < _MIN_SPANS else ""
