"""Marginals and gold -> pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import calib_error
from ..types import Floats, Ints, Marginals, Pairs


def pair_up(marginals: Marginals, gold: ArrayLike) -> Pairs:
    """Pair each kept marginal with whether its tag is the gold one.

    marginals (Marginals): Of n tokens.
    gold: Column of the gold tag of each token, shape (n,): -1 where the model does not know the gold tag (every pair of that token is
        a miss), -2 where there is no gold (the token is left out).
    RETURNS (Pairs): Rows keep the numbers of the tokens in `marginals`.
    RAISES C002: gold of another length.
    """
    wanted = np.asarray(gold, dtype=np.intp)
    if wanted.shape != (marginals.n_tokens,):
        raise calib_error(
            "C002", what="Pairing", first="token", second="gold tag", n_first=marginals.n_tokens, n_second=wanted.size
        )
    of_row = wanted[marginals.rows]
    keep = of_row != -2
    hits = of_row[keep] == marginals.tags[keep]
    return Pairs(marginals.rows[keep], marginals.tags[keep], marginals.scores[keep], hits, int(np.count_nonzero(wanted != -2)))


def concatenate(parts: Sequence[Pairs]) -> Pairs:
    """Pairs of several documents as one; rows are renumbered so that no two documents share one."""
    if not parts:
        empty = np.zeros(0, dtype=np.intp)
        return Pairs(empty, empty, np.zeros(0), np.zeros(0, dtype=bool), 0)
    spans = [int(p.rows[-1]) + 1 if len(p) else 0 for p in parts]
    offsets = np.cumsum([0, *spans[:-1]])
    return Pairs(
        np.concatenate([p.rows + offset for p, offset in zip(parts, offsets, strict=True)]),
        np.concatenate([p.tags for p in parts]),
        np.concatenate([p.scores for p in parts]),
        np.concatenate([p.hits for p in parts]),
        sum(p.n_units for p in parts),
    )


def interleave(one: Pairs, other: Pairs) -> tuple[Pairs, Ints]:
    """(the pairs of two sets of tokens of one text in the order of the text, the place of each in "one, then other").

    one, other (Pairs): Their rows number the same tokens.
    """
    rows, tags, scores, hits = (
        np.concatenate([getattr(part, name) for part in (one, other)]) for name in ("rows", "tags", "scores", "hits")
    )
    order = np.argsort(rows, kind="stable")
    return Pairs(rows, tags, scores, hits, one.n_units + other.n_units).take(order), order


def top_pairs(pairs: Pairs) -> Ints:
    """Index of the highest-scored pair of each unit that has one; of equals that of the lowest column (what argmax chooses)."""
    if not len(pairs):
        return np.zeros(0, dtype=np.intp)
    order = np.lexsort((pairs.tags, -pairs.scores, pairs.rows))
    first = np.ones(len(order), dtype=bool)
    first[1:] = np.diff(pairs.rows[order]) != 0
    return order[first]


def leading(rows: Ints, scores: Floats) -> NDArray[np.bool_]:
    """Whether each entry is the highest-scored one of its token; of equals the first.

    rows (Ints): Token of each entry, ascending. scores (Floats): One per entry.
    """
    first = np.zeros(len(rows), dtype=bool)
    if len(rows):
        starts = np.flatnonzero(np.append(True, np.diff(rows) != 0))
        highest = np.maximum.reduceat(scores, starts)
        token = np.cumsum(np.append(True, np.diff(rows) != 0)) - 1
        among = np.flatnonzero(scores == highest[token])
        _, place = np.unique(token[among], return_index=True)
        first[among[place]] = True
    return first
