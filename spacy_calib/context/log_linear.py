"""Logistic regression on what is known of a (token, tag) pair, drawn towards changing nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..calibration.recalibrators.logistic import minimize_smooth, sigmoid, softplus
from ..calibration.scaling.base import MOST_PAIRS
from ..calibration.scaling.objective import lowest_from
from ..calibration.sufficiency import DOCUMENTS_TO_CHOOSE
from ..metrics.proper import log_losses
from ..pairs.documents import cross_fit, folds_of, thin_out
from ..pairs.progress import UNREPORTED, Progress
from ..schema import Misfit, Saved, floats, kept, keyed, number, whole, wholes
from ..types import Floats, Ints
from .blocks import Block

# Strengths of the ridge, of which held-out documents choose; with the first, little but a line for all tags is learned.
RIDGES = (10_000.0, 1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0)
_USUAL = RIDGES.index(3.0)
# To choose, at most so many pairs are looked at, in so many folds.
_MOST_TO_CHOOSE = 40_000
_FOLDS_TO_CHOOSE, _FOLDS = 3, 5
# The search ends where a step lowers the loss by less than this share of it.
_CLOSELY, _ROUGHLY = 1e-7, 1e-5
_MOST_STEPS, _MEMORY = 400, 15
# Weight of the prior on a block without ridge, in pairs: it decides only where the pairs leave the weights open.
_PRIOR = 0.05
# With fewer pairs the weights are partly those of a line for all tags.
_ENOUGH = 2000
# Weights stand in a table where it has no more cells than this.
_CELLS = 1 << 22


@dataclass(frozen=True, eq=False)
class Weights(Saved):
    """Weights of a block. codes (Ints): Met by the fit, rising. values (Floats): Shape (k, width). size: As of it."""

    codes: Ints = kept(wholes(rising=True))
    values: Floats = kept(floats(ndim=2))
    size: int = kept(whole())

    @classmethod
    def agree(cls, held: dict[str, Any]) -> str:
        if held["codes"].max(initial=-1) >= held["size"]:
            return f"codes below {held['size']} are wanted"
        return "" if len(held["codes"]) == len(held["values"]) else "a row of weights for each code is wanted"

    def of(self, codes: Ints) -> Floats:
        """Of n codes, shape (n, width); 0 for those that the fit did not meet, and for -1."""
        if self.table is not None:
            return self.table[codes]
        if not len(self.codes):
            return np.zeros((len(codes), self.values.shape[1]))
        at = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        return np.where((self.codes[at] == codes)[:, None], self.values[at], 0.0)

    @cached_property
    def table(self) -> Floats | None:
        """The weights of all codes, and zeros in the last row; None where that were too large."""
        if self.size * self.values.shape[1] > _CELLS:
            return None
        table = np.zeros((self.size + 1, self.values.shape[1]))
        table[self.codes] = self.values
        return table


@dataclass(frozen=True, eq=False)
class LogLinear(Saved):
    """The log-odds of a score plus the weights of its blocks. ridge (float): As chosen. weights: By name of block."""

    ridge: float = kept(number(0.0))
    weights: Mapping[str, Weights] = kept(keyed(Weights.read))

    def predict(self, own: Floats, blocks: Sequence[Block]) -> Floats:
        """The probability of n pairs, added up in one order: it depends on no other pair and on no number of threads.

        own (Floats): Log-odds of their scores. blocks (Sequence[Block]): Theirs; one without weights says nothing.
        """
        held = [(block, self.weights[block.name]) for block in blocks if block.name in self.weights]
        n = len(own)
        # With one more column: of a single pair numpy would add up the rows in another order than of several.
        parts = np.zeros((1 + sum([one.values.shape[1] for _, one in held]), n + 1))
        parts[0, :n], first = own, 1
        for block, one in held:
            weights = one.of(block.codes)
            part = parts[first : first + weights.shape[1], :n]
            if block.numbers is None:
                part[0] = weights[:, 0]
            else:
                np.multiply(weights.T, block.numbers, out=part)
            first += len(part)
        return sigmoid(np.add.reduce(parts)[:n])

    def with_places(self, blocks: Sequence[Block], places: Mapping[str, Ints], n: int) -> LogLinear:
        """The same where words have other places. places (Mapping): `Block.of` -> new place of each form, or ending.

        blocks (Sequence[Block]): Of the weights. n (int): Codes of each form or ending.
        """
        moved = dict(self.weights)
        for block in blocks:
            name, own = block.name, self.weights[block.name]
            if len(place := places.get(block.of, ())):
                codes = np.asarray(place)[own.codes // n] * n + own.codes % n
                order = np.argsort(codes)
                moved[name] = Weights(codes[order], own.values[order], own.size)
        return LogLinear(self.ridge, moved)

    @property
    def size(self) -> int:
        """How many numbers were fitted."""
        return sum(one.values.size for one in self.weights.values())

    def check(self, blocks: Sequence[Block]) -> None:
        """RAISES Misfit: the weights are not those of these blocks."""
        wanted = {block.name: (block.size, block.width) for block in blocks}
        given = {name: (one.size, one.values.shape[1]) for name, one in self.weights.items()}
        if given != wanted:
            raise Misfit("learned.model.weights", f"those of {wanted}")


@dataclass(frozen=True, eq=False)
class PairData:
    """n pairs to learn from. own (Floats): Log-odds of their scores. blocks, hits, documents: Of each pair."""

    own: Floats
    blocks: Sequence[Block]
    hits: NDArray[np.bool_]
    documents: Ints

    def __len__(self) -> int:
        return len(self.own)

    def take(self, index: Ints) -> PairData:
        """Some of the pairs."""
        blocks = [
            replace(one, codes=one.codes[index], numbers=None if one.numbers is None else one.numbers[:, index])
            for one in self.blocks
        ]
        return PairData(self.own[index], blocks, self.hits[index], self.documents[index])


def fit_pairs(data: PairData, progress: Progress = UNREPORTED) -> tuple[LogLinear, Floats]:
    """(the model of the best ridge for held-out documents, the probability of each pair by a held-out model).

    With few documents the ridge is the strongest. Of one alone the model's own probabilities are given.
    """
    n_documents = len(np.unique(data.documents))
    if n_documents < 2:
        model = _fit(data, RIDGES[0])
        return model, model.predict(data.own, data.blocks)
    ridge, (choosing, fitting, folds) = RIDGES[0], progress.parts(3, 1, 2)
    if n_documents >= DOCUMENTS_TO_CHOOSE:
        ridge = _choose_ridge(data.take(thin_out(data.documents, _MOST_TO_CHOOSE)), choosing)
    fitting.at(0.0)
    model = _drawn(data.take(thin_out(data.documents, MOST_PAIRS)), ridge)
    return model, _held_out(data, ridge, folds_of(data.documents, _FOLDS), model, folds)


def _choose_ridge(data: PairData, progress: Progress) -> float:
    """The best ridge; the search begins at the usual one and goes where the loss falls. Of equal ones the strongest."""
    progress.at(0.0)
    start, folds = _fit(data, RIDGES[_USUAL], _ROUGHLY), folds_of(data.documents, _FOLDS_TO_CHOOSE)

    def loss(place: int) -> float:
        return float(log_losses(_held_out(data, RIDGES[place], folds, start), data.hits).sum())

    return RIDGES[lowest_from(_USUAL, len(RIDGES), loss, progress)]


def _held_out(data: PairData, ridge: float, folds: Ints, start: LogLinear, progress: Progress = UNREPORTED) -> Floats:
    """The probability of each pair by a model that did not see its fold. start (LogLinear): Where searches begin."""

    def score(outside: Ints, inside: Ints) -> Floats:
        others = data.take(outside)
        model = _drawn(others.take(thin_out(others.documents, MOST_PAIRS)), ridge, _ROUGHLY, start)
        mine = data.take(inside)
        return model.predict(mine.own, mine.blocks)

    return cross_fit(folds, score, progress)


def _drawn(data: PairData, ridge: float, tolerance: float = _CLOSELY, start: LogLinear | None = None) -> LogLinear:
    """As `_fit`, but drawn towards a line for all tags where pairs are few."""
    model = _fit(data, ridge, tolerance, start)
    if len(data) >= _ENOUGH or ridge == RIDGES[0]:
        return model
    line, share = _fit(data, RIDGES[0], tolerance), len(data) / _ENOUGH
    weights = {
        name: Weights(own.codes, share * own.values + (1.0 - share) * line.weights[name].values, own.size)
        for name, own in model.weights.items()
    }
    return LogLinear(ridge, weights)


def _fit(data: PairData, ridge: float, tolerance: float = _CLOSELY, start: LogLinear | None = None) -> LogLinear:
    """The model of least penalized log loss."""
    from scipy.sparse import csr_matrix, hstack

    met = [np.unique(block.codes[block.codes >= 0]) for block in data.blocks]
    design = hstack([_design(block, codes) for block, codes in zip(data.blocks, met, strict=True)]).tocsr()
    across = csr_matrix(design.T)
    sizes = [len(codes) * block.width for block, codes in zip(data.blocks, met, strict=True)]
    penalty = np.repeat([ridge * block.share or _PRIOR for block in data.blocks], sizes)
    chance = sigmoid(data.own)
    # In units of its own curvature, or the search would take several times as many steps.
    units = 1.0 / np.sqrt(design.power(2).T @ (chance * (1.0 - chance)) + penalty)

    def loss(scaled: Floats) -> tuple[float, Floats]:
        values = scaled * units
        margins = data.own + design @ values
        residuals = sigmoid(margins) - data.hits
        found = float((softplus(margins) - data.hits * margins).sum() + 0.5 * (penalty * values**2).sum())
        return found, (across @ residuals + penalty * values) * units

    begin = np.zeros(len(units)) if start is None else _begin(start, data.blocks, met) / units
    values = minimize_smooth(loss, begin, tolerance, _MOST_STEPS, _MEMORY) * units
    parts = np.split(values, np.cumsum(sizes)[:-1])
    return LogLinear(
        ridge,
        {
            block.name: Weights(codes, part.reshape(len(codes), block.width), block.size)
            for block, codes, part in zip(data.blocks, met, parts, strict=True)
        },
    )


def _begin(start: LogLinear, blocks: Sequence[Block], met: Sequence[Ints]) -> Floats:
    """The weights of another model for these codes, as one vector."""
    return np.concatenate([start.weights[block.name].of(codes).ravel() for block, codes in zip(blocks, met, strict=True)])


def _design(block: Block, met: Ints) -> Any:
    """What the weights of a block are multiplied with, shape (n, len(met) * width)."""
    from scipy.sparse import csr_matrix

    rows = np.flatnonzero(block.codes >= 0)
    first = np.searchsorted(met, block.codes[rows]) * block.width
    numbers = np.ones((1, len(block.codes))) if block.numbers is None else block.numbers
    columns = np.stack([first + place for place in range(block.width)], axis=1)
    values = numbers[:, rows].T
    starts = np.concatenate([[0], np.cumsum(block.codes >= 0)]) * block.width
    return csr_matrix((values.ravel(), columns.ravel(), starts), (len(block.codes), len(met) * block.width))
