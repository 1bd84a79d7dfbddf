"""Handwritten words, and a chain conditional random field that reads them beside a linear SVM that sees single letters (Kuleshov and Liang 2015)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from frame import data_folder
from scipy.optimize import minimize

from papers.chains.best import viterbi
from papers.chains.chains import Chains, Potentials
from papers.chains.losses import hinge, likelihood
from papers.chains.sums import sum_chains
from spacy_calib.types import Floats, Ints

LETTERS = 26
RIDGES, COSTS = (0.3, 1.0, 3.0, 10.0), (0.003, 0.03, 0.3)
_RATE = 0.05


@dataclass(frozen=True, eq=False)
class Script:
    """Words one after another. pixels (Floats): Of each letter, shape (N, 128). labels (Ints): Its column. lengths (Ints): Of each word."""

    pixels: Floats
    labels: Ints
    lengths: Ints

    def take(self, words: Ints) -> Script:
        starts = np.cumsum(self.lengths) - self.lengths
        places = np.concatenate([np.arange(starts[i], starts[i] + self.lengths[i]) for i in words.tolist()])
        return Script(self.pixels[places], self.labels[places], self.lengths[words])

    def split(self, of_letters: Any) -> list[Any]:
        return np.split(of_letters, np.cumsum(self.lengths)[:-1])

    def words(self) -> list[tuple[int, ...]]:
        return [tuple(word.tolist()) for word in self.split(self.labels)]


@dataclass(frozen=True, eq=False)
class Model:
    """A chain conditional random field. weights (Floats): Of each pixel and letter, and a constant, shape (129, 26). potentials (Potentials)."""

    weights: Floats
    potentials: Potentials

    def chains(self, script: Script) -> Chains:
        return Chains.from_scores(script.split(script.pixels @ self.weights[:-1] + self.weights[-1]), self.potentials)


def read_script() -> Script:
    """RAISES SystemExit: see `data_folder`."""
    arrays = np.load(data_folder() / "ocr_letters" / "letters.npz", allow_pickle=False)
    pixels = np.unpackbits(arrays["pixels_packed"], axis=1).astype(np.float64)
    return Script(pixels, arrays["labels"].astype(np.intp), np.diff(arrays["word_offsets"]).astype(np.intp))


def train(script: Script, ridge: float, steps: int) -> Model:
    """Minimize -log P(labels | pixels) + ridge / 2 times the squared weights, by L-BFGS."""
    first, gold = np.cumsum(script.lengths) - script.lengths, script.split(script.labels)
    last = first + script.lengths - 1
    shapes = [(script.pixels.shape[1] + 1, LETTERS), (LETTERS, LETTERS), (LETTERS,), (LETTERS,)]
    bounds = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)])

    def model_of(values: Floats) -> Model:
        parts = [values[a:b].reshape(shape) for a, b, shape in zip(bounds[:-1], bounds[1:], shapes, strict=True)]
        return Model(parts[0], Potentials(*parts[1:]))

    def loss(values: Floats) -> tuple[float, Floats]:
        result = likelihood(model_of(values).chains(script), gold)
        off = np.concatenate(result.d_scores)
        of_pixels = np.concatenate([script.pixels.T @ off, off.sum(axis=0, keepdims=True)])
        gradient = [of_pixels, result.d_potentials.transitions, off[first].sum(axis=0), off[last].sum(axis=0)]
        flat = np.concatenate([part.reshape(-1) for part in gradient])
        return result.loss + ridge / 2 * float(values @ values), flat + ridge * values

    result = minimize(loss, np.zeros(bounds[-1]), jac=True, method="L-BFGS-B", options={"maxiter": steps})
    return model_of(result.x)


def train_margin(script: Script, ridge: float, steps: int) -> Model:
    """Minimize the structured hinge (max-margin, Taskar et al. 2003) with the same ridge, by averaged subgradients (Adagrad), a hundred words a step."""
    pixels = np.column_stack([script.pixels, np.ones(len(script.pixels))])
    words, rng = np.arange(len(script.lengths)), np.random.default_rng(0)
    given, gold = script.split(pixels), script.split(script.labels)
    shapes = ((pixels.shape[1], LETTERS), (LETTERS, LETTERS), (LETTERS,), (LETTERS,))
    weights, squares, total = ([np.zeros(shape) for shape in shapes] for _ in range(3))
    for _ in range(steps):
        batch = rng.choice(words, min(100, len(words)), replace=False)
        chains = Chains.from_scores([given[i] @ weights[0] for i in batch], Potentials(*weights[1:]))
        result = hinge(chains, [gold[i] for i in batch])
        of_pixels = np.concatenate([given[i] for i in batch]).T @ np.concatenate(result.d_scores)
        slopes = (of_pixels, result.d_potentials.transitions, result.d_potentials.starts, result.d_potentials.ends)
        for arrays, square, running_sum, slope in zip(weights, squares, total, slopes, strict=True):
            whole = slope / len(batch) + ridge / len(words) * arrays
            square += whole**2
            arrays -= _RATE * whole / np.sqrt(square + 1e-8)
            running_sum += arrays
    mean = [running_sum / steps for running_sum in total]
    return Model(mean[0], Potentials(*mean[1:]))


def mean_loss(model: Model, script: Script, loss: str) -> float:
    """What chooses the ridge: the mean log loss of a field trained by likelihood, the share of wrong words of another."""
    chains, gold = model.chains(script), script.split(script.labels)
    if loss == "likelihood":
        return float((sum_chains(chains).log_z - chains.scores_of(gold)).mean())
    return float(np.mean([(answer != labels).any() for answer, labels in zip(viterbi(chains), gold, strict=True)]))


def train_both(script: Script, loss: str, steps: int) -> tuple[Model, Any, str]:
    """(the field, the SVM, what the last fifth of the training words chose)."""
    from sklearn.svm import LinearSVC

    n = len(script.lengths) * 4 // 5
    most, arrays = script.take(np.arange(n)), script.take(np.arange(n, len(script.lengths)))
    learn = {"likelihood": train, "hinge": train_margin}[loss]
    losses = {ridge: mean_loss(learn(most, ridge, steps), arrays, loss) for ridge in RIDGES}
    ridge = min(losses, key=losses.__getitem__)
    make = partial(LinearSVC, dual=False, random_state=0)
    right = {cost: make(C=cost).fit(most.pixels, most.labels).score(arrays.pixels, arrays.labels) for cost in COSTS}
    cost = max(right, key=right.__getitem__)
    return learn(script, ridge, steps), make(C=cost).fit(script.pixels, script.labels), f"ridge {ridge:g}, C {cost:g}"


def alone_of(svm: Any, script: Script) -> Floats:
    """The SVM's score of each letter; of those that it never saw less than of any other. Shape (N, 26)."""
    scores = svm.decision_function(script.pixels)
    wide = np.full((len(scores), LETTERS), scores.min() - 1)
    wide[:, svm.classes_] = scores
    return wide
