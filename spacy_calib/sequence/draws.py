"""Draws of the weights of a trained labeller: what its scores would be had it learned a little differently.

Scores are linear in the weights: w ~ N(mu, s V) scores as mu does, plus sqrt(s) times the scores of a draw from N(0,
V). So each draw is made once for all scales s.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from spacy.tokens import Doc
from thinc.api import Model

from ..types import Floats, Ints
from .confidence import normals
from .features.templates import Sparse
from .inference.best import best_labels
from .inference.chains import Chains, Potentials
from .online.learner import OnlineLearner

# How many draws are made at the same time: each holds the scores of all tokens, at every scale that is asked for.
_THREADS = 4
# What goes through the numbers of the draws, and may show how far it is.
Progress = Callable[[Iterable[int]], Iterable[int]]


@dataclass(frozen=True, eq=False)
class Draws:
    """The scores of some sequences, and how far each draw of the weights moves them.

    learned (Chains): By the learned weights. move (Callable): Number of a draw -> the change of their scores at scale
        1.
    """

    learned: Chains
    move: Callable[[int], Chains]

    def at(self, number: int, scales: Sequence[float]) -> tuple[Floats, Floats]:
        """Scores and transitions of a draw at each scale s, packed, shapes (S, N, K) and (S, K, K)."""
        move, by = self.move(number), np.sqrt(scales)[:, None, None]
        return self.learned.scores + by * move.scores, self.learned.transitions + by * move.transitions

    def labels(self, k: int, scales: Sequence[float], progress: Progress = iter) -> Iterator[Ints]:
        """The best labels by each of the first k draws, at each scale, shape (S, N). RAISES C323: none is allowed."""
        packing = self.learned.packing

        def found(number: int) -> Ints:
            of_scales: Ints = best_labels(*self.at(number, scales), packing)
            return of_scales[:, packing.packed]

        with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as pool:
            yield from (own for _, own in zip(progress(range(k)), pool.map(found, range(k)), strict=True))

    def shares(self, k: int, scale: float) -> list[Floats]:
        """The share of the first k draws whose best labelling gives each token each label, shape (length, K) each."""
        n, width = self.learned.scores.shape
        counts = np.zeros((n, width))
        for labels in self.labels(k, [scale]) if n else ():
            counts[np.arange(n), labels[0]] += 1
        lengths = self.learned.packing.lengths
        return np.split(counts / k, np.cumsum(lengths)[:-1]) if n else []


def draws_of_learner(
    learner: OnlineLearner, sequences: Sequence[Sparse], learned: bool, seed: int, allowed: Potentials | None = None
) -> Draws:
    """Draws of an online learner's weights, of those that these sequences ask for; each has its own random numbers.

    learned (bool): Whether they are of N(mu, s Sigma) (KD-PC), or of N(mu, s I) (KD-Fixed).
    allowed (Potentials | None): -inf where constraints forbid, else 0; None forbids nothing.
    A feature that the learner has never seen has mean 0 and the initial variance.
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

    def scored(weights: Floats, only: Potentials | None = None) -> Chains:
        table, none = weights[: len(used)], np.zeros(width)
        scores = [np.add.reduceat(table[one.rows], one.starts[:-1], axis=0) for one in local]
        potentials = Potentials(weights[len(used) :], none, none)
        return Chains.of(scores, potentials if only is None else potentials.only(only))

    return Draws(scored(mean, allowed), lambda number: scored(spread * normals(wanted, number, seed).reshape(-1, width)))


def has_head(pipe: Any) -> bool:
    """Whether a component has a thinc model as `draws_of_head` wants: token vectors and a linear layer over them."""
    model = getattr(pipe, "model", None)
    if not isinstance(model, Model) or not {"tok2vec", "output_layer"} <= set(model.ref_names):
        return False
    return {"W", "b"} <= set(model.get_ref("output_layer").param_names)


def draws_of_head(
    pipe: Any, docs: Sequence[Doc], bounds: Sequence[Sequence[tuple[int, int]]], seed: int, potentials: Potentials | None = None
) -> Draws:
    """Draws from N(W, s I) of the weights of a thinc model's linear output layer, and of transitions if there are any.

    pipe: Its model has a reference "tok2vec" and one "output_layer" with weights W, shape (n_labels, width), and b.
        bounds: Start and end of each sequence of each Doc. potentials (Potentials | None): Of a chain; None for single
            labels.
    """
    head, ops = pipe.model.get_ref("output_layer"), pipe.model.ops
    vectors = [ops.to_numpy(one) for one in pipe.model.get_ref("tok2vec").predict(list(docs))]
    parts = [one[start:end] for one, own in zip(vectors, bounds, strict=True) for start, end in own]
    weights, bias = (ops.to_numpy(head.get_param(name)).astype(np.float64) for name in ("W", "b"))
    n = len(bias)

    def move(number: int) -> Chains:
        moves = normals(np.arange(weights.size + n * (n + 2)), number, seed)
        of_weights, of_pairs, of_ends = np.split(moves, [weights.size, weights.size + n * n])
        scores = [one @ of_weights.reshape(weights.shape).T for one in parts]
        none = potentials is None
        return Chains.of(scores, Potentials.none(n) if none else Potentials(of_pairs.reshape(n, n), of_ends[:n], of_ends[n:]))

    held = Potentials.none(n) if potentials is None else _on_host(ops, potentials)
    return Draws(Chains.of([one @ weights.T + bias for one in parts], held), move)


def _on_host(ops: Any, potentials: Potentials) -> Potentials:
    return Potentials(*(ops.to_numpy(one) for one in (potentials.transitions, potentials.starts, potentials.ends)))
