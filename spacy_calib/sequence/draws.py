"""Draws of the weights of a trained labeller: what its scores would be had it learned a little differently.

Scores are linear in the weights. So w ~ N(mu, s V) scores as mu does, and a draw from N(0, V) moves that by sqrt(s) times its own scores: each
draw is made once for all scales s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from spacy.tokens import Doc
from thinc.api import Model

from ..types import Floats
from .confidence import normals
from .features.index import Sparse
from .inference.chains import Potentials
from .online.learner import OnlineLearner

# The scores of some sequences, shape (length, K) each, and the potentials.
Draw = tuple[list[Floats], Potentials]


@dataclass(frozen=True, eq=False)
class Draws:
    """The scores of some sequences, and how far each draw of the weights moves them.

    learned (Draw): By the weights that were learned. move (Callable): Number of a draw -> by how much it scores otherwise at scale 1.
    """

    learned: Draw
    move: Callable[[int], Draw]

    def at(self, move: Draw, scale: float) -> Draw:
        """The scores of a draw. move (Draw): What `move` gave. scale (float): s."""
        by = np.sqrt(scale)
        scores = [one + by * other for one, other in zip(self.learned[0], move[0], strict=True)]
        own = move[1]
        return scores, self.learned[1].only(Potentials(by * own.transitions, by * own.starts, by * own.ends))

    def made(self, k: int, scale: float) -> Iterator[Draw]:
        """The first k draws at a scale."""
        return (self.at(self.move(number), scale) for number in range(k))


def draws_of_learner(
    learner: OnlineLearner, sequences: Sequence[Sparse], learned: bool, seed: int, allowed: Potentials | None = None
) -> Draws:
    """learned (bool): Whether the weights are drawn from N(mu, s Sigma) (KD-PC), or from N(mu, s I) (KD-Fixed).

    allowed (Potentials | None): -inf where constraints forbid, else 0; None forbids nothing.
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
    spread = np.sqrt(variance)

    def scored(weights: Floats) -> Draw:
        table, none = weights[: len(used)], np.zeros(width)
        scores = [np.add.reduceat(table[one.rows], one.starts[:-1], axis=0) for one in local]
        return scores, Potentials(weights[len(used) :], none, none)

    scores, potentials = scored(mean)
    return Draws(
        (scores, potentials if allowed is None else potentials.only(allowed)),
        lambda number: scored(spread * normals(wanted, number, seed).reshape(-1, width)),
    )


def learner_draws(
    learner: OnlineLearner, sequences: Sequence[Sparse], k: int, scale: float, learned: bool, seed: int
) -> Iterator[Draw]:
    """For each of k draws the scores of each sequence, and the potentials. scale (float): s. Others: see `draws_of_learner`."""
    return draws_of_learner(learner, sequences, learned, seed).made(k, scale)


def has_head(pipe: Any) -> bool:
    """Whether a component has a thinc model with token vectors and a linear layer over them, as `draws_of_head` takes it."""
    model = getattr(pipe, "model", None)
    if not isinstance(model, Model) or not {"tok2vec", "output_layer"} <= set(model.ref_names):
        return False
    return {"W", "b"} <= set(model.get_ref("output_layer").param_names)


def draws_of_head(
    pipe: Any, docs: Sequence[Doc], bounds: Sequence[Sequence[tuple[int, int]]], seed: int, potentials: Potentials | None = None
) -> Draws:
    """The linear output layer of a thinc model: its weights, and those of the transitions where it has such, are drawn from N(W, s I).

    pipe: Its model has a reference "tok2vec" and one "output_layer" with weights W, shape (n_labels, width), and b. bounds: First token of
    each sequence of each Doc, and the one after its last. potentials (Potentials | None): Of a chain; None for labels of tokens by themselves.
    """
    head, ops = pipe.model.get_ref("output_layer"), pipe.model.ops
    vectors = [ops.to_numpy(one) for one in pipe.model.get_ref("tok2vec").predict(list(docs))]
    parts = [one[start:end] for one, own in zip(vectors, bounds, strict=True) for start, end in own]
    weights, bias = (ops.to_numpy(head.get_param(name)).astype(np.float64) for name in ("W", "b"))
    n = len(bias)

    def move(number: int) -> Draw:
        moves = normals(np.arange(weights.size + n * (n + 2)), number, seed)
        of_weights, of_pairs, of_ends = np.split(moves, [weights.size, weights.size + n * n])
        scores = [one @ of_weights.reshape(weights.shape).T for one in parts]
        if potentials is None:
            return scores, Potentials.none(n)
        return scores, Potentials(of_pairs.reshape(n, n), of_ends[:n], of_ends[n:])

    held = Potentials.none(n) if potentials is None else _on_host(ops, potentials)
    return Draws(([one @ weights.T + bias for one in parts], held), move)


def _on_host(ops: Any, potentials: Potentials) -> Potentials:
    return Potentials(*(ops.to_numpy(one) for one in (potentials.transitions, potentials.starts, potentials.ends)))
