"""The tags of a token beside one another: what a scaling is fitted on, and a fitted one made ready for many tokens at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    """Entries of the tokens that have any. rows: Token of each score, in any order. pairwise: False leaves out pairs."""
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
    """np.unique with inverse, by a table instead of sorting millions. codes (Ints): In [0, size)."""
    if size > _LARGEST_TABLE:
        return np.unique(codes, return_inverse=True)
    there = np.zeros(size, dtype=bool)
    there[codes] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[codes]


# Tables of weights with more cells than this are kept sparse; tokens are scaled in parts whose tables have no more.
_CELLS = 1 << 22
# An entry below the floor whose margin is farther above the highest of its token counts as certain: exp overflows.
_LARGEST = 600.0
# With margins no farther from 0, quotients of their exponentials neither overflow nor vanish.
_SAFE_MARGIN = 300.0


class PairwiseScaler:
    """What `Entries` pairs one by one, added up by one product of matrices.

    factor (float), biases (Floats): Of log p; of each tag, the rest, and tags past the end: shape (n_tags + 2,).
    codes (Ints), weights (Floats): source * (n_tags + 2) + target of tags that bear on others; their weights.
    alone (bool): Each tag bears on itself only.
    """

    def __init__(self, factor: float, biases: Floats, codes: Ints, weights: Floats, floor: float, alone: bool):
        from scipy.sparse import csr_matrix

        self.factor, self.biases, self.floor = factor, biases, floor
        self.n_tags = len(biases) - 2
        self.alone: Floats | None = None
        if alone:
            self.alone = np.zeros(len(biases))
            self.alone[codes % len(biases)] = weights
            codes, weights = codes[:0], weights[:0]
        sources, targets = np.divmod(codes, len(biases))
        # Rows and columns of the tags that have any weight; one more column, of zeros, stands for all other tags.
        rows, row = np.unique(sources, return_inverse=True)
        columns, column = np.unique(targets, return_inverse=True)
        self.row_of = np.full(len(biases), -1, dtype=np.int32)
        self.row_of[rows] = np.arange(len(rows))
        self.column_of = np.full(len(biases), len(columns), dtype=np.intp)
        self.column_of[columns] = np.arange(len(columns))
        table: Any = csr_matrix((weights, (row, column)), (len(rows), len(columns) + 1))
        self.n_columns = len(columns) + 1
        self.table = table.toarray() if len(rows) * self.n_columns <= _CELLS else table

    def scale(self, tokens: Ints, tags: Ints, scores: Floats, counted: NDArray[np.bool_] | None) -> Floats:
        """The scaled probabilities of n >= 1 entries. tokens (Ints): Ascending. The other arguments: See `Scaling.scale`."""
        begins = np.ones(len(tokens), dtype=bool)
        np.not_equal(tokens[1:], tokens[:-1], out=begins[1:])
        starts = np.flatnonzero(begins)
        step = max(1, _CELLS // self.n_columns)
        if len(starts) <= step:
            return self._scale(starts, tags, scores, counted)
        cuts = [*starts[::step].tolist(), len(tokens)]
        parts = [slice(first, last) for first, last in zip(cuts[:-1], cuts[1:], strict=True)]
        own = [starts[at : at + step] - starts[at] for at in range(0, len(starts), step)]
        return np.concatenate(
            [
                self._scale(first, tags[part], scores[part], None if counted is None else counted[part])
                for first, part in zip(own, parts, strict=True)
            ]
        )

    def _scale(self, starts: Ints, tags: Ints, scores: Floats, counted: NDArray[np.bool_] | None) -> Floats:
        """As `scale`, of tokens that fit into one table. starts (Ints): First entry of each token."""
        lengths = np.diff(starts, append=len(tags))
        token = np.repeat(np.arange(len(starts)), lengths)
        # The number of the rest is no tag's: a label of that number was appended after the fit.
        own = np.where(tags >= self.n_tags, self.n_tags + 1, tags)
        logs = np.log(np.maximum(scores, LEAST))
        inputs = np.maximum(logs - np.log(self.floor), 0.0)
        part = scores if counted is None else np.where(counted, scores, 0.0)
        rest = np.log(np.maximum(1.0 - np.bincount(token, part), LEAST_REST))
        margins = self.factor * logs + self.biases[own]
        of_rest = self.factor * rest + self.biases[self.n_tags]
        if self.alone is not None:
            margins += self.alone[own] * inputs
        if counted is not None:
            inputs[~counted] = 0.0  # they bear on no other tag
        if self.n_columns > 1:
            moved = self._moved(starts, lengths, own, inputs)
            margins += _cells(moved, token, self.column_of[own])
            of_rest += _column(moved, self.column_of[self.n_tags])
        if max(np.abs(margins).max(), np.abs(of_rest).max()) > _SAFE_MARGIN:
            inside = margins if counted is None else np.where(counted, margins, -np.inf)
            highest = np.maximum(np.maximum.reduceat(inside, starts), of_rest)
            # An entry that is not counted may be above the highest, and is then as likely as can be.
            margins, of_rest = np.minimum(margins - highest[token], _LARGEST), of_rest - highest
        chances = np.exp(margins)
        sums = np.bincount(token, chances if counted is None else np.where(counted, chances, 0.0)) + np.exp(of_rest)
        return np.minimum(chances / sums[token], 1.0)

    def _moved(self, starts: Ints, lengths: Ints, own: Ints, inputs: Floats) -> Any:
        """What the inputs of each token add to each tag, shape (n_tokens, n_columns)."""
        from scipy.sparse import csr_matrix

        rows = self.row_of[own]
        bears = (inputs > 0) & (rows >= 0)
        many = np.flatnonzero(lengths > MOST_INPUTS)
        if len(many):
            bears[_beyond(starts[many], lengths[many], inputs)] = False
        bounds = np.append(starts, len(own))
        if not bears.all():
            bounds = np.concatenate([[0], np.cumsum(bears)])[bounds]
            rows, inputs = rows[bears], inputs[bears]
        shape = (len(starts), self.table.shape[0])
        return csr_matrix((inputs, rows, bounds.astype(rows.dtype)), shape) @ self.table


def _cells(table: Any, rows: Ints, columns: Ints) -> Floats:
    """Single cells of a dense or sparse table."""
    if isinstance(table, np.ndarray):
        return table.ravel().take(rows * table.shape[1] + columns)
    return np.asarray(table[rows, columns]).ravel()


def _column(table: Any, column: int) -> Floats:
    """A column of a dense or sparse table."""
    return table[:, column] if isinstance(table, np.ndarray) else table[:, [column]].toarray().ravel()


def _beyond(starts: Ints, lengths: Ints, inputs: Floats) -> Ints:
    """Entries beyond the top MOST_INPUTS of each token. starts, lengths (Ints): First entry and number of entries."""
    place = np.arange(lengths.max())
    there = place < lengths[:, None]
    index = np.where(there, starts[:, None] + place, 0)
    table = np.where(there, inputs[index], -1.0)
    least = np.partition(table, -MOST_INPUTS, axis=1)[:, [-MOST_INPUTS]]
    above, equal = table > least, table == least
    stays = above | (equal & (np.cumsum(equal, axis=1) <= MOST_INPUTS - above.sum(axis=1, keepdims=True)))
    return index[there & ~stays]
