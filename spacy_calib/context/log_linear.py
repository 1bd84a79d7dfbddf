"""Logistic regression on the inputs of (token, tag) pairs, with an L2 penalty that shrinks it towards no change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..calibration.scaling.objective import descend
from ..calibration.scaling.scaling import MOST_PAIRS
from ..calibration.solvers import minimize_with_curvature, sigmoid, softplus
from ..metrics.proper import log_losses
from ..pairs.documents import DOCUMENTS_TO_CHOOSE, cross_fit, folds_of, thin_out
from ..pairs.progress import UNREPORTED, Progress
from ..schema import InvalidState, Serializable, dict_of, floats, number, saved_field, whole, wholes
from ..types import Floats, Ints
from .blocks import CODE_BLOCKS, N_SCORES, NUMBER_BLOCKS, PairInputs, WeightBlock

# L2 penalties, of which cross-validation chooses; with the first, little but a line that all tags share has an effect.
RIDGES = (10_000.0, 1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0)
_FIRST_RIDGE = RIDGES.index(3.0)
# Maximum number of pairs, and folds, for the choice of the ridge.
_MAX_SEARCH_PAIRS = 40_000
_SEARCH_FOLDS, _FOLDS = 3, 5
# The minimizer stops at a gradient of this norm, for weights scaled by the curvature. Scores are then exact to about .001, so
# that a fit to other folds forgets the held-out documents that its initial weights have seen, and processors agree.
_TOLERANCE = 0.03
_PRIOR = 0.05  # weight of the prior on a block without a penalty, in pairs: just enough to make its weights unique
_MIN_UNSHRUNK = 2000  # with fewer pairs the weights are averaged with those of a line for all tags
_MAX_CELLS = 1 << 23  # maximum size of the table of the weights of all codes


@dataclass(frozen=True, eq=False)
class BlockWeights(Serializable):
    """Weights of one block of inputs: each pair has a code in the block, and each code has `width` weights.

    codes (Ints): Codes that occur in the fit data, ascending. values (Floats): Their weights, shape (len(codes), width).
    size (int): Number of all possible codes.
    """

    codes: Ints = saved_field(wholes(rising=True))
    values: Floats = saved_field(floats(ndim=2))
    size: int = saved_field(whole())

    @classmethod
    def find_contradiction(cls, fields: dict[str, Any]) -> str:
        if fields["codes"].max(initial=-1) >= fields["size"]:
            return f"a code is not below {fields['size']}"
        return "" if len(fields["codes"]) == len(fields["values"]) else "not one row of weights per code"

    def find(self, codes: Ints) -> Floats:
        """Return the weights of n codes, shape (n, width); 0 for codes that were not in the fit data."""
        if not len(self.codes):
            return np.zeros((len(codes), self.values.shape[1]))
        index = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        return np.where((self.codes[index] == codes)[:, None], self.values[index], 0.0)


@dataclass(frozen=True, eq=False)
class LogLinear(Serializable):
    """A log-linear model: it adds to the log-odds of a (token, tag) pair the sum of the pair's inputs times their weights.

    ridge (float): L2 penalty of the fit. weights (Mapping[str, BlockWeights]): Name of a block -> its weights.
    """

    ridge: float = saved_field(number(0.0))
    weights: Mapping[str, BlockWeights] = saved_field(dict_of(BlockWeights.read))

    @cached_property
    def _slopes(self) -> Floats:
        """The total weight of each of the m numbers of a pair (rows of `PairInputs.numbers`), by tag code: (m, n_tag_codes)."""
        blocks = {name: self.weights[name] for name in NUMBER_BLOCKS if name in self.weights}
        tag_codes = np.arange(max([block.size for block in blocks.values()], default=1))  # size: number of codes of a block
        n_features = blocks["features"].values.shape[1] if "features" in blocks else 0
        slopes = np.zeros((N_SCORES + n_features, len(tag_codes)))
        for name, block in blocks.items():
            # A tag code is 2 * tag + is_top: modulo 1 it is one code for all pairs, modulo 2 one for top tags, one for others.
            rows, block_codes = NUMBER_BLOCKS[name], tag_codes % block.size
            slopes[rows] += block.find(block_codes).T
        return slopes

    @cached_property
    def _table(self) -> tuple[Ints, Floats] | None:
        """The weights of all CODE_BLOCKS in one array, as (first index of each block, (n_blocks, 1); array). None if too large.

        The weight of a code is at first index + code. Before each first index is a 0: the weight of the code -1, for no code.
        """
        blocks = [self.weights[name] for name in CODE_BLOCKS if name in self.weights]
        starts = np.cumsum([1, *(weights.size + 1 for weights in blocks)])  # 1, + 1: room for the 0 before each block
        if starts[-1] > _MAX_CELLS:
            return None
        table = np.zeros(starts[-1])
        for weights, start in zip(blocks, starts.tolist(), strict=False):
            table[start + weights.codes] = weights.values[:, 0]  # these blocks have one weight per code
        return starts[:-1, None], table

    def predict(self, log_odds: Floats, inputs: PairInputs) -> Floats:
        """Return the adjusted probabilities of n pairs, (n,), bit-identical in any batch and with any number of threads.

        log_odds (Floats): Log-odds of their scores, shape (n,). inputs (PairInputs): Their inputs.
        """
        n, first_code = len(log_odds), 1 + len(inputs.numbers)
        # A row for each term of the sum: the log-odds, then numbers times weights, then weights of codes.
        # A column for each pair, and one more: numpy adds up the rows of a single column in another order.
        terms = np.zeros((first_code + len(inputs.codes), n + 1))
        terms[0, :n] = log_odds
        np.multiply(self._slopes.take(inputs.tag_codes, axis=1), inputs.numbers, out=terms[1:first_code, :n])
        if self._table is None:  # it would be too large: find the weights of each block by a binary search
            blocks = zip(CODE_BLOCKS, inputs.codes, strict=False)
            terms[first_code:, :n] = [self.weights[name].find(codes)[:, 0] for name, codes in blocks]  # one weight per code
        else:
            starts, table = self._table  # before each start is a 0, which the code -1 finds
            terms[first_code:, :n] = table[np.maximum(inputs.codes, -1) + starts]  # any code below 0 means none: -1
        return sigmoid(np.add.reduce(terms)[:n])

    def reindex_words(self, new_indices: Mapping[str, Ints], n: int) -> LogLinear:
        """Return the model for a reordered vocabulary. A code in a block of words is index of the word * n + tag.

        new_indices (Mapping): Name of a block ("form", "ending") -> new index of each old index. n: 1 + number of tags.
        """
        weights_by_block = dict(self.weights)
        for name in new_indices.keys() & self.weights.keys():  # a model of scores alone has no block of words
            weights = self.weights[name]
            codes = new_indices[name][weights.codes // n] * n + weights.codes % n
            order = np.argsort(codes)
            weights_by_block[name] = BlockWeights(codes[order], weights.values[order], weights.size)
        return LogLinear(self.ridge, weights_by_block)

    @property
    def size(self) -> int:
        """Number of weights."""
        return sum(weights.values.size for weights in self.weights.values())

    def check(self, blocks: Sequence[WeightBlock]) -> None:
        """Check that the weights fit these blocks. RAISES InvalidState: another name, size or width."""
        shapes = {block.name: (block.size, block.width) for block in blocks}
        if shapes != {name: (weights.size, weights.values.shape[1]) for name, weights in self.weights.items()}:
            raise InvalidState("learned.model.weights", f"those of {shapes}")


@dataclass(frozen=True, eq=False)
class PairData:
    """n pairs to learn from: log-odds of the scores to adjust, inputs of the model, whether each hits, and its document."""

    log_odds: Floats
    inputs: PairInputs
    hits: NDArray[np.bool_]
    documents: Ints

    def take(self, index: Ints) -> PairData:
        return PairData(self.log_odds[index], self.inputs.take(index), self.hits[index], self.documents[index])


def fit_pairs(data: PairData, progress: Progress = UNREPORTED) -> tuple[LogLinear, Floats]:
    """Fit the model with the L2 penalty of lowest log loss on held-out documents; return (model, out-of-fold probabilities).

    data (PairData): Pairs of at least two documents. With fewer than DOCUMENTS_TO_CHOOSE the penalty is the strongest one.
    """
    choosing, fitting, scoring = progress.parts(3, 1, 2)  # about the time that each takes
    ridge = RIDGES[0]
    if len(np.unique(data.documents)) >= DOCUMENTS_TO_CHOOSE:
        ridge = _choose_ridge(data.take(thin_out(data.documents, _MAX_SEARCH_PAIRS)), choosing)
    fitting.update(0.0)
    model = _shrunk_fit(data.take(thin_out(data.documents, MOST_PAIRS)), ridge)
    return model, _score_out_of_fold(data, ridge, folds_of(data.documents, _FOLDS), model, scoring)


def _choose_ridge(data: PairData, progress: Progress) -> float:
    """Return the L2 penalty of RIDGES whose cross-validated loss is a local minimum (of ties the strongest penalty)."""
    progress.update(0.0)
    folds = folds_of(data.documents, _SEARCH_FOLDS)
    start = _fit_model(data, RIDGES[_FIRST_RIDGE])

    def loss(index: int) -> float:
        return float(log_losses(_score_out_of_fold(data, RIDGES[index], folds, start), data.hits).sum())

    return RIDGES[descend(_FIRST_RIDGE, len(RIDGES), loss, progress)]


def _score_out_of_fold(data: PairData, ridge: float, folds: Ints, start: LogLinear, progress: Progress = UNREPORTED) -> Floats:
    """Return each pair's probability by a model fitted to other folds. ridge: L2 penalty. start: Initial weights."""

    def score(train: Ints, test: Ints) -> Floats:
        train_data, test_data = data.take(train), data.take(test)
        model = _shrunk_fit(train_data.take(thin_out(train_data.documents, MOST_PAIRS)), ridge, start)
        return model.predict(test_data.log_odds, test_data.inputs)

    return cross_fit(folds, score, progress)


def _shrunk_fit(data: PairData, ridge: float, start: LogLinear | None = None) -> LogLinear:
    """Fit the model as `_fit_model` does. With few pairs, average its weights with those by the strongest L2 penalty."""
    model = _fit_model(data, ridge, start)
    share = len(data.hits) / _MIN_UNSHRUNK  # of this model in the average
    if share >= 1 or ridge == RIDGES[0]:  # there are enough pairs, or this is the model with the strongest penalty
        return model
    strong_model, weights = _fit_model(data, RIDGES[0]), {}
    for name, block in model.weights.items():
        values = share * block.values + (1.0 - share) * strong_model.weights[name].values
        weights[name] = BlockWeights(block.codes, values, block.size)
    return LogLinear(ridge, weights)


def _fit_model(data: PairData, ridge: float, start: LogLinear | None = None) -> LogLinear:
    """Fit the model: minimize the log loss plus an L2 penalty (ridge). start (LogLinear | None): Initial weights; None: 0."""
    from scipy.sparse import csr_matrix, hstack

    blocks, designs, distinct_codes = data.inputs.blocks, [], {}  # distinct_codes: name of a block -> its codes in the data
    for block in blocks:
        codes, numbers = data.inputs.inputs_of(block)
        distinct_codes[block.name] = np.unique(codes[codes >= 0])
        designs.append(_design(codes, distinct_codes[block.name], numbers))
    design = hstack(designs).tocsr()
    transposed_design = csr_matrix(design.T)
    sizes = [len(distinct_codes[block.name]) * block.width for block in blocks]  # number of weights of each block
    penalty = np.repeat([ridge * block.share or _PRIOR for block in blocks], sizes)  # a weak prior if the share is 0
    probabilities = sigmoid(data.log_odds)
    # Weights are scaled by the curvature of the loss, or the search would take several times as many steps.
    units = 1.0 / np.sqrt(design.power(2).T @ (probabilities * (1.0 - probabilities)) + penalty)

    def loss(scaled_weights: Floats) -> tuple[float, Floats]:
        """Return the penalized log loss and its gradient, for weights divided by their units."""
        weights = scaled_weights * units
        margins = data.log_odds + design @ weights
        residuals = sigmoid(margins) - data.hits
        total = float((softplus(margins) - data.hits * margins).sum() + 0.5 * (penalty * weights**2).sum())
        return total, (transposed_design @ residuals + penalty * weights) * units

    def curvature(scaled_weights: Floats) -> Callable[[Floats], Floats]:
        """Return the function that multiplies a vector by the Hessian of the loss at these weights."""
        probabilities = sigmoid(data.log_odds + design @ (scaled_weights * units))
        variances = probabilities * (1.0 - probabilities)

        def multiply(vector: Floats) -> Floats:
            direction = vector * units
            return (transposed_design @ (variances * (design @ direction)) + penalty * direction) * units

        return multiply

    initial = np.zeros(len(units))
    if start is not None:
        initial = np.concatenate([start.weights[name].find(codes).ravel() for name, codes in distinct_codes.items()]) / units
    weights = minimize_with_curvature(loss, curvature, initial, _TOLERANCE) * units
    block_weights = {}
    for block, values in zip(blocks, np.split(weights, np.cumsum(sizes)[:-1]), strict=True):
        block_weights[block.name] = BlockWeights(distinct_codes[block.name], values.reshape(-1, block.width), block.size)
    return LogLinear(ridge, block_weights)


def _design(codes: Ints, distinct: Ints, numbers: Floats) -> Any:
    """Return the sparse design matrix of a block, (n, len(distinct) * width): a pair's numbers, in the columns of its code.

    codes (Ints): Code of each of n pairs, below 0 for none. distinct (Ints): The distinct codes, ascending.
    numbers (Floats): The width numbers of each pair, shape (width, n).
    """
    from scipy.sparse import csr_matrix

    with_code, width = np.flatnonzero(codes >= 0), len(numbers)
    first_columns = np.searchsorted(distinct, codes[with_code]) * width
    columns = np.stack([first_columns + offset for offset in range(width)], axis=1)
    row_starts = np.concatenate([[0], np.cumsum(codes >= 0)]) * width  # index of each row's first value
    return csr_matrix((numbers[:, with_code].T.ravel(), columns.ravel(), row_starts), (len(codes), len(distinct) * width))
