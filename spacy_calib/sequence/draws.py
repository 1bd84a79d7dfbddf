"""Draws of the weights of a trained labeller: what its scores would be had it learned a little differently."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from spacy.tokens import Doc

from ..types import Floats
from .confidence import normals
from .features.index import Sparse
from .inference.chains import Potentials
from .online.learner import OnlineLearner


def learner_draws(
    learner: OnlineLearner, sequences: Sequence[Sparse], k: int, scale: float, learned: bool, seed: int
) -> Iterator[tuple[list[Floats], Potentials]]:
    """For each of k draws the scores of each sequence, and the potentials.

    scale (float): s. learned (bool): Whether weights are drawn from N(mu, s Sigma) (KD-PC), or from N(mu, s I) (KD-Fixed).
    Only the weights that these sequences ask for are drawn; each has its own numbers, whatever stands beside it. A feature that the learner
    has never seen has mean 0 and the variance that all began with.
    """
    width = learner.n_labels
    used, place = np.unique(np.concatenate([np.zeros(0, dtype=np.intp), *(one.rows for one in sequences)]), return_inverse=True)
    bounds = np.cumsum([0, *(len(one.rows) for one in sequences)])
    local = [Sparse(place[a:b], one.starts) for one, a, b in zip(sequences, bounds[:-1], bounds[1:], strict=True)]
    rows = np.concatenate([used, learner.n_features + np.arange(width)])
    wanted = (rows[:, None] * width + np.arange(width)).reshape(-1)
    seen = rows < learner.n_features + width
    mean, variance = np.zeros((len(rows), width)), np.full((len(rows), width), learner.rule.start if learned else 1.0)
    mean[seen] = learner.mean_rows(rows[seen])
    if learned:
        variance[seen] = learner.sigma.reshape(-1, width)[rows[seen]]
    spread = np.sqrt(scale * variance)
    none = np.zeros(width)
    for draw in range(k):
        weights = mean + spread * normals(wanted, draw, seed).reshape(-1, width)
        table = weights[: len(used)]
        scores = [np.add.reduceat(table[one.rows], one.starts[:-1], axis=0) for one in local]
        yield scores, Potentials(weights[len(used) :], none, none)


def head_draws(pipe: Any, docs: Sequence[Doc], k: int, scale: float, seed: int) -> Iterator[tuple[list[Floats], Potentials]]:
    """The same for the linear output layer of a thinc model: its weights are drawn from N(W, s I).

    pipe: Its model has a reference "tok2vec" and one "output_layer" with weights W, shape (n_labels, width), and b.
    """
    head, ops = pipe.model.get_ref("output_layer"), pipe.model.ops
    vectors = [ops.to_numpy(one) for one in pipe.model.get_ref("tok2vec").predict(list(docs))]
    weights, bias = ops.to_numpy(head.get_param("W")).astype(np.float64), ops.to_numpy(head.get_param("b"))
    codes = np.arange(weights.size)
    none = Potentials.none(len(bias))
    for draw in range(k):
        moved = weights + np.sqrt(scale) * normals(codes, draw, seed).reshape(weights.shape)
        yield [one @ moved.T + bias for one in vectors if len(one)], none
