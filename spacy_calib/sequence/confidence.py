"""Confidence without probabilities: how much a labeller's answer moves (Mejer & Crammer 2010, section 5).

Each way gives every label of every token a number in [0, 1]; that of the predicted label is its confidence.
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

from ..pairs.keyed import STEP, splitmix64
from ..sources.base import to_numpy
from ..types import Floats, Ints
from .features import Sparse
from .inference.best import best_labels, best_through, k_best
from .inference.chains import Chains, Potentials
from .online import OnlineLearner


def shares_of(labellings: Any, weights: Any, n_labels: int) -> Floats:
    """The share of some labellings of one sequence that give each token each label, shape (length, K).

    labellings (array): Columns, shape (k, length). weights: Of each, shape (k,); where all are 0 they count alike.
    """
    given = to_numpy(labellings)
    counted = np.asarray(weights, dtype=np.float64)
    counted = counted if counted.sum() > 0 else np.ones(len(given))
    shares = np.zeros((given.shape[1], n_labels))
    np.add.at(shares, (np.arange(given.shape[1])[None], given), counted[:, None])
    return shares / counted.sum()


def k_best_shares(chains: Chains, k: int, weighted: bool) -> list[Floats]:
    """KBV: the share of the k best labellings that agree; WKBV: each with the weight max(0, its score).

    RAISES C001: k is not at least 1. C323: a sequence has no labelling that is allowed.
    """
    found = k_best(chains, k)
    return [
        shares_of(one.labels, np.maximum(0.0, to_numpy(one.scores)) if weighted else np.ones(len(one.scores)), chains.n_labels)
        for one in found
    ]


def gaps(chains: Chains) -> list[Floats]:
    """Delta: by how much the best labelling beats the best one without the predicted label, through the logistic
    function: at least a half. Other labels share the rest by the exponentials of their best labellings' scores.
    """
    through = to_numpy(best_through(chains))
    if chains.n_labels == 1:
        return chains.unpacked(np.ones_like(through))
    best = through.argmax(axis=1)
    rows = np.arange(len(through))
    with np.errstate(invalid="ignore"):
        below = through - through[rows, best][:, None]
    below[rows, best] = -np.inf
    highest = below.max(axis=1, initial=-np.inf)
    rest = np.exp(below - np.where(np.isfinite(highest), highest, 0.0)[:, None])
    rest /= np.maximum(rest.sum(axis=1, keepdims=True), 1e-300)
    own = 1 / (1 + np.exp(highest))
    found = rest * (1 - own)[:, None]
    found[rows, best] = own
    return chains.unpacked(found)


def normals(codes: Ints, draw: int, seed: int) -> Floats:
    """Independent standard normal numbers, one for each code, draw and seed, whatever others are asked for, so that a
    token's confidence does not depend on its batch (a counter-based generator: splitmix64, then normal quantiles)."""
    from scipy.special import ndtri

    with np.errstate(over="ignore"):
        mixed = codes.astype(np.uint64) * STEP
        mixed += np.uint64(seed) * np.uint64(0xD1B54A32D192ED03) + np.uint64(draw + 1) * np.uint64(0x8CB92BA72F3D8DD7)
    return ndtri(((splitmix64(mixed) >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53)


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
