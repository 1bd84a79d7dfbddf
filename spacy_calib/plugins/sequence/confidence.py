"""Confidence without probabilities: how much a labeller's answer changes (Mejer & Crammer 2010, section 5).

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

from ...pairs.keyed import STEP, splitmix64
from ...sources.base import to_numpy
from ...types import Floats, Ints
from .features import Sparse
from .inference.best import best_labels, best_through, k_best
from .inference.chains import Chains, Potentials
from .online import OnlineLearner


def shares_of(labellings: Any, weights: Any, n_labels: int) -> Floats:
    """Return the share of some labellings of one sequence that give each token each label, shape (length, K).

    labellings (array): Columns, shape (k, length). weights: Of each, shape (k,); equal if all are 0.
    """
    columns = to_numpy(labellings)
    weight_array = np.asarray(weights, dtype=np.float64)
    weight_array = weight_array if weight_array.sum() > 0 else np.ones(len(columns))
    shares = np.zeros((columns.shape[1], n_labels))
    np.add.at(shares, (np.arange(columns.shape[1])[None], columns), weight_array[:, None])
    return shares / weight_array.sum()


def k_best_shares(chains: Chains, k: int, by_score: bool) -> list[Floats]:
    """Return the share of the k best labellings that agree (KBV), or with the weights max(0, score) (WKBV).

    RAISES C001: k is not at least 1. C323: a sequence has no labelling that is allowed.
    """
    best_lists = k_best(chains, k)
    return [
        shares_of(
            best.labels, np.maximum(0.0, to_numpy(best.scores)) if by_score else np.ones(len(best.scores)), chains.n_labels
        )
        for best in best_lists
    ]


def gaps(chains: Chains) -> list[Floats]:
    """Return the logistic function of the lead of the best labelling over the best without the predicted label (Delta).

    Other labels share the rest by the exponentials of their best labellings' scores.
    """
    through = to_numpy(best_through(chains))
    if chains.n_labels == 1:
        return chains.unpacked(np.ones_like(through))
    best = through.argmax(axis=1)
    rows = np.arange(len(through))
    with np.errstate(invalid="ignore"):
        difference = through - through[rows, best][:, None]
    difference[rows, best] = -np.inf
    highest = difference.max(axis=1, initial=-np.inf)
    shares = np.exp(difference - np.where(np.isfinite(highest), highest, 0.0)[:, None])
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
    predicted_share = 1 / (1 + np.exp(highest))
    result = shares * (1 - predicted_share)[:, None]
    result[rows, best] = predicted_share
    return chains.unpacked(result)


def normals(codes: Ints, draw: int, seed: int) -> Floats:
    """Return an independent standard normal number for each code, draw and seed, so that a token's confidence does not depend
    on its batch (a counter-based generator: splitmix64, then normal quantiles).
    """
    from scipy.special import ndtri

    with np.errstate(over="ignore"):
        bits = codes.astype(np.uint64) * STEP
        bits += np.uint64(seed) * np.uint64(0xD1B54A32D192ED03) + np.uint64(draw + 1) * np.uint64(0x8CB92BA72F3D8DD7)
    return ndtri(((splitmix64(bits) >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53)


# How many draws are made at the same time: each holds the scores of all tokens, at every scale that is asked for.
_THREADS = 4
# What goes through the numbers of the draws, and may show how far it is.
Progress = Callable[[Iterable[int]], Iterable[int]]


@dataclass(frozen=True, eq=False)
class Draws:
    """The scores of some sequences, and how each sample of the weights changes them.

    learned (Chains): By the learned weights. move (Callable): Number of a sample -> the change of their scores at scale 1.
    """

    learned: Chains
    move: Callable[[int], Chains]

    def at(self, number: int, scales: Sequence[float]) -> tuple[Floats, Floats]:
        """Return scores and transitions of a sample at each scale s, packed, shapes (S, N, K) and (S, K, K)."""
        move, factors = self.move(number), np.sqrt(scales)[:, None, None]
        return self.learned.scores + factors * move.scores, self.learned.transitions + factors * move.transitions

    def labels(self, k: int, scales: Sequence[float], progress: Progress = iter) -> Iterator[Ints]:
        """Yield the best labels by each of the first k samples, at each scale, shape (S, N). RAISES C323: none is allowed."""
        packing = self.learned.packing

        def find_best(number: int) -> Ints:
            of_scales: Ints = best_labels(*self.at(number, scales), packing)
            return of_scales[:, packing.packed]

        with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as pool:
            yield from (labels for _, labels in zip(progress(range(k)), pool.map(find_best, range(k)), strict=True))

    def shares(self, k: int, scale: float) -> list[Floats]:
        """Return the share of the first k samples whose best labelling gives each token each label, shape (length, K) each."""
        n, width = self.learned.scores.shape
        counts = np.zeros((n, width))
        for labels in self.labels(k, [scale]) if n else ():
            counts[np.arange(n), labels[0]] += 1
        lengths = self.learned.packing.lengths
        return np.split(counts / k, np.cumsum(lengths)[:-1]) if n else []


def draws_of_learner(
    learner: OnlineLearner, sequences: Sequence[Sparse], learned: bool, seed: int, allowed: Potentials | None = None
) -> Draws:
    """Sample an online learner's weights, those that these sequences need; each has its own random numbers.

    learned (bool): Whether from N(mu, s Sigma) (KD-PC), or from N(mu, s I) (KD-Fixed). allowed (Potentials | None): -inf where
    constraints forbid, else 0. An unseen feature has mean 0 and the initial variance.
    """
    width = learner.n_labels
    used, place = np.unique(
        np.concatenate([np.zeros(0, dtype=np.intp), *(sequence.rows for sequence in sequences)]), return_inverse=True
    )
    bounds = np.cumsum([0, *(len(sequence.rows) for sequence in sequences)])
    local = [Sparse(place[a:b], sequence.starts) for sequence, a, b in zip(sequences, bounds[:-1], bounds[1:], strict=True)]
    rows = np.concatenate([used, learner.n_features + np.arange(width)])
    weight_codes = (rows[:, None] * width + np.arange(width)).reshape(-1)
    is_known = rows < learner.n_features + width
    mean, variance = np.zeros((len(rows), width)), np.full((len(rows), width), learner.rule.start if learned else 1.0)
    mean[is_known] = learner.mean_rows(rows[is_known])
    if learned:
        variance[is_known] = learner.sigma.reshape(-1, width)[rows[is_known]]
    spread = np.sqrt(variance)

    def score_chains(weights: Floats, constraints: Potentials | None = None) -> Chains:
        table, zeros = weights[: len(used)], np.zeros(width)
        scores = [np.add.reduceat(table[sequence.rows], sequence.starts[:-1], axis=0) for sequence in local]
        potentials = Potentials(weights[len(used) :], zeros, zeros)
        return Chains.of(scores, potentials if constraints is None else potentials.only(constraints))

    return Draws(
        score_chains(mean, allowed),
        lambda number: score_chains(spread * normals(weight_codes, number, seed).reshape(-1, width)),
    )


def has_head(pipe: Any) -> bool:
    """Return whether a component has a thinc model for `draws_of_head`: token vectors and a linear layer over them."""
    model = getattr(pipe, "model", None)
    if not isinstance(model, Model) or not {"tok2vec", "output_layer"} <= set(model.ref_names):
        return False
    return {"W", "b"} <= set(model.get_ref("output_layer").param_names)


def draws_of_head(
    pipe: Any, docs: Sequence[Doc], bounds: Sequence[Sequence[tuple[int, int]]], seed: int, potentials: Potentials | None = None
) -> Draws:
    """Sample the weights of a thinc model's linear output layer, and transitions if there are any, from N(W, s I).

    pipe: Its model has a reference "tok2vec" and one "output_layer" with weights W, shape (n_labels, width), and b. bounds:
    Start and end of each sequence of each Doc. potentials (Potentials | None): Of a chain; None for single labels.
    """
    head, ops = pipe.model.get_ref("output_layer"), pipe.model.ops
    vectors = [ops.to_numpy(part) for part in pipe.model.get_ref("tok2vec").predict(list(docs))]
    parts = [part[start:end] for part, doc_bounds in zip(vectors, bounds, strict=True) for start, end in doc_bounds]
    weights, bias = (ops.to_numpy(head.get_param(name)).astype(np.float64) for name in ("W", "b"))
    n = len(bias)

    def move(number: int) -> Chains:
        moves = normals(np.arange(weights.size + n * (n + 2)), number, seed)
        of_weights, of_pairs, of_ends = np.split(moves, [weights.size, weights.size + n * n])
        scores = [part @ of_weights.reshape(weights.shape).T for part in parts]
        is_plain = potentials is None
        return Chains.of(
            scores, Potentials.none(n) if is_plain else Potentials(of_pairs.reshape(n, n), of_ends[:n], of_ends[n:])
        )

    plain_potentials = Potentials.none(n)
    if potentials is not None:
        arrays = (potentials.transitions, potentials.starts, potentials.ends)
        plain_potentials = Potentials(*map(ops.to_numpy, arrays))
    return Draws(Chains.of([part @ weights.T + bias for part in parts], plain_potentials), move)
