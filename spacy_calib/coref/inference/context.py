"""The probability of a pair by what stands around it: the kinds of its mentions, how near they are, how large their clusters are expected to be.

Knows arrays only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...calibration.recalibrators.logistic import log_odds
from ...calibration.sufficiency import DOCUMENTS_TO_CHOOSE
from ...context.ridge import RidgeModel, fit_ridge
from ...types import Floats, Ints
from .pairs import MentionPairs

# Of more pairs than this, so many at equal distances are learned from: those of one document tell much the same.
_MOST = 100_000


def expected_sizes(pairs: MentionPairs) -> Floats:
    """How many mentions the cluster of each mention is expected to have, itself counted, shape (n_mentions,): the sum of its pairs' probabilities."""
    ends = np.concatenate([pairs.later, pairs.earlier])
    return np.asarray(1.0 + np.bincount(ends, weights=np.tile(pairs.chances, 2), minlength=pairs.n_mentions), dtype=np.float64)


def context_columns(pairs: MentionPairs, groups: Ints, n_kinds: int) -> list[Floats]:
    """2 * n_kinds + 4 features of each pair: indicators of its kinds and of mentions that are far from one another, and the mean logarithm of the
    expected sizes of their clusters; then the same times the log-odds of the pair.

    groups (Ints): Twice the number of its kinds, below n_kinds, and 1 more where they are far.
    """
    logs: Floats = np.log(expected_sizes(pairs))
    kinds = [(groups // 2 == kind).astype(np.float64) for kind in range(n_kinds)]
    around = [*kinds, (groups % 2).astype(np.float64), (logs[pairs.later] + logs[pairs.earlier]) / 2]
    own = log_odds(pairs.chances)
    return around + [column * own for column in around]


def fit_context(
    documents: Sequence[MentionPairs], groups: Sequence[Ints], hits: NDArray[np.bool_], n_kinds: int
) -> RidgeModel | None:
    """Logistic regression on the log-odds of the pairs and these features; None of fewer documents than tell how documents differ.

    groups: Of the pairs of each document. hits: Of all pairs, document after document.
    """
    if len(documents) < DOCUMENTS_TO_CHOOSE:
        return None
    numbers = np.repeat(np.arange(len(documents)), [len(pairs) for pairs in documents])
    some = np.arange(0, len(numbers), -(-len(numbers) // _MOST))
    each = [context_columns(pairs, own, n_kinds) for pairs, own in zip(documents, groups, strict=True)]
    columns = [np.concatenate(parts)[some] for parts in zip(*each, strict=True)]
    own = log_odds(np.concatenate([pairs.chances for pairs in documents]))
    return fit_ridge(own[some], columns, hits[some], numbers[some]).model


def in_context(model: RidgeModel, pairs: MentionPairs, groups: Ints, n_kinds: int) -> Floats:
    """The probability of each pair of a document. groups, n_kinds: As in `context_columns`."""
    return model.predict(log_odds(pairs.chances), model.around(context_columns(pairs, groups, n_kinds)))
