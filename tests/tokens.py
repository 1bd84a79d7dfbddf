"""Made-up tokens with known truth: a probability for every tag, and the gold tag drawn from a distribution that we know."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spacy_calib.calibration.token_fit import FitData
from spacy_calib.calibration.tokens import PredictedLabels
from spacy_calib.pairs.build import from_dense, pair_up
from spacy_calib.types import Groups, Marginals

N_TAGS = 8
LABELS = [f"T{i}" for i in range(N_TAGS)]
# Of every 8 tags the frequent one is alone, and the last group holds five.
GROUPS = Groups(("1", "2", "3"), np.array([0, 1, 1, 2, 2, 2, 2, 2]))
PER_DOCUMENT = 20
# By how much the log-odds of the tags are off besides.
BIASES = (0.0, 0.6, -0.6, 0.3, 0.0, -0.3, 0.6, 0.0)


@dataclass(frozen=True)
class Tokens:
    """probabilities: What a model says, shape (n, N_TAGS). truth: What is so, likewise. gold: Drawn from it, shape (n,)."""

    probabilities: np.ndarray
    truth: np.ndarray
    gold: np.ndarray

    def __len__(self) -> int:
        return len(self.gold)


def draw_tokens(n: int, seed: int, sharpness: float = 1.4, biases: tuple[float, ...] = BIASES) -> Tokens:
    """n tokens; the model's logits are the true ones times the sharpness (above 1: it is too sure) plus a bias for each tag.

    Tags are the rarer the higher they are.
    """
    rng = np.random.default_rng(seed)
    logits = rng.normal(0.0, 1.5, (n, N_TAGS)) + np.linspace(0.7, -0.7, N_TAGS)
    truth = _softmax(logits)
    gold = (rng.random((n, 1)) > np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)
    return Tokens(_softmax(sharpness * logits + np.array(biases)), truth, gold)


def _softmax(logits: np.ndarray) -> np.ndarray:
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class Table:
    """Scores as a source hands them over: a dense array, a row of NaN for a token of which the source knows nothing."""

    probabilities: np.ndarray
    spans: None = None

    @property
    def n_tokens(self) -> int:
        return len(self.probabilities)

    def marginals_above(self, threshold: float) -> Marginals:
        return from_dense(self.probabilities, threshold)

    def scores_at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return self.probabilities[rows, columns]


def carrying(table: Table, columns: np.ndarray) -> PredictedLabels:
    """Tokens that carry the labels of these columns, below 0 for none; the label of column k has the hash k + 1."""
    hashes = np.maximum(columns + 1, 0).astype(np.uint64)
    return PredictedLabels(hashes, np.arange(1, 1 + table.probabilities.shape[1], dtype=np.uint64), lambda: columns)


def fit_data(tokens: Tokens, threshold: float = 0.01, lowest: float | None = None, per_document: int = PER_DOCUMENT) -> FitData:
    """What a token calibration is fitted on; documents of so many tokens. lowest (float | None): The threshold where not given."""
    pairs = pair_up(from_dense(tokens.probabilities, threshold if lowest is None else lowest), tokens.gold)
    return FitData(pairs, tokens.gold, pairs.rows // per_document, N_TAGS, threshold)
