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
        before, after = log_losses(without, hits), log_losses(with_context, hits)
        mean, error = mean_with_error(after - before, documents)
        return cls(float(before.mean()), float(before.mean()) + mean, error)


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
    every, order = interleave(pairs, others)
    place = np.argsort(order)  # of the pairs, then of the others
    around = Surroundings(every.rows, every.tags, every.scores, len(words.forms), words)
    made = prototype.clone()
    made.known_, made.n_tags_ = KnownWords.of(words), n_tags
    view = made.seen(around, _learn_columns(made, around))
    why = "a token may have several labels" if overlapping else ""
    why = why or ("one document, and two are wanted" if len(np.unique(documents)) < 2 else "")
    kept, places = made.known_.salted(salt)
    if why:
        made.known_ = kept
        return ContextFit(made, view, pairs.scores, others.scores, why, about(made))
    own, leads = around.log_odds[place], around.leads[place]
    n = len(pairs)
    blocks, of_others = (
        made.blocks(view, part.rows, part.tags, own[inside], leads[inside])
        for part, inside in ((pairs, slice(n)), (others, slice(n, None)))
    )
    made.model_, held_out = fit_pairs(PairData(own[:n], blocks, pairs.hits, documents), progress)
    moved = made.model_.predict(own[n:], of_others)
    made.known_, made.model_ = kept, made.model_.with_places(blocks, places, n_tags + 1)
    told = about(made, Comparison.of(pairs.scores, held_out, pairs.hits, documents), _reordered(pairs, held_out))
    view = replace(view, moved=np.concatenate([held_out, moved])[order])
    return ContextFit(made, view, held_out, moved, "", told)


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
    made = FurtherScores()
    made.names_ = tuple(names)
    progress.at(0.0)
    leads, of_others = (np.flatnonzero(leading(part.rows, part.scores)) for part in raw)
    spans = made.spans(words, pairs.rows[leads], pairs.tags[leads], pairs.scores[leads])
    of_leads = SpanData(spans, spans.own, pairs.hits[leads].astype(np.intp), documents[leads], np.zeros(0, dtype=np.intp))
    useful = without_useless(of_leads, groups).spans.beside.shape[1] > 0
    held_out = held_out_scores(of_leads, groups) if useful else spans.own
    moved, moved_others = with_leads(pairs.rows, pairs.scores, leads, held_out), others.scores
    if useful:
        made.model_ = SpanRecalibrator(groups).fit(spans, of_leads.hits)
        moved_others = made.moved(others.rows, others.tags, others.scores, of_others, words)
    why = "" if useful else "held-out documents lose no less with further scores"
    compared = Comparison.of(pairs.scores, moved, pairs.hits, documents)
    told = {
        "when": FURTHER,
        "forms": 0,
        "endings": 0,
        "ridge": None,
        "size": 0 if made.model_ is None else len(made.model_.weights_) + 1,
        "columns": list(names),
        "comparison": asdict(compared),
        "reordered": _reordered(pairs, moved),
    }
    return ContextFit(made, None, moved, moved_others, why, told)


def _reordered(pairs: Pairs, moved: Floats) -> float:
    """The share of tokens that get another likeliest tag."""
    before, after = (leading(pairs.rows, scores) for scores in (pairs.scores, moved))
    return float((before & ~after).sum() / max(1, before.sum()))


def _learn_columns(made: TokenContext, around: Surroundings) -> list[Sequence[Floats]]:
    """What each feature says of the fit data; the context remembers what each column is, and its unit."""
    said = [feature(around) for feature in made.features]
    named = zip(made.features, said, strict=True)
    made.columns_ = tuple((feature.name, what) for feature, found in named for what in feature.named(around, len(found)))
    columns = [column for found in said for column in found]
    deviations = np.array([column.std() for column in columns])
    made.centers_ = np.array([column.mean() for column in columns])
    made.scales_ = np.where(deviations > ROUNDING, deviations, 1.0)
    return said


def about(context: TokenContext, compared: Comparison | None = None, reordered: float = 0.0) -> dict[str, Any]:
    """What `info` shows of a context, as plain data; whether it is kept is added later.

    compared (Comparison | None): Without and with it. reordered (float): Share of tokens with a new likeliest tag.
    """
    model = context.model_
    return {
        "when": context.when,
        "forms": len(context.known_.forms),
        "endings": len(context.known_.endings),
        "ridge": None if model is None else model.ridge,
        "size": 0 if model is None else model.size,
        "columns": [what for _, what in context.columns_],
        "comparison": None if compared is None else asdict(compared),
        "reordered": reordered,
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
    told: dict[str, Any] = {
        "when": when,
        "kept": False,
        "why": _too_few_spans(hits, documents),
        "comparison": None,
        "slope": None,
        "ridge": None,
        "weights": [],
    }
    if told["why"]:
        return None, scores, told
    columns = span_columns(tokens.view, spans, groups, tags)
    names = named_columns([what for _, what in tokens.context.columns_], groups)
    fit = fit_ridge(log_odds(scores, CLIP), columns, hits, documents)
    compared = Comparison.of(scores, fit.held_out, hits, documents)
    kept = when == "always" or compared.no_worse
    weights = [{"what": name, "weight": weight} for name, weight in zip(names, fit.weights.tolist(), strict=True)]
    told |= {"kept": kept, "comparison": asdict(compared), "slope": fit.model.slope, "ridge": fit.ridge, "weights": weights}
    if not kept:
        return None, scores, told
    return SpanContext(groups, tags, tuple(names), fit.model), fit.held_out, told


def _too_few_spans(hits: NDArray[np.bool_], documents: Ints) -> str:
    """Why nothing can be learned of entities; "" where it can."""
    n_documents = len(np.unique(documents))
    if n_documents < DOCUMENTS_TO_CHOOSE:
        return f"{n_documents:,} documents, and {DOCUMENTS_TO_CHOOSE} are wanted"
    return f"{len(hits):,} entities, and {_FEWEST_SPANS} are wanted" if len(hits) < _FEWEST_SPANS else ""
