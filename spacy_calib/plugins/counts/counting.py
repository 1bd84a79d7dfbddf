"""How many of many uncertain units hold (have a label, match a pattern): the count's distribution, and its estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from ...calibration.recalibrators.logistic import sigmoid
from ...pipe.record.drift import DIFFERENT, LIKE, OTHER_WEIGHTS
from ...pipe.record.effects import WIDTHS, Effects, widening
from ...pipe.record.estimates import interval, n_effective, sum_by
from ...types import Floats, Ints
from ..expect.survey import Known, Survey
from .distribution import Counted, added, independent, mixed

# Nodes of the quadrature over a shift; and the width below which a shift changes nothing visible.
_NODES = 15
_NO_SHIFT = 1e-6
_STEPS = 60
# What is cut off at the end of a distribution that has no end.
_TAIL = 1e-9


def counted(chances: Floats, documents: Ints, effects: Effects | None = None, sizes: Floats | None = None) -> Counted:
    """Return the distribution of how many units hold.

    chances (Floats): Of each unit, in [0, 1]. effects (Effects | None): The documents' shifts, joined into one that varies the
    count as much and leaves its expectation; None takes units as independent. sizes (Floats | None): Units of each document,
    which may hold without a chance. RAISES C390: no probabilities.
    """
    distribution = _with_chances(chances, documents, effects)
    return distribution if effects is None or sizes is None else added(distribution, missed(effects, sizes))


def missed(effects: Effects, sizes: Floats) -> Counted:
    """Return how many units without a chance hold: negative binomial; Poisson if documents are alike. sizes: See `counted`."""
    from scipy.stats import nbinom, poisson

    mean = effects.missed_rate * float(sizes.sum())
    if mean <= 0:
        return independent([])
    dispersion = effects.missed_variance + effects.overdispersion / n_effective(sizes)
    law = nbinom(1 / dispersion, 1 / (1 + mean * dispersion)) if mean * dispersion > _NO_SHIFT else poisson(mean)
    chances = law.pmf(np.arange(int(law.ppf(1 - _TAIL)) + 1))
    return Counted(0, chances / chances.sum())


def of_another_source(
    home: Counted, effects: Effects, opens: float, n_found: float | None, maximum: int, open_ended: bool = False
) -> Counted:
    """Return a count in texts whose gold may be of another source than the fit's.

    home (Counted): The count for the same source. opens (float): Sum of p (1 - p) of the units. n_found (float | None): Centre;
    None takes the expectation of `home`. maximum (int): Units that may hold. open_ended (bool): Whether units without a chance
    may hold too.
    """
    from scipy.special import ndtr

    shift = 0.0 if n_found is None else n_found - home.mean
    first, last = -int(home.first + len(home.chances)), max(maximum, int(np.ceil(shift)), 1)
    edges = np.arange(first, last + 2) - 0.5
    chances = np.zeros(len(edges) - 1)
    for width, weight in zip((WIDTHS * widening(effects.n_sources)).tolist(), effects.width_probabilities, strict=True):
        cumulative = ndtr((edges - shift) / max(width * opens, _NO_SHIFT))
        cumulative[0], cumulative[-1] = 0.0, 1.0  # what lies beyond is counted at the ends
        chances += weight * np.diff(cumulative)
    total = added(home, Counted(first, chances / chances.sum()))
    numbers = np.clip(np.arange(total.first, total.first + len(total.chances)), 0, None if open_ended else maximum)
    return Counted(int(numbers[0]), np.asarray(np.bincount(numbers - numbers[0], total.chances), dtype=np.float64))


def _with_chances(chances: Floats, documents: Ints, effects: Effects | None) -> Counted:
    plain = independent(chances)
    if effects is None or not len(chances):
        return plain
    opens = np.asarray(np.bincount(documents, chances * (1 - chances)), dtype=np.float64)
    variance_between = effects.variance_between / n_effective(opens) if opens.any() else 0.0
    width = float(np.sqrt(effects.shift_variance + variance_between))
    unsure = chances[(chances > 0) & (chances < 1)]
    if not len(unsure) or (width < _NO_SHIFT and not effects.shift):
        return plain
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    weights = weights / weights.sum()
    odds = np.log(unsure) - np.log1p(-unsure) + effects.shift
    shifts = width * nodes
    target = float(sigmoid(odds).sum())
    low, high = -float(np.abs(shifts).max()), float(np.abs(shifts).max())
    for _ in range(_STEPS):
        middle = (low + high) / 2
        # Shift by shift: all at once would take fifteen times the memory of the units.
        mean = float(weights @ np.array([sigmoid(odds + middle + shift).sum() for shift in shifts.tolist()]))
        low, high = (middle, high) if mean < target else (low, middle)
        if high - low < 1e-9:
            break
    center = (low + high) / 2
    certain = np.ones(int((chances == 1).sum()))
    parts = [independent(np.concatenate([sigmoid(odds + center + width * node), certain])) for node in nodes.tolist()]
    return mixed(parts, weights)


class Estimate(NamedTuple):
    """raw (int): Units that hold by the model. expected (float): Expected number. low, high (float): Its interval."""

    raw: int
    expected: float
    low: float
    high: float


class Units(NamedTuple):
    """Units that may hold, each in a document.

    documents (Ints): Number of each unit's document. raw, calibrated (Floats): Its chance before, after calibration.
    found (Ints): Units of each document that hold by the model, with chances or without, shape (n_docs,).
    sizes (Floats | None): Units of this kind in each document, (n_docs,); None if that is undefined.
    """

    documents: Ints
    raw: Floats
    calibrated: Floats
    found: Ints
    sizes: Floats | None = None

    def of(self, numbers: Ints) -> Units:
        """The units of some documents. numbers (Ints): Their numbers, ascending; they are numbered anew."""
        place = np.full(len(self.found), -1)
        place[numbers] = np.arange(len(numbers))
        index = place[self.documents] >= 0
        return Units(
            place[self.documents[index]],
            self.raw[index],
            self.calibrated[index],
            self.found[numbers],
            None if self.sizes is None else self.sizes[numbers],
        )

    @property
    def expected(self) -> Floats:
        """How many hold in each document, shape (n_docs,)."""
        return sum_by(self.documents, self.calibrated, len(self.found))

    @property
    def open(self) -> Floats:
        """Sum of p (1 - p) in each document: the variance of its count if its units are independent."""
        return sum_by(self.documents, self.calibrated * (1 - self.calibrated), len(self.found))

    def by_document(self) -> Units:
        """One unit for each document: whether at least one of its units holds."""
        n_docs = len(self.found)
        log_none = [
            sum_by(self.documents, np.log1p(-np.minimum(chances, 1 - 1e-16)), n_docs) for chances in (self.raw, self.calibrated)
        ]
        raw, calibrated = (np.clip(-np.expm1(logs), 0.0, 1.0) for logs in log_none)
        return Units(np.arange(n_docs), raw, calibrated, (self.found > 0).astype(np.intp))


def told(n_found: int, distribution: Counted, confidence: float = 0.95, expected: float | None = None) -> Estimate:
    """The estimate from a distribution. expected (float | None): In place of its mean. RAISES C001: confidence."""
    low, high = distribution.interval(confidence)
    return Estimate(n_found, distribution.mean if expected is None else expected, float(low), float(high))


def centre_of(effects: Effects | None, verdict: str) -> str:
    """What is taken for the expected number: "found" where texts differ from the fit data, as calibrated chances may be
    farther off there than the number found, "expected" elsewhere, and where the error of found numbers is unknown.
    """
    return (
        "found" if effects is not None and effects.width_probabilities and verdict in (DIFFERENT, OTHER_WEIGHTS) else "expected"
    )


def estimate(units: Units, effects: Effects | None = None, confidence: float = 0.95, verdict: str = LIKE) -> Estimate:
    """The count, from calibrated chances. verdict (str): See `Drift`. RAISES C001: confidence out of range. C390: none."""
    n_found = int(units.found.sum())
    home = counted(units.calibrated, units.documents, effects, units.sizes)
    centre = n_found if centre_of(effects, verdict) == "found" else None
    if effects is None or (centre is None and effects.n_sources < 2):
        return told(n_found, home, confidence)
    maximum = max(n_found, len(units.calibrated))
    away = of_another_source(home, effects, float(units.open.sum()), centre, maximum, open_ended=units.sizes is not None)
    return told(n_found, away, confidence, home.mean if centre is None else centre)


def corrected(units: Units, sizes: Floats, gold_sums: Known, confidence: float = 0.95, gold: Floats | None = None) -> Estimate:
    """The count, corrected by labelled documents of this kind (see `plugins.expect.few_labels`).

    sizes (Floats): Tokens of each document, shape (n_docs,). gold_sums (Known): Labelled documents, k = 1: gold count,
        expected count, its variance for independent units, tokens. gold (Floats | None): Gold count of each document
        that is itself labelled, NaN for others, (n_docs,). RAISES C001: confidence out of range.
    """
    n_found = int(units.found.sum())
    labelled = np.zeros(len(sizes), dtype=bool) if gold is None else ~np.isnan(gold)
    certain = 0.0 if gold is None else float(gold[labelled].sum())
    unlabelled = np.flatnonzero(~labelled)
    units_left = units.of(unlabelled)
    total = float(sizes[unlabelled].sum())
    if not total:
        return Estimate(n_found, certain, certain, certain)
    survey = Survey(gold_sums, np.zeros(1), np.zeros(1), units_left.expected[:, None], sizes[unlabelled, None])
    share = float(survey.totals()[0]) / total
    variance = max(survey.variance(np.ones(1)), float(units_left.open.sum())) / total**2
    shares = interval(share, variance, n_effective(gold_sums.units[:, 0]), confidence)
    return Estimate(n_found, *(certain + total * value for value in shares))


@dataclass(frozen=True, eq=False)
class CountInputs:
    """What a question finds in N documents. units (Units): Units that may hold.

    draws (list | None): If units depend on each other: (document, distribution of its number) where it may be above 0.
    """

    units: Units
    draws: list[tuple[int, Counted]] | None = None

    @property
    def matched(self) -> bool:
        """Whether anything holds, or has a chance to."""
        return bool(self.units.found.any() or self.units.calibrated.any())

    def estimate(self, numbers: Ints, effects: Effects | None, confidence: float, verdict: str = LIKE) -> Estimate:
        """The count in some documents. numbers (Ints): Their numbers, ascending. verdict (str): On all, see `Drift`."""
        units = self.units.of(numbers)
        if self.draws is None:
            return estimate(units, effects, confidence, verdict)
        in_documents = set(numbers.tolist())
        parts = [distribution for number, distribution in self.draws if number in in_documents]
        return told(int(units.found.sum()), reduce(added, parts, Counted(0, np.ones(1))), confidence)

    def by_raw(self, numbers: Ints, confidence: float) -> dict[str, float | None]:
        """The estimate from raw scores of independent units in some documents; None for draws."""
        names = ("raw_expected", "raw_low", "raw_high")
        if self.draws is not None:
            return dict.fromkeys(names)
        units = self.units.of(numbers)
        return dict(zip(names, estimate(units._replace(calibrated=units.raw), None, confidence)[1:], strict=True))


@dataclass(frozen=True, eq=False)
class Gathered:
    """The answers of N documents to all questions.

    answered (Sequence[CountInputs]): Of each question. groups (Sequence[str]): The group in which each document counts, or
        "". sizes (Floats): Tokens of each. unit (str): What a document is. true (Ints): Gold count of each question and
        document, shape (n, N). texts (Sequence[int]): Digest of each text, without its white space.
    """

    answered: Sequence[CountInputs]
    groups: Sequence[str]
    sizes: Floats
    unit: str
    true: Ints
    texts: Sequence[int]

    def places_in(self, labelled: Gathered) -> Ints:
        """Where each document is among labelled ones, -1 where it is not."""
        places = {text: place for place, text in enumerate(labelled.texts)}
        return np.array([places.get(text, -1) for text in self.texts], dtype=np.intp)

    def known(self, place: int) -> Known:
        """The labelled documents, as one question sees them."""
        units = self.answered[place].units
        columns = (self.true[place].astype(np.float64), units.expected, units.open, self.sizes)
        return Known(*(column[:, None] for column in columns))

    def rows(
        self, place: int, effects: Effects | None, confidence: float, verdict: str, labelled: Gathered | None = None
    ) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """(a row for each group, the row of all documents) of the question at a place. labelled: Corrects the counts."""
        answers, labelled_sums, gold = self.answered[place], None, None
        if labelled is not None:
            labelled_sums, places = labelled.known(place), self.places_in(labelled)
            gold = np.where(places >= 0, labelled.true[place][places].astype(np.float64), np.nan)

        def row(group: str, index: Ints) -> dict[str, Any]:
            if labelled_sums is None or gold is None:
                result = answers.estimate(index, effects, confidence, verdict)
            else:
                result = corrected(answers.units.of(index), self.sizes[index], labelled_sums, confidence, gold[index])
            counts = {"group": group, "documents": len(index), "tokens": int(self.sizes[index].sum()), **result._asdict()}
            return {**counts, **answers.by_raw(index, confidence)}

        names = np.array([*self.groups, None], dtype=object)[:-1]
        rows = [row(name, np.flatnonzero(names == name)) for name in in_order(self.groups) if name]
        return rows, row("", np.arange(len(self.groups)))


def in_order(groups: Sequence[str]) -> list[str]:
    """Each group once: numbers by their size, before names by their letters."""

    def place(name: str) -> tuple[bool, float, str]:
        try:
            return False, float(name), name
        except ValueError:
            return True, 0.0, name

    return sorted(set(groups), key=place)
