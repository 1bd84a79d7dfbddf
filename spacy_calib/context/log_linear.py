"""Logistic regression on the inputs of a (token, tag) pair, shrunk towards no change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..calibration.recalibrators.logistic import minimize_smooth, sigmoid, softplus
from ..calibration.scaling.base import MOST_PAIRS
from ..calibration.scaling.objective import descend
from ..metrics.proper import log_losses
from ..pairs.documents import DOCUMENTS_TO_CHOOSE, cross_fit, folds_of, thin_out
from ..pairs.progress import UNREPORTED, Progress
from ..schema import Misfit, Saved, floats, kept, keyed, number, whole, wholes
from ..types import Floats, Ints
from .blocks import N_SCORES, NUMBERS, SINGLE, Block, PairInputs

# Strengths of the ridge, of which held-out documents choose; with the first, little but a line for all tags is learned.
RIDGES = (10_000.0, 1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0)
_START = RIDGES.index(3.0)
# To choose, at most so many pairs are looked at, in so many folds.
_MAX_TO_CHOOSE = 40_000
_FOLDS_TO_CHOOSE, _FOLDS = 3, 5
# The search ends where a step lowers the loss by less than this share of it.
_CLOSELY, _ROUGHLY = 1e-7, 1e-5
_MAX_STEPS, _MEMORY = 400, 15
# Weight of the prior on a block without ridge, in pairs: it decides only where the pairs leave the weights open.
_PRIOR = 0.05
# With fewer pairs the weights are partly those of a line for all tags.
_ENOUGH = 2000
# The weights of all codes are held as a table if it has at most this many cells.
_MAX_CELLS = 1 << 23


@dataclass(frozen=True, eq=False)
class Weights(Saved):
    """Weights of a block. codes (Ints): In the fit data, ascending. values (Floats): Shape (k, width). size (int): Number of possible codes."""

    codes: Ints = kept(wholes(rising=True))
    values: Floats = kept(floats(ndim=2))
    size: int = kept(whole())

    @classmethod
    def agree(cls, fields: dict[str, Any]) -> str:
        if fields["codes"].max(initial=-1) >= fields["size"]:
            return f"codes below {fields['size']} are wanted"
        return "" if len(fields["codes"]) == len(fields["values"]) else "a row of weights for each code is wanted"

    def find(self, codes: Ints) -> Floats:
        """The weights of n codes, shape (n, width); 0 for codes that are not in the fit data."""
        if not len(self.codes):
            return np.zeros((len(codes), self.values.shape[1]))
        index = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        return np.where((self.codes[index] == codes)[:, None], self.values[index], 0.0)


@dataclass(frozen=True, eq=False)
class LogLinear(Saved):
    """The log-odds of a score plus the weights of its blocks. ridge (float): As chosen. weights: By name of block."""

    ridge: float = kept(number(0.0))
    weights: Mapping[str, Weights] = kept(keyed(Weights.read))

    @cached_property
    def _slopes(self) -> Floats:
        """The weights of all numbers, by tag code: those of the blocks in NUMBERS, added up. Shape (m, tag codes)."""
        weights_of = {name: self.weights[name] for name in NUMBERS if name in self.weights}
        tag_codes = np.arange(max([weights.size for weights in weights_of.values()], default=1))
        n_features = weights_of["features"].values.shape[1] if "features" in weights_of else 0
        slopes = np.zeros((N_SCORES + n_features, len(tag_codes)))
        for name, weights in weights_of.items():
            slopes[NUMBERS[name]] += weights.find(tag_codes % weights.size).T
        return slopes

    @cached_property
    def _table(self) -> tuple[Ints, Floats] | None:
        """(where the codes of each block of SINGLE begin, shape (k, 1); the weights of all codes, and a 0 before those of each block); None for
        so many codes that they are looked up one by one.
        """
        single = [self.weights[name] for name in SINGLE if name in self.weights]
        starts = np.cumsum([1, *(weights.size + 1 for weights in single)])
        if starts[-1] > _MAX_CELLS:
            return None
        table = np.zeros(starts[-1])
        for weights, start in zip(single, starts.tolist(), strict=False):
            table[start + weights.codes] = weights.values[:, 0]
        return starts[:-1, None], table

    def predict(self, log_odds: Floats, inputs: PairInputs) -> Floats:
        """The probability of n pairs, added up in one order: it depends on no other pair and on no number of threads.

        log_odds (Floats): Of their scores.
        """
        n, end = len(log_odds), 1 + len(inputs.numbers)
        # With one more column: numpy would add up the rows of a single pair in another order than those of several.
        parts = np.zeros((end + len(inputs.codes), n + 1))
        parts[0, :n] = log_odds
        np.multiply(self._slopes.take(inputs.tag_codes, axis=1), inputs.numbers, out=parts[1:end, :n])
        if self._table is None:
            blocks = zip(SINGLE, inputs.codes, strict=False)
            parts[end:, :n] = [self.weights[name].find(codes)[:, 0] for name, codes in blocks]
        else:
            starts, table = self._table
            parts[end:, :n] = table[np.maximum(inputs.codes, -1) + starts]
        return sigmoid(np.add.reduce(parts)[:n])

    def with_places(self, blocks: Sequence[Block], places: Mapping[str, Ints], n: int) -> LogLinear:
        """The same model where words have other places. places (Mapping): `Block.words` -> new place of each form, or ending.

        blocks (Sequence[Block]): Of the weights. n (int): Codes of each form or ending.
        """
        moved_weights = dict(self.weights)
        for block in blocks:
            if block.words:
                weights = self.weights[block.name]
                codes = places[block.words][weights.codes // n] * n + weights.codes % n
                order = np.argsort(codes)
                moved_weights[block.name] = Weights(codes[order], weights.values[order], weights.size)
        return LogLinear(self.ridge, moved_weights)

    @property
    def size(self) -> int:
        """How many numbers were fitted."""
        return sum(weights.values.size for weights in self.weights.values())

    def check(self, blocks: Sequence[Block]) -> None:
        """RAISES Misfit: the weights are not those of these blocks."""
        expected = {block.name: (block.size, block.width) for block in blocks}
        if expected != {name: (weights.size, weights.values.shape[1]) for name, weights in self.weights.items()}:
            raise Misfit("learned.model.weights", f"those of {expected}")


@dataclass(frozen=True, eq=False)
class PairData:
    """n pairs to learn from. log_odds (Floats): Of their scores. inputs (PairInputs), hits, documents: Of each pair."""

    log_odds: Floats
    inputs: PairInputs
    hits: NDArray[np.bool_]
    documents: Ints

    def take(self, index: Ints) -> PairData:
        """Some of the pairs."""
        return PairData(self.log_odds[index], self.inputs.take(index), self.hits[index], self.documents[index])


def fit_pairs(data: PairData, progress: Progress = UNREPORTED) -> tuple[LogLinear, Floats]:
    """(the model of the best ridge for held-out documents, the probability of each pair by a held-out model).

    With few documents the ridge is the strongest. Of one alone the model's own probabilities are given.
    """
    n_documents = len(np.unique(data.documents))
    if n_documents < 2:
        model = _fit(data, RIDGES[0])
        return model, model.predict(data.log_odds, data.inputs)
    ridge, (choosing, fitting, folds) = RIDGES[0], progress.parts(3, 1, 2)
    if n_documents >= DOCUMENTS_TO_CHOOSE:
        ridge = _choose_ridge(data.take(thin_out(data.documents, _MAX_TO_CHOOSE)), choosing)
    fitting.update(0.0)
    model = _shrunk_fit(data.take(thin_out(data.documents, MOST_PAIRS)), ridge)
    return model, _held_out(data, ridge, folds_of(data.documents, _FOLDS), model, folds)


def _choose_ridge(data: PairData, progress: Progress) -> float:
    """The best ridge; the search begins at the usual one and goes where the loss falls. Of equal ones the strongest."""
    progress.update(0.0)
    start, folds = _fit(data, RIDGES[_START], _ROUGHLY), folds_of(data.documents, _FOLDS_TO_CHOOSE)

    def loss(place: int) -> float:
        return float(log_losses(_held_out(data, RIDGES[place], folds, start), data.hits).sum())

    return RIDGES[descend(_START, len(RIDGES), loss, progress)]


def _held_out(data: PairData, ridge: float, folds: Ints, start: LogLinear, progress: Progress = UNREPORTED) -> Floats:
    """The probability of each pair by a model that did not see its fold. start (LogLinear): Where searches begin."""

    def score(train: Ints, test: Ints) -> Floats:
        train_data, test_data = data.take(train), data.take(test)
        model = _shrunk_fit(train_data.take(thin_out(train_data.documents, MOST_PAIRS)), ridge, _ROUGHLY, start)
        return model.predict(test_data.log_odds, test_data.inputs)

    return cross_fit(folds, score, progress)


def _shrunk_fit(data: PairData, ridge: float, tolerance: float = _CLOSELY, start: LogLinear | None = None) -> LogLinear:
    """As `_fit`, but shrunk towards a line for all tags where pairs are few."""
    model = _fit(data, ridge, tolerance, start)
    n = len(data.hits)
    if n >= _ENOUGH or ridge == RIDGES[0]:
        return model
    line, share = _fit(data, RIDGES[0], tolerance), n / _ENOUGH
    weights = {
        name: Weights(part.codes, share * part.values + (1.0 - share) * line.weights[name].values, part.size)
        for name, part in model.weights.items()
    }
    return LogLinear(ridge, weights)


def _fit(data: PairData, ridge: float, tolerance: float = _CLOSELY, start: LogLinear | None = None) -> LogLinear:
    """The model of least penalized log loss."""
    from scipy.sparse import csr_matrix, hstack

    blocks, inputs = data.inputs.blocks, data.inputs
    parts = [inputs.of_block(block) for block in blocks]
    distinct = [np.unique(codes[codes >= 0]) for codes, _ in parts]
    design = hstack([_design(codes, known, numbers) for (codes, numbers), known in zip(parts, distinct, strict=True)]).tocsr()
    transposed = csr_matrix(design.T)
    sizes = [len(column) * block.width for block, column in zip(blocks, distinct, strict=True)]
    penalty = np.repeat([ridge * block.share or _PRIOR for block in blocks], sizes)
    probabilities = sigmoid(data.log_odds)
    # In units of its own curvature, or the search would take several times as many steps.
    units = 1.0 / np.sqrt(design.power(2).T @ (probabilities * (1.0 - probabilities)) + penalty)

    def loss(scaled: Floats) -> tuple[float, Floats]:
        values = scaled * units
        margins = data.log_odds + design @ values
        residuals = sigmoid(margins) - data.hits
        total = float((softplus(margins) - data.hits * margins).sum() + 0.5 * (penalty * values**2).sum())
        return total, (transposed @ residuals + penalty * values) * units

    first = np.zeros(len(units))
    if start is not None:
        values_of_blocks = [start.weights[block.name].find(codes) for block, codes in zip(blocks, distinct, strict=True)]
        first = np.concatenate([values.ravel() for values in values_of_blocks]) / units
    values = minimize_smooth(loss, first, tolerance, _MAX_STEPS, _MEMORY) * units
    weights = zip(blocks, distinct, np.split(values, np.cumsum(sizes)[:-1]), strict=True)
    return LogLinear(
        ridge, {block.name: Weights(column, part.reshape(-1, block.width), block.size) for block, column, part in weights}
    )


def _design(codes: Ints, distinct: Ints, numbers: Floats) -> Any:
    """The matrix that the weights of a block are multiplied by, shape (n, len(distinct) * width).

    codes (Ints): Of n pairs. distinct (Ints): Of the columns. numbers (Floats): Shape (width, n).
    """
    from scipy.sparse import csr_matrix

    rows, width = np.flatnonzero(codes >= 0), len(numbers)
    first = np.searchsorted(distinct, codes[rows]) * width
    columns = np.stack([first + place for place in range(width)], axis=1)
    starts = np.concatenate([[0], np.cumsum(codes >= 0)]) * width
    return csr_matrix((numbers[:, rows].T.ravel(), columns.ravel(), starts), (len(codes), len(distinct) * width))
