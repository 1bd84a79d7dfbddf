"""Whole documents into folds, scores by models that did not see the fold, and documents left out at equal distances."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..types import Floats, Ints


def contiguous_folds(documents: Ints, n_folds: int, weights: Ints | None = None) -> Ints:
    """The fold of each pair: documents that follow one another by number share a fold, and folds hold about equally many pairs.

    So parts of one text that a converter cut into several documents seldom stand on both sides.

    documents (Ints): Of the pairs; parts of one document need not follow one another. weights (Ints | None): How often each pair is there.
    """
    _, codes = np.unique(documents, return_inverse=True)
    counts = np.bincount(codes, weights)
    middle = np.cumsum(counts) - counts / 2
    of_document = np.minimum((middle * n_folds / max(1, counts.sum())).astype(np.intp), n_folds - 1)
    _, of_document = np.unique(of_document, return_inverse=True)  # a very long document leaves folds beside it empty
    return of_document[codes]


def folds_of(documents: Ints, n_folds: int, weights: Ints | None = None) -> Ints:
    """As `contiguous_folds`, with no more folds than there are documents."""
    return contiguous_folds(documents, min(n_folds, len(np.unique(documents))), weights)


def cross_fit(folds: Ints, score: Callable[[Ints, Ints], Floats]) -> Floats:
    """The score of each pair by a model that did not see its fold.

    folds (Ints): Of n pairs, n > 0: 0 up to the number of folds, each with a pair.
    score (Callable): (index of the pairs outside of a fold, to learn from; index of those inside) -> scores of those inside, shape
        (..., their number).
    RETURNS (Floats): Shape (..., n).
    """
    scores = np.empty(0)
    for fold in range(int(folds.max()) + 1):
        inside, outside = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        found = score(outside, inside)
        if fold == 0:
            scores = np.empty((*found.shape[:-1], len(folds)))
        scores[..., inside] = found
    return scores


def thin_out(documents: Ints, most: float) -> Ints:
    """Index of at most about this many pairs: those of whole documents at equal distances, of two documents at least.

    documents (Ints): Of the pairs.
    """
    if len(documents) <= most:
        return np.arange(len(documents))
    _, codes = np.unique(documents, return_inverse=True)
    n = int(codes.max()) + 1
    kept = min(n, max(2, int(n * most / len(documents))))  # two are the fewest that can be compared
    wanted = np.zeros(n, dtype=bool)
    wanted[np.arange(kept) * n // kept] = True
    return np.flatnonzero(wanted[codes])
