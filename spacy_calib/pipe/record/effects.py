"""How counts of labels vary more than independent tokens would: between documents and sources, and by missing scores.

A document may shift the log-odds of a label. To first order, the shift changes its expected count by the shift times v, the
sum of p (1 - p) of its units, so that the count of several documents varies by sum v + tau^2 sum v_d^2. The variance tau^2 is
estimated by moments, as in `Moments`, from out-of-fold scores; labels with few units take most of it from the others
(empirical Bayes). Units whose gold label is below the threshold have no score to sum: their rate and its variation between
documents are learned too.

Annotators of another source may label differently. Then the expected count may be farther off than the plain count of
predictions, and documents of one source cannot show it. A source's gold count of a label is the count of predictions plus a
shift times v and noise. Each label has few sources to learn the width of its shifts from, so the widths of all labels share
one distribution on a grid, learned by expectation maximization (Kiefer and Wolfowitz 1956). It has long tails: on most labels
sources agree, on some not at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from ...errors import calib_error
from ...schema import Serializable, number, saved_field, tuple_of, whole
from ...types import Floats, Ints
from .estimates import cross_sums, n_effective, sum_by

# Grid of widths of a source's shift: standard deviations of log-odds.
WIDTHS = 0.05 * 2.0 ** np.arange(9)
# The largest variance of log-odds: a larger one predicts nothing and exceeds the bound of saved numbers.
_MAX_VARIANCE = 1e6
_TINY = 1e-300
# Weight of the uniform prior on the grid, in labels; minimum variance of labels in the EM; steps of the EM.
_PRIOR, _MIN_VARIANCE, _STEPS = 1.0, 0.5, 100


@dataclass(frozen=True)
class Effects(Serializable):
    """How the counts of a label deviate from those of independent units.

    variance_between (float): Variance of a document's shift of log-odds. shift (float): Mean shift of all documents.
    shift_variance (float): Variance of its error.
    missed_rate (float): Units that have the label in gold but no score of it, per unit. overdispersion (float): Relative
        variance of that rate between documents. missed_variance (float): Relative variance of its error.
    n_sources (int): Number of sources of gold. width_probabilities (tuple[float, ...]): Probability of each of WIDTHS for the
        shift of another source; () if unknown.
    """

    variance_between: float = saved_field(number(0.0), 0.0)
    shift: float = saved_field(number(), 0.0)
    shift_variance: float = saved_field(number(0.0), 0.0)
    missed_rate: float = saved_field(number(0.0), 0.0)
    overdispersion: float = saved_field(number(0.0), 0.0)
    missed_variance: float = saved_field(number(0.0), 0.0)
    width_probabilities: tuple[float, ...] = saved_field(tuple_of(number(0.0, 1.0)), ())
    n_sources: int = saved_field(whole(), 0)

    @classmethod
    def find_contradiction(cls, fields: dict[str, Any]) -> str:
        return "" if len(fields["width_probabilities"]) in (0, len(WIDTHS)) else f"there are not {len(WIDTHS)} widths, or none"


def widening(n_sources: int) -> float:
    """Return the factor on the width of shifts for an unknown source: few sources show too little. Chosen on EWT and GUM."""
    return float(np.sqrt(1 + 2 / n_sources))


@dataclass(frozen=True, eq=False)
class LabelCells:
    """Sums over the pairs of each label in each document, in n cells.

    labels, documents (Ints): Of each cell, shape (n,). residuals (Floats): Hits minus their expected number.
    variances (Floats): Sum of p (1 - p), the variance of the number of hits if units are independent.
    """

    labels: Ints
    documents: Ints
    residuals: Floats
    variances: Floats

    @classmethod
    def from_pairs(cls, probabilities: Floats, hits: Floats, documents: Ints, labels: Ints) -> LabelCells:
        """Sum pairs with out-of-fold probabilities. RAISES C002: arrays of different lengths."""
        if not len(probabilities) == len(hits) == len(documents) == len(labels):
            sizes = {"n_first": len(hits), "n_second": len(probabilities)}
            raise calib_error("C002", what="Counting", first="hit and document", second="probability", **sizes)
        n_docs = int(documents.max(initial=0)) + 1
        cells, numbers = np.unique(labels * n_docs + documents, return_inverse=True)
        residuals, variances = (
            sum_by(numbers, values, len(cells)) for values in (hits - probabilities, probabilities * (1 - probabilities))
        )
        return cls(cells // n_docs, cells % n_docs, residuals, variances)


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over the documents of each of L labels, of residuals r with variance v + tau^2 v^2 (v if units are independent).

    n_documents (Floats): Documents with v > 0, shape (L,). residual, variance, squares (Floats): Sums of r, v and v^2.
    excess (Floats): Sum of r^2 - v, with r about its mean; its expectation is tau^2 times `squares`.
    """

    n_documents: Floats
    residual: Floats
    variance: Floats
    squares: Floats
    excess: Floats

    @classmethod
    def from_cells(cls, cells: LabelCells, n_labels: int) -> Moments:
        index = np.flatnonzero(cells.variances > 0)
        labels, r, v = cells.labels[index], cells.residuals[index], cells.variances[index]
        residual, variance = sum_by(labels, r, n_labels), sum_by(labels, v, n_labels)
        deviations = r - v * (residual / np.maximum(1.0, variance))[labels]
        squares, excess = sum_by(labels, v**2, n_labels), sum_by(labels, deviations**2, n_labels) - variance
        return cls(sum_by(labels, None, n_labels), residual, variance, squares, excess)

    def take(self, index: Ints) -> Moments:
        return Moments(*(getattr(self, field.name)[index] for field in fields(self)))

    @property
    def noise(self) -> Floats:
        """Variance of the excess if tau is 0 and counts are nearly Poisson."""
        return self.variance + 2 * self.squares

    @property
    def common_variance(self) -> float:
        """tau^2, if it is the same for all labels."""
        return max(0.0, float(self.excess.sum())) / max(float(self.squares.sum()), _TINY)

    @property
    def shrinkage(self) -> Floats:
        """Weight of a label's own tau^2 against the common one, in [0, 1]: its share that is not noise."""
        if len(self.excess) < 2:
            return np.ones(len(self.excess))
        common, error = self.common_variance**2, self.noise / np.maximum(np.square(self.squares), _TINY)
        return np.asarray(common / np.maximum(common + error, _TINY))

    @property
    def variance_between(self) -> Floats:
        """tau^2 of each label (empirical Bayes)."""
        label_variance = self.excess / np.maximum(self.squares, _TINY)
        return np.maximum(0.0, self.shrinkage * label_variance + (1 - self.shrinkage) * self.common_variance)

    def shift_error(self, variance_between: Floats) -> Floats:
        """Return the variance of the error of each label's estimated shift of log-odds, `residual / variance`.

        variance_between (Floats): tau^2 of each label, shape (L,).
        """
        return (self.variance + variance_between * self.squares) / np.square(self.variance)


def learn_effects(cells: LabelCells, names: Sequence[str]) -> dict[str, Effects]:
    """Learn the effects of each label with 0 < p < 1 in at least two documents. names (Sequence[str]): The labels."""
    moments = Moments.from_cells(cells, len(names))
    label_indices = np.flatnonzero(moments.n_documents >= 2)
    moments = moments.take(label_indices)
    if not len(label_indices):
        return {}
    variance_between = moments.variance_between
    # A label's shift is its residual, shrunk by the share of it that is error.
    shift, error = moments.residual / moments.variance, moments.shift_error(variance_between)
    common = max(0.0, float(np.average(np.square(shift) - error, weights=1 / error))) if len(label_indices) > 1 else 0.0
    shrinkage = common / (common + np.maximum(error, _TINY))
    remaining = np.maximum(common * (1 - shrinkage), 0.0) if common > 0 else error
    shift = shrinkage * np.clip(shift, -np.sqrt(_MAX_VARIANCE), np.sqrt(_MAX_VARIANCE))
    columns = np.minimum(variance_between, _MAX_VARIANCE), shift, np.minimum(remaining, _MAX_VARIANCE)
    return {
        names[index]: Effects(*row) for index, row in zip(label_indices.tolist(), np.transpose(columns).tolist(), strict=True)
    }


def with_missed(
    effects: Mapping[str, Effects], missed_labels: Ints, documents: Ints, sizes: Floats, names: Sequence[str]
) -> dict[str, Effects]:
    """Add the effects of units that have no score of their gold label.

    missed_labels (Ints): Gold label of each such unit, as an index into `names`. documents (Ints): Document of each.
    sizes (Floats): Number of units with gold in each document.
    """
    labels, numbers = np.unique(missed_labels, return_inverse=True)
    counts = cross_sums(numbers, documents, (len(labels), len(sizes)))
    rates = counts.sum(axis=1) / sizes.sum()
    expected_counts = np.outer(rates, sizes)
    rows, columns = np.indices(counts.shape)
    cells = LabelCells(rows.ravel(), columns.ravel(), (counts - expected_counts).ravel(), expected_counts.ravel())
    overdispersion = Moments.from_cells(cells, len(labels)).variance_between
    errors = 1 / counts.sum(axis=1) + overdispersion / n_effective(sizes)
    columns_by_label = zip(labels.tolist(), rates.tolist(), overdispersion.tolist(), errors.tolist(), strict=True)
    updated_effects = {
        names[label]: replace(
            effects.get(names[label], Effects()), missed_rate=rate, overdispersion=dispersion, missed_variance=error
        )
        for label, rate, dispersion, error in columns_by_label
    }
    return {**effects, **updated_effects}


class SourceSums(NamedTuple):
    """Sums by source and label, shape (S, L): counts of gold and of predictions, sums of v and v^2 as in `Moments`."""

    gold: Floats
    predicted: Floats
    variance: Floats
    squares: Floats


def source_sums(
    cells: LabelCells, predicted_labels: tuple[Ints, Ints], gold_labels: tuple[Ints, Ints], sources: Ints, n_labels: int
) -> SourceSums:
    """Sum by source and label.

    predicted_labels, gold_labels (tuple[Ints, Ints]): Document and label of units. sources (Ints): Source of each document.
    """
    distinct, numbers = np.unique(sources, return_inverse=True)

    def table(documents: Ints, labels: Ints, values: Floats | None = None) -> Floats:
        return cross_sums(numbers[documents], labels, (len(distinct), n_labels), values)

    variance, squares = (table(cells.documents, cells.labels, cells.variances**power) for power in (1, 2))
    return SourceSums(table(*gold_labels), table(*predicted_labels), variance, squares)


def with_widths(effects: Mapping[str, Effects], sums: SourceSums, names: Sequence[str]) -> dict[str, Effects]:
    """Add the distribution of the width of a source's shift. names (Sequence[str]): The labels."""
    indices = [index for index, name in enumerate(names) if name in effects]
    gold_counts, predicted_counts, variance, squares = (table[:, indices] for table in sums)
    document_variance = np.array([effects[names[index]].variance_between for index in indices])
    probabilities = width_probabilities(gold_counts - predicted_counts, variance, variance + document_variance * squares)
    rows = [] if probabilities is None else probabilities.tolist()
    widths = {names[index]: tuple(row) for index, row in zip(indices, rows, strict=False)}
    n = len(gold_counts)
    return {**effects, **{name: replace(effects[name], n_sources=n, width_probabilities=row) for name, row in widths.items()}}


def variance_between_sources(errors: Floats, variances: Floats, noise: Floats) -> float:
    """Estimate by moments the variance of a source's shift of log-odds; 0 for one source.

    errors, variances, noise (Floats): As in `width_probabilities`, but of one label, shape (S,).
    """
    n, squares = len(errors), float(np.square(variances).sum())
    excess = float((np.square(errors) - noise).sum())
    return min(max(0.0, excess) / squares * n / (n - 1), _MAX_VARIANCE) if n > 1 and squares > 0 else 0.0


def width_probabilities(errors: Floats, variances: Floats, noise: Floats) -> Floats | None:
    """Return P(each of WIDTHS) by label, shape (L, n_widths); None if no label is informative.

    errors (Floats): Error of the count of each label in each source, shape (S, L). variances (Floats): Sum of p (1 - p) there.
        noise (Floats): Variance of the error without a shift.
    """
    is_informative = (variances > _MIN_VARIANCE).any(axis=0)
    if not is_informative.any():
        return None
    variance = np.square(WIDTHS * variances[..., None]) + np.maximum(noise, 1e-9)[..., None]
    log_likelihood = -0.5 * (np.square(errors)[..., None] / variance + np.log(variance)).sum(axis=0)
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    prior = np.full(len(WIDTHS), 1 / len(WIDTHS))
    for _ in range(_STEPS):
        counts = _posterior(likelihood[is_informative], prior).sum(axis=0) + _PRIOR / len(WIDTHS)
        prior = counts / counts.sum()
    return _posterior(likelihood, prior)


def _posterior(likelihood: Floats, prior: Floats) -> Floats:
    joint = likelihood * prior
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))
