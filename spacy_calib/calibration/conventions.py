"""Where the tags of a model and those of the gold look like two conventions. Knows arrays, never Docs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..pairs.build import leading
from ..types import Ints, Pairs

# Conventions differ where the model is this sure of a tag and the gold has another: for so many tokens, for such a
# share of those of which it is so sure, so many times as often as the scores let expect, and in such a share of the
# cases where the gold disagrees. Errors go many ways, and another name is one.
_SURE, _FEWEST, _RATE, _TIMES, _ONE_WAY = 0.9, 10, 0.03, 5.0, 0.5


@dataclass(frozen=True, eq=False)
class Convention:
    """A tag of the model that some gold names otherwise.

    file (int): Number of the gold file, from 0. said, gold (int): Columns of both tags. rows: Tokens.
    of (int): How many tokens the model is sure to have its tag. in_gold (int): How many the gold calls so too, in all files.
    """

    file: int
    said: int
    gold: int
    rows: Ints
    of: int
    in_gold: int = 0

    def to_dict(self, labels: Sequence[str]) -> dict[str, Any]:
        """In names: "file", "said" and "gold", "tokens" "of" so many, and "in_gold". labels (Sequence[str]): Names of the columns."""
        return {
            "file": self.file, "said": labels[self.said], "gold": labels[self.gold], "tokens": len(self.rows), "of": self.of,
            "in_gold": self.in_gold,
        }  # fmt: skip


def find_conventions(pairs: Pairs, gold: Ints, files: Ints) -> list[Convention]:
    """Find where conventions differ, file by file; most tokens first. gold: Of each token. files: Gold file of each pair."""
    sure = np.flatnonzero(leading(pairs.rows, pairs.scores) & (pairs.scores >= _SURE))
    conventions = []
    for file, said in np.unique(np.stack([files[sure], pairs.tags[sure]]), axis=1).T.tolist():
        indices = sure[(files[sure] == file) & (pairs.tags[sure] == said)]
        rows, expected = pairs.rows[indices], float((1.0 - pairs.scores[indices]).sum())
        columns, counts = np.unique(gold[rows], return_counts=True)
        disagreeing = counts[(columns != said) & (columns != -2)].sum()
        minimum = max(_FEWEST, _RATE * len(indices), _TIMES * expected, _ONE_WAY * disagreeing)
        for column, n in zip(columns.tolist(), counts.tolist(), strict=True):
            if column not in (said, -1, -2) and n >= minimum:
                in_gold = int(np.count_nonzero(gold == said))
                conventions.append(Convention(file, said, column, rows[gold[rows] == column], len(indices), in_gold))
    return sorted(conventions, key=lambda convention: -len(convention.rows))
