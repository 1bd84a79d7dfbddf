"""What chains say of their best labellings, as arrays that features are made from (`events.features`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..events.features import Answers
from ..sources.base import to_numpy
from ..types import Floats
from .inference.best import k_best
from .inference.chains import Chains
from .inference.sums import Sums


def best_answers(sums: Sums, alone: Floats | None = None) -> Answers:
    """The best labelling of each chain with its probability, the gap to the second best, marginals, and P(label | the rest of the labelling).

    alone (Floats | None): Scores of a classifier that sees each position by itself, shape (N, K), for positions of the chains one after another.
    """
    chains = sums.chains
    best = k_best(chains, 2)
    gaps = [float(one.scores[0] - one.scores[1]) if len(one.scores) > 1 else np.inf for one in best]
    labels = [one.labels[0] for one in best]
    flat = chains.xp.concatenate([chains.xp.zeros(0, dtype="i"), *labels])
    return Answers(
        to_numpy(flat).astype(np.intp),
        chains.packing.lengths,
        chains.n_labels,
        to_numpy(chains.scores_of(labels) - sums.log_z),
        np.array(gaps, dtype=np.float64),
        to_numpy(sums.marginals[chains.xp.asarray(chains.packing.packed)]),
        to_numpy(conditionals(chains, flat)),
        alone,
    )


def conditionals(chains: Chains, labels: Any) -> Any:
    """P(label at position | the labels of all other positions), for positions of the chains one after another, shape (N, K).

    labels (array): Columns, shape (N,), likewise.
    """
    xp, packing = chains.xp, chains.packing
    packed = labels[xp.asarray(packing.flat)]
    before, after = map(xp.asarray, packing.followed)
    scores = chains.scores.copy()
    scores[after] += chains.transitions[packed[before]]
    scores[before] += chains.transitions[:, packed[after]].T
    chance = xp.exp(scores - scores.max(axis=1, keepdims=True, initial=-xp.inf))
    return (chance / chance.sum(axis=1, keepdims=True))[xp.asarray(packing.packed)]
