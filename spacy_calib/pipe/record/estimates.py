"""Expected accuracy, precision, recall and F of documents without gold, from calibrated scores.

The sum of the calibrated probabilities of n labels is the expected number of right ones. Its error is learned on the fit data
from out-of-fold scores: the error of all documents together (the rectifier of prediction-powered inference, Angelopoulos et
al. 2023, section 2, cross-fitted as by Zrnic and Candes 2024), and how much single documents vary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ...errors import calib_error
from ...schema import Form, InvalidState, Serializable, floats, lengths, number, saved_field, whole
from ...types import FieldwiseSum, Floats, Ints

_LAGS = 2  # neighbouring documents (parts of one text or source) are correlated up to this lag: Newey and West (1987)
_MIN_VARIANCE = 1e-12  # minimum variance of an expected share: scores that are all 0 or 1 would give 0
_MAX_VARIANCE = 1e6  # the largest variance of log-odds: a larger one predicts nothing and exceeds the bound of saved numbers


class ShareEstimate(NamedTuple):
    """An expected share in [0, 1], and its confidence interval from `low` to `high`."""

    expected: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class EventSums(FieldwiseSum):
    """Expected numbers of k kinds of events (right tokens, for instance) in D documents.

    expected (Floats): Expected number, shape (D, k). independent (Floats): Variance of the number if events are independent,
    (D, k). units (Floats): Number of tokens of each document, (D,). squares (Floats | None): Sum of the squared token numbers
    of the documents that a row stands for, (D,); None if each row is one document.
    """

    expected: Floats
    independent: Floats
    units: Floats
    squares: Floats | None = None

    def total(self) -> EventSums:
        """Return the sums over all documents as a single row, which can be added to the row of other documents."""
        expected, independent = self.expected.sum(axis=0, keepdims=True), self.independent.sum(axis=0, keepdims=True)
        return EventSums(expected, independent, self.units.sum(keepdims=True), np.array([self.units_squared]))

    @property
    def units_squared(self) -> float:
        """The sum over documents of their squared numbers of tokens."""
        return float((np.square(self.units) if self.squares is None else self.squares).sum())


@dataclass(frozen=True, eq=False)
class Residuals(Serializable):
    """Residuals on the fit documents: numbers of k kinds of events minus those that out-of-fold scores expect.

    docs (int): Number of documents with tokens. units, squares (float): Sum of their numbers of tokens, and of the squares of
    these. residual (Floats): Sum of the residuals, shape (k,). independent (Floats): Sum of the variances of the numbers if
    events are independent, (k,). moment (Floats): Sum over documents of the products of each two kinds' deviations, (k, k); a
    deviation is a document's residual minus its tokens times the mean residual per token. neighbours (Floats): Sum of such
    products between neighbouring documents, weighted by distance, (k, k).
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
        """Return a function that reads saved residuals, and checks that they are of k kinds of events."""

        def form(value: Any, where: str) -> Residuals:
            residuals = cls.read(value, where)
            shapes = {"residual": (k,), "independent": (k,), "moment": (k, k), "neighbours": (k, k)}
            if wrong := lengths(shapes, vars(residuals)):
                raise InvalidState(where, f"consistent: {wrong}")
            return residuals

        return form

    @classmethod
    def from_events(cls, events: Floats, sums: EventSums) -> Residuals:
        """Compute the residuals. events: Actual numbers in each document, in text order, (D, k). sums: The expected numbers."""
        with_tokens = np.flatnonzero(sums.units > 0)  # other documents are left out
        units = sums.units[with_tokens].astype(np.float64)
        residual = (events - sums.expected)[with_tokens]
        deviations = residual - np.outer(units, residual.sum(axis=0) / max(1.0, units.sum()))
        # Products of documents at each lag, in both orders, with Bartlett's weights.
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
        """The number of documents of equal length that would be as informative (Kish 1965)."""
        return self.units**2 / max(self.squares, 1e-300)

    def correction(self, units: float) -> Floats:
        """Return what to add to the expected events of `units` tokens, (k,): the mean residual per token times `units`."""
        return self.residual / self.units * units

    def shift_variance(self, weights: Floats) -> float:
        """Estimate the variance of the residual per token from document to document. weights (Floats): Of the k kinds, (k,)."""
        # By moments: residual = tokens * shift + noise, so squared residuals sum to squares * var(shift) + noise, on average.
        squared_residuals, noise = float(weights @ self.moment @ weights), float(np.square(weights) @ self.independent)
        return max(0.0, squared_residuals - noise) / self.squares

    def variance(self, weights: Floats, sums: EventSums) -> float:
        """Return the variance of the error of the expected number of events in new documents, after `correction`.

        weights (Floats): Weight of each kind in the sum of events, (k,). sums (EventSums): Events expected in new documents.
        """
        # Deviations from the mean of few documents are too small on average; the correction is at most that for two documents.
        moment = float(weights @ self.moment @ weights) / max(0.5, 1 - 1 / self.n_effective)
        # Positive covariances widen the interval; negative ones, which few documents may show by luck, do not narrow it.
        neighbour_factor = 1 + max(0.0, float(weights @ self.neighbours @ weights)) / max(moment, _MIN_VARIANCE)
        shift_variance = self.shift_variance(weights) * neighbour_factor
        events_variance = float(np.square(weights) @ sums.independent.sum(axis=0)) + shift_variance * sums.units_squared
        # The mean residual, which corrects the sum, has an error of its own.
        correction_variance = max(moment, float(np.square(weights) @ self.independent)) * neighbour_factor
        return events_variance + correction_variance * (float(sums.units.sum()) / self.units) ** 2


def sum_by(documents: Ints, values: Any, n_docs: int) -> Floats:
    """Sum the values of each document's tokens (or entities), (n_docs,); None counts them. documents: Document of each one."""
    weights = None if values is None else np.asarray(values, dtype=np.float64)
    return np.asarray(np.bincount(documents, weights, minlength=n_docs), dtype=np.float64)


def cross_sums(rows: Ints, columns: Ints, shape: tuple[int, int]) -> Floats:
    """Count how many items (tokens ...) have each pair of indices, as a table of this shape. rows, columns: These indices."""
    return sum_by(rows * shape[1] + columns, None, shape[0] * shape[1]).reshape(shape)


def token_sums(scores: Floats, documents: Ints, n_docs: int) -> EventSums:
    """Sum the expected right tokens of each document, k = 1. scores, documents: Calibrated score and document by token."""
    expected_counts, independent = sum_by(documents, scores, n_docs), sum_by(documents, scores * (1 - scores), n_docs)
    return EventSums(expected_counts[:, None], independent[:, None], sum_by(documents, None, n_docs))


def expected_accuracy(
    residuals: Residuals, sums: EventSums, confidence: float = 0.95, source_variance: float = 0.0
) -> ShareEstimate:
    """Estimate the accuracy on new documents, the share of right labels among all tokens, with its interval.

    residuals (Residuals): Of right tokens in the fit data, k = 1. sums (EventSums): Of right tokens in the new documents.
    confidence: Level of the interval. source_variance: From `variance_between_sources`. RAISES C001: confidence not in (0, 1).
    """
    units = float(sums.units.sum())
    right = float(sums.expected.sum() + residuals.correction(units)[0])
    variance = residuals.variance(np.ones(1), sums) + source_variance * float(sums.independent.sum()) ** 2
    return interval(right / units, variance / units**2, residuals.n_effective, confidence)


def variance_between_sources(errors: Floats, variances: Floats, noise: Floats) -> float:
    """Estimate by moments how much the log-odds of right tokens shift from source to source, as a variance; 0 for one source.

    A source may be labelled differently. To first order, its error is then its shift times its sum of p (1 - p), plus noise.
    Few sources show too little of the shifts, which the factor 1 + 2 / n makes up for; it was chosen on EWT and GUM.
    errors (Floats): Right minus expected tokens of each of n sources, (n,). variances (Floats): Sum of p (1 - p) of each.
    noise (Floats): Variance of each error without a shift.
    """
    n, squares = len(errors), float(np.square(variances).sum())
    if n < 2 or squares <= 0:
        return 0.0
    excess = max(0.0, float((np.square(errors) - noise).sum()))
    # n - 1 as in a sample variance: the errors sum to about 0, since the scores are fitted to all these sources.
    variance = excess / squares * n / (n - 1)
    return min(variance, _MAX_VARIANCE) * (1 + 2 / n)


def interval(share: float, variance: float, docs: float, confidence: float) -> ShareEstimate:
    """Return an estimated share with its confidence interval, between quantiles of a beta distribution and so within [0, 1].

    share, variance (float): Mean and variance of the distribution. docs (float): Effective number of documents from which the
    variance was learned; few widen the interval as in Student's t. RAISES C001: confidence (float) is not in (0, 1).
    """
    from scipy.stats import beta, norm, t

    if not 0 < confidence < 1:
        raise calib_error("C001", name="confidence", wanted="a number between 0 and 1", given=confidence)
    mean = min(max(share, 0.0), 1.0)
    tail = (1 - confidence) / 2
    wider_variance = variance * float(t.ppf(tail, max(1, docs - 1)) / norm.ppf(tail)) ** 2
    inner_mean = min(max(mean, 1e-6), 1 - 1e-6)
    # The sum of both parameters of the beta distribution; its variance is at most that of a single event with this mean.
    size = max(inner_mean * (1 - inner_mean) / max(wider_variance, _MIN_VARIANCE) - 1, 1e-3)
    low, high = beta.ppf([tail, 1 - tail], inner_mean * size, (1 - inner_mean) * size)
    return ShareEstimate(mean, float(min(low, mean)), float(max(high, mean)))


class EntitySums(NamedTuple):
    """Sums over the entities and tokens of each of D documents, shape (D,).

    predicted (Floats): Number of predicted entities. right, spread (Floats): Sum of their scores p, and of p (1 - p).
    missed_tokens (Floats): Expected number of entity tokens that are predicted as O. units (Floats): Number of tokens.
    """

    predicted: Floats
    right: Floats
    spread: Floats
    missed_tokens: Floats
    units: Floats

    @property
    def wrong(self) -> Floats:
        """Expected number of predicted entities that are wrong."""
        return self.predicted - self.right


@dataclass(frozen=True, eq=False)
class EntityModel(Serializable):
    """Predicts how many gold entities a recognizer misses, from wrong predicted entities and from entity tokens predicted as O.

    per_wrong (float): Number of missed entities per wrong predicted entity.
    per_outside (float): Number of missed entities per expected entity token that is predicted as O.
    residuals (Residuals): Of the fit data, of k = 2 kinds: right entities (column 0) and missed ones (column 1).
    """

    per_wrong: float = saved_field(number(0.0))
    per_outside: float = saved_field(number(0.0))
    residuals: Residuals = saved_field(Residuals.of_kinds(2))

    @classmethod
    def fit(cls, sums: EntitySums, right: Floats, gold: Floats) -> EntityModel:
        """Fit `per_wrong` and `per_outside` by non-negative least squares, and scale both to the actual total of misses.

        sums (EntitySums): From out-of-fold scores. right, gold (Floats): Right and gold entities in each document, (D,).
        """
        from scipy.optimize import nnls

        n_missed = gold - right
        predictors = np.stack([sums.wrong, sums.missed_tokens], axis=1)
        root_weights = 1 / np.sqrt(np.maximum(sums.units, 1.0))  # a document of n tokens weighs 1 / n
        rates = nnls(predictors * root_weights[:, None], n_missed * root_weights)[0]
        n_expected = float((predictors @ rates).sum())
        if n_expected > 0:
            rates = rates * max(0.0, float(n_missed.sum())) / n_expected
        no_residuals = Residuals(0, 0.0, 0.0, np.zeros(2), np.zeros(2), np.zeros((2, 2)), np.zeros((2, 2)))
        model = cls(float(rates[0]), float(rates[1]), no_residuals)
        events = np.stack([right, n_missed], axis=1)
        return replace(model, residuals=Residuals.from_events(events, model.sums(sums)))

    def sums(self, entity_sums: EntitySums) -> EventSums:
        """Return the expected right and missed entities of each document, k = 2; missed ones have the variance of a Poisson."""
        n_missed = self.per_wrong * entity_sums.wrong + self.per_outside * entity_sums.missed_tokens
        expected = np.stack([entity_sums.right, n_missed], axis=1)
        variances = np.stack([entity_sums.spread, n_missed], axis=1)
        return EventSums(expected, variances, entity_sums.units)


@dataclass(frozen=True)
class EntityEstimates:
    """Number of predicted entities, expected numbers of right and gold ones; precision, recall, F, each None if it is 0 / 0."""

    predicted: int
    right: float
    gold: float
    precision: ShareEstimate | None
    recall: ShareEstimate | None
    f: ShareEstimate | None


def entity_estimates(model: EntityModel, sums: EventSums, n_predicted: float, confidence: float = 0.95) -> EntityEstimates:
    """Estimate precision, recall and F of entities on new documents, with confidence intervals.

    The variances are those of linearized ratios (Taylor series; Särndal et al. 1992, section 5.5).
    sums (EventSums): From `model.sums`. n_predicted (float): Predicted entities. RAISES C001: confidence not in (0, 1).
    """
    residuals = model.residuals
    counts = sums.expected.sum(axis=0) + residuals.correction(float(sums.units.sum()))
    right = float(np.clip(counts[0], 0.0, n_predicted))
    gold = right + max(0.0, float(counts[1]))

    def share(numerator: float, denominator: float, weights: tuple[float, float]) -> ShareEstimate | None:
        """Return the estimate of a ratio. weights: Its derivatives by right and missed entities, times the denominator."""
        if denominator <= 0:
            return None
        variance = residuals.variance(np.array(weights), sums) / denominator**2
        return interval(numerator / denominator, variance, residuals.n_effective, confidence)

    recall = right / gold if gold > 0 else 0.0
    f = 2 * right / (n_predicted + gold) if n_predicted + gold > 0 else 0.0
    return EntityEstimates(
        int(n_predicted), right, gold,
        share(right, n_predicted, (1.0, 0.0)),
        share(right, gold, (1 - recall, -recall)),
        share(2 * right, n_predicted + gold, (2 - f, -f)),
    )  # fmt: skip
