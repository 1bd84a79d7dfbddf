"""Where the tags of a model and those of the gold look like two conventions, and the line through raw scores where they agree.

The line is fitted without the tokens on which conventions differ; a step after a context shrinks its scores towards it. Knows arrays, never Docs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..pairs.build import find_top
from ..types import Floats, Ints, Pairs
from .recalibrators import Platt
from .recalibrators.logistic import combine, log_odds, sigmoid
from .steps import Predictions

# Conventions differ where the model is this sure of a tag and the gold has another: for so many tokens, for such a
# share of those of which it is so sure, so many times as often as the scores let expect, and in such a share of the
# cases where the gold disagrees. Errors go many ways, and another name is one.
_SURE, _FEWEST, _RATE, _TIMES, _ONE_WAY = 0.9, 10, 0.03, 5.0, 0.5


@dataclass(frozen=True, eq=False)
class Convention:
    """A tag of the model that some gold names otherwise.

    file (int): Number of the gold file, from 0. predicted_tag, gold (int): Columns of both tags. rows: Tokens.
    n_confident (int): To how many tokens the model gives its tag with confidence. in_gold (int): How many the gold calls so too, in all files.
    """

    file: int
    predicted_tag: int
    gold: int
    rows: Ints
    n_confident: int
    in_gold: int = 0

    def to_dict(self, labels: Sequence[str]) -> dict[str, Any]:
        """In names: "file", "said" and "gold", "tokens" "of" so many, and "in_gold". labels (Sequence[str]): Names of the columns."""
        return {
            "file": self.file, "said": labels[self.predicted_tag], "gold": labels[self.gold], "tokens": len(self.rows), "of": self.n_confident,
            "in_gold": self.in_gold,
        }  # fmt: skip


def find_conventions(pairs: Pairs, gold: Ints, files: Ints) -> list[Convention]:
    """Find where conventions differ, file by file; most tokens first. gold: Of each token. files: Gold file of each pair."""
    confident = np.flatnonzero(find_top(pairs.rows, pairs.scores) & (pairs.scores >= _SURE))
    conventions = []
    for file, tag in np.unique(np.stack([files[confident], pairs.tags[confident]]), axis=1).T.tolist():
        indices = confident[(files[confident] == file) & (pairs.tags[confident] == tag)]
        rows, n_expected = pairs.rows[indices], float((1.0 - pairs.scores[indices]).sum())
        columns, counts = np.unique(gold[rows], return_counts=True)
        disagreeing = counts[(columns != tag) & (columns != -2)].sum()
        minimum = max(_FEWEST, _RATE * len(indices), _TIMES * n_expected, _ONE_WAY * disagreeing)
        for column, n in zip(columns.tolist(), counts.tolist(), strict=True):
            if column not in (tag, -1, -2) and n >= minimum:
                in_gold = int(np.count_nonzero(gold == tag))
                conventions.append(Convention(file, tag, column, rows[gold[rows] == column], len(indices), in_gold))
    return sorted(conventions, key=lambda convention: -len(convention.rows))


def fit_line(pairs: Pairs, conventions: Sequence[Convention]) -> Floats:
    """Fit Platt scaling (slope and constant) to raw scores, without the tokens on which conventions differ."""
    rows = np.concatenate([np.zeros(0, dtype=np.intp), *(convention.rows for convention in conventions)])
    own_tokens = pairs.take(np.flatnonzero(~np.isin(pairs.rows, rows)))
    line = Platt()
    line.fit(own_tokens.scores, own_tokens.hits)
    return line.coefficients_


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """Mean of a map's log-odds and those on `line` (slope and constant, of raw log-odds), which has the weight `shrink`."""

    shrink: float
    line: Floats

    def apply(self, predictions: Predictions) -> Predictions:
        """Shrink the scores of all entries."""
        on_line = combine(Platt().features(predictions.raw), self.line)
        return predictions.having(scores=sigmoid((1.0 - self.shrink) * log_odds(predictions.scores) + self.shrink * on_line))
