"""Marginals, gold and a threshold -> thresholded sparse pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import calib_error
from ..types import Ints, Marginals, Pairs

# Rows of a dense block that are looked at together: keeps a document of 100,000 tokens and 600 tags in bounds.
_BLOCK_CELLS = 1 << 22


def check_threshold(threshold: float) -> float:
    """RAISES C001: threshold is not a number in [0, 1)."""
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float, np.number)) or not 0 <= threshold < 1:
        raise calib_error("C001", name="threshold", wanted="a number in [0, 1)", given=repr(threshold))
    return float(threshold)


def from_dense(scores: NDArray[Any], threshold: float = 0.01) -> Marginals:
    """Keep the entries of a dense array that reach the threshold.

    scores: Probabilities, shape (n_tokens, n_tags).
    threshold (float): Entries below it are dropped (Kranzlein et al. 2021, section 3.1).
    RAISES C001: the array is not two-dimensional, or the threshold out of range.
    """
    if scores.ndim != 2:
        raise calib_error("C001", name="marginals", wanted="an array (tokens, tags)", given=f"shape {scores.shape}")
    check_threshold(threshold)
    rows, tags, kept = [], [], []
    step = max(1, _BLOCK_CELLS // max(1, scores.shape[1]))
    for start in range(0, max(1, len(scores)), step):
        block = scores[start : start + step]
        # flatnonzero on the flat view is several times as fast as nonzero in two dimensions; the threshold is an array, so that
        # float32 scores are compared with it in float64 by every numpy
        flat = np.flatnonzero(block.ravel() >= np.array([threshold]))
        row = flat // max(1, scores.shape[1])  # by one number: several times as fast as divmod
        rows.append(row + start)
        tags.append(flat - row * scores.shape[1])
        kept.append(block.ravel()[flat].astype(np.float64))
    return Marginals(np.concatenate(rows), np.concatenate(tags), np.concatenate(kept), len(scores))


def from_sparse(matrix: Any, threshold: float = 0.01) -> Marginals:
    """Keep the stored entries of a scipy sparse matrix (tokens, tags) that reach the threshold; duplicates are summed first.

    RAISES C001: the threshold is out of range.
    """
    check_threshold(threshold)
    csr = matrix.tocsr(copy=True)
    csr.sum_duplicates()
    coo = csr.tocoo()
    keep = coo.data >= np.array([threshold])
    return Marginals(
        coo.row[keep].astype(np.intp), coo.col[keep].astype(np.intp), coo.data[keep].astype(np.float64), matrix.shape[0]
    )


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


def top_pairs(pairs: Pairs) -> Ints:
    """Index of the highest-scored pair of each unit that has one; of equals that of the lowest column (what argmax chooses)."""
    if not len(pairs):
        return np.zeros(0, dtype=np.intp)
    order = np.lexsort((pairs.tags, -pairs.scores, pairs.rows))
    first = np.ones(len(order), dtype=bool)
    first[1:] = np.diff(pairs.rows[order]) != 0
    return order[first]
