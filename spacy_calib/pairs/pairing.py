"""Pairs: marginals with gold. Functions that make, join and select them, and a class for pairs before and after calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import calib_error
from ..types import Floats, Ints, Marginals, Pairs
from .documents import DOCUMENT


def pair_up(marginals: Marginals, gold: ArrayLike) -> Pairs:
    """Make a pair of each marginal: its score, and whether its tag is the gold tag.

    marginals (Marginals): Of n tokens. gold: Column of each token's gold tag, shape (n,); -1 if the model does not know the tag
        (all pairs of the token are misses), -2 if there is none (the token is left out).
    RETURNS (Pairs): Rows keep the numbers of the tokens in `marginals`. RAISES C002: gold of another length.
    """
    columns, n_tokens = np.asarray(gold, dtype=np.intp), marginals.n_tokens
    if columns.shape != (n_tokens,):
        raise calib_error("C002", what="Pairing", first="token", second="gold tag", n_first=n_tokens, n_second=columns.size)
    gold_tags = columns[marginals.rows]  # of the token of each marginal
    keep = gold_tags != -2  # the token has a gold tag
    hits = gold_tags[keep] == marginals.tags[keep]
    n_units = int(np.count_nonzero(columns != -2))  # tokens with gold
    return Pairs(marginals.rows[keep], marginals.tags[keep], marginals.scores[keep], hits, n_units)


def concatenate(parts: Sequence[Pairs]) -> Pairs:
    """Join the pairs of consecutive runs of tokens. Rows are token numbers, from 0 in each part and in the result."""
    if not parts:
        return Pairs.empty()
    offsets = np.cumsum([0, *(part.n_units for part in parts)])
    rows = [part.rows + offset for part, offset in zip(parts, offsets[:-1], strict=True)]
    tags, scores, hits = (np.concatenate([getattr(part, name) for part in parts]) for name in ("tags", "scores", "hits"))
    return Pairs(np.concatenate(rows), tags, scores, hits, int(offsets[-1]))


def interleave(first: Pairs, second: Pairs) -> tuple[Pairs, Ints]:
    """Merge the pairs of two disjoint sets of tokens of one text, in the order of the text.

    first, second (Pairs): The pairs of both sets; rows are numbers of tokens in the text.
    RETURNS (tuple): The pairs, and the index of each in the concatenation of first and second.
    """
    arrays = [(part.rows, part.tags, part.scores, part.hits) for part in (first, second)]
    rows, tags, scores, hits = map(np.concatenate, zip(*arrays, strict=True))
    order = np.argsort(rows, kind="stable")
    return Pairs(rows, tags, scores, hits, first.n_units + second.n_units).take(order), order


def top_pairs(pairs: Pairs) -> Ints:
    """Return the index of the highest-scored pair of each token or entity; among equal scores the pair with the lowest tag."""
    order = np.lexsort((pairs.tags, -pairs.scores, pairs.rows))  # by token, then the highest score first
    is_first = np.diff(pairs.rows[order], prepend=-1) != 0  # of its token
    return order[is_first]


def find_top(rows: Ints, scores: Floats) -> NDArray[np.bool_]:
    """Return whether each entry is the highest-scored of its token, the first of equal ones. rows: Token of each, ascending."""
    is_first = np.empty(len(rows), dtype=bool)  # whether each entry is the first of its token
    is_first[:1], is_first[1:] = True, rows[1:] != rows[:-1]
    starts = is_first.nonzero()[0]
    if len(starts) == len(rows):  # one entry for each token
        return is_first
    token_numbers = is_first.cumsum() - 1
    is_top = scores == np.maximum.reduceat(scores, starts)[token_numbers]
    if np.count_nonzero(is_top) > len(starts):  # equal scores: unmark all but the first of each token
        top = is_top.nonzero()[0]
        is_repeated = rows[top[1:]] == rows[top[:-1]]
        is_top[top[1:][is_repeated]] = False
    return is_top


@dataclass(frozen=True, eq=False)
class JudgedPairs:
    """Scores of n predictions with gold, before and after calibration: of (token, label) pairs, or of spans.

    pairs (Pairs): Raw scores and hits. calibrated (Floats): The calibrated score of each pair.
    documents (Ints): Document of each pair. unit (str): What counts as a document, such as "sentence".
    """

    pairs: Pairs
    calibrated: Floats
    documents: Ints
    unit: str = DOCUMENT

    def __len__(self) -> int:
        return len(self.pairs)
