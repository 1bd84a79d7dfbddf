"""Tags that the model and the gold use by different conventions, and Platt scaling fitted without the tokens concerned.

`Shrinkage`, a step after the maps, shrinks scores towards the line in log-odds that Platt scaling is. No Docs are needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..pairs.pairing import find_top
from ..types import Floats, Ints, Pairs
from .recalibrators import Platt
from .solvers import combine, log_odds, sigmoid
from .steps import Predictions

# Conventions differ if, of the tokens for which the model gives a tag at least _CONFIDENT, the gold has another, the same one
# each time: for at least _FEWEST tokens, a share _RATE of these tokens, _TIMES as many as the scores predict, and a share
# _ONE_WAY of those on which the gold disagrees. Errors have many different gold tags, a convention always the same one.
_CONFIDENT, _FEWEST, _RATE, _TIMES, _ONE_WAY = 0.9, 10, 0.03, 5.0, 0.5


@dataclass(frozen=True, eq=False)
class Convention:
    """A difference of conventions: where the model is confident of one tag, a gold file often has a certain other tag.

    file (int): Number of the gold file, from 0. predicted_tag, gold (int): Columns of the model's tag and of the gold's.
    n_confident (int): Number of tokens to which the model gives its tag confidently. rows (Ints): The ones among these that
    have the gold's tag. in_gold (int): Number of tokens with the model's tag in the gold of all files.
    """

    file: int
    predicted_tag: int
    gold: int
    rows: Ints
    n_confident: int
    in_gold: int = 0

    def to_dict(self, labels: Sequence[str]) -> dict[str, Any]:
        """Return "file", the tags "said" (by the model) and "gold", and three numbers of tokens: "tokens", "of", "in_gold".

        "of": tokens to which the model gives its tag confidently. "tokens": the ones among these with the gold's tag.
        "in_gold": tokens with the model's tag in the gold.
        """
        return {
            "file": self.file, "said": labels[self.predicted_tag], "gold": labels[self.gold], "tokens": len(self.rows),
            "of": self.n_confident, "in_gold": self.in_gold,
        }  # fmt: skip


def find_conventions(pairs: Pairs, gold: Ints, files: Ints) -> list[Convention]:
    """List the differences of conventions between the model and each gold file, those of most tokens first.

    gold (Ints): Index of each token's gold tag; -1: the model lacks it, -2: no gold. files (Ints): Each pair's gold file.
    """
    confident = np.flatnonzero(find_top(pairs.rows, pairs.scores) & (pairs.scores >= _CONFIDENT))  # a pair for each such token
    conventions = []
    for file, tag in np.unique(np.stack([files[confident], pairs.tags[confident]]), axis=1).T.tolist():
        indices = confident[(files[confident] == file) & (pairs.tags[confident] == tag)]
        rows, n_expected_errors = pairs.rows[indices], float((1.0 - pairs.scores[indices]).sum())
        gold_tags, counts = np.unique(gold[rows], return_counts=True)
        n_disagreeing = counts[(gold_tags != tag) & (gold_tags != -2)].sum()  # -2: no gold; -1: a tag that the model lacks
        # Enough tokens: as a number, as a share of the confident ones, compared with expected errors, among all that disagree.
        minimum = max(_FEWEST, _RATE * len(indices), _TIMES * n_expected_errors, _ONE_WAY * n_disagreeing)
        for gold_tag, n in zip(gold_tags.tolist(), counts.tolist(), strict=True):
            if gold_tag >= 0 and gold_tag != tag and n >= minimum:
                in_gold = int(np.count_nonzero(gold == tag))
                conventions.append(Convention(file, tag, gold_tag, rows[gold[rows] == gold_tag], len(indices), in_gold))
    return sorted(conventions, key=lambda convention: -len(convention.rows))


def fit_platt_on_agreeing_tokens(pairs: Pairs, conventions: Sequence[Convention]) -> Floats:
    """Fit Platt scaling to the scores of all tokens but those on which conventions differ; return its (slope, constant)."""
    differing_rows = np.concatenate([np.zeros(0, dtype=np.intp), *(convention.rows for convention in conventions)])
    agreeing_pairs = pairs.take(np.flatnonzero(~np.isin(pairs.rows, differing_rows)))
    platt = Platt()
    platt.fit(agreeing_pairs.scores, agreeing_pairs.hits)
    return platt.coefficients_


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """A step that moves log-odds a share `shrink` (0 to 1) of the way to a * raw log-odds + c, where line = (a, c)."""

    shrink: float
    line: Floats

    def apply(self, predictions: Predictions) -> Predictions:
        on_line = combine(Platt().features(predictions.raw), self.line)  # log-odds on the line
        margins = (1.0 - self.shrink) * log_odds(predictions.scores) + self.shrink * on_line
        return predictions.replace_unchecked(scores=sigmoid(margins))
