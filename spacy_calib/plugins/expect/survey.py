"""Estimate shares of events (right labels) in many texts from the scores of all texts and the gold of a few.

Prediction-powered inference (Angelopoulos et al. 2023), for a finite number of texts. Documents are the sampling units, as
tokens of one document are correlated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...pipe.record.estimates import ShareEstimate, interval, n_effective
from ...types import Floats


class LabelledDocuments(NamedTuple):
    """n labelled documents and k kinds of events in each; arrays of shape (n, k).

    gold_events (Floats): Number of events by the gold. expected_events (Floats): Expected number by the scores. variances
    (Floats): Its variance if events are independent. units (Floats): Denominators of the shares (tokens, predicted entities);
    those of the last kind measure a document's size.
    """

    gold_events: Floats
    expected_events: Floats
    variances: Floats
    units: Floats


@dataclass(frozen=True, eq=False)
class Survey:
    """Texts, and a sample of labelled documents by which their scores are corrected.

    sample (LabelledDocuments): The labelled documents. overlap_events, overlap_units (Floats): Gold events and units of the
    labelled documents that are among the texts, and need no estimate; shape (k,). expected_events, units (Floats): As in
    LabelledDocuments, of the D texts without gold, shape (D, k), or summed, (1, k). squared_units (float | None): Sum over the
    D texts of the last kind's squared units; None computes it from `units`.
    """

    sample: LabelledDocuments
    overlap_events: Floats
    overlap_units: Floats
    expected_events: Floats
    units: Floats
    squared_units: float | None = None

    def total_units(self) -> Floats:
        """Return the units of all texts, shape (k,)."""
        return np.asarray(self.overlap_units + self.units.sum(axis=0))

    def correction(self) -> Floats:
        """Return the mean error of the scores in the sample: gold minus expected events per unit, shape (k,)."""
        errors = (self.sample.gold_events - self.sample.expected_events).sum(axis=0)
        return _divide(errors, self.sample.units.sum(axis=0))

    def totals(self) -> Floats:
        """Return the estimated number of events in all texts, shape (k,)."""
        return np.asarray(self.overlap_events + self.expected_events.sum(axis=0) + self.correction() * self.units.sum(axis=0))

    def expansion(self) -> Floats:
        """Return the units of texts without gold per labelled unit, shape (k,)."""
        return _divide(self.units.sum(axis=0), self.sample.units.sum(axis=0))

    def variance(self, weights: Floats) -> float:
        """Return the variance of the error of a weighted sum of `totals`. weights (Floats): Shape (k,)."""
        sample, factors = self.sample, weights * self.expansion()
        residuals = (_find_residuals(sample.gold_events - sample.expected_events, sample.units) * factors).sum(axis=1)
        events, total = sample.gold_events.sum(axis=0), sample.units.sum(axis=0)
        minimum = (np.square(factors) * sample.variances).sum(axis=0)
        binomial = _binomial_variance(events, total) * _divide((np.square(factors) * sample.units).sum(axis=0), total)
        minimum = np.where((events == 0) | (events == total), np.maximum(minimum, binomial), minimum)
        return max(float(residuals @ residuals), float(minimum.sum())) * (1 + self.finite_ratio())

    def effective_documents(self, weights: Floats) -> float:
        """Return the number of documents of equal length that are as informative. weights (Floats): As for `variance`."""
        return min(n_effective(self.sample.units[:, kind]) for kind in np.flatnonzero(weights))

    def finite_ratio(self) -> float:
        """Return the variance that the texts' own residuals add, relative to the sample's: n / (N - n) for n of N documents."""
        text_units, sample_units = self.units[:, -1], self.expansion()[-1] * self.sample.units[:, -1]
        if not text_units.any() or not sample_units.any():
            return 0.0
        squares = np.square(text_units).sum() if self.squared_units is None else self.squared_units
        return float(squares / np.square(sample_units).sum())

    def estimate_share(self, value: float, weights: Floats, denominator: float, confidence: float) -> ShareEstimate:
        """Estimate a ratio of two totals. weights: Derivatives by each total, times the denominator (Taylor). RAISES C001."""
        return _make_estimate(value, self.variance(weights) / denominator**2, self.effective_documents(weights), confidence)

    def estimate_classically(self, part: Floats, whole: Floats, confidence: float) -> ShareEstimate:
        """Estimate a share from the labelled documents alone. part, whole (Floats): Of each document, (n,). RAISES C001."""
        total = float(whole.sum())
        value = float(part.sum()) / total
        residuals = _find_residuals(part, whole)
        variance = max(float(residuals @ residuals), float(_binomial_variance(part.sum(), total))) / total**2
        share_without_gold = float(self.units[:, -1].sum() / self.total_units()[-1])
        return _make_estimate(
            value, variance * share_without_gold**2 * (1 + self.finite_ratio()), n_effective(whole), confidence
        )


def estimate_accuracy(survey: Survey, confidence: float = 0.95) -> tuple[ShareEstimate, ShareEstimate]:
    """Return the (prediction-powered, classical) estimates of the accuracy, k = 1. RAISES C001: confidence out of range."""
    units, sample = float(survey.total_units()[0]), survey.sample
    estimate = survey.estimate_share(float(survey.totals()[0]) / units, np.ones(1), units, confidence)
    return estimate, survey.estimate_classically(sample.gold_events[:, 0], sample.units[:, 0], confidence)


def estimate_entities(
    survey: Survey, confidence: float = 0.95
) -> tuple[float, float, dict[str, tuple[ShareEstimate, ShareEstimate]]]:
    """Return (number of right entities, of gold entities, estimates) from right and missed entities, k = 2.

    The estimates are (prediction-powered, classical) pairs by name: "precision", "recall" and "f"; those with a denominator of
    0 are left out. RAISES C001: confidence out of range.
    """
    (sample_right, sample_missed), sample_predicted = survey.sample.gold_events.T, survey.sample.units[:, 0]
    n_predicted = float(survey.total_units()[0])
    totals = survey.totals()
    right = float(np.clip(totals[0], 0.0, n_predicted))
    gold = right + max(0.0, float(totals[1]))
    if not sample_predicted.any():
        return right, gold, {}
    # Numerator, denominator, their derivatives (by right entities; by right and missed ones), and both by labelled document.
    shares = {
        "precision": (right, n_predicted, 1.0, 0.0, sample_right, sample_predicted),
        "recall": (right, gold, 1.0, 1.0, sample_right, sample_right + sample_missed),
        "f": (2 * right, n_predicted + gold, 2.0, 1.0, 2 * sample_right, sample_predicted + sample_right + sample_missed),
    }
    estimates = {}
    for name, (part, whole, part_slope, whole_slope, sample_part, sample_whole) in shares.items():
        if whole > 0 and sample_whole.any():
            value = part / whole
            estimate = survey.estimate_share(value, np.array([part_slope, 0.0]) - whole_slope * value, whole, confidence)
            estimates[name] = (estimate, survey.estimate_classically(sample_part, sample_whole, confidence))
    return right, gold, estimates


def _divide(part: Floats, whole: Floats) -> Floats:
    """Return part / whole; 0 where whole is 0."""
    return np.divide(part, whole, out=np.zeros_like(part, dtype=np.float64), where=whole > 0)


def _find_residuals(part: Floats, units: Floats) -> Floats:
    """Return each document's part minus its units times the overall ratio, scaled as HC2 (MacKinnon and White 1985)."""
    total = units.sum(axis=0)
    leverage_factor = np.maximum(1 - units / np.maximum(total, 1.0), 1e-9)
    return np.asarray((part - _divide(part.sum(axis=0), total) * units) / np.sqrt(leverage_factor))


def _binomial_variance(events: Floats, total: Floats | float) -> Floats:
    """Return the variance of a binomial count. One success and one failure are added, as 0 of n do not prove a rate of 0."""
    share = (events + 1) / (total + 2)
    return np.asarray(total * share * (1 - share))


def _make_estimate(value: float, variance: float, n_docs: float, confidence: float) -> ShareEstimate:
    """Return a share and its interval, of a beta distribution with a mean at least a standard deviation away from 0 and 1."""
    edge = min(0.5, float(np.sqrt(variance)))
    estimate = interval(min(max(value, edge), 1 - edge), variance, n_docs, confidence)
    mean = min(max(value, 0.0), 1.0)
    return ShareEstimate(mean, min(estimate.low, mean), max(estimate.high, mean))
