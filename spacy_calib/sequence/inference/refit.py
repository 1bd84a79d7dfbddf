"""A chain with given marginals that stays as near to a chain as it can.

Of all distributions of labellings with marginals q_t, the one nearest to a chain p (the least KL(q || p)) is a chain, too: the divergence is a sum over pairs of
neighbours as soon as all q_t are fixed, so each P(y_t, y_t+1) is brought to the margins q_t and q_t+1 by itself, by iterative proportional fitting (Deming
and Stephan 1940; Csiszár 1975): rows and columns are scaled in turn. What one label makes likelier next to it, its odds ratios, stays as it was.
"""

from __future__ import annotations

import numpy as np

from ...types import Floats

# Rows and columns are scaled at most so often, and until no column is further off than this.
_ROUNDS, _NEAR = 200, 1e-7
# What is less is nothing: where there is no such array the factors grow without end.
_LEAST = 1e-100
# How many rounds between two looks at how far off they are.
_LOOK = 10


def fit_joints(joints: Floats, before: Floats, after: Floats) -> Floats:
    """P(label at t + 1 | label at t) with the margins wanted.

    joints (Floats): P(labels at t and t + 1) before, of E places, shape (E, K, K). before, after (Floats): The margins wanted, shape (E, K), each row with
    sum 1. Where no array with these zeros has these margins (a transition is forbidden) the rows are as near as the rounds brought them.
    RETURNS (Floats): Shape (E, K, K), each row with sum 1; that of a label which cannot come is 0.
    """
    columns, left = np.ones_like(after), np.arange(len(joints))
    own = joints
    for round_ in range(1, _ROUNDS + 1):
        rows = _over(before[left], _times(own, columns[left]))
        reached = _times(own.transpose(0, 2, 1), rows)
        if round_ % _LOOK == 0:
            off = np.abs(reached * columns[left] - after[left]).max(axis=1, initial=0.0) > _NEAR
            if not off.all():
                left, own, reached = left[off], own[off], reached[off]
        columns[left] = _over(after[left], reached)
    kernel = joints * columns[:, None, :]
    stuck = kernel.sum(axis=2) <= 0  # a label that never comes, or of which all that may follow has no share any more
    kernel[stuck] = joints[stuck]
    return _over(kernel, kernel.sum(axis=2, keepdims=True))


def _over(wanted: Floats, given: Floats) -> Floats:
    """The quotient, 0 where nothing is given."""
    shape = np.broadcast_shapes(wanted.shape, given.shape)
    return np.divide(wanted, given, out=np.zeros(shape), where=np.broadcast_to(given > _LEAST, shape))


def _times(matrices: Floats, vectors: Floats) -> Floats:
    return np.matmul(matrices, vectors[:, :, None])[:, :, 0]
