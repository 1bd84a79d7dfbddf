"""Shares of events in many texts from scores of all of them and the gold of a few.

Prediction-powered estimates and their variance (Angelopoulos et al. 2023), for a finite number of texts; a document is
the unit, as its tokens are alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...pipe.record.estimates import ShareEstimate, interval, n_effective
from ...types import Floats


class Known(NamedTuple):
    """n labelled documents and k kinds of events.

    observed, expected, independent (Floats): Events of each document, (n, k), by the gold, by the scores, and their variance if
    independent. units (Floats): What each kind is counted in (tokens, entities found), (n, k); for the last kind tokens, or the
    only unit.
    """

    observed: Floats
    expected: Floats
    independent: Floats
    units: Floats


@dataclass(frozen=True, eq=False)
class Survey:
    """Texts, and the labelled documents that represent them.

    known (Known): The labelled documents. inside, inside_units (Floats): Events and units, (k,), of those among the texts,
    which need no estimate. expected, units (Floats): As in Known, of the D texts without gold, (D, k). squares (float | None):
    Sum of the last kind's squared units; None takes it from `units`.
    """

    known: Known
    inside: Floats
    inside_units: Floats
    expected: Floats
    units: Floats
    squares: float | None = None

    def total_units(self) -> Floats:
        """Return the units in all texts."""
        return np.asarray(self.inside_units + self.units.sum(axis=0))

    def correction(self) -> Floats:
        """Return by how many events per unit the labelled documents exceed the expectation."""
        labelled_sums = self.known
        return _ratio((labelled_sums.observed - labelled_sums.expected).sum(axis=0), labelled_sums.units.sum(axis=0))

    def totals(self) -> Floats:
        """Return the estimated events in all texts."""
        return np.asarray(self.inside + self.expected.sum(axis=0) + self.correction() * self.units.sum(axis=0))

    def reach(self) -> Floats:
        """Return the units without gold for each labelled one."""
        return _ratio(self.units.sum(axis=0), self.known.units.sum(axis=0))

    def variance(self, weights: Floats) -> float:
        """Return the variance of the error of a weighted sum of `totals`."""
        documents, factors = self.known, weights * self.reach()
        residuals = (_residuals(documents.observed - documents.expected, documents.units) * factors).sum(axis=1)
        events, total = documents.observed.sum(axis=0), documents.units.sum(axis=0)
        least_variance = (np.square(factors) * documents.independent).sum(axis=0)
        by_chance = _by_chance(events, total) * _ratio((np.square(factors) * documents.units).sum(axis=0), total)
        least_variance = np.where((events == 0) | (events == total), np.maximum(least_variance, by_chance), least_variance)
        return max(float(residuals @ residuals), float(least_variance.sum())) * (1 + self.own_share())

    def documents(self, weights: Floats) -> float:
        """Return how many documents of one length are as informative as the labelled ones. weights (Floats): See `variance`."""
        return min(n_effective(self.known.units[:, kind]) for kind in np.flatnonzero(weights))

    def own_share(self) -> float:
        """Return the variance of the texts' own residuals over that of the estimate: for n of N documents, n / (N - n)."""
        mine, theirs = self.units[:, -1], self.reach()[-1] * self.known.units[:, -1]
        if not mine.any() or not theirs.any():
            return 0.0
        squares = np.square(mine).sum() if self.squares is None else self.squares
        return float(squares / np.square(theirs).sum())

    def share(self, value: float, weights: Floats, denominator: float, confidence: float) -> ShareEstimate:
        """Estimate a share of two totals. weights: Of an error in each, times the denominator (Taylor). RAISES C001."""
        return _interval(value, self.variance(weights) / denominator**2, self.documents(weights), confidence)

    def classical(self, part: Floats, whole: Floats, confidence: float) -> ShareEstimate:
        """Estimate a share from labelled documents alone. part, whole (Floats): Of each. RAISES C001: confidence out of range."""
        total = float(whole.sum())
        value = float(part.sum()) / total
        residuals = _residuals(part, whole)
        spread = max(float(residuals @ residuals), float(_by_chance(part.sum(), total))) / total**2
        unknown = float(self.units[:, -1].sum() / self.total_units()[-1])
        return _interval(value, spread * unknown**2 * (1 + self.own_share()), n_effective(whole), confidence)


def accuracy(survey: Survey, confidence: float = 0.95) -> tuple[ShareEstimate, ShareEstimate]:
    """Return (prediction-powered, classical) estimates for tokens, k = 1. RAISES C001: confidence out of range."""
    units, documents = float(survey.total_units()[0]), survey.known
    estimate = survey.share(float(survey.totals()[0]) / units, np.ones(1), units, confidence)
    return estimate, survey.classical(documents.observed[:, 0], documents.units[:, 0], confidence)


def entities(survey: Survey, confidence: float = 0.95) -> tuple[float, float, dict[str, tuple[ShareEstimate, ShareEstimate]]]:
    """Return (right, gold, estimates as from `accuracy` of "precision", "recall", "f") for right and missed entities, k = 2.

    A share of nothing is left out. RAISES C001: confidence out of range.
    """
    documents = survey.known
    (right_of, missed_of), found_of = documents.observed.T, documents.units[:, 0]
    n_predicted = float(survey.total_units()[0])
    totals = survey.totals()
    right = float(np.clip(totals[0], 0.0, n_predicted))
    gold = right + max(0.0, float(totals[1]))
    if not found_of.any():
        return right, gold, {}
    # Each share: both totals; factor of right ones in the first; whether gold ones (so both errors) are in the second.
    shares = {
        "precision": (right, n_predicted, 1.0, 0.0, right_of, found_of),
        "recall": (right, gold, 1.0, 1.0, right_of, right_of + missed_of),
        "f": (2 * right, n_predicted + gold, 2.0, 1.0, 2 * right_of, found_of + right_of + missed_of),
    }
    shares_by_name = {}
    for name, (part, whole, gain, of_gold, known_part, known_whole) in shares.items():
        if whole > 0 and known_whole.any():
            value = part / whole
            estimate = survey.share(value, np.array([gain, 0.0]) - of_gold * value, whole, confidence)
            shares_by_name[name] = (estimate, survey.classical(known_part, known_whole, confidence))
    return right, gold, shares_by_name


def _ratio(part: Floats, whole: Floats) -> Floats:
    """Return part / whole; 0 where whole is 0."""
    return np.divide(part, whole, out=np.zeros_like(part, dtype=np.float64), where=whole > 0)


def _residuals(part: Floats, units: Floats) -> Floats:
    """Return each document's part minus the expectation by the ratio of totals (HC2, MacKinnon and White 1985)."""
    total = units.sum(axis=0)
    spare = np.maximum(1 - units / np.maximum(total, 1.0), 1e-9)
    return np.asarray((part - _ratio(part.sum(axis=0), total) * units) / np.sqrt(spare))


def _by_chance(events: Floats, total: Floats | float) -> Floats:
    """Return the variance of this number of independent events, with one more of either kind: 0 seen is not 0."""
    share = (events + 1) / (total + 2)
    return np.asarray(total * share * (1 - share))


def _interval(value: float, variance: float, docs: float, confidence: float) -> ShareEstimate:
    """Return `estimates.interval` by a distribution whose mean is at least one standard deviation away from 0 and 1."""
    edge = min(0.5, float(np.sqrt(variance)))
    estimate = interval(min(max(value, edge), 1 - edge), variance, docs, confidence)
    mean = min(max(value, 0.0), 1.0)
    return ShareEstimate(mean, min(estimate.low, mean), max(estimate.high, mean))
