"""The log-probabilities of all tags of a token as a scaling reads them, and a fitted scaling applied as a matrix product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...types import Floats, Ints

FLOOR = 1e-4  # a scaling reads the tags of a token that have at least this probability
MOST_INPUTS = 16  # so many top tags of a token influence the others
LEAST_REST = 1e-6  # lower bound of the probability of all tags below FLOOR together, so that its log is finite
LEAST = 1e-12  # lower bound of the probability of a tag below FLOOR (a predicted label)
_LARGEST_TABLE = 1 << 22  # codes are numbered by sorting where a table of them would have more cells


@dataclass(frozen=True, eq=False)
class Entries:
    """Log-probabilities of the tags of n tokens. The entries of a token are consecutive, highest first, and end with its rest.

    The rest of a token is one more outcome: that its tag is none of those with an entry.
    starts (Ints): First entry of each token, shape (n,). tokens (Ints): Token of each entry, 0 to n - 1. tags (Ints): Tag of
        each entry; n_tags for a rest, n_tags + 1 for all tags with a higher number than those of the fit. n_tags (int): Tags of
        the fit. logs (Floats): Log-probability of each entry. inputs (Floats): log(p / FLOOR), by which an entry influences
        others; 0 for a rest or below FLOOR. origin (Ints): Index of each entry in the arguments of `lay_out`, -1 for a rest.
    sources, targets (Ints): Pairs of entries of one token, as indices: the input of the source influences the target.
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
        """(Tag of the source, tag of the target) as one number, for each pair of entries."""
        return self.tags[self.sources] * (self.n_tags + 2) + self.tags[self.targets]


def lay_out(rows: Ints, tags: Ints, scores: Floats, n_tags: int, pairwise: bool = True) -> Entries:
    """Sort scores of tokens, and the rest of each token (the probability of all its other tags), into Entries.

    rows, tags, scores: Token, tag and probability of each score, in any order; tokens are numbered anew from 0.
    n_tags (int): Number of tags; those from n_tags on become n_tags + 1. pairwise (bool): Whether to fill `sources`, `targets`.
    """
    distinct, token_of_score = np.unique(rows, return_inverse=True)
    n_tokens, n_scores = len(distinct), len(rows)
    # One entry per score, then one per token for its rest, with tag n_tags; so a tag past the end (>= n_tags) gets n_tags + 1.
    tokens = np.concatenate([token_of_score, np.arange(n_tokens)])
    entry_tags = np.concatenate([np.where(tags >= n_tags, n_tags + 1, tags), np.full(n_tokens, n_tags)])
    values = np.concatenate([np.maximum(scores, LEAST), np.zeros(n_tokens)])
    is_rest = np.arange(len(tokens)) >= n_scores
    # Within a token: its tags, highest score first; then the rest.
    order = np.lexsort((entry_tags, -values, is_rest, tokens))
    tokens, entry_tags, values, is_rest = tokens[order], entry_tags[order], values[order], is_rest[order]
    # Summed after sorting, so that the order of the arguments does not change the last bit.
    values[is_rest] = np.maximum(1.0 - np.bincount(tokens, values, n_tokens), LEAST_REST)
    logs = np.log(values)
    starts = np.searchsorted(tokens, np.arange(n_tokens))
    inputs = np.where(is_rest, 0.0, np.maximum(logs - np.log(FLOOR), 0.0))  # 0 at FLOOR: no jump where a tag crosses it
    sources = targets = np.zeros(0, dtype=np.intp)
    if pairwise:
        # Each entry is the target of its token's first (highest) entries, the rest not among them. The sources of a target
        # are a run in the arrays, from index `firsts` on; within it they count up from the first entry of the token.
        n_sources = np.minimum(np.bincount(token_of_score, minlength=n_tokens), MOST_INPUTS)[tokens]
        targets = np.repeat(np.arange(len(tokens)), n_sources)
        firsts = np.cumsum(n_sources) - n_sources
        sources = np.arange(len(targets)) + np.repeat(starts[tokens] - firsts, n_sources)
    origin = np.where(is_rest, -1, order)
    return Entries(starts, tokens, entry_tags, logs, inputs, origin, sources, targets, n_tags)


def number_codes(codes: Ints, size: int) -> tuple[Ints, Ints]:
    """Return (distinct codes, index of each code in them), as np.unique does but without sorting. codes: In [0, size)."""
    if size > _LARGEST_TABLE:
        return np.unique(codes, return_inverse=True)
    is_present = np.zeros(size, dtype=bool)
    is_present[codes] = True
    return np.flatnonzero(is_present), (np.cumsum(is_present) - 1)[codes]


# Tables of weights with more cells than this are kept sparse; tokens are scaled in parts whose tables have no more.
_CELLS = 1 << 22
# Margins farther above the highest input of their token are cut to this (probability 1), or exp would overflow.
_LARGEST = 600.0
# With margins no farther from 0, quotients of their exponentials neither overflow nor vanish.
_SAFE_MARGIN = 300.0


class PairwiseScaler:
    """A fitted log-linear scaling, which scales many tokens by one product of matrices.

    Probabilities are the softmax of margins: of a tag, factor * log p + its bias + weighted inputs of the token's tags.
    factor (float). biases (Floats): One for each of n_tags tags, one for the rest of a token, one for all tags added later.
    codes (Ints), weights (Floats): source * (n_tags + 2) + target of each pair of tags with a weight, and the weight.
    is_diagonal (bool): Whether a tag influences only itself.
    """

    def __init__(self, factor: float, biases: Floats, codes: Ints, weights: Floats, is_diagonal: bool):
        """Put the weights of pairs of tags into a table (source, target), or into a vector of targets if `is_diagonal`."""
        from scipy.sparse import csr_matrix

        self.factor, self.biases = factor, biases
        self.n_tags = len(biases) - 2  # the last two biases are those of the rest, and of tags added after the fit
        self.diagonal: Floats | None = None
        if is_diagonal:
            self.diagonal = np.zeros(len(biases))
            self.diagonal[codes % len(biases)] = weights  # at the target of each code
            codes, weights = codes[:0], weights[:0]
        sources, targets = np.divmod(codes, len(biases))  # code = source * len(biases) + target
        # Rows and columns of the tags with a weight; one more column, of zeros, is for all other tags.
        row_tags, rows = np.unique(sources, return_inverse=True)
        column_tags, columns = np.unique(targets, return_inverse=True)
        # Row of each source in the table (-1 without a weight), and column of each target.
        self.row_of = np.full(len(biases), -1, dtype=np.int32)
        self.row_of[row_tags] = np.arange(len(row_tags))
        self.column_of = np.full(len(biases), len(column_tags), dtype=np.intp)
        self.column_of[column_tags] = np.arange(len(column_tags))
        self.n_columns = len(column_tags) + 1
        table: Any = csr_matrix((weights, (rows, columns)), (len(row_tags), self.n_columns))
        self.table = table.toarray() if len(row_tags) * self.n_columns <= _CELLS else table

    def scale(self, tokens: Ints, tags: Ints, scores: Floats, is_input: NDArray[np.bool_] | None) -> Floats:
        """Return the scaled scores of n > 0 entries, tokens ascending. is_input: Whether each influences others; None: all."""
        begins = np.ones(len(tokens), dtype=bool)  # whether an entry is the first of its token
        np.not_equal(tokens[1:], tokens[:-1], out=begins[1:])
        starts = np.flatnonzero(begins)
        n_together = max(1, _CELLS // self.n_columns)  # number of tokens that are scaled together
        if len(starts) <= n_together:
            return self._scale(starts, tags, scores, is_input)
        bounds, scaled_parts = np.append(starts, len(tokens)), []
        for first_token in range(0, len(starts), n_together):
            part_bounds = bounds[first_token : first_token + n_together + 1]
            part = slice(part_bounds[0], part_bounds[-1])
            flags = None if is_input is None else is_input[part]
            scaled_parts.append(self._scale(part_bounds[:-1] - part_bounds[0], tags[part], scores[part], flags))
        return np.concatenate(scaled_parts)

    def _scale(self, starts: Ints, tags: Ints, scores: Floats, is_input: NDArray[np.bool_] | None) -> Floats:
        """Scale the entries of a few tokens, whose table fits in memory: the softmax over each token's entries and its rest.

        starts (Ints): First entry of each token. tags, scores: Of each entry. is_input: If it influences others; None: all do.
        """
        begins = np.zeros(len(tags), dtype=np.intp)
        begins[starts] = 1
        token = begins.cumsum() - 1  # of each entry
        # Index in `biases`: n_tags is for the rest, n_tags + 1 for all tags that were appended after the fit.
        tag_codes = np.where(tags >= self.n_tags, self.n_tags + 1, tags)
        logs = np.log(np.maximum(scores, LEAST))
        inputs = np.maximum(logs - np.log(FLOOR), 0.0)
        input_scores = scores if is_input is None else np.where(is_input, scores, 0.0)
        rest = np.log(np.maximum(1.0 - np.bincount(token, input_scores), LEAST_REST))
        margins = self.factor * logs + self.biases[tag_codes]
        rest_margins = self.factor * rest + self.biases[self.n_tags]
        if self.diagonal is not None:
            margins += self.diagonal[tag_codes] * inputs
        if is_input is not None:
            inputs[~is_input] = 0.0  # not before: an entry that is no input influences its own margin, but no other tag's
        if self.n_columns > 1:
            terms = self._pairwise_terms(starts, tag_codes, inputs)
            margins += _look_up(terms, token, self.column_of[tag_codes])
            rest_margins += _column(terms, self.column_of[self.n_tags])
        if max(np.abs(margins).max(), np.abs(rest_margins).max()) > _SAFE_MARGIN:
            input_margins = margins if is_input is None else np.where(is_input, margins, -np.inf)
            highest = np.maximum(np.maximum.reduceat(input_margins, starts), rest_margins)  # subtracted, or exp overflows
            # An entry that is no input may be above the highest, and then gets the probability 1.
            margins, rest_margins = np.minimum(margins - highest[token], _LARGEST), rest_margins - highest
        odds = np.exp(margins)
        sums = np.bincount(token, odds if is_input is None else np.where(is_input, odds, 0.0)) + np.exp(rest_margins)
        return np.minimum(odds / sums[token], 1.0)

    def _pairwise_terms(self, starts: Ints, tag_codes: Ints, inputs: Floats) -> Any:
        """Return for each token and target tag the sum of the token's inputs times their weights, (n_tokens, n_columns).

        starts: First entry of each token. tag_codes: Index in `biases` of each entry's tag.
        """
        from scipy.sparse import csr_matrix

        rows = self.row_of[tag_codes]
        has_weight = (inputs > 0) & (rows >= 0)
        bounds = np.append(starts, len(tag_codes))  # of each token's entries
        lengths = bounds[1:] - bounds[:-1]
        long_tokens = np.flatnonzero(lengths > MOST_INPUTS)  # only their highest inputs count
        if len(long_tokens):
            has_weight[_find_lower_inputs(starts[long_tokens], lengths[long_tokens], inputs)] = False
        if not has_weight.all():
            bounds = np.concatenate([[0], np.cumsum(has_weight)])[bounds]  # among the entries with a weight
            rows, inputs = rows[has_weight], inputs[has_weight]
        shape = (len(starts), self.table.shape[0])
        return csr_matrix((inputs, rows, bounds.astype(rows.dtype)), shape) @ self.table


def _look_up(table: Any, rows: Ints, columns: Ints) -> Floats:
    """Return table[rows, columns] of a dense or sparse table, shape (n,)."""
    if isinstance(table, np.ndarray):
        return table.ravel().take(rows * table.shape[1] + columns)
    return np.asarray(table[rows, columns]).ravel()


def _column(table: Any, column: int) -> Floats:
    """Return one column of a dense or sparse table, shape (n_rows,)."""
    return table[:, column] if isinstance(table, np.ndarray) else table[:, [column]].toarray().ravel()


def _find_lower_inputs(starts: Ints, lengths: Ints, inputs: Floats) -> Ints:
    """Return the indices of inputs other than the MOST_INPUTS highest of a token. starts, lengths: Of each token's inputs."""
    offsets = np.arange(lengths.max())
    is_entry = offsets < lengths[:, None]
    index = np.where(is_entry, starts[:, None] + offsets, 0)
    table = np.where(is_entry, inputs[index], -1.0)  # a row per token; -1, below all inputs, fills it up
    lowest = np.partition(table, -MOST_INPUTS, axis=1)[:, [-MOST_INPUTS]]  # of the highest inputs of each token
    is_above, is_equal = table > lowest, table == lowest
    n_places = MOST_INPUTS - is_above.sum(axis=1, keepdims=True)  # left for inputs equal to the lowest
    is_top = is_above | (is_equal & (np.cumsum(is_equal, axis=1) <= n_places))
    return index[is_entry & ~is_top]
