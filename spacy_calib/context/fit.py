"""Learning a context from the scores of a source, and asking held-out documents whether it helps."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..calibration.recalibrators.logistic import log_odds
from ..calibration.span_fit import SpanData, held_out_scores, without_useless
from ..calibration.spans import SpanRecalibrator
from ..calibration.sufficiency import DOCUMENTS_TO_CHOOSE
from ..calibration.token_fit import ContextFit
from ..metrics.proper import log_losses, mean_with_error
from ..pairs.build import interleave, leading
from ..pairs.progress import UNREPORTED, Progress
from ..types import Floats, Groups, Ints, Pairs, Spans
from .log_linear import PairData, fit_pairs
from .ridge import ROUNDING, fit_ridge
from .surroundings import Surroundings
from .tokens import (
    CLIP,
    FURTHER,
    FurtherScores,
    SpanContext,
    TagsOfSpans,
    TokenContext,
    named_columns,
    span_columns,
    with_leads,
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
    def of(cls, without: Floats, with_context: Floats, hits: NDArray[np.bool_], documents: Ints) -> Comparison:
        """The comparison of probabilities of n things. hits: Of each. documents (Ints): Likewise."""
        raw_losses, context_losses = log_losses(without, hits), log_losses(with_context, hits)
        mean, error = mean_with_error(context_losses - raw_losses, documents)
        return cls(float(raw_losses.mean()), float(raw_losses.mean()) + mean, error)


def without_model(context: TokenContext) -> TokenContext:
    """The context without its model: scores of tokens stay, and those of spans may look at its view."""
    new_context = copy(context)
    new_context.model_ = new_context.line_ = None
    return new_context


def fit_token_context(
    prototype: TokenContext,
    pairs: Pairs,
    unlabelled_pairs: Pairs,
    documents: Ints,
    words: Words,
    progress: Progress = UNREPORTED,
    *,
    n_tags: int,
    overlapping: bool = False,
    salt: str = "",
) -> ContextFit:
    """Learn from tokens with gold.

    pairs (Pairs): Their entries. unlabelled_pairs (Pairs): Entries of tokens without gold, which are looked at, too.
    documents (Ints): Of the pairs, ascending. n_tags (int): Columns.
    overlapping (bool): Whether a token may have several right tags; then its scores stay as they are.
    salt (str): Of the forms that are kept; "" keeps digests as they are.
    """
    all_pairs, order = interleave(pairs, unlabelled_pairs)
    place = np.argsort(order)  # of the pairs, then of the others
    surroundings = Surroundings(all_pairs.rows, all_pairs.tags, all_pairs.scores, len(words.forms), words)
    context = prototype.clone()
    context.known_, context.n_tags_ = KnownWords.of(words), n_tags
    view = context.seen(surroundings, _learn_columns(context, surroundings))
    why = "a token may have several labels" if overlapping else ""
    why = why or ("one document, and two are wanted" if len(np.unique(documents)) < 2 else "")
    salted_words, places = context.known_.salted(salt)
    if why:
        context.known_ = salted_words
        return ContextFit(context, view, pairs.scores, unlabelled_pairs.scores, why, about(context))
    margins, leads = surroundings.log_odds[place], surroundings.leads[place]
    n = len(pairs)
    blocks, unlabelled_blocks = (
        context.blocks(view, part.rows, part.tags, margins[part_index], leads[part_index])
        for part, part_index in ((pairs, slice(n)), (unlabelled_pairs, slice(n, None)))
    )
    context.model_, held_out = fit_pairs(PairData(margins[:n], blocks, pairs.hits, documents), progress)
    adjusted_scores = context.model_.predict(margins[n:], unlabelled_blocks)
    context.known_, context.model_ = salted_words, context.model_.with_places(blocks, places, n_tags + 1)
    info = about(context, Comparison.of(pairs.scores, held_out, pairs.hits, documents), _reordered(pairs, held_out))
    view = replace(view, moved=np.concatenate([held_out, adjusted_scores])[order])
    return ContextFit(context, view, held_out, adjusted_scores, "", info)


def fit_further_scores(
    names: Sequence[str],
    groups: Groups,
    raw: tuple[Pairs, Pairs],
    pairs: Pairs,
    unlabelled_pairs: Pairs,
    documents: Ints,
    words: Words,
    progress: Progress = UNREPORTED,
) -> ContextFit:
    """Learn what further scores of documents say, where held-out ones lose less with them than without, as for spans.

    names (Sequence[str]): Of the scores. groups (Groups): Of the labels. pairs (Pairs): Of documents with gold; unlabelled_pairs (Pairs): Without.
    raw (tuple[Pairs, Pairs]): Both as the source gave them, which says whose label is the likeliest. documents (Ints): What each pair is from, ascending.
    """
    context = FurtherScores()
    context.names_ = tuple(names)
    progress.at(0.0)
    leads, unlabelled_tops = (np.flatnonzero(leading(part.rows, part.scores)) for part in raw)
    spans = context.spans(words, pairs.rows[leads], pairs.tags[leads], pairs.scores[leads])
    top_data = SpanData(spans, spans.own, pairs.hits[leads].astype(np.intp), documents[leads], np.zeros(0, dtype=np.intp))
    useful = without_useless(top_data, groups).spans.beside.shape[1] > 0
    held_out = held_out_scores(top_data, groups) if useful else spans.own
    adjusted_scores, adjusted_unlabelled = with_leads(pairs.rows, pairs.scores, leads, held_out), unlabelled_pairs.scores
    if useful:
        context.model_ = SpanRecalibrator(groups).fit(spans, top_data.hits)
        adjusted_unlabelled = context.moved(
            unlabelled_pairs.rows, unlabelled_pairs.tags, unlabelled_pairs.scores, unlabelled_tops, words
        )
    why = "" if useful else "held-out documents lose no less with further scores"
    comparison = Comparison.of(pairs.scores, adjusted_scores, pairs.hits, documents)
    info = {
        "when": FURTHER,
        "forms": 0,
        "endings": 0,
        "ridge": None,
        "size": 0 if context.model_ is None else len(context.model_.weights_) + 1,
        "columns": list(names),
        "comparison": asdict(comparison),
        "reordered": _reordered(pairs, adjusted_scores),
    }
    return ContextFit(context, None, adjusted_scores, adjusted_unlabelled, why, info)


def _reordered(pairs: Pairs, adjusted_scores: Floats) -> float:
    """The share of tokens that get another likeliest tag."""
    top_before, top_after = (leading(pairs.rows, scores) for scores in (pairs.scores, adjusted_scores))
    return float((top_before & ~top_after).sum() / max(1, top_before.sum()))


def _learn_columns(context: TokenContext, surroundings: Surroundings) -> list[Sequence[Floats]]:
    """What each feature says of the fit data; the context remembers what each column is, and its unit."""
    values_by_feature = [feature(surroundings) for feature in context.features]
    pairs_of_feature = zip(context.features, values_by_feature, strict=True)
    context.columns_ = tuple(
        (feature.name, title) for feature, values in pairs_of_feature for title in feature.named(surroundings, len(values))
    )
    columns = [column for values in values_by_feature for column in values]
    deviations = np.array([column.std() for column in columns])
    context.centers_ = np.array([column.mean() for column in columns])
    context.scales_ = np.where(deviations > ROUNDING, deviations, 1.0)
    return values_by_feature


def about(context: TokenContext, comparison: Comparison | None = None, share_reordered: float = 0.0) -> dict[str, Any]:
    """What `info` shows of a context, as plain data; whether it is kept is added later.

    comparison (Comparison | None): Without and with it. share_reordered (float): Share of tokens with a new likeliest tag.
    """
    model = context.model_
    return {
        "when": context.when,
        "forms": len(context.known_.forms),
        "endings": len(context.known_.endings),
        "ridge": None if model is None else model.ridge,
        "size": 0 if model is None else model.size,
        "columns": [title for _, title in context.columns_],
        "comparison": None if comparison is None else asdict(comparison),
        "reordered": share_reordered,
    }


# Fewer entities with gold, and nothing is learned of their surroundings.
_FEWEST_SPANS = 100


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
    names = named_columns([title for _, title in tokens.context.columns_], groups)
    fit = fit_ridge(log_odds(scores, CLIP), columns, hits, documents)
    comparison = Comparison.of(scores, fit.held_out, hits, documents)
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
    return f"{len(hits):,} entities, and {_FEWEST_SPANS} are wanted" if len(hits) < _FEWEST_SPANS else ""
