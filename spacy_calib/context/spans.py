"""Scores of entities that look at what surrounds them. Knows arrays, never Docs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..calibration.recalibrators.logistic import log_odds
from ..calibration.span_features import firsts_of
from ..schema import lengths, listed, record, text
from ..types import GROUPS, Floats, Groups, Spans
from .ridge import RIDGE_MODEL, RidgeModel
from .tokens import View

# Scores are clipped to this distance from 0 and 1 before their log-odds are taken.
CLIP = 1e-4
# What is looked at besides the features of an entity's tokens and the group of its label.
_OF_SPANS = ("entropy of its tokens' scores", "forms that are not known", "its length")

# The saved form of SpanContext.
SPAN_CONTEXT = record(
    {"groups": GROUPS, "columns": listed(text), "model": RIDGE_MODEL},
    lambda held: lengths({"weights": len(held["columns"])}, held["model"]),
)


class SpanContext:
    """The step after the map of entities: logistic regression on the log-odds of an entity's score, the features of its tokens (their mean),
    how many of its forms are not known, its length and the group of its label.

    groups (Groups): Of the labels. model (RidgeModel): Fitted. columns (Sequence[str]): What each of its features says.
    """

    def __init__(self, groups: Groups, model: RidgeModel, columns: Sequence[str]):
        self.groups = groups
        self.model = model
        self.columns = tuple(columns)

    def calibrate(self, view: View, spans: Spans, scores: Floats) -> Floats:
        """The scores of n entities. view (View): Their tokens. scores (Floats): As the map gives them."""
        if not len(spans):
            return scores
        columns = span_columns(view, spans, self.groups)
        return self.model.predict(log_odds(scores, CLIP), self.model.around(columns))

    def state(self) -> dict[str, Any]:
        """Plain data and arrays: what `from_state` needs."""
        return {"groups": self.groups.state(), "columns": list(self.columns), "model": self.model.state()}

    @classmethod
    def from_state(cls, state: Any) -> SpanContext:
        """RAISES Misfit: the state is not of the form SPAN_CONTEXT."""
        held = SPAN_CONTEXT(state, "span_context")
        return cls(Groups.from_state(held["groups"]), RidgeModel.from_state(held["model"]), held["columns"])


def span_columns(view: View, spans: Spans, groups: Groups) -> list[Floats]:
    """The features of n spans. view (View): Of all tokens in which the spans stand."""
    lengths = spans.ends - spans.starts
    firsts = firsts_of(spans)
    tokens = np.repeat(spans.starts - firsts, lengths) + np.arange(lengths.sum())
    of_tokens = [*view.columns, view.around.entropy, view.unknown.astype(np.float64)]
    means = [np.add.reduceat(column[tokens], firsts) / lengths for column in of_tokens]
    own = groups.of(spans.labels)
    return [*means, np.log(lengths), *((own == group).astype(np.float64) for group in range(len(groups)))]


def named_columns(of_tokens: Sequence[str], groups: Groups) -> list[str]:
    """What `span_columns` gives, in words. of_tokens (Sequence[str]): What the features of tokens say."""
    return [*of_tokens, *_OF_SPANS, *(f"a label of group {name}" for name in groups.names)]
