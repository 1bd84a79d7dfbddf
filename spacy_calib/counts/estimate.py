"""A count as it is told: how many were found, how many there are to be expected, and the interval that holds the true number."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..expect.drift import DIFFERENT, LIKE, OTHER_WEIGHTS
from ..expect.effects import Effects
from ..expect.estimates import interval, sum_by
from ..expect.prediction_powered import Known, Survey
from ..types import Floats, Ints
from .counting import counted, of_another_source
from .distribution import Counted


class Estimate(NamedTuple):
    """raw (int): Units that the model says hold. expected (float): How many do. low, high (float): The interval."""

    raw: int
    expected: float
    low: float
    high: float


class Units(NamedTuple):
    """Units that may hold, each in a document.

    documents (Ints): Number of each unit's document. raw, calibrated (Floats): The chance of each, before and after calibration.
    found (Ints): Units that the model says hold, of each document, shape (n_docs,): also of those that have no chances.
    sizes (Floats | None): What each document has of units like these, (n_docs,); None where that is not to be said.
    """

    documents: Ints
    raw: Floats
    calibrated: Floats
    found: Ints
    sizes: Floats | None = None

    def of(self, own: Ints) -> Units:
        """Those of some documents. own (Ints): Their numbers, ascending, which they lose: they are numbered anew."""
        place = np.full(len(self.found), -1)
        place[own] = np.arange(len(own))
        kept = place[self.documents] >= 0
        return Units(
            place[self.documents[kept]],
            self.raw[kept],
            self.calibrated[kept],
            self.found[own],
            None if self.sizes is None else self.sizes[own],
        )

    @property
    def expected(self) -> Floats:
        """How many hold in each document, shape (n_docs,)."""
        return sum_by(self.documents, self.calibrated, len(self.found))

    @property
    def open(self) -> Floats:
        """The sum of p (1 - p) of each document: the variance of its count if its units are independent."""
        return sum_by(self.documents, self.calibrated * (1 - self.calibrated), len(self.found))

    def by_document(self) -> Units:
        """A unit for each document: whether one of its units holds at least."""
        n_docs = len(self.found)
        none = [
            sum_by(self.documents, np.log1p(-np.minimum(chances, 1 - 1e-16)), n_docs) for chances in (self.raw, self.calibrated)
        ]
        raw, calibrated = (np.clip(-np.expm1(one), 0.0, 1.0) for one in none)
        return Units(np.arange(n_docs), raw, calibrated, (self.found > 0).astype(np.intp))


def told(found: int, distribution: Counted, confidence: float = 0.95, expected: float | None = None) -> Estimate:
    """A distribution as it is told. expected (float | None): What stands for its mean. RAISES C001: confidence out of range."""
    low, high = distribution.interval(confidence)
    return Estimate(found, distribution.mean if expected is None else expected, float(low), float(high))


def centre_of(effects: Effects | None, verdict: str) -> str:
    """What an estimate takes for the expected number: "found" where texts differ from the fit data (there the chances may be farther off than what
    was found, at home they are nearer), "expected" where they do not, and where nothing is known of how far found numbers are off.
    """
    return "found" if effects is not None and effects.widths and verdict in (DIFFERENT, OTHER_WEIGHTS) else "expected"


def estimate(units: Units, effects: Effects | None = None, confidence: float = 0.95, verdict: str = LIKE) -> Estimate:
    """From the calibrated chances. verdict (str): Whether the texts are like the fit data, see `Drift`: the gold of others may be of another source, as may
    that of all texts where the fit knows several. RAISES C001: confidence out of range. C390: no chances.
    """
    found = int(units.found.sum())
    home = counted(units.calibrated, units.documents, effects, units.sizes)
    centre = found if centre_of(effects, verdict) == "found" else None
    if effects is None or (centre is None and effects.sources < 2):
        return told(found, home, confidence)
    most = max(found, len(units.calibrated))
    away = of_another_source(home, effects, float(units.open.sum()), centre, most, open_ended=units.sizes is not None)
    return told(found, away, confidence, home.mean if centre is None else centre)


def corrected(units: Units, sizes: Floats, known: Known, confidence: float = 0.95, gold: Floats | None = None) -> Estimate:
    """As labelled documents of this kind correct it (prediction-powered, see `expect.prediction_powered`).

    sizes (Floats): Tokens of each document, shape (n_docs,). known (Known): Of the labelled documents, k = 1: what their gold counts, what the
    chances expect, the variance of independent units, and tokens. gold (Floats | None): What the gold counts in each document that is itself
    a labelled one, NaN of the others, (n_docs,): what is known needs no estimate.
    RAISES C001: confidence out of range.
    """
    found = int(units.found.sum())
    labelled = np.zeros(len(sizes), dtype=bool) if gold is None else ~np.isnan(gold)
    certain = 0.0 if gold is None else float(gold[labelled].sum())
    own = np.flatnonzero(~labelled)
    rest = units.of(own)
    total = float(sizes[own].sum())
    if not total:
        return Estimate(found, certain, certain, certain)
    survey = Survey(known, np.zeros(1), np.zeros(1), rest.expected[:, None], sizes[own, None])
    share = float(survey.totals()[0]) / total
    lengths = known.units[:, 0]
    docs = float(lengths.sum() ** 2 / max(float(np.square(lengths).sum()), 1.0))
    variance = max(survey.variance(np.ones(1)), float(rest.open.sum())) / total**2
    near = interval(share, variance, docs, confidence)
    return Estimate(found, *(certain + total * value for value in near))
