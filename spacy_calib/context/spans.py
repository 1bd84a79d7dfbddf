"""Scores of entities that look at what surrounds them. Knows arrays, never Docs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..calibration.recalibrators.logistic import log_odds
from ..calibration.span_features import firsts_of
from ..calibration.steps import Predictions
from ..schema import Saved, kept, lengths, several, text
from ..types import Floats, Groups, Spans
from .blocks import View
from .ridge import RidgeModel

# Scores are clipped to this distance from 0 and 1 before their log-odds are taken.
CLIP = 1e-4
# What is looked at besides the features of the tokens and the group of the label.
_OF_SPANS = ("entropy of its tokens' scores", "forms that are not known", "its length")


@dataclass(frozen=True, eq=False)
class SpanContext(Saved):
    """The step after the map of entities: logistic regression on the log-odds of the score and on what surrounds it.

    That is the mean of the tokens' features, how many forms are not known, the length, and the group of the label.
    groups (Groups): Of the labels. columns (tuple[str, ...]): What each feature says. model (RidgeModel): Fitted.
    """

    groups: Groups = kept(Groups.read)
    columns: tuple[str, ...] = kept(several(text))
    model: RidgeModel = kept(RidgeModel.read)

    @classmethod
    def agree(cls, held: dict[str, Any]) -> str:
        return lengths({"weights": len(held["columns"])}, {"weights": held["model"].weights})

    def apply(self, given: Predictions) -> Predictions:
        """Move the scores of the spans on the Docs."""
        kept = given.kept
        if given.spans is None or not len(kept):
            return given
        columns = span_columns(given.view, given.spans.take(kept), self.groups)
        scores = given.scores.copy()
        scores[kept] = self.model.predict(log_odds(scores[kept], CLIP), self.model.around(columns))
        return given.having(scores=scores)


def span_columns(view: View, spans: Spans, groups: Groups) -> list[Floats]:
    """The features of n spans. view (View): Of all tokens of their Docs."""
    lengths = spans.ends - spans.starts
    firsts = firsts_of(spans)
    tokens = np.repeat(spans.starts - firsts, lengths) + np.arange(lengths.sum())
    of_tokens = [*view.columns, view.around.entropy, view.unknown.astype(np.float64)]
    means = [np.add.reduceat(column[tokens], firsts) / lengths for column in of_tokens]
    own = groups.of(spans.labels)
    return [*means, np.log(lengths), *((own == group).astype(np.float64) for group in range(len(groups)))]


def named_columns(of_tokens: Sequence[str], groups: Groups) -> list[str]:
    """What the columns of `span_columns` say. of_tokens (Sequence[str]): What the features of tokens say."""
    return [*of_tokens, *_OF_SPANS, *(f"a label of group {name}" for name in groups.names)]
