"""Estimate how many uncertain units satisfy a query (have a label, match a pattern), with an interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...calibration.recalibrators.logistic import sigmoid
from ...pipe.record.drift import DIFFERENT, LIKE, OTHER_WEIGHTS
from ...pipe.record.effects import WIDTHS, Effects, widening
from ...pipe.record.estimates import interval, n_effective, sum_by
from ...types import Floats, Ints
from ..expect.survey import LabelledDocuments, Survey
from .distribution import CountDistribution, convolve, mixture, poisson_binomial

# Number of nodes of the quadrature over a shift, the standard deviation below which a shift is ignored, and the number of
# bisection steps.
_N_NODES = 15
_NO_SHIFT = 1e-6
_N_STEPS = 60
# Probability that is cut off at the end of an unbounded distribution.
_TAIL = 1e-9


def count_distribution(
    probabilities: Floats, documents: Ints, effects: Effects | None = None, sizes: Floats | None = None
) -> CountDistribution:
    """Return the distribution of how many units satisfy the query.

    probabilities (Floats), documents (Ints): Of each unit, shape (n,). effects (Effects | None): What the fit learned about
    counts; the shifts of single documents are approximated by one random shift of all log-odds. None takes units as
    independent. sizes (Floats | None): Number of all units in each document, from which the count of matches without a
    probability is estimated; None leaves these out. RAISES C390: scores are no probabilities.
    """
    distribution = _shifted_distribution(probabilities, documents, effects)
    return distribution if effects is None or sizes is None else convolve(distribution, missed_distribution(effects, sizes))


def missed_distribution(effects: Effects, sizes: Floats) -> CountDistribution:
    """Return the distribution of how many units without a probability satisfy the query.

    It is negative binomial, or Poisson if documents do not differ. sizes (Floats): All units of each document.
    """
    from scipy.stats import nbinom, poisson

    mean = effects.missed_rate * float(sizes.sum())
    if mean <= 0:
        return poisson_binomial([])
    dispersion = effects.missed_variance + effects.overdispersion / n_effective(sizes)
    law = nbinom(1 / dispersion, 1 / (1 + mean * dispersion)) if mean * dispersion > _NO_SHIFT else poisson(mean)
    probabilities = law.pmf(np.arange(int(law.ppf(1 - _TAIL)) + 1))
    return CountDistribution(0, probabilities / probabilities.sum())


def add_source_shift(
    count: CountDistribution, effects: Effects, variance: float, n_found: float | None, maximum: int, open_ended: bool = False
) -> CountDistribution:
    """Widen the distribution of a count, for texts whose gold may come from another source than the gold of the fit.

    The error is a mixture of normal distributions, by the widths of sources in `effects`. variance (float): Sum of p (1 - p)
    over the units. n_found (float | None): Count to centre on; None keeps the mean. maximum (int): Number of units that can
    satisfy the query; none if open_ended, as units without a probability can, too.
    """
    from scipy.special import ndtr

    shift = 0.0 if n_found is None else n_found - count.mean
    first, last = -int(count.first + len(count.probabilities)), max(maximum, int(np.ceil(shift)), 1)
    edges = np.arange(first, last + 2) - 0.5
    probabilities = np.zeros(len(edges) - 1)
    for width, weight in zip((WIDTHS * widening(effects.n_sources)).tolist(), effects.width_probabilities, strict=True):
        cumulative = ndtr((edges - shift) / max(width * variance, _NO_SHIFT))
        cumulative[0], cumulative[-1] = 0.0, 1.0  # what lies beyond is counted at the ends
        probabilities += weight * np.diff(cumulative)
    total = convolve(count, CountDistribution(first, probabilities / probabilities.sum()))
    counts = np.clip(np.arange(total.first, total.first + len(total.probabilities)), 0, None if open_ended else maximum)
    sums = np.asarray(np.bincount(counts - counts[0], total.probabilities), dtype=np.float64)
    return CountDistribution(int(counts[0]), sums)


def _shifted_distribution(probabilities: Floats, documents: Ints, effects: Effects | None) -> CountDistribution:
    """Return a mixture of Poisson-binomial distributions over a normal shift of all log-odds, by Gauss-Hermite quadrature."""
    independent = poisson_binomial(probabilities)
    if effects is None or not len(probabilities):
        return independent
    variances = np.asarray(np.bincount(documents, probabilities * (1 - probabilities)), dtype=np.float64)
    variance_between = effects.variance_between / n_effective(variances) if variances.any() else 0.0
    width = float(np.sqrt(effects.shift_variance + variance_between))
    uncertain = probabilities[(probabilities > 0) & (probabilities < 1)]
    if not len(uncertain) or (width < _NO_SHIFT and not effects.shift):
        return independent
    nodes, weights = np.polynomial.hermite_e.hermegauss(_N_NODES)
    weights = weights / weights.sum()
    odds = np.log(uncertain) - np.log1p(-uncertain) + effects.shift
    shifts = width * nodes
    target = float(sigmoid(odds).sum())
    low, high = -float(np.abs(shifts).max()), float(np.abs(shifts).max())
    for _ in range(_N_STEPS):  # find the centre of the shifts that leaves the expected count as it is
        middle = (low + high) / 2
        # One shift at a time: all at once would take fifteen times the memory of the units.
        mean = float(weights @ np.array([sigmoid(odds + middle + shift).sum() for shift in shifts.tolist()]))
        low, high = (middle, high) if mean < target else (low, middle)
        if high - low < 1e-9:
            break
    center = (low + high) / 2
    certain = np.ones(int((probabilities == 1).sum()))
    parts = [poisson_binomial(np.concatenate([sigmoid(odds + center + width * node), certain])) for node in nodes.tolist()]
    return mixture(parts, weights)


class CountEstimate(NamedTuple):
    """raw (int): Count by the predicted labels. expected (float): Expected count. low, high (float): Its interval."""

    raw: int
    expected: float
    low: float
    high: float


class UncertainUnits(NamedTuple):
    """Units that may satisfy a query, each in a document.

    documents (Ints): Document number of each unit, shape (n,). raw, calibrated (Floats): Probability of each unit before and
    after calibration, (n,). n_found (Ints): Units of each document that satisfy the query by their predicted labels, with a
    probability or without, (n_docs,). sizes (Floats | None): All units of this kind in each document, (n_docs,), if defined.
    """

    documents: Ints
    raw: Floats
    calibrated: Floats
    n_found: Ints
    sizes: Floats | None = None

    def select(self, numbers: Ints) -> UncertainUnits:
        """Return the units of some documents, which are renumbered from 0. numbers (Ints): Document numbers, ascending."""
        new_numbers = np.full(len(self.n_found), -1)
        new_numbers[numbers] = np.arange(len(numbers))
        index = new_numbers[self.documents] >= 0
        documents, sizes = new_numbers[self.documents[index]], None if self.sizes is None else self.sizes[numbers]
        return UncertainUnits(documents, self.raw[index], self.calibrated[index], self.n_found[numbers], sizes)

    @property
    def expected_counts(self) -> Floats:
        """Expected count of each document, shape (n_docs,)."""
        return sum_by(self.documents, self.calibrated, len(self.n_found))

    @property
    def variances(self) -> Floats:
        """Variance of each document's count if its units are independent: the sum of p (1 - p), shape (n_docs,)."""
        return sum_by(self.documents, self.calibrated * (1 - self.calibrated), len(self.n_found))

    def as_documents(self) -> UncertainUnits:
        """Make each document a unit that satisfies the query if at least one of its units does."""
        n_docs = len(self.n_found)
        raw, calibrated = (
            np.clip(-np.expm1(sum_by(self.documents, np.log1p(-np.minimum(p, 1 - 1e-16)), n_docs)), 0.0, 1.0)
            for p in (self.raw, self.calibrated)
        )
        return UncertainUnits(np.arange(n_docs), raw, calibrated, (self.n_found > 0).astype(np.intp))


def _make_estimate(
    n_found: int, distribution: CountDistribution, confidence: float, mean: float | None = None
) -> CountEstimate:
    """Summarize a distribution. mean (float | None): Expected count to report; None takes the distribution's. RAISES C001."""
    low, high = distribution.interval(confidence)
    return CountEstimate(n_found, distribution.mean if mean is None else mean, float(low), float(high))


def choose_centre(effects: Effects | None, verdict: str) -> str:
    """Return which count the interval is centred on: "found" (by predicted labels), or "expected" (by probabilities).

    On texts that differ from the fit data calibrated probabilities can be worse than the plain count, so that is taken if the
    fit measured its error. verdict (str): `Drift.verdict` of the texts.
    """
    has_error = effects is not None and bool(effects.width_probabilities)
    return "found" if has_error and verdict in (DIFFERENT, OTHER_WEIGHTS) else "expected"


def estimate_count(
    units: UncertainUnits, effects: Effects | None = None, confidence: float = 0.95, verdict: str = LIKE
) -> CountEstimate:
    """Estimate a count from calibrated probabilities.

    effects (Effects | None): What the fit measured about the counts of documents and sources. verdict (str): `Drift.verdict` of
    the texts. RAISES C001: confidence out of range. C390: scores are no probabilities.
    """
    n_found = int(units.n_found.sum())
    in_domain = count_distribution(units.calibrated, units.documents, effects, units.sizes)
    centre = n_found if choose_centre(effects, verdict) == "found" else None
    if effects is None or (centre is None and effects.n_sources < 2):
        return _make_estimate(n_found, in_domain, confidence)
    maximum, open_ended = max(n_found, len(units.calibrated)), units.sizes is not None
    out_of_domain = add_source_shift(in_domain, effects, float(units.variances.sum()), centre, maximum, open_ended)
    return _make_estimate(n_found, out_of_domain, confidence, in_domain.mean if centre is None else centre)


def correct_count(
    units: UncertainUnits, sizes: Floats, sample: LabelledDocuments, confidence: float = 0.95, gold_counts: Floats | None = None
) -> CountEstimate:
    """Estimate a count from calibrated probabilities and the gold of a few documents (prediction-powered inference).

    sizes (Floats): Tokens of each document, shape (n_docs,). sample (LabelledDocuments): The labelled documents, k = 1, tokens
    as units. gold_counts (Floats | None): Gold count of each document that is in the sample, NaN for others, (n_docs,).
    RAISES C001: confidence out of range.
    """
    n_found = int(units.n_found.sum())
    has_gold = np.zeros(len(sizes), dtype=bool) if gold_counts is None else ~np.isnan(gold_counts)
    certain = 0.0 if gold_counts is None else float(gold_counts[has_gold].sum())
    numbers = np.flatnonzero(~has_gold)
    units = units.select(numbers)
    total = float(sizes[numbers].sum())
    if not total:
        return CountEstimate(n_found, certain, certain, certain)
    survey = Survey(sample, np.zeros(1), np.zeros(1), units.expected_counts[:, None], sizes[numbers, None])
    share = float(survey.totals()[0]) / total
    variance = max(survey.variance(np.ones(1)), float(units.variances.sum())) / total**2
    shares = interval(share, variance, n_effective(sample.units[:, 0]), confidence)
    return CountEstimate(n_found, *(certain + total * value for value in shares))


@dataclass(frozen=True, eq=False)
class CountInputs:
    """The result of a query in N documents. units (UncertainUnits): The units that may satisfy it."""

    units: UncertainUnits

    @property
    def has_matches(self) -> bool:
        """Whether any unit satisfies the query, or may."""
        return bool(self.units.n_found.any() or self.units.calibrated.any())

    def estimate(self, numbers: Ints, effects: Effects | None, confidence: float, verdict: str = LIKE) -> CountEstimate:
        """Estimate the count in some documents. numbers (Ints): Ascending. verdict (str): `Drift.verdict` of all documents."""
        return estimate_count(self.units.select(numbers), effects, confidence, verdict)

    def estimate_raw(self, numbers: Ints, confidence: float) -> dict[str, float]:
        """Estimate the count in some documents from raw scores, as if units were independent.

        numbers (Ints): Numbers of the documents, ascending. RETURNS (dict): "raw_expected", "raw_low" and "raw_high".
        """
        names = ("raw_expected", "raw_low", "raw_high")
        units = self.units.select(numbers)
        return dict(zip(names, estimate_count(units._replace(calibrated=units.raw), None, confidence)[1:], strict=True))


@dataclass(frozen=True, eq=False)
class CorpusCounts:
    """The results of n queries in N documents.

    inputs (Sequence[CountInputs]): By query. groups (Sequence[str]): Group in which each document is counted, or "". sizes
    (Floats): Tokens of each document. unit (str): What a document is. gold_counts (Ints): By query and document, shape (n, N).
    digests (Sequence[int]): Digest of each document's text, without its white space.
    """

    inputs: Sequence[CountInputs]
    groups: Sequence[str]
    sizes: Floats
    unit: str
    gold_counts: Ints
    digests: Sequence[int]

    def find_in(self, corpus: CorpusCounts) -> Ints:
        """Return the number of each document in another corpus, by its text; -1 if it is not there."""
        numbers = {digest: number for number, digest in enumerate(corpus.digests)}
        return np.array([numbers.get(digest, -1) for digest in self.digests], dtype=np.intp)

    def as_sample(self, query: int) -> LabelledDocuments:
        """Return gold and expected counts of a query in each document. query (int): Its number."""
        units = self.inputs[query].units
        columns = (self.gold_counts[query].astype(np.float64), units.expected_counts, units.variances, self.sizes)
        return LabelledDocuments(*(column[:, None] for column in columns))

    def make_rows(
        self, query: int, effects: Effects | None, confidence: float, verdict: str, gold: CorpusCounts | None = None
    ) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Return (a row for each group, the row of all documents). query (int): Its number. gold: Labelled documents."""
        inputs, sample, gold_counts = self.inputs[query], None, None
        if gold is not None:
            sample, numbers = gold.as_sample(query), self.find_in(gold)
            gold_counts = np.where(numbers >= 0, gold.gold_counts[query][numbers].astype(np.float64), np.nan)

        def make_row(group: str, index: Ints) -> dict[str, Any]:
            if sample is None or gold_counts is None:
                result = inputs.estimate(index, effects, confidence, verdict)
            else:
                result = correct_count(inputs.units.select(index), self.sizes[index], sample, confidence, gold_counts[index])
            counts = {"group": group, "documents": len(index), "tokens": int(self.sizes[index].sum()), **result._asdict()}
            return {**counts, **inputs.estimate_raw(index, confidence)}

        names = np.array([*self.groups, None], dtype=object)[:-1]
        rows = [make_row(name, np.flatnonzero(names == name)) for name in _sort_groups(self.groups) if name]
        return rows, make_row("", np.arange(len(self.groups)))


def _sort_groups(groups: Sequence[str]) -> list[str]:
    """Return each group once: numbers by value, then names by letter."""

    def sort_key(name: str) -> tuple[bool, float, str]:
        try:
            return False, float(name), name
        except ValueError:
            return True, 0.0, name

    return sorted(set(groups), key=sort_key)
