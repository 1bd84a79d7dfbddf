"""Fits contexts to the scores of a source, and compares the log loss on held-out documents with and without context."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..calibration.solvers import log_odds
from ..calibration.span_fit import SpanData, drop_useless_scores, held_out_scores
from ..calibration.spans import SpanRecalibrator
from ..calibration.token_fit import ContextFit
from ..metrics.proper import log_losses, mean_with_error
from ..pairs.documents import DOCUMENTS_TO_CHOOSE
from ..pairs.pairing import find_top, interleave
from ..pairs.progress import UNREPORTED, Progress
from ..types import Floats, Groups, Ints, Pairs, Spans
from .blocks import TokenView, pair_inputs
from .features import TokenScores
from .log_linear import PairData, fit_pairs
from .ridge import ROUNDING, fit_ridge
from .tokens import (
    CLIP,
    FURTHER_SCORES,
    FurtherScores,
    LabelMatch,
    SpanContextModel,
    TokenContext,
    replace_top_scores,
    span_column_names,
    span_columns,
)
from .words import KnownWords, Words


@dataclass(frozen=True)
class ContextComparison:
    """Mean log loss on held-out documents, without and with the context. error (float): Standard error of the difference."""

    without: float
    with_context: float
    error: float

    @property
    def no_worse(self) -> bool:
        """Whether the log loss is no higher with the context."""
        return self.with_context <= self.without

    @classmethod
    def from_scores(cls, without: Floats, with_context: Floats, hits: NDArray[np.bool_], documents: Ints) -> ContextComparison:
        """Compare n predictions without and with context by log loss. hits: Whether each is right. documents: Its document."""
        losses, losses_with = log_losses(without, hits), log_losses(with_context, hits)
        mean_change, error = mean_with_error(losses_with - losses, documents)
        return cls(float(losses.mean()), float(losses.mean()) + mean_change, error)


def without_token_model(context: TokenContext) -> TokenContext:
    """Return a copy of the context that does not change token scores, but still computes features for the context of spans."""
    bare_context = copy(context)
    bare_context.model_ = bare_context.line_ = None
    return bare_context


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
    """Fit a token context to tokens with gold. With one document, or if tokens may have several tags, no model is fitted.

    prototype (TokenContext): Its settings are copied. pairs (Pairs): Pairs of tokens with gold. unlabelled_pairs (Pairs): Pairs
        of tokens without gold, which may be neighbours of the others. words (Words): All tokens. n_tags (int): Number of tags.
    documents (Ints): Document of each of `pairs`, ascending. overlapping (bool): Whether a token may have several right tags.
    salt (str): Key with which digests of words are hashed again, so that no table of digests reveals them; "" leaves them.
    RETURNS (ContextFit): The context with out-of-fold scores of the pairs.
    """
    reason = "one document, but at least two are needed" if len(np.unique(documents)) < 2 else ""  # why no model is fitted
    if overlapping:
        reason = "a token may have several labels"
    context = prototype.clone()
    context.vocabulary_, context.n_tags_ = KnownWords.from_words(words), n_tags
    # Sorted by token, since the features of a token need all pairs of its neighbours, with gold and without.
    all_pairs, order = interleave(pairs, unlabelled_pairs)  # order: index of each in pairs followed by unlabelled_pairs
    tokens = TokenScores(all_pairs.rows, all_pairs.tags, all_pairs.scores, words)
    columns, (forms, endings) = _learn_columns(context, tokens), context.vocabulary_.find_indices(words)
    view = TokenView(tokens, columns, forms, tokens.scores)  # for a context of spans
    salted_words, salted_indices = context.vocabulary_.with_salt(salt)
    if reason:
        context.vocabulary_ = salted_words
        return ContextFit(context, view, pairs.scores, unlabelled_pairs.scores, reason, describe_context(context))
    labelled, unlabelled = np.split(np.argsort(order), [len(pairs)])  # the inverse of `order`: indices in `all_pairs`
    pair_columns = (all_pairs.rows, all_pairs.tags, tokens.log_odds, tokens.is_top)
    inputs = pair_inputs(context.blocks, tokens, (forms, endings), columns, pair_columns, n_tags)
    model, held_out = fit_pairs(PairData(tokens.log_odds[labelled], inputs.take(labelled), pairs.hits, documents), progress)
    unlabelled_scores = model.predict(tokens.log_odds[unlabelled], inputs.take(unlabelled))
    # The salted vocabulary has another order, so the words of the model's weights get other indices.
    context.vocabulary_, context.model_ = salted_words, model.reindex_words(salted_indices, n_tags + 1)  # 1: unknown tags
    comparison = ContextComparison.from_scores(pairs.scores, held_out, pairs.hits, documents)
    info = describe_context(context, comparison, _share_reordered(pairs, held_out))
    view = replace(view, adjusted_scores=np.concatenate([held_out, unlabelled_scores])[order])
    return ContextFit(context, view, held_out, unlabelled_scores, "", info)


def fit_further_scores(
    names: Sequence[str],
    groups: Groups,
    raw_pairs: tuple[Pairs, Pairs],
    pairs: Pairs,
    unlabelled_pairs: Pairs,
    documents: Ints,
    words: Words,
    progress: Progress = UNREPORTED,
) -> ContextFit:
    """Fit a recalibrator of documents' top labels, with further scores as features if these lower the out-of-fold log loss.

    names (Sequence[str]): Names of the further scores: the source's other scores of a document. groups (Groups): Groups of the
        labels. words (Words): Each document as one token, with its further scores.
    raw_pairs (tuple[Pairs, Pairs]): Pairs of documents with gold, and without, with raw scores: these decide the top label.
    pairs, unlabelled_pairs (Pairs): The same pairs with the scores to adjust. documents (Ints): Of `pairs`, ascending.
    RETURNS (ContextFit): The context, without a model if further scores do not lower the loss, and the out-of-fold scores.
    """
    context = FurtherScores()
    context.names_ = tuple(names)
    progress.update(0.0)
    top, unlabelled_top = (np.flatnonzero(find_top(raw.rows, raw.scores)) for raw in raw_pairs)
    spans = context.spans(words, pairs.rows[top], pairs.tags[top], pairs.scores[top])
    no_gold_counts = np.zeros(0, dtype=np.intp)  # number of gold spans: a recalibrator needs none
    top_data = SpanData(spans, spans.scores, pairs.hits[top].astype(np.intp), documents[top], no_gold_counts)
    lowers_loss = drop_useless_scores(top_data, groups).spans.further_scores.shape[1] > 0  # all further scores stay, or none
    new_scores, unlabelled_scores = pairs.scores, unlabelled_pairs.scores
    reason = "" if lowers_loss else "further scores do not lower the log loss on held-out documents"
    if lowers_loss:
        new_scores = replace_top_scores(pairs.rows, pairs.scores, top, held_out_scores(top_data, groups))
        context.model_ = SpanRecalibrator(groups).fit(spans, top_data.hits)
        entries = unlabelled_pairs.rows, unlabelled_pairs.tags, unlabelled_pairs.scores
        unlabelled_scores = context.adjust(*entries, unlabelled_top, words)
    comparison = ContextComparison.from_scores(pairs.scores, new_scores, pairs.hits, documents)
    info = {
        "when": FURTHER_SCORES, "forms": 0, "endings": 0, "ridge": None,
        "size": 0 if context.model_ is None else len(context.model_.weights_) + 1,
        "columns": list(names), "comparison": asdict(comparison), "reordered": _share_reordered(pairs, new_scores),
    }  # fmt: skip
    return ContextFit(context, None, new_scores, unlabelled_scores, reason, info)


def _share_reordered(pairs: Pairs, new_scores: Floats) -> float:
    """Return the share of tokens whose top tag changes if `new_scores` (one per pair) replace the scores of the pairs."""
    was_top, is_top = (find_top(pairs.rows, scores) for scores in (pairs.scores, new_scores))
    return float((was_top & ~is_top).sum() / max(1, was_top.sum()))


def _learn_columns(context: TokenContext, tokens: TokenScores) -> Floats:
    """Set the context's columns with means and deviations by these tokens; return the k columns standardized, (k, n_tokens)."""
    names = [(feature.name, description) for feature in context.features for description in feature.column_names(tokens)]
    columns_by_feature = [feature(tokens) for feature in context.features]
    columns = [*chain.from_iterable(columns_by_feature)]
    deviations = np.array([column.std() for column in columns])
    context.columns_, context.centers_ = tuple(names), np.array([column.mean() for column in columns])
    context.scales_ = np.where(deviations > ROUNDING, deviations, 1.0)  # a constant column stays unscaled
    return context.standardize(columns_by_feature, len(tokens.words))


def describe_context(
    context: TokenContext, comparison: ContextComparison | None = None, share_reordered: float = 0.0
) -> dict[str, Any]:
    """Return a summary of a fitted context, for `calib info`.

    share_reordered (float): Share of tokens whose top tag changes by the context. RETURNS (dict): "when" (setting), "forms",
        "endings", "size" (numbers of forms, endings and weights), "ridge" (L2 penalty; None without a model), "columns"
        (descriptions of the features), "comparison" (fields of the ContextComparison, or None), "reordered" (the share).
    """
    model = context.model_
    return {
        "when": context.when, "forms": len(context.vocabulary_.forms), "endings": len(context.vocabulary_.endings),
        "ridge": None if model is None else model.ridge, "size": 0 if model is None else model.size,
        "columns": [meaning for _, meaning in context.columns_],
        "comparison": None if comparison is None else asdict(comparison), "reordered": share_reordered,
    }  # fmt: skip


_MIN_SPANS = 100  # minimum number of entities with gold for a span context


def fit_span_context(
    tokens: ContextFit, tags: LabelMatch, spans: Spans, scores: Floats, hits: NDArray[np.bool_], documents: Ints, groups: Groups
) -> tuple[SpanContextModel | None, Floats, dict[str, Any]]:
    """Fit the span context to n entities with gold.

    tokens (ContextFit): The fitted context of the tokens of these Docs. tags (LabelMatch): Token labels of each span label.
    spans (Spans): The entities; starts and ends are indices of these tokens. scores (Floats): Out-of-fold score of each entity.
    hits (NDArray[bool]): Whether each is right. documents (Ints): Document of each, ascending. groups (Groups): Of the labels.
    RETURNS (tuple): The context (None if scores stay), each entity's out-of-fold score with it, and a dict for `calib info`:
        "when" (setting), "kept" (whether it is used), "why" (reason why none was fitted, or ""); of the fit, if there was one,
        "comparison" (a ContextComparison as dict), "slope", "ridge" (L2 penalty), "weights" (dicts of "what" and "weight").
    """
    when = tokens.context.when
    info: dict[str, Any] = {
        "when": when, "kept": False, "why": _too_few_spans(hits, documents),
        "comparison": None, "slope": None, "ridge": None, "weights": [],
    }  # fmt: skip
    if info["why"]:
        return None, scores, info
    columns = span_columns(tokens.view, spans, groups, tags)
    names = span_column_names([meaning for _, meaning in tokens.context.columns_], groups)
    fit = fit_ridge(log_odds(scores, CLIP), columns, hits, documents)
    comparison = ContextComparison.from_scores(scores, fit.held_out, hits, documents)
    is_kept = when == "always" or comparison.no_worse
    weights = [{"what": name, "weight": weight} for name, weight in zip(names, fit.weights.tolist(), strict=True)]
    info |= {
        "kept": is_kept, "comparison": asdict(comparison), "slope": fit.model.slope, "ridge": fit.ridge, "weights": weights,
    }  # fmt: skip
    if not is_kept:
        return None, scores, info
    return SpanContextModel(groups, tags, tuple(names), fit.model), fit.held_out, info


def _too_few_spans(hits: NDArray[np.bool_], documents: Ints) -> str:
    """Return why there are too few entities or documents for a fit, "" if there are enough. hits, documents: Of each entity."""
    n_documents = len(np.unique(documents))
    if n_documents < DOCUMENTS_TO_CHOOSE:
        return f"{n_documents:,} documents, but at least {DOCUMENTS_TO_CHOOSE} are needed"
    return f"{len(hits):,} entities, but at least {_MIN_SPANS} are needed" if len(hits) < _MIN_SPANS else ""
