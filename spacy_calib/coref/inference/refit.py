"""Antecedents whose clusters have wanted pair probabilities, as nearly as a model of antecedents can have them."""

from __future__ import annotations

import numpy as np

from ...types import Floats
from .antecedents import Antecedents

# How much the distance from the chances of the model weighs beside that from a pair probability: it decides between antecedents that are in one cluster
# anyway. And how much that of a mention's options from a sum of 1, which is made exact in the end.
_HOLD, _WHOLE = 0.01, 100.0


def refit(antecedents: Antecedents, wanted: Floats) -> Antecedents:
    """Chances of the same candidates.

    Mention by mention in the order of the text: P(j ~ i) = sum over k of P(a_j = k) P(k ~ i) is linear in the chances of j once those of the mentions before it
    are known, so they are found by non-negative least squares. Not every array of pair probabilities belongs to a distribution of clusterings
    (P(a ~ c) cannot be less than P(a ~ b) + P(b ~ c) - 1): then pairs are only come near to.
    wanted (Floats): P(i ~ j), symmetric, shape (n, n).
    """
    from scipy.optimize import nnls

    n = len(antecedents)
    together, chances = np.eye(n), antecedents.chances.copy()
    for late in range(1, n):
        earlier, raw = antecedents.of(late)
        if not len(earlier):
            continue
        options = np.append(raw, max(0.0, 1.0 - raw.sum()))  # NEW is the last
        pairs = np.column_stack([together[earlier, :late].T, np.zeros(late)])
        table = np.vstack([pairs, _HOLD * np.eye(len(options)), np.full(len(options), _WHOLE)])
        found = nnls(table, np.concatenate([wanted[late, :late], _HOLD * options, [_WHOLE]]))[0]
        own = found[:-1] / found.sum()
        chances[antecedents.candidates.starts[late] : antecedents.candidates.starts[late + 1]] = own
        together[late, :late] = together[:late, late] = np.minimum(own @ together[earlier, :late], 1.0)
    return Antecedents(antecedents.candidates, chances)
