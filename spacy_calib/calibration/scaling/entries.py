"""The tags of a token beside one another: what a scaling works on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...types import Floats, Ints

# So many tags of a token, the likeliest, bear on the others.
MOST_INPUTS = 16
# The probability of all tags below the floor together is taken to be at least this, so that its log is finite.
LEAST_REST = 1e-6
# A tag below the floor (the one that a token carries) is taken to have at least this probability.
LEAST = 1e-12
# Codes are numbered by sorting where a table of them would have more cells.
_LARGEST_TABLE = 1 << 22


@dataclass(frozen=True, eq=False)
class Entries:
    """Log-probabilities of the tags of n tokens, token by token, likeliest first; each token ends with its rest.

    The rest is one more outcome: that the tag is none of those with an entry.

    starts (Ints): First entry of each token, shape (n,). tokens (Ints): Token of each entry, 0 to n - 1. tags (Ints):
        Its tag; n_tags for a rest, n_tags + 1 for all tags past the end.
    logs (Floats): Its log-probability. inputs (Floats): log(p / floor), 0 for a rest and below the floor.
    origin (Ints): Place of each entry in what was given, -1 for a rest.
    sources, targets (Ints): Pairs of entries of one token: how likely the source is bears on the target.
    n_tags (int): Number of tags.
    """

    starts: Ints
    tokens: Ints
    tags: Ints
    logs: Floats
    inputs: Floats
    origin: Ints
    sources: Ints
    targets: Ints
    n_tags: int

    def __len__(self) -> int:
        return len(self.tags)

    @property
    def codes(self) -> Ints:
        """(tag of the source, tag of the target) as one number, for each pair of entries."""
        return self.tags[self.sources] * (self.n_tags + 2) + self.tags[self.targets]


def lay_out(rows: Ints, tags: Ints, scores: Floats, n_tags: int, floor: float, pairwise: bool = True) -> Entries:
    """Entries of the tokens that have any.

    rows (Ints): Token of each of n scores, in whatever order. tags, scores: Its tag and probability.
    pairwise (bool): False leaves out the pairs of entries.
    """
    distinct, token = np.unique(rows, return_inverse=True)
    n = len(distinct)
    # Within a token: its tags, likeliest first; then the rest.
    tokens = np.concatenate([token, np.arange(n)])
    columns = np.concatenate([np.minimum(tags, n_tags + 1), np.full(n, n_tags)])
    columns[: len(tags)][tags == n_tags] = n_tags + 1
    values = np.concatenate([np.maximum(scores, LEAST), np.zeros(n)])
    is_rest = np.arange(len(tokens)) >= len(rows)
    order = np.lexsort((columns, -values, is_rest, tokens))
    tokens, columns, values, is_rest = tokens[order], columns[order], values[order], is_rest[order]
    # Added up in this order, so that the order given does not matter.
    values[is_rest] = np.maximum(1.0 - np.bincount(tokens, values, n), LEAST_REST)
    logs = np.log(values)
    starts = np.searchsorted(tokens, np.arange(n))
    inputs = np.where(is_rest, 0.0, np.maximum(logs - np.log(floor), 0.0))
    sources = targets = np.zeros(0, dtype=np.intp)
    if pairwise:
        fan = np.minimum(np.bincount(token, minlength=n), MOST_INPUTS)[tokens]
        targets = np.repeat(np.arange(len(tokens)), fan)
        sources = np.arange(len(targets)) - np.repeat(np.cumsum(fan) - fan, fan) + np.repeat(starts[tokens], fan)
    origin = np.where(is_rest, -1, order)
    return Entries(starts, tokens, columns, logs, inputs, origin, sources, targets, n_tags)


def number_codes(codes: Ints, size: int) -> tuple[Ints, Ints]:
    """As np.unique with inverse: (distinct codes, ascending; place of each), by a table instead of sorting millions.

    codes (Ints): In [0, size).
    """
    if size > _LARGEST_TABLE:
        return np.unique(codes, return_inverse=True)
    there = np.zeros(size, dtype=bool)
    there[codes] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[codes]
