"""Learning a context from cross-fitted scores, and asking held-out documents whether it is worth keeping. Knows arrays, never Docs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..calibration.recalibrators.logistic import log_odds
from ..calibration.sufficiency import DOCUMENTS_TO_CHOOSE, too_few_to_choose
from ..metrics.proper import log_losses, mean_with_error
from ..pairs.build import interleave
from ..types import Floats, Groups, Ints, Pairs, Spans
from .familiarity import Met, WordCounts, met_elsewhere
from .ridge import RidgeFit, fit_ridge
from .spans import SpanContext, named_columns, span_columns
from .surroundings import CLIP, Entries, Surroundings
from .tokens import Column, TokenContext, TokenModels, View
from .words import Words

HERE = "the fit data"


@dataclass(frozen=True, eq=False)
class FitWords:
    """The words of the Docs that a context is learned on.

    words (Words): Of all tokens. of_docs (Ints): The document of each Doc.
    counted (WordCounts | None): Forms of the training data; None counts those of the other documents here. counted_on (str): Whose they are.
    salt (str): Of the forms that are kept.
    """

    words: Words
    of_docs: Ints
    counted: WordCounts | None = None
    counted_on: str = HERE
    salt: str = ""

    @cached_property
    def known(self) -> WordCounts:
        """What a fitted context keeps."""
        return (self.counted or WordCounts.of(self.words)).to_keep(self.salt)

    @cached_property
    def met(self) -> Met:
        """How often each token's form was met; where they are counted here, a document's own words are left out."""
        if self.counted is not None:
            return self.known.look_up(self.words)
        return met_elsewhere(self.words, self.of_docs[self.words.docs])


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
        return self.with_context - self.without <= self.error

    @classmethod
    def of(cls, without: Floats, with_context: Floats, hits: NDArray[np.bool_], documents: Ints) -> Comparison:
        """The probabilities of n things. hits: Of each. documents (Ints): Likewise."""
        before, after = log_losses(without, hits), log_losses(with_context, hits)
        mean, error = mean_with_error(after - before, documents)
        return cls(float(before.mean()), float(before.mean()) + mean, error)


@dataclass(frozen=True, eq=False)
class TokenContextFit:
    """What was learned of tokens, and whether it is used.

    context (TokenContext): Fitted; its `models_` are None where scores of tokens stay as they are. view (View): Of the fit data.
    held_out (Floats): The score of each pair by a context that did not see its document; that of the maps where scores stay as they are.
    others (Floats): The scores of the entries of tokens without gold. about (dict): What `info` says of it.
    kept (bool): Whether it moves the scores of tokens.
    """

    context: TokenContext
    view: View
    held_out: Floats
    others: Floats
    about: dict[str, Any]

    @property
    def kept(self) -> bool:
        return self.context.models_ is not None


def fit_token_context(
    prototype: TokenContext, pairs: Pairs, others: Pairs, documents: Ints, data: FitWords, *, overlapping: bool = False
) -> TokenContextFit:
    """Learn from tokens with gold.

    pairs (Pairs): Their entries, with scores of maps that did not see their document. others (Pairs): The entries of tokens without gold,
        which are looked at too; their hits mean nothing. documents (Ints): Of the pairs, ascending.
    overlapping (bool): Whether a token may have several right tags: none of them leads then, and scores of tokens stay as they are.
    """
    every, order = interleave(pairs, others)
    place = np.argsort(order)  # of the pairs, then of the others
    entries = Entries(every.rows, every.scores)
    around = Surroundings(data.words, entries, data.met, None, prototype.shrinkage)
    made = prototype.clone()
    made.known_, made.averages_ = data.known, around.averages
    columns = _learn_columns(made, around)
    why = too_few_to_choose(len(np.unique(documents)), len(np.unique(pairs.rows)), len(pairs))
    why = "a token may have several labels" if overlapping else why
    if why:
        return TokenContextFit(made, View(around, columns), pairs.scores, others.scores, about(made, data, why=why))
    leads, own = entries.leads[place][: len(pairs)], entries.log_odds[place][: len(pairs)]
    held_out = pairs.scores.copy()
    fits = []
    for which, rival in ((leads, around.rival), (~leads, around.leading)):
        mine = np.flatnonzero(which)
        tokens = pairs.rows[mine]
        fits.append(fit_ridge(own[mine], [column[tokens] for column in (rival, *columns)], pairs.hits[mine], documents[mine]))
        held_out[mine] = fits[-1].held_out
    compared = Comparison.of(pairs.scores, held_out, pairs.hits, documents)
    told = about(made, data, compared=compared, fits={"leading": fits[0], "others": fits[1]})
    if not told["kept"]:
        return TokenContextFit(made, View(around, columns), pairs.scores, others.scores, told)
    made.models_ = TokenModels(fits[0].model, fits[1].model)
    view = made.view_of(around, columns)
    moved = made.calibrate(view)
    assert moved is not None
    return TokenContextFit(made, view, held_out, moved[place][len(pairs) :], told)


def _learn_columns(made: TokenContext, around: Surroundings) -> list[Floats]:
    """What the features say of the fit data; the context remembers what each column is."""
    said = [(feature, feature(around)) for feature in made.features]
    made.columns_ = tuple(Column(feature.short, what) for feature, found in said for what in feature.named(around, len(found)))
    return [column for _, found in said for column in found]


# Fewer entities with gold, and nothing is learned of their surroundings.
_FEWEST_SPANS = 100


@dataclass(frozen=True, eq=False)
class SpanContextFit:
    """What was learned of entities. context (SpanContext | None): None where scores stay as the map gives them.
    held_out (Floats): The score of each by a context that did not see its document; that of the map without one. about (dict): What `info` says of it.
    """

    context: SpanContext | None
    held_out: Floats
    about: dict[str, Any]


def fit_span_context(
    tokens: TokenContextFit, spans: Spans, scores: Floats, hits: NDArray[np.bool_], documents: Ints, groups: Groups
) -> SpanContextFit:
    """Learn from n entities with gold.

    tokens (TokenContextFit): Of the same Docs. spans (Spans): In their tokens. scores (Floats): By maps that did not see their document.
    hits: Whether each is right. documents (Ints): Of each, ascending. groups (Groups): Of the labels.
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
        return SpanContextFit(None, scores, told)
    columns = span_columns(tokens.view, spans, groups)
    names = named_columns([column.what for column in tokens.context.columns_], groups)
    fit = fit_ridge(log_odds(scores, CLIP), columns, hits, documents)
    compared = Comparison.of(scores, fit.held_out, hits, documents)
    kept = when == "always" or compared.no_worse
    weights = [{"what": name, "weight": weight} for name, weight in zip(names, fit.weights.tolist(), strict=True)]
    told |= {"kept": kept, "comparison": asdict(compared), "slope": fit.model.slope, "ridge": fit.ridge, "weights": weights}
    if not kept:
        return SpanContextFit(None, scores, told)
    return SpanContextFit(SpanContext(groups, fit.model, names), fit.held_out, told)


def _too_few_spans(hits: NDArray[np.bool_], documents: Ints) -> str:
    """Why nothing can be learned of entities; "" where it can."""
    n_documents = len(np.unique(documents))
    if n_documents < DOCUMENTS_TO_CHOOSE:
        return f"{n_documents:,} documents, and {DOCUMENTS_TO_CHOOSE} are wanted"
    return f"{len(hits):,} entities, and {_FEWEST_SPANS} are wanted" if len(hits) < _FEWEST_SPANS else ""


def about(
    context: TokenContext,
    data: FitWords,
    *,
    why: str = "",
    compared: Comparison | None = None,
    fits: Mapping[str, RidgeFit] | None = None,
) -> dict[str, Any]:
    """What `info` says of a context, as plain data of the form ABOUT.

    why (str): Why nothing could be compared. compared (Comparison | None), fits (Mapping | None): Without and with it, and what was learned.
    """
    learned = fits or {}
    columns = (Column("rival", "the rival's score"), *context.columns_)
    weights = [
        {**column._asdict(), **{name: float(fit.weights[place]) for name, fit in learned.items()}}
        for place, column in enumerate(columns if learned else ())
    ]
    return {
        "when": context.when,
        "kept": compared is not None and (context.when == "always" or compared.no_worse),
        "why": why,
        "counted_on": data.counted_on,
        "forms": len(context.known_.forms.hashes),
        "comparison": None if compared is None else asdict(compared),
        "slopes": {name: fit.model.slope for name, fit in learned.items()},
        "ridges": {name: fit.ridge for name, fit in learned.items()},
        "weights": weights,
    }
