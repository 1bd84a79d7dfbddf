"""A first-order sequence labeller over sparse features that is learned online. Knows arrays only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...types import Floats, Ints
from ..features.index import Sparse
from .rules import Difference, Rule


class OnlineLearner:
    """Weights of (feature, label) and of (label, label before), in one array: feature * K + label, then n_features * K + before * K + label.

    n_features, n_labels (int). rule (Rule): How it learns. mu, sigma (Floats): Mean and variance of each weight. late (Floats): What the average of mu lacks, times n_seen. n_seen (int): Sequences seen.
    """

    def __init__(self, n_features: int, n_labels: int, rule: Rule):
        self.n_features, self.n_labels, self.rule = n_features, n_labels, rule
        size = (n_features + n_labels) * n_labels
        self.mu, self.late, self.sigma = np.zeros(size), np.zeros(size), np.full(size, rule.start)
        self.n_seen = 0

    @property
    def mean(self) -> Floats:
        """The average of mu over all sequences seen, which predicts better than the last one."""
        return self.mu - self.late / max(1, self.n_seen)

    def mean_rows(self, rows: Ints) -> Floats:
        """Those of some features, and of labels before as rows n_features and up, shape (n, K): no more than is asked for is averaged."""
        mu, late = (one.reshape(-1, self.n_labels)[rows] for one in (self.mu, self.late))
        return mu - late / max(1, self.n_seen)

    def scores(self, weights: Floats, tokens: Sparse) -> Floats:
        """Score of each label at each token, shape (n, K)."""
        table = weights[: self.n_features * self.n_labels].reshape(-1, self.n_labels)
        return np.add.reduceat(table[tokens.rows], tokens.starts[:-1], axis=0)

    def transitions(self, weights: Floats) -> Floats:
        """Score of each label (column) after each (row), shape (K, K)."""
        return weights[self.n_features * self.n_labels :].reshape(self.n_labels, self.n_labels)

    def update(self, tokens: Sparse, gold: Ints) -> bool:
        """Learn from one sequence. RETURNS (bool): Whether the best labelling was another one than gold."""
        scores, transitions = self.scores(self.mu, tokens), self.transitions(self.mu)
        if self.rule.by_distance and _beats_all(scores, transitions, gold):
            self.n_seen += 1
            return False
        if self.rule.n_rivals == 1:
            rivals = [viterbi_one(scores, transitions)]
        else:
            rivals = list(k_best_one(scores, transitions, self.rule.n_rivals))
        wrong = bool((rivals[0] != gold).any())
        differences = [self.difference(tokens, gold, rival) for rival in rivals if (rival != gold).any()]
        for step in self.rule.steps(self.mu, self.sigma, differences) if differences else ():
            self.mu[step.at] += step.mean
            self.late[step.at] += self.n_seen * step.mean
            if step.variance is not None:
                self.sigma[step.at] -= step.variance
        self.n_seen += 1
        return wrong

    def difference(self, tokens: Sparse, gold: Ints, rival: Ints) -> Difference:
        """Features of one labelling less those of another, which must differ."""
        width, offset = self.n_labels, self.n_features * self.n_labels
        differ = np.flatnonzero(gold != rival)
        rows = np.concatenate([tokens.rows[tokens.starts[i] : tokens.starts[i + 1]] for i in differ.tolist()]) * width
        labels = np.repeat(differ, tokens.starts[differ + 1] - tokens.starts[differ])
        pairs = np.flatnonzero((gold[1:] != rival[1:]) | (gold[:-1] != rival[:-1]))
        codes = np.concatenate([
            rows + gold[labels], offset + gold[pairs] * width + gold[pairs + 1],
            rows + rival[labels], offset + rival[pairs] * width + rival[pairs + 1],
        ])  # fmt: skip
        signs = np.ones(len(codes))
        signs[len(codes) // 2 :] = -1
        at, place = np.unique(codes, return_inverse=True)
        by = np.bincount(place.reshape(-1), weights=signs, minlength=len(at))
        kept = by != 0
        return Difference(at[kept], by[kept], len(differ))


def _beats_all(scores: Floats, transitions: Floats, gold: Ints) -> bool:
    """Whether gold scores above every other labelling by at least the labels that differ: it is then the best one where each of these counts 1."""
    raised = scores + 1
    raised[np.arange(len(gold)), gold] -= 1
    return bool((viterbi_one(raised, transitions) == gold).all())


def viterbi_one(scores: Floats, transitions: Floats) -> Ints:
    """The best labelling of one sequence: as `best.viterbi`, without the packing of many."""
    back = np.empty(scores.shape, dtype=np.intp)
    reached, columns = scores[0], np.arange(scores.shape[1])
    for i in range(1, len(scores)):
        sums = reached[:, None] + transitions
        back[i] = sums.argmax(axis=0)
        reached = sums[back[i], columns] + scores[i]
    labels = np.empty(len(scores), dtype=np.intp)
    labels[-1] = reached.argmax()
    for i in range(len(scores) - 1, 0, -1):
        labels[i - 1] = back[i, labels[i]]
    return labels


def k_best_one(scores: Floats, transitions: Floats, k: int) -> Ints:
    """The k best labellings of one sequence, best first, shape (at most k, n): as `best.k_best`, without the packing of many."""
    n, width = scores.shape
    rows = np.arange(width)[:, None]
    held = scores[0][:, None]  # of the paths into each label, best first, shape (K, slots)
    places = []
    for i in range(1, n):
        sums = (held[None] + transitions.T[:, :, None]).reshape(width, -1)
        order = np.argsort(-sums, axis=1, kind="stable")[:, :k]
        places.append((order, held.shape[1]))
        held = sums[rows, order] + scores[i][:, None]
    best = np.argsort(-held.reshape(-1), kind="stable")[:k]
    label, slot = best // held.shape[1], best % held.shape[1]
    labels = np.empty((len(best), n), dtype=np.intp)
    for i in range(n - 1, 0, -1):
        labels[:, i] = label
        order, slots = places[i - 1]
        place = order[label, slot]
        label, slot = place // slots, place % slots
    labels[:, 0] = label
    return labels


def learn(learner: OnlineLearner, data: Sequence[tuple[Sparse, Ints]], rounds: int, seed: int = 0) -> list[int]:
    """Pass `rounds` times over the data, each time in another order. RETURNS: Sequences that were labelled wrongly in each."""
    rng = np.random.default_rng(seed)
    return [sum(learner.update(*data[i]) for i in rng.permutation(len(data)).tolist()) for _ in range(rounds)]
