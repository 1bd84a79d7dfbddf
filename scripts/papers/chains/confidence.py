"""Confidence without probabilities: how much a labeller's answer changes (Mejer & Crammer 2010, section 5).

Each way gives every label of every token a number in [0, 1]; that of the predicted label is its confidence.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from spacy_calib.pairs.keyed import STEP, splitmix64
from spacy_calib.types import Floats, Ints

from .best import best_labels, best_through, k_best
from .chains import Chains, Potentials
from .features import SparseFeatures
from .online import OnlineLearner


def shares_of(labellings: Any, weights: Any, n_labels: int) -> Floats:
    """Return the share of some labellings of one sequence that give each token each label, shape (length, K).

    labellings (array): Columns, shape (k, length). weights: Of each, shape (k,); equal if all are 0.
    """
    columns = np.asarray(labellings)
    weight_array = np.asarray(weights, dtype=np.float64)
    weight_array = weight_array if weight_array.sum() > 0 else np.ones(len(columns))
    shares = np.zeros((columns.shape[1], n_labels))
    np.add.at(shares, (np.arange(columns.shape[1])[None], columns), weight_array[:, None])
    return shares / weight_array.sum()


def k_best_shares(chains: Chains, k: int, by_score: bool) -> list[Floats]:
    """Return the share of the k best labellings that agree (KBV), or with the weights max(0, score) (WKBV)."""
    best_lists = k_best(chains, k)
    return [
        shares_of(best.labels, np.maximum(0.0, best.scores) if by_score else np.ones(len(best.scores)), chains.n_labels)
        for best in best_lists
    ]


def gaps(chains: Chains) -> list[Floats]:
    """Return the logistic function of the lead of the best labelling over the best without the predicted label (Delta).

    Other labels share the rest by the exponentials of their best labellings' scores.
    """
    through = best_through(chains)
    if chains.n_labels == 1:
        return chains.unpack(np.ones_like(through))
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
    return chains.unpack(result)


def normals(codes: Ints, sample: int, seed: int) -> Floats:
    """Return a standard normal number for each code, independent of other codes, samples and seeds.

    A counter-based generator (splitmix64, then normal quantiles), so that a token's confidence does not depend on its batch.
    """
    from scipy.special import ndtri

    with np.errstate(over="ignore"):
        bits = codes.astype(np.uint64) * STEP
        bits += np.uint64(seed) * np.uint64(0xD1B54A32D192ED03) + np.uint64(sample + 1) * np.uint64(0x8CB92BA72F3D8DD7)
    return ndtri(((splitmix64(bits) >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53)


# How many samples are computed at the same time; each takes the scores of all tokens at every scale.
_THREADS = 4


@dataclass(frozen=True, eq=False)
class WeightSamples:
    """The scores of some sequences, and how each sample of the weights changes them.

    chains (Chains): By the fitted weights. change (Callable): Number of a sample -> the change of these scores at scale 1.
    """

    chains: Chains
    change: Callable[[int], Chains]

    def sample_scores(self, number: int, scales: Sequence[float]) -> tuple[Floats, Floats]:
        """Return scores and transitions of a sample at each scale s, packed, shapes (S, N, K) and (S, K, K)."""
        change, factors = self.change(number), np.sqrt(scales)[:, None, None]
        return self.chains.scores + factors * change.scores, self.chains.transitions + factors * change.transitions

    def labels(self, k: int, scales: Sequence[float]) -> Iterator[Ints]:
        """Yield the best labels by each of the first k samples, at each scale, shape (S, N)."""
        packing = self.chains.packing

        def find_best(number: int) -> Ints:
            of_scales: Ints = best_labels(*self.sample_scores(number, scales), packing)
            return of_scales[:, packing.packed_index]

        with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as pool:
            yield from pool.map(find_best, range(k))

    def shares(self, k: int, scale: float) -> list[Floats]:
        """Return the share of the first k samples whose best labelling gives each token each label, shape (length, K) each."""
        n, width = self.chains.scores.shape
        counts = np.zeros((n, width))
        for labels in self.labels(k, [scale]) if n else ():
            counts[np.arange(n), labels[0]] += 1
        lengths = self.chains.packing.lengths
        return np.split(counts / k, np.cumsum(lengths)[:-1]) if n else []


def sample_learner(learner: OnlineLearner, tokens: Sequence[SparseFeatures], variances: bool, seed: int) -> WeightSamples:
    """Sample the weights of an online learner that some sequences need, each by random numbers of its own.

    tokens: Features of each sequence. variances (bool): From N(mu, s Sigma) (KD-PC), or from N(mu, s I) (KD-Fixed).
    """
    width = learner.n_labels
    used_rows, inverse = np.unique(
        np.concatenate([np.zeros(0, dtype=np.intp), *(sequence.rows for sequence in tokens)]), return_inverse=True
    )
    bounds = np.cumsum([0, *(len(sequence.rows) for sequence in tokens)])
    parts = np.split(inverse, bounds[1:-1]) if len(tokens) else []
    local = [SparseFeatures(part, sequence.starts) for part, sequence in zip(parts, tokens, strict=True)]
    rows = np.concatenate([used_rows, learner.n_features + np.arange(width)])
    weight_codes = (rows[:, None] * width + np.arange(width)).reshape(-1)
    mean = learner.mean_rows(rows)
    spread = np.sqrt(learner.sigma.reshape(-1, width)[rows]) if variances else np.ones(mean.shape)

    def score_chains(weights: Floats) -> Chains:
        table, zeros = weights[: len(used_rows)], np.zeros(width)
        scores = [np.add.reduceat(table[sequence.rows], sequence.starts[:-1], axis=0) for sequence in local]
        return Chains.from_scores(scores, Potentials(weights[len(used_rows) :], zeros, zeros))

    return WeightSamples(
        score_chains(mean), lambda number: score_chains(spread * normals(weight_codes, number, seed).reshape(-1, width))
    )
