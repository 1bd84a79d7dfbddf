"""Expected accuracy, precision, recall and F of documents without gold, from calibrated scores.

The sum of the calibrated probabilities of n labels is the expected number of right ones. Its errors are learned on the fit data
from scores of maps that did not see the document (cross-fitted): the error of all documents together (the rectifier of
prediction-powered inference, Angelopoulos et al. 2023, section 2, cross-fitted as by Zrnic and Candes 2024), and how much
single documents vary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...errors import calib_error
from ...schema import Form, InvalidState, Serializable, floats, lengths, number, saved_field, whole
from ...types import FieldwiseSum, Floats, Ints

# Neighbouring documents (parts of one text, texts of one source) are alike up to this distance: Newey and West (1987).
_LAGS = 2
# Least variance of an expected share: scores that are all 0 or 1 would give none.
_LEAST_VARIANCE = 1e-12


class Estimate(NamedTuple):
    """An expected share in [0, 1], and the interval that holds the true one with the confidence asked for."""

    expected: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Sums(FieldwiseSum):
    """What the scores of D documents say of k numbers of events; arrays of shape (D, k), but for units.

    expected (Floats): Expected number of events. independent (Floats): Its variance if events were independent.
    units (Floats): Tokens of each document, shape (D,). squares (Floats | None): Their squares, or where a row is of
        several documents, the sum of these. None takes them from `units`.
    """

    expected: Floats
    independent: Floats
    units: Floats
    squares: Floats | None = None

    def total(self) -> Sums:
        """All documents as one row, of the kind that adds up."""
        return Sums(
            self.expected.sum(axis=0, keepdims=True),
            self.independent.sum(axis=0, keepdims=True),
            self.units.sum(keepdims=True),
            np.array([self.units_squared]),
        )

    @property
    def units_squared(self) -> float:
        """Sum over documents of the squared numbers of tokens."""
        return float((np.square(self.units) if self.squares is None else self.squares).sum())


@dataclass(frozen=True, eq=False)
class Residuals(Serializable):
    """By how much the events of the fit documents differ from what held-out scores expected; k kinds of events.

    docs (int): Documents with tokens. units, squares (float): Their tokens, and the sum of their squares by document.
    residual (Floats): Events less expected ones, summed, shape (k,). independent (Floats): As in Sums, summed, (k,).
    moment, neighbours (Floats): Sum over documents of the products of two kinds' residuals about their mean; and what
        covariances with the documents before and behind add to it; shape (k, k).
    """

    docs: int = saved_field(whole(1))
    units: float = saved_field(number(1.0))
    squares: float = saved_field(number(1.0))
    residual: Floats = saved_field(floats())
    independent: Floats = saved_field(floats(0.0))
    moment: Floats = saved_field(floats(ndim=2))
    neighbours: Floats = saved_field(floats(ndim=2))

    @classmethod
    def of_kinds(cls, k: int) -> Form:
        """The form of saved residuals with k kinds of events."""

        def form(value: Any, where: str) -> Residuals:
            residuals = cls.read(value, where)
            shapes = {"residual": (k,), "independent": (k,), "moment": (k, k), "neighbours": (k, k)}
            if wrong := lengths(shapes, vars(residuals)):
                raise InvalidState(where, f"consistent: {wrong}")
            return residuals

        return form

    @classmethod
    def of(cls, events: Floats, sums: Sums) -> Residuals:
        """events (Floats): Events of each document, shape (D, k), in order; documents without tokens are left out."""
        with_tokens = np.flatnonzero(sums.units > 0)
        units = sums.units[with_tokens].astype(np.float64)
        residual = (events - sums.expected)[with_tokens]
        deviations = residual - np.outer(units, residual.sum(axis=0) / max(1.0, units.sum()))
        # Twice the lagged products with Bartlett's weights.
        neighbours = np.zeros((deviations.shape[1], deviations.shape[1]))
        for lag in range(1, min(_LAGS, len(deviations) - 1) + 1):
            products = deviations[:-lag].T @ deviations[lag:]
            neighbours += (1 - lag / (_LAGS + 1)) * (products + products.T)
        return cls(
            len(with_tokens), float(units.sum()), float(np.square(units).sum()), residual.sum(axis=0),
            sums.independent[with_tokens].sum(axis=0), deviations.T @ deviations, neighbours,
        )  # fmt: skip

    @property
    def n_effective(self) -> float:
        """How many documents of equal length tell as much, see `n_effective`."""
        return self.units**2 / max(self.squares, 1e-300)

    def correction(self, units: float) -> Floats:
        """Events to add to the expected ones of so many tokens, shape (k,)."""
        return self.residual / self.units * units

    def shift_variance(self, weights: Floats) -> float:
        """Variance of the shift that the tokens of a document share, for a weighted sum of the kinds: the mean square that
        independence leaves unexplained (a variance component by moments).
        """
        excess = float(weights @ self.moment @ weights) - float(np.square(weights) @ self.independent)
        return max(0.0, excess) / self.squares

    def variance(self, weights: Floats, sums: Sums) -> float:
        """Variance of the error of a weighted sum of new documents' events: their own, and that of the correction.

        A document's residual varies as independent events do, and by `shift_variance`.
        """
        # Deviations from a mean of few documents are too small.
        moment = float(weights @ self.moment @ weights) / max(0.5, 1 - 1 / self.n_effective)
        # A small fit may show negative covariances by luck: neighbours that are alike widen the interval, none narrow it.
        effect = 1 + max(0.0, float(weights @ self.neighbours @ weights)) / max(moment, _LEAST_VARIANCE)
        shift = self.shift_variance(weights)
        of_new = float(np.square(weights) @ sums.independent.sum(axis=0)) + shift * effect * sums.units_squared
        of_fit = (
            max(moment, float(np.square(weights) @ self.independent)) * effect * (float(sums.units.sum()) / self.units) ** 2
        )
        return of_new + of_fit


def sum_by(documents: Ints, values: Any, n_docs: int) -> Floats:
    """The sum of each document's values, or their number for None; shape (n_docs,)."""
    weights = None if values is None else np.asarray(values, dtype=np.float64)
    return np.asarray(np.bincount(documents, weights, minlength=n_docs), dtype=np.float64)


def cross_sums(rows: Ints, columns: Ints, shape: tuple[int, int], values: Floats | None = None) -> Floats:
    """The sum of the values, or their number for None, in each row and column of a table of this shape."""
    return sum_by(rows * shape[1] + columns, values, shape[0] * shape[1]).reshape(shape)


def n_effective(units: Floats) -> float:
    """How many documents of equal length tell as much as these (Kish 1965). units (Floats): Of each document."""
    return float(units.sum() ** 2 / max(float(np.square(units).sum()), 1e-300))


def token_sums(scores: Floats, documents: Ints, n_docs: int) -> Sums:
    """Expected right tokens of each document. scores (Floats): Calibrated, of each token. documents: Theirs."""
    expected, independent = sum_by(documents, scores, n_docs), sum_by(documents, scores * (1 - scores), n_docs)
    return Sums(expected[:, None], independent[:, None], sum_by(documents, None, n_docs))


def expected_accuracy(residuals: Residuals, sums: Sums, confidence: float = 0.95, between: float = 0.0) -> Estimate:
    """The expected share of right labels among all tokens.

    residuals (Residuals): Right tokens of the fit data, k = 1. sums (Sums): The new documents. confidence (float): In
        (0, 1). between (float): Variance of their source's shift of log-odds. RAISES C001: confidence out of range.
    """
    units = float(sums.units.sum())
    right = float(sums.expected.sum() + residuals.correction(units)[0])
    variance = residuals.variance(np.ones(1), sums) + between * float(sums.independent.sum()) ** 2
    return interval(right / units, variance / units**2, residuals.n_effective, confidence)


def interval(share: float, variance: float, docs: float, confidence: float) -> Estimate:
    """A beta distribution of this mean and variance, cut off at its tails, so that shares stay in [0, 1].

    docs (float): Documents of equal length behind the variance: few widen it as in Student's t. RAISES C001: confidence out of range.
    """
    from scipy.stats import beta, norm, t

    if not 0 < confidence < 1:
        raise calib_error("C001", name="confidence", wanted="a number between 0 and 1", given=confidence)
    mean = min(max(share, 0.0), 1.0)
    tail = (1 - confidence) / 2
    wide = variance * float(t.ppf(tail, max(1, docs - 1)) / norm.ppf(tail)) ** 2
    inner_mean = min(max(mean, 1e-6), 1 - 1e-6)
    # The variance is at most that of a single event with this mean.
    size = max(inner_mean * (1 - inner_mean) / max(wide, _LEAST_VARIANCE) - 1, 1e-3)
    low, high = beta.ppf([tail, 1 - tail], inner_mean * size, (1 - inner_mean) * size)
    return Estimate(mean, float(min(low, mean)), float(max(high, mean)))


# Entities


class EntitySums(NamedTuple):
    """What the scores of D documents say of their entities; arrays of shape (D,).

    predicted (Floats): Entities found. right, spread (Floats): Sum of their scores p, and of p (1 - p). outside:
        Expected entity tokens outside of them, the sum of 1 - P(O). units (Floats): As in Sums.
    """

    predicted: Floats
    right: Floats
    spread: Floats
    outside: Floats
    units: Floats

    @property
    def wrong(self) -> Floats:
        """Expected number of found entities that are wrong."""
        return self.predicted - self.right


@dataclass(frozen=True, eq=False)
class EntityModel(Serializable):
    """How many gold entities there are besides the right ones found, and both numbers' residuals on the fit data, k = 2.

    A missed entity is one where a wrong one was found (wrong bounds or label), or nothing. per_wrong (float): Missed ones per
    wrong one. per_outside (float): Missed ones per token of `EntitySums.outside`.
    """

    per_wrong: float = saved_field(number(0.0))
    per_outside: float = saved_field(number(0.0))
    residuals: Residuals = saved_field(Residuals.of_kinds(2))

    @classmethod
    def fit(cls, sums: EntitySums, right: Floats, gold: Floats) -> EntityModel:
        """Both rates by non-negative least squares, documents weighted by 1 / tokens, scaled to give the total.

        sums (EntitySums): From held-out scores. right, gold (Floats): Right and gold entities of each document, (D,).
        """
        from scipy.optimize import nnls

        n_missed = gold - right
        parts = np.stack([sums.wrong, sums.outside], axis=1)
        weight = 1 / np.sqrt(np.maximum(sums.units, 1.0))
        rates = nnls(parts * weight[:, None], n_missed * weight)[0]
        total = float((parts @ rates).sum())
        rates = rates * max(0.0, float(n_missed.sum())) / total if total > 0 else rates
        model = cls(float(rates[0]), float(rates[1]), Residuals(0, 0.0, 0.0, *(np.zeros(2),) * 2, *(np.zeros((2, 2)),) * 2))
        events = np.stack([right, n_missed], axis=1)
        return cls(model.per_wrong, model.per_outside, Residuals.of(events, model.sums(sums)))

    def sums(self, entity_sums: EntitySums) -> Sums:
        """Expected right and missed entities, k = 2; missed ones vary as Poisson numbers do."""
        n_missed = self.per_wrong * entity_sums.wrong + self.per_outside * entity_sums.outside
        return Sums(
            np.stack([entity_sums.right, n_missed], axis=1), np.stack([entity_sums.spread, n_missed], axis=1), entity_sums.units
        )


@dataclass(frozen=True)
class EntityEstimates:
    """predicted (int): Entities found. right, gold (float): Expected numbers. precision, recall, f (Estimate | None): None for
    a share of nothing.
    """

    predicted: int
    right: float
    gold: float
    precision: Estimate | None
    recall: Estimate | None
    f: Estimate | None


def entity_estimates(model: EntityModel, sums: Sums, predicted: float, confidence: float = 0.95) -> EntityEstimates:
    """Precision, recall and F, intervals from linearized ratios (Taylor series; Särndal et al. 1992, section 5.5).

    sums (Sums): From `EntityModel.sums`. predicted (float): Entities found. RAISES C001: confidence out of range.
    """
    residuals = model.residuals
    counts = sums.expected.sum(axis=0) + residuals.correction(float(sums.units.sum()))
    right = float(np.clip(counts[0], 0.0, predicted))
    gold = right + max(0.0, float(counts[1]))

    def share(numerator: float, denominator: float, weights: tuple[float, float]) -> Estimate | None:
        """weights: Of an error in right and in missed entities, times the denominator."""
        if denominator <= 0:
            return None
        variance = residuals.variance(np.array(weights), sums) / denominator**2
        return interval(numerator / denominator, variance, residuals.n_effective, confidence)

    recall = right / gold if gold > 0 else 0.0
    f = 2 * right / (predicted + gold) if predicted + gold > 0 else 0.0
    return EntityEstimates(
        int(predicted), right, gold,
        share(right, predicted, (1.0, 0.0)),
        share(right, gold, (1 - recall, -recall)),
        share(2 * right, predicted + gold, (2 - f, -f)),
    )  # fmt: skip
