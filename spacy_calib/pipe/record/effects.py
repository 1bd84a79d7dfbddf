"""What counts of labels miss if units are taken for independent: documents differ, maps are off, labels lack scores.

The first two are shifts of log-odds. A document's shift moves its expected number of a label by the shift times v, the
sum of p (1 - p) of its units: to first order, the number in a part varies by sum v + tau^2 sum v_d^2. The variance
tau^2 is learned by moments, as in `Moments`, from scores of maps that did not see the document; labels with
few units take most of it from the others (empirical Bayes). Units whose gold label is below the threshold have no score
to add up: their rate is learned, and how unevenly documents have them.

What annotators of another source hold for right, no fit can know: there the maps' expectation may be farther off than
the number found, and documents of one source do not show it. A source's gold count of a label is the number found plus
an error: a shift times v, and noise. Each label has few sources to learn the width of its shifts from: so the widths of
all labels have a common distribution on a grid, learned by expectation maximization (Kiefer and Wolfowitz 1956). It has
long tails: on most labels sources agree, on some not at all.
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

# Widths of the shifts by which a source may be off: standard deviations, in log-odds.
WIDTHS = 0.05 * 2.0 ** np.arange(9)
# The largest variance of log-odds: with wider shifts all is possible, and a saved state could not be read again.
_WIDEST = 1e6
_TINY = 1e-300
# Weight of the even prior on the grid, in labels; labels with a smaller variance than this are left out; steps of the EM.
_PRIOR, _INFORMATIVE, _STEPS = 1.0, 0.5, 100


@dataclass(frozen=True)
class Effects(Serializable):
    """How the counts of a label depart from those of independent units.

    variance_between (float): Variance of a document's shift of log-odds. shift (float): The shift of all documents. shift_variance (float):
    Variance of its error. missed_rate (float): Units that hold without a score of the label, per unit of any. overdispersion (float):
    Variance of that rate between documents, and missed_variance (float): of its error, in squares of the rate. n_sources (int): Sources
    of gold. width_probabilities (tuple[float, ...]): Probability of each of WIDTHS for another source; () if unknown.
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
    def agree(cls, fields: dict[str, Any]) -> str:
        return "" if len(fields["width_probabilities"]) in (0, len(WIDTHS)) else f"{len(WIDTHS)} widths, or none"


def widening(n_sources: int) -> float:
    """Return the factor on the width of shifts for an unknown source, as few sources show too little; chosen on EWT and GUM."""
    return float(np.sqrt(1 + 2 / n_sources))


@dataclass(frozen=True, eq=False)
class LabelCells:
    """Pairs summed by label and document, a cell each, shape (n,).

    labels, documents (Ints): Of each cell. residuals (Floats): Units that hold less the expected ones. variances (Floats): Sum of
    p (1 - p), the variance of their number if units are independent.
    """

    labels: Ints
    documents: Ints
    residuals: Floats
    variances: Floats

    @classmethod
    def from_pairs(cls, probabilities: Floats, hits: Floats, documents: Ints, labels: Ints) -> LabelCells:
        """Sum pairs: each a unit and a label, scored by maps that did not see the document. RAISES C002: lengths differ."""
        if not len(probabilities) == len(hits) == len(documents) == len(labels):
            sizes = {"n_first": len(hits), "n_second": len(probabilities)}
            raise calib_error("C002", what="Counting", first="answer and document", second="chance", **sizes)
        n_docs = int(documents.max(initial=0)) + 1
        cells, numbers = np.unique(labels * n_docs + documents, return_inverse=True)
        residuals, variances = (
            sum_by(numbers, values, len(cells)) for values in (hits - probabilities, probabilities * (1 - probabilities))
        )
        return cls(cells // n_docs, cells % n_docs, residuals, variances)


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over the documents of each label, shape (L,): of residuals r, whose variance is v for independent units, else v + tau^2 v^2.

    n_documents (Floats): With v > 0. residual, variance, squares (Floats): Sum of r, of v, of v^2. excess (Floats): Sum of r^2 - v,
    with r about its mean, whose expectation is tau^2 times `squares`.
    """

    n_documents: Floats
    residual: Floats
    variance: Floats
    squares: Floats
    excess: Floats

    @classmethod
    def from_cells(cls, cells: LabelCells, n_labels: int) -> Moments:
        """Sum cells by their labels."""
        index = np.flatnonzero(cells.variances > 0)
        labels, r, v = cells.labels[index], cells.residuals[index], cells.variances[index]
        residual, variance = sum_by(labels, r, n_labels), sum_by(labels, v, n_labels)
        deviations = r - v * (residual / np.maximum(1.0, variance))[labels]
        squares, excess = sum_by(labels, v**2, n_labels), sum_by(labels, deviations**2, n_labels) - variance
        return cls(sum_by(labels, None, n_labels), residual, variance, squares, excess)

    def take(self, index: Ints) -> Moments:
        """Select labels."""
        return Moments(*(getattr(self, field.name)[index] for field in fields(self)))

    @property
    def noise(self) -> Floats:
        """Variance of the excess without an effect, of about Poisson counts."""
        return self.variance + 2 * self.squares

    @property
    def common_variance(self) -> float:
        """tau^2 if it is the same for all labels."""
        return max(0.0, float(self.excess.sum())) / max(float(self.squares.sum()), _TINY)

    @property
    def shrinkage(self) -> Floats:
        """Weight of each label's own tau^2 beside the common one: as far as it is no noise."""
        if len(self.excess) < 2:
            return np.ones(len(self.excess))
        common, error = self.common_variance**2, self.noise / np.maximum(np.square(self.squares), _TINY)
        return np.asarray(common / np.maximum(common + error, _TINY))

    @property
    def variance_between(self) -> Floats:
        """tau^2 of each label (empirical Bayes)."""
        own = self.excess / np.maximum(self.squares, _TINY)
        return np.maximum(0.0, self.shrinkage * own + (1 - self.shrinkage) * self.common_variance)

    def shift_error(self, variance_between: Floats) -> Floats:
        """Variance of the error of `residual` / `variance`, a label's shift of log-odds."""
        return (self.variance + variance_between * self.squares) / np.square(self.variance)


def learn_effects(cells: LabelCells, names: Sequence[str]) -> dict[str, Effects]:
    """Learn the effects of each label that has units with 0 < p < 1 in two documents or more. names (Sequence[str]): The labels."""
    moments = Moments.from_cells(cells, len(names))
    index = np.flatnonzero(moments.n_documents >= 2)
    moments = moments.take(index)
    if not len(index):
        return {}
    variance_between = moments.variance_between
    # The label's shift: its residual, of which its own error explains a part.
    shift, error = moments.residual / moments.variance, moments.shift_error(variance_between)
    common = max(0.0, float(np.average(np.square(shift) - error, weights=1 / error))) if len(index) > 1 else 0.0
    shrinkage = common / (common + np.maximum(error, _TINY))
    remaining = np.maximum(common * (1 - shrinkage), 0.0) if common > 0 else error
    shift = shrinkage * np.clip(shift, -np.sqrt(_WIDEST), np.sqrt(_WIDEST))
    columns = np.minimum(variance_between, _WIDEST), shift, np.minimum(remaining, _WIDEST)
    return {names[place]: Effects(*row) for place, row in zip(index.tolist(), np.transpose(columns).tolist(), strict=True)}


def with_missed(
    effects: Mapping[str, Effects], missed_labels: Ints, documents: Ints, sizes: Floats, names: Sequence[str]
) -> dict[str, Effects]:
    """Add the effects of units that have no score of their gold label.

    missed_labels (Ints): Gold label of each such unit, a place in `names`. documents (Ints): Its document. sizes (Floats): Units with
    gold in each document.
    """
    labels, numbers = np.unique(missed_labels, return_inverse=True)
    counts = cross_sums(numbers, documents, (len(labels), len(sizes)))
    rates = counts.sum(axis=1) / sizes.sum()
    expected = np.outer(rates, sizes)
    rows, columns = np.indices(counts.shape)
    cells = LabelCells(rows.ravel(), columns.ravel(), (counts - expected).ravel(), expected.ravel())
    overdispersion = Moments.from_cells(cells, len(labels)).variance_between
    errors = 1 / counts.sum(axis=1) + overdispersion / n_effective(sizes)
    added = {
        names[label]: {"missed_rate": rate, "overdispersion": dispersion, "missed_variance": error}
        for label, rate, dispersion, error in zip(
            *(values.tolist() for values in (labels, rates, overdispersion, errors)), strict=True
        )
    }
    return {**effects, **{name: replace(effects.get(name, Effects()), **values) for name, values in added.items()}}


class SourceSums(NamedTuple):
    """Counts by source and label. gold, predicted (Floats): Of gold and model. variance, squares (Floats): Sum of v, of v^2, see `Moments`."""

    gold: Floats
    predicted: Floats
    variance: Floats
    squares: Floats


def source_sums(
    cells: LabelCells, predicted: tuple[Ints, Ints], gold: tuple[Ints, Ints], sources: Ints, n_labels: int
) -> SourceSums:
    """Sum by source and label. predicted, gold: (document, label) of units. sources (Ints): Of each document, or -1."""
    distinct, numbers = np.unique(sources, return_inverse=True)

    def table(documents: Ints, labels: Ints, values: Floats | None = None) -> Floats:
        return cross_sums(numbers[documents], labels, (len(distinct), n_labels), values)

    variance, squares = (table(cells.documents, cells.labels, cells.variances**power) for power in (1, 2))
    return SourceSums(table(*gold), table(*predicted), variance, squares)


def with_widths(effects: Mapping[str, Effects], sums: SourceSums, names: Sequence[str]) -> dict[str, Effects]:
    """Add the widths of shifts by which predicted numbers are off. names (Sequence[str]): The labels."""
    places = [place for place, name in enumerate(names) if name in effects]
    gold, predicted, variance, squares = (table[:, places] for table in sums)
    between = np.array([effects[names[place]].variance_between for place in places])
    probabilities = width_probabilities(gold - predicted, variance, variance + between * squares)
    rows = [] if probabilities is None else probabilities.tolist()
    widths = {names[place]: tuple(row) for place, row in zip(places, rows, strict=False)}
    added = {name: replace(effects[name], n_sources=len(gold), width_probabilities=row) for name, row in widths.items()}
    return {**effects, **added}


def variance_between_sources(errors: Floats, variances: Floats, noise: Floats) -> float:
    """Variance, by moments, of a source's shift of log-odds (gold minus expected counts); 0 for one. See `width_probabilities`."""
    n, squares = len(errors), float(np.square(variances).sum())
    excess = float((np.square(errors) - noise).sum())
    return min(max(0.0, excess) / squares * n / (n - 1), _WIDEST) if n > 1 and squares > 0 else 0.0


def width_probabilities(errors: Floats, variances: Floats, noise: Floats) -> Floats | None:
    """P(each of WIDTHS) by label, (L, n_widths), from (S, L) errors of counts; None if no label is informative.

    variances (Floats): Sum of p (1 - p). noise (Floats): Variance of an error without a shift.
    """
    is_informative = (variances > _INFORMATIVE).any(axis=0)
    if not is_informative.any():
        return None
    variance = np.square(WIDTHS * variances[..., None]) + np.maximum(noise, 1e-9)[..., None]
    log_likelihood = -0.5 * (np.square(errors)[..., None] / variance + np.log(variance)).sum(axis=0)
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    prior = np.full(len(WIDTHS), 1 / len(WIDTHS))
    for _ in range(_STEPS):
        expected = _posterior(likelihood[is_informative], prior).sum(axis=0) + _PRIOR / len(WIDTHS)
        prior = expected / expected.sum()
    return _posterior(likelihood, prior)


def _posterior(likelihood: Floats, prior: Floats) -> Floats:
    joint = likelihood * prior
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))
